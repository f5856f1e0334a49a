"""nn.py - golden values of layers from PyTorch, printed as the C header nn_golden.h.

    python nn.py > nn_golden.h

Initial values after a seed, and results of layers.
f32 numbers of initial values are those of AVX2 machines: run it on one.
"""

import math
import sys

import torch
from torch import nn, optim

torch.set_num_threads(1)


def text(value, digits):
    s = "%.*g" % (digits, value)
    return s if any(c in s for c in ".en") else s + ".0"


def table(name, values, digits=17):
    if isinstance(values, torch.Tensor):
        digits = 9 if values.dtype == torch.float32 else 17
        values = values.detach().flatten().tolist()
    print("static const double %s[%d] = {" % (name, len(values)))
    line = "   "
    for v in values:
        item = " " + text(v, digits) + ","
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def note(s):
    print("\n/* %s */" % s)


def flat(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def ramp(*shape, dtype=torch.float64):
    """x_i = ((7 i) mod 13 - 6) / 8: exact in every dtype, and easily made in C."""
    n = math.prod(shape)
    return ((torch.arange(n) * 7 % 13 - 6) / 8.0).to(dtype).reshape(shape)


# ---- initial values -------------------------------------------------------------------------------------


def initial(name, make):
    torch.manual_seed(0)
    table("golden_init_" + name, flat(make()))


def initial_fn(name, shape, fn):
    torch.manual_seed(0)
    x = torch.empty(shape)
    fn(x)
    table("golden_init_" + name, x)


def initials():
    note("after manual_seed(0), all parameters in order, f32")
    initial("linear", lambda: nn.Linear(3, 2))
    initial("linear_f64", lambda: nn.Linear(3, 2, dtype=torch.float64))
    initial("conv2d", lambda: nn.Conv2d(4, 2, (2, 1), groups=2))
    initial("embedding", lambda: nn.Embedding(3, 2, padding_idx=1))
    initial("attention", lambda: nn.MultiheadAttention(4, 2))
    initial(
        "net",
        lambda: nn.Sequential(
            nn.Linear(2, 2),
            nn.BatchNorm1d(2),
            nn.ReLU(),
            nn.LayerNorm(2, bias=False),
            nn.Linear(2, 1, bias=False),
        ),
    )
    note("the same of nn.init")
    initial_fn(
        "xavier_uniform", (2, 3), lambda x: nn.init.xavier_uniform_(x, gain=nn.init.calculate_gain("tanh"))
    )
    initial_fn("xavier_normal", (2, 3, 2), nn.init.xavier_normal_)
    initial_fn("kaiming_uniform", (2, 3), lambda x: nn.init.kaiming_uniform_(x, a=0.2))
    initial_fn(
        "kaiming_normal", (2, 3, 2), lambda x: nn.init.kaiming_normal_(x, mode="fan_out", nonlinearity="relu")
    )
    initial_fn("trunc_normal", (6,), lambda x: nn.init.trunc_normal_(x, std=0.02))
    initial_fn("orthogonal_wide", (2, 3), nn.init.orthogonal_)
    initial_fn("orthogonal_tall", (3, 2), lambda x: nn.init.orthogonal_(x, gain=2))
    initial_fn("eye_wide", (2, 4), nn.init.eye_)
    initial_fn("eye_tall", (4, 2), nn.init.eye_)
    initial_fn("dirac1d", (3, 2, 4), nn.init.dirac_)
    initial_fn("dirac2d", (4, 3, 3, 2), lambda x: nn.init.dirac_(x, groups=2))
    initial_fn("dirac3d", (3, 1, 2, 1, 3), lambda x: nn.init.dirac_(x, groups=3))
    initial_fn("sparse", (5, 4), lambda x: nn.init.sparse_(x, sparsity=0.3))
    initial_fn("sparse_wide", (3, 6), lambda x: nn.init.sparse_(x, sparsity=1 / 3, std=2))
    initial_fn("sparse_turned", (5, 4), lambda x: nn.init.sparse_(x.t(), sparsity=0.5))


# ---- layers ------------------------------------------------------------------------------------------------


def layers():
    f64 = torch.float64
    note("self-attention of width 4, 2 heads, of ramp(3, 2, 4): plain, causal; parameters are ramps / 2")
    m = nn.MultiheadAttention(4, 2, dtype=f64)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(ramp(*p.shape) / 2)
    x = ramp(3, 2, 4)
    table("golden_attention", m(x, x, x, need_weights=False)[0])
    mask = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
    table("golden_attention_causal", m(x, x, x, attn_mask=mask, need_weights=False)[0])

    for name, momentum in (("", 0.1), ("_cumulative", None)):
        note(
            "batch norm, momentum %s: results of 3 batches ramp(4, 3) * k, running statistics, result in eval"
            % momentum
        )
        m = nn.BatchNorm1d(3, momentum=momentum, dtype=f64)
        out = []
        for k in (1, 2, 3):
            y = m(ramp(4, 3) * k + k)
        out += y.detach().flatten().tolist() + m.running_mean.tolist() + m.running_var.tolist()
        m.eval()
        table("golden_batch_norm" + name, out + m(ramp(4, 3)).detach().flatten().tolist())

    note("an MLP in f64 after manual_seed(0): losses of 6 steps of Adam")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8, dtype=f64), nn.Tanh(), nn.Linear(8, 3, dtype=f64))
    opt = optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(6):
        loss = nn.functional.cross_entropy(net(ramp(5, 4)), torch.tensor([0, 1, 2, 0, 1]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    table("golden_mlp_losses", losses)


def main():
    print(
        "/* nn_golden.h - printed by nn.py with PyTorch %s; do not edit. */" % torch.__version__.split("+")[0]
    )
    print("#ifndef TAPEGRAD_TEST_NN_GOLDEN_H\n#define TAPEGRAD_TEST_NN_GOLDEN_H")
    initials()
    layers()
    print("\n#endif")


if __name__ == "__main__":
    sys.exit(main())
