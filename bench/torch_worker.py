#!/usr/bin/env python3
"""torch_worker.py CASE FORM THREADS - PyTorch's side of bench.c, by the same rules: sets the case up, runs it
a few times, says "ready FLOPS" (the floating operations of a block, as PyTorch counts them; 0: not counted),
and then for each line with a number of seconds prints the median time of a block and the growth of the
peak of memory.

FORM: eager, channels_last, compiled (torch.compile), fused, foreach; "none" where it does not apply.
"""

import atexit, os, re, resource, shutil, statistics, sys, tempfile, time

os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
import torch
import torch.nn as nn
import torch.nn.functional as F


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


# ---- networks, as bench/nets.c has them


def mlp_net():
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def mnist_net():
    convs = [
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
    ]
    return nn.Sequential(
        *convs, nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)
    )


def conv_norm(i, o, size, stride):
    return nn.Sequential(nn.Conv2d(i, o, size, stride, size // 2, bias=False), nn.BatchNorm2d(o))


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.Sequential(conv_norm(i, o, 3, stride), nn.ReLU(), conv_norm(o, o, 3, 1))
        self.shortcut = nn.Identity() if i == o and stride == 1 else conv_norm(i, o, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet18_net():
    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    sizes += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    blocks = [BasicBlock(*s) for s in sizes]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    return nn.Sequential(conv_norm(3, 64, 3, 1), nn.ReLU(), *blocks, *tail)


class CharLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(256, 256, 2), nn.Linear(256, 64)

    def forward(self, x):
        return self.head(self.lstm(x)[0].flatten(0, 1))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 400), nn.ReLU())
        self.mean, self.logvar = nn.Linear(400, 20), nn.Linear(400, 20)
        self.decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid())

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mean(h), self.logvar(h)
        std = torch.exp(0.5 * logvar)
        return self.decoder(torch.addcmul(mu, torch.randn_like(std), std)), mu, logvar


def generator_net():
    def up(i, o, stride, padding):
        return nn.ConvTranspose2d(i, o, 4, stride, padding, bias=False)

    layers = [
        up(64, 256, 1, 0),
        nn.BatchNorm2d(256),
        nn.ReLU(),
        up(256, 128, 2, 1),
        nn.BatchNorm2d(128),
        nn.ReLU(),
    ]
    return nn.Sequential(
        *layers, up(128, 64, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), up(64, 1, 2, 1), nn.Tanh()
    )


def discriminator_net():
    def down(i, o, stride, padding):
        return nn.Conv2d(i, o, 4, stride, padding, bias=False)

    layers = [
        down(1, 64, 2, 1),
        nn.LeakyReLU(0.2),
        down(64, 128, 2, 1),
        nn.BatchNorm2d(128),
        nn.LeakyReLU(0.2),
    ]
    layers += [
        down(128, 256, 2, 1),
        nn.BatchNorm2d(256),
        nn.LeakyReLU(0.2),
        down(256, 1, 1, 0),
        nn.Flatten(0),
    ]
    return nn.Sequential(*layers)


class GptBlock(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width, bias),
            nn.GELU("tanh" if bias else "none"),
            nn.Linear(4 * width, width, bias),
        )

    def forward(self, x):
        n, t, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, 2)
        q, k, v = (p.view(n, t, self.heads, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, width, heads, layers, bias):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[GptBlock(width, heads, bias) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.tokens.weight = self.head.weight
        self.register_buffer("places", torch.arange(context), persistent=False)

    def forward(self, tokens, targets=None):
        logits = self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(self.places))))
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(0, 1))


# ---- steps


def shaped(net, x):
    """The network in the form that is asked for, and its input."""
    if form == "channels_last":
        if x.dim() != 4:
            return None, None
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if form == "compiled":
        net = torch.compile(net)
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
    return torch.optim.Adam(p, lr=1e-3)


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
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)

    def step():
        with mixed():
            loss = net(x, y)[1]
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad()

    return step


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
    "sum": lambda x, y, w: x.sum(),
    "sum_columns": lambda x, y, w: x.sum(0).sum(),
}


def elementwise(name, both, size):
    n, f = size // 4, ELEMENTWISE[name]
    row = min(n, 512)
    x, y, w = torch.randn(n // row, row, requires_grad=both), torch.randn(n // row, row), torch.ones(row)
    g = None if name.startswith("sum") else torch.ones(n // row, row)

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


def chain(both):
    x, b, one = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True), torch.ones(4)

    def block():
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


def adamw(n):
    return torch.optim.AdamW(parameters(n), lr=1e-3, **{form: True}).step


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
            plain = "" if case.startswith("adamw_") else "eager"
            return (make(match), per) if form in (forms + " " + plain).split() else (None, 1)
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


now = time.process_time if os.environ.get("CLOCK") == "cpu" else time.perf_counter


def median_block(block, per, seconds):
    t = now()
    block()
    wait()
    n = int(seconds / 5 / (now() - t + 1e-9)) + 1
    found = []
    for _ in range(5):
        t = now()
        for _ in range(n):
            block()
        wait()
        found.append((now() - t) / n / per * 1e9)
    return statistics.median(found)


def run():
    block, per = find()
    if block is None:
        return print("none", flush=True)
    for _ in range(3):
        block()
    print("ready", count(block) if form == "eager" else 0, flush=True)
    for line in sys.stdin:
        ns = median_block(block, per, float(line))
        print(f"{ns:.2f} {peak() - BASE}", flush=True)


NO_GRAD = ("inference", "forward", "product", "state_dict", "adamw", "clip", "100k", "middle")
with torch.set_grad_enabled(not any(word in case for word in NO_GRAD)):
    run()
