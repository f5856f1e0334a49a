#!/usr/bin/env python3
"""side_by_side.py BENCH [THREADS] - the same cases here and in PyTorch, in turn, in one run; medians and
their ratio.

Each round measures PyTorch (Python API), then our program, so that what disturbs the machine disturbs both.
CASES=adamw runs those whose names begin so.
"""

import os, statistics, subprocess, sys, time, timeit

os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
try:
    import torch
except ImportError:
    sys.exit(
        "make bench compares with PyTorch, which this Python does not have: pip install torch, or set PYTHON"
    )
import torch.nn as nn
import torch.nn.functional as F

bench, threads = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
ROUNDS, SECONDS = int(os.environ.get("ROUNDS", "7")), float(os.environ.get("SECONDS", "0.5"))
torch.set_num_threads(threads)
torch.manual_seed(0)


def chain(backward):
    x, b, one = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True), torch.ones(4)

    def block():
        y = x
        for _ in range(10):
            y = torch.relu(y + b)
        if backward:
            y.backward(one)

    return block, 20


def steps(net, opt, x, loss=F.cross_entropy):
    y = torch.randint(0, 10, (64,))

    def block():
        opt.zero_grad()
        loss(net(x), y).backward()
        opt.step()

    return block, 1


def mlp():
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    return steps(net, torch.optim.SGD(net.parameters(), lr=0.01), torch.rand(64, 784))


def cnn():
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )
    return steps(net, torch.optim.Adam(net.parameters(), lr=1e-3), torch.rand(64, 1, 28, 28))


def parameters(n):
    found = [nn.Parameter(torch.randn(1000000 // n)) for _ in range(n)]
    for p in found:
        p.grad = torch.randn_like(p)
    return found


def adamw(n):
    """PyTorch's faster form of the two."""
    forms = []
    for form in ("fused", "foreach"):
        opt = torch.optim.AdamW(parameters(n), lr=1e-3, **{form: True})
        for _ in range(3):
            opt.step()
        forms.append((min(timeit.repeat(opt.step, number=3, repeat=3)), form, opt.step))
    _, form, step = min(forms, key=lambda f: f[0])
    print(f"  of adamw_{n} PyTorch's {form} form", flush=True)
    return step, 1


def clip(n, most):
    found = parameters(n)
    return lambda: nn.utils.clip_grad_norm_(found, most), 1


def op(f, *shape):
    x = torch.rand(shape)
    return lambda: f(x), 1


def theirs(block, per):
    t = time.perf_counter()
    block()
    n = int(SECONDS / 5 / (time.perf_counter() - t + 1e-9)) + 1
    found = []
    for _ in range(5):
        t = time.perf_counter()
        for _ in range(n):
            block()
        found.append((time.perf_counter() - t) / n / per * 1e9)
    return statistics.median(found)


def ours(name):
    out = subprocess.run([bench, name, str(SECONDS), str(threads)], capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{name}: {out.stderr}")
    return float(out.stdout)


cases = {
    "chain20_forward": lambda: chain(False),
    "chain20_forward_backward": lambda: chain(True),
    "mlp_sgd_b64": mlp,
    "mnist_cnn_adam_b64": cnn,
    "adamw_1": lambda: adamw(1),
    "adamw_150": lambda: adamw(150),
    "adamw_10000": lambda: adamw(10000),
    "clip_norm_150": lambda: clip(150, 1e9),
    "clip_norm_scaling_150": lambda: clip(150, 1e-3),
    "clip_norm_10000": lambda: clip(10000, 1e9),
    "add_100k": lambda: op(lambda x: x + x, 100000),
    "exp_100k": lambda: op(torch.exp, 100000),
    "sum_middle_100x100x100": lambda: op(lambda x: x.sum(1), 100, 100, 100),
    "cumsum_100k": lambda: op(lambda x: x.cumsum(0), 100000),
    "sort_100k": lambda: op(torch.sort, 100000),
    "lgamma_100k": lambda: op(torch.lgamma, 100000),
}
print(
    f"torch {torch.__version__}, {threads} thread{'s' * (threads > 1)}, medians of {ROUNDS} rounds; ns per op (chains) or per step"
)
print(f"{'case':28} {'torch':>12} {'tapegrad':>12} {'times faster':>13}   (range)")
for name, make in cases.items():
    if not name.startswith(os.environ.get("CASES", "")):
        continue
    block, per = make()
    for _ in range(5):
        block()
    a, b = [], []
    for _ in range(ROUNDS):
        a.append(theirs(block, per))
        b.append(ours(name))
    ratios = [p / q for p, q in zip(a, b)]
    print(
        f"{name:28} {statistics.median(a):12.0f} {statistics.median(b):12.0f} {statistics.median(ratios):13.2f}   ({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )


def profiler():
    """Our own cost of the profiler, in turn: ns per op where it was never used, off again after use, on."""
    names = ["profiler_never", "profiler_off_again", "profiler_on"]
    found = [[ours(name) for name in names] for _ in range(ROUNDS)]
    base = statistics.median(row[0] for row in found)
    for i, name in enumerate(names):
        times = [row[i] for row in found]
        over = statistics.median(row[i] - row[0] for row in found)
        more = f"{over:+12.1f} ns   ({100 * over / base:+.1f} %)"
        print(f"{name:28} {'':12} {statistics.median(times):12.1f} {more}")


if "profiler".startswith(os.environ.get("CASES", "")):
    profiler()
