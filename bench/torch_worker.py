#!/usr/bin/env python3
"""torch_worker.py CASE FORM THREADS - PyTorch's side of bench.c, by the same rules: sets the case up, runs it
a few times, says "ready FLOPS" (the floating operations of a block, as PyTorch counts them; 0: not counted),
and then for each line with a number of seconds prints the median time of a block and the growth of the
peak of memory.

FORM: eager, channels_last, compiled (torch.compile), fused, foreach; on a GPU graph (a CUDA graph of the
eager block) and reduced (torch.compile, mode="reduce-overhead"); "none" where it does not apply.
"""

import atexit, os, re, resource, shutil, statistics, sys, tempfile, time

os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
import torch
import torch.nn as nn
import torch.nn.functional as F

from torch_nets import CharLstm, Gpt, Vae, discriminator_net, generator_net
from torch_nets import mlp_net, mnist_net, resnet18_net, resnet50_net

DEVICE = os.environ.get("DEVICE", "cpu").split(":")[0]


def peak():
    if DEVICE == "cuda":
        return torch.cuda.max_memory_allocated() // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


BASE = peak()
case, form, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(threads)
torch.set_default_device(DEVICE)
torch.manual_seed(0)


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


# ---- steps


def shaped(net, x):
    """The network in the form that is asked for, and its input."""
    if form == "channels_last":
        if x.dim() != 4:
            return None, None
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if form in ("compiled", "reduced"):
        net = torch.compile(net, mode="reduce-overhead" if form == "reduced" else None)
    return net, x


def mixed():
    return torch.autocast(DEVICE, torch.bfloat16, enabled="_bf16_" in case)


def classifier(net, x, classes, rows, make_optimizer):
    net, x = shaped(net, x)
    if net is None:
        return None
    if case.endswith("_inference"):
        net.eval()
        return lambda: net(x)
    y, opt = torch.randint(0, classes, (rows,)), make_optimizer(net.parameters())

    def step():
        opt.zero_grad()
        with mixed():
            loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()

    return step


def adam(p):
    return torch.optim.Adam(p, lr=1e-3, capturable=form == "graph")


def sgd(p):
    return torch.optim.SGD(p, lr=0.01)


def momentum(p):
    return torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=5e-4)


def gpt(vocabulary, n, t, *sizes):
    x, y = torch.randint(0, vocabulary, (n, t)), torch.randint(0, vocabulary, (n, t))
    net, x = shaped(Gpt(vocabulary, t, *sizes), x)
    if net is None:
        return None
    if case.endswith("_inference"):
        net.eval()
        return lambda: net(x)
    capturable = form == "graph"
    opt = torch.optim.AdamW(
        net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, capturable=capturable
    )

    def step():
        with mixed():
            loss = net(x, y)[1]
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad()

    return step


def gpt2(n, t, width, heads, layers, vocabulary):
    return gpt(vocabulary, n, t, width, heads, layers, True)


def resnet50(n, side, width):
    torch.backends.cudnn.benchmark = True
    return classifier(resnet50_net(width), torch.randn(n, 3, side, side), 1000, n, momentum)


def vae():
    net, x = shaped(Vae(), torch.rand(128, 784))
    if net is None:
        return None
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step():
        y, mu, logvar = net(x)
        kl = 1 + logvar - (mu.square() + logvar.exp())
        loss = F.binary_cross_entropy(y, x, reduction="sum") - 0.5 * kl.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()

    return step


def dcgan():
    judge, real = shaped(discriminator_net(), torch.randn(64, 1, 32, 32))
    maker, _ = shaped(generator_net(), real)
    opts = [torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999)) for m in (judge, maker)]
    ones, loss = torch.ones(64), F.binary_cross_entropy_with_logits

    def step():
        made = maker(torch.randn(64, 64, 1, 1))
        opts[0].zero_grad()
        loss(judge(real), ones).backward()
        loss(judge(made.detach()), torch.zeros(64)).backward()
        opts[0].step()
        opts[1].zero_grad()
        loss(judge(made), ones).backward()
        opts[1].step()

    return step


# ---- kernels


def numbers(pattern):
    return [int(n) for n in re.findall(r"\d+", pattern)]


def product(sizes):
    m, n, k = numbers(sizes)
    if sizes.startswith("medium"):
        torch.set_float32_matmul_precision("medium")
    a = torch.randn(k, m).t() if sizes[-2] == "T" else torch.randn(m, k)
    b = torch.randn(n, k).t() if sizes[-1] == "T" else torch.randn(k, n)
    return lambda: torch.mm(a, b)


def conv(sizes, which):
    n, c, side, _, k, size, stride = numbers(sizes.replace("x", " ", 2).replace("_", " x0 ", 1))
    x, w = torch.randn(n, c, side, side), torch.randn(k, c, size, size)
    if form == "channels_last":
        x, w = (t.to(memory_format=torch.channels_last) for t in (x, w))
    padding = size // 2
    if which == "forward":
        return lambda: F.conv2d(x, w, None, stride, padding)
    g = torch.randn_like(F.conv2d(x, w, None, stride, padding))
    mask = [which == "dx", which == "dw", False]
    back = torch.ops.aten.convolution_backward
    step, pad, one = [stride] * 2, [padding] * 2, [1, 1]
    return lambda: back(g, x, w, None, step, pad, one, False, [0, 0], 1, mask)


def attention(sizes, both):
    q, k, v = (torch.randn(*numbers(sizes), requires_grad=both) for _ in range(3))
    g = torch.randn_like(q)

    def block():
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.autograd.grad(y, (q, k, v), g) if both else y

    return block


def recurrent(layer):
    x, g = torch.randn(32, 32, 256, requires_grad=True), torch.randn(32, 32, 256)

    def block():
        layer(x)[0].backward(g)
        layer.zero_grad()
        x.grad = None

    return block


ELEMENTWISE = {
    "add": lambda x, y, w: x + y,
    "relu": lambda x, y, w: torch.relu(x),
    "exponential": lambda x, y, w: torch.exp(x),
    "gelu": lambda x, y, w: F.gelu(x),
    "tangent": lambda x, y, w: torch.tanh(x),
    "softmax": lambda x, y, w: F.softmax(x, 1),
    "layer_norm": lambda x, y, w: F.layer_norm(x, w.shape, w),
    "copy": lambda x, y, w: y.copy_(x),
    "cross_entropy": lambda x, y, w: F.cross_entropy(x, y),
    "sum": lambda x, y, w: x.sum(),
    "sum_columns": lambda x, y, w: x.sum(0).sum(),
}


def elementwise(name, both, size):
    n, f = size // 4, ELEMENTWISE[name]
    row = min(n, 512)
    x, y, w = torch.randn(n // row, row, requires_grad=both), torch.randn(n // row, row), torch.ones(row)
    g = None if name.startswith(("sum", "cross")) else torch.ones(n // row, row)
    if name == "cross_entropy":
        y = torch.randint(0, row, (n // row,))

    def block():
        z = f(x, y, w)
        if both:
            z.backward(g)
            x.grad = None

    return block


def state_dict(write):
    folder = tempfile.mkdtemp(dir=".", prefix="bench-")
    atexit.register(shutil.rmtree, folder)
    path = os.path.join(folder, "state")
    net = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(3)])
    try:
        from safetensors.torch import load_file as load, save_file as save
    except ImportError:
        save, load = torch.save, torch.load
    save(net.state_dict(), path)
    if write:
        return lambda: save(net.state_dict(), path)
    return lambda: [t.sum() for t in load(path).values()]


def loader():
    data = torch.utils.data.TensorDataset(torch.rand(6400, 1, 28, 28), torch.randint(0, 10, (6400,)))
    batches = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)

    def block():
        for _ in batches:
            pass

    return block


# ---- calls


def chain(both, times=1):
    x, b, one = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True), torch.ones(4)

    def block():
        for _ in range(times):
            y = x
            for _ in range(10):
                y = torch.relu(y + b)
            if both:
                y.backward(one)

    return block


def parameters(n):
    found = [nn.Parameter(torch.randn(1000000 // n)) for _ in range(n)]
    for p in found:
        p.grad = torch.randn_like(p)
    return found


def optimizer_form():
    return {"fused": True, "capturable": True} if form == "graph" else {form: True}


def adamw(n):
    return torch.optim.AdamW(parameters(n), lr=1e-3, **optimizer_form()).step


def update(size):
    p = nn.Parameter(torch.randn(size // 4))
    p.grad = torch.randn_like(p)
    return torch.optim.AdamW([p], lr=1e-3, **optimizer_form()).step


def clip(n, most):
    found = parameters(n)
    return lambda: nn.utils.clip_grad_norm_(found, most)


def op(f, *shape):
    x = torch.rand(shape)
    return lambda: f(x)


def both_or_forward(name):
    return elementwise(name.rsplit("_", 2)[0], "_both_" in name, int(name.rsplit("_", 1)[1]))


CASES = [  # a pattern, the forms that apply, units a block, the block of a match
    (r"mlp_\w+", "compiled", 1, lambda m: classifier(mlp_net(), torch.rand(64, 784), 10, 64, sgd)),
    (
        r"mnist_cnn_\w+",
        "channels_last compiled",
        1,
        lambda m: classifier(mnist_net(), torch.rand(64, 1, 28, 28), 10, 64, adam),
    ),
    (
        r"resnet18_\w+",
        "channels_last compiled",
        1,
        lambda m: classifier(resnet18_net(), torch.randn(32, 3, 32, 32), 10, 32, momentum),
    ),
    (
        r"resnet50_bf16_step_(.*)",
        "channels_last compiled",
        1,
        lambda m: resnet50(*numbers(m[1])),
    ),
    (r"gpt2_bf16_step_(.*)", "compiled", 1, lambda m: gpt2(*numbers(m[1]))),
    (r"nanogpt_\w+", "compiled", 1, lambda m: gpt(65, 12, 64, 128, 4, 4, False)),
    (r"gpt2_block_step", "compiled", 1, lambda m: gpt(64, 2, 256, 768, 12, 1, True)),
    (
        r"lstm_(step|inference)",
        "",
        1,
        lambda m: classifier(CharLstm(), torch.randn(32, 32, 256), 64, 32 * 32, adam),
    ),
    (r"dcgan_step", "channels_last compiled", 1, lambda m: dcgan()),
    (r"vae_step", "compiled", 1, lambda m: vae()),
    (r"product_(.*)", "", 1, lambda m: product(m[1])),
    (r"conv_(forward|dx|dw)_(.*)", "channels_last", 1, lambda m: conv(m[2], m[1])),
    (r"attention_(forward|both)_(.*)", "", 1, lambda m: attention(m[2], m[1] == "both")),
    (r"(lstm|gru|rnn)_layer_both", "", 1, lambda m: recurrent(getattr(nn, m[1].upper())(256, 256))),
    (r"state_dict_(write|read)", "", 1, lambda m: state_dict(m[1] == "write")),
    (r"loader_batch", "", 100, lambda m: loader()),
    (r"chain20_(forward|both)", "", 20, lambda m: chain(m[1] == "both")),
    (r"chain200_forward", "", 200, lambda m: chain(False, 10)),
    (r"adamw_update_(\d+)", "fused foreach", 1, lambda m: update(int(m[1]))),
    (r"adamw_(\d+)", "fused foreach", 1, lambda m: adamw(int(m[1]))),
    (r"clip_norm_(\d+)", "", 1, lambda m: clip(int(m[1]), 1e9)),
    (r"clip_norm_scaling_(\d+)", "", 1, lambda m: clip(int(m[1]), 1e-3)),
    (r"sum_middle_100x100x100", "", 1, lambda m: op(lambda x: x.sum(1), 100, 100, 100)),
    (r"cumsum_100k", "", 1, lambda m: op(lambda x: x.cumsum(0), 100000)),
    (r"sort_100k", "", 1, lambda m: op(torch.sort, 100000)),
    (r"lgamma_100k", "", 1, lambda m: op(torch.lgamma, 100000)),
    (r"\w+_(forward|both)_\d+", "", 1, lambda m: both_or_forward(m[0])),
]


def find():
    for pattern, forms, per, make in CASES:
        match = re.fullmatch(pattern, case)
        if match:
            apply = forms.split() + ([] if case.startswith("adamw_") else ["eager"])
            if DEVICE == "cuda":
                apply += ["graph"] + (["reduced"] if "compiled" in apply else [])
            return (make(match), per) if form in apply else (None, 1)
    sys.exit(f"torch_worker.py: no case {case}")


def recurrent_products(x, w_ih, w_hh, *_, **__):
    """Of all steps of a layer: x [steps, batch, in], w_ih [gates, in], w_hh [gates, hidden]."""
    return 2 * x[0] * x[1] * (w_ih[0] * w_ih[1] + w_hh[0] * w_hh[1])


def count(block):
    """Of products, convolutions, attention and recurrent layers; what a compiled graph hides is not counted."""
    from torch.utils.flop_counter import FlopCounterMode, register_flop_formula

    register_flop_formula(torch.ops.aten.mkldnn_rnn_layer)(recurrent_products)
    register_flop_formula(torch.ops.aten.mkldnn_rnn_layer_backward)(
        lambda *shapes, **names: 2 * recurrent_products(*shapes, **names)
    )
    with FlopCounterMode(display=False) as counter:
        block()
    return counter.get_total_flops()


def graphed(block):
    """A CUDA graph of all that a block does."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            block()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        block()
    return graph.replay


CLOCK = os.environ.get("CLOCK", "wall")
now = time.perf_counter if CLOCK == "wall" else time.process_time


def time_of(block, n):
    spent, t = 0, now()
    for _ in range(n):
        if form == "reduced":
            torch.compiler.cudagraph_mark_step_begin()
        block()
        if CLOCK == "issue":
            spent += now() - t
            wait()
            t = now()
    if CLOCK == "issue":
        return spent
    wait()
    return now() - t


def median_block(block, per, seconds):
    n = int(seconds / 5 / (time_of(block, 1) + 1e-9)) + 1
    return statistics.median(time_of(block, n) / n / per * 1e9 for _ in range(5))


def run():
    block, per = find()
    if block is None:
        return print("none", flush=True)
    if form == "graph":
        block = graphed(block)
    time_of(block, 3)
    print("ready", count(block) if form == "eager" else 0, flush=True)
    for line in sys.stdin:
        ns = median_block(block, per, float(line))
        print(f"{ns:.2f} {peak() - BASE}", flush=True)


NO_GRAD = ("inference", "forward", "product", "state_dict", "adamw", "clip", "100k", "middle")
with torch.set_grad_enabled(not any(word in case for word in NO_GRAD)):
    run()
