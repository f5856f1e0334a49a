#!/usr/bin/env python3
"""conv_passes.py LIBRARY [PATTERN] - each pass of convolutions, here and in PyTorch, in turn, in one process.

GFLOP/s of ours and of PyTorch's faster memory format, and the ratio of times (above 1: ours is faster): the
median of pairs, its range, and the geometric mean and the worst of all.  ROUNDS=7; SHAPES=random SEED=n
COUNT=n draws shapes instead; DTYPE=bf16 (f32); THREADS=1 (then time is that of the thread, so that other
programs on the core do not count); TUNED=1 lets malloc keep freed memory, which helps PyTorch.  Both results
are compared too.
"""

import ctypes, math, os, random, statistics, sys, time

os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
import torch

library, pattern = ctypes.CDLL(os.path.abspath(sys.argv[1])), sys.argv[2] if len(sys.argv) > 2 else ""
ROUNDS, THREADS = int(os.environ.get("ROUNDS", "7")), int(os.environ.get("THREADS", "1"))
torch.set_num_threads(THREADS)
library.tensor_set_num_threads(THREADS)
if os.environ.get("TUNED"):
    libc = ctypes.CDLL(None)
    for option, value in ((-3, 1 << 30), (-1, (1 << 31) - 1), (-2, 1 << 28)):
        libc.mallopt(option, value)
torch.manual_seed(0)

# name: batch, in, h, w, out, kh, kw, stride, pad, dilation, groups
chosen = {
    "resnet 3->64@32": (32, 3, 32, 32, 64, 3, 3, 1, 1, 1, 1),
    "resnet 64->64@32": (32, 64, 32, 32, 64, 3, 3, 1, 1, 1, 1),
    "resnet 64->128 s2@32": (32, 64, 32, 32, 128, 3, 3, 2, 1, 1, 1),
    "resnet 64->128 1x1 s2@32": (32, 64, 32, 32, 128, 1, 1, 2, 0, 1, 1),
    "resnet 128->128@16": (32, 128, 16, 16, 128, 3, 3, 1, 1, 1, 1),
    "resnet 128->256 s2@16": (32, 128, 16, 16, 256, 3, 3, 2, 1, 1, 1),
    "resnet 128->256 1x1 s2@16": (32, 128, 16, 16, 256, 1, 1, 2, 0, 1, 1),
    "resnet 256->256@8": (32, 256, 8, 8, 256, 3, 3, 1, 1, 1, 1),
    "resnet 256->512 s2@8": (32, 256, 8, 8, 512, 3, 3, 2, 1, 1, 1),
    "resnet 256->512 1x1 s2@8": (32, 256, 8, 8, 512, 1, 1, 2, 0, 1, 1),
    "resnet 512->512@4": (32, 512, 4, 4, 512, 3, 3, 1, 1, 1, 1),
    "mnist 1->32@28": (64, 1, 28, 28, 32, 3, 3, 1, 0, 1, 1),
    "mnist 32->64@26": (64, 32, 26, 26, 64, 3, 3, 1, 0, 1, 1),
    "dcgan 3->64 k4s2@64": (16, 3, 64, 64, 64, 4, 4, 2, 1, 1, 1),
    "dcgan 64->128 k4s2@32": (16, 64, 32, 32, 128, 4, 4, 2, 1, 1, 1),
    "dcgan 128->256 k4s2@16": (16, 128, 16, 16, 256, 4, 4, 2, 1, 1, 1),
    "dcgan 256->512 k4s2@8": (16, 256, 8, 8, 512, 4, 4, 2, 1, 1, 1),
    "dcgan 512->1 k4@4": (16, 512, 4, 4, 1, 4, 4, 1, 0, 1, 1),
    "dcgan 512->100 k4@4": (16, 512, 4, 4, 100, 4, 4, 1, 0, 1, 1),
    "depthwise 64@56": (8, 64, 56, 56, 64, 3, 3, 1, 1, 1, 64),
    "depthwise 128 s2@28": (8, 128, 28, 28, 128, 3, 3, 2, 1, 1, 128),
    "depthwise 256@14": (8, 256, 14, 14, 256, 3, 3, 1, 1, 1, 256),
    "depthwise 512@7": (8, 512, 7, 7, 512, 3, 3, 1, 1, 1, 512),
    "groups 4 of 32@28": (8, 128, 28, 28, 128, 3, 3, 1, 1, 1, 4),
    "dilated 64->64 d2@28": (8, 64, 28, 28, 64, 3, 3, 1, 2, 2, 1),
    "5x5 32->48@14": (16, 32, 14, 14, 48, 5, 5, 1, 2, 1, 1),
    "1x1 64->256@28": (8, 64, 28, 28, 256, 1, 1, 1, 0, 1, 1),
    "16->16@32": (32, 16, 32, 32, 16, 3, 3, 1, 1, 1, 1),
    "one image 64->64@56": (1, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1),
    "one image 512->512@7": (1, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1),
}


def drawn(count, seed):
    draw, found = random.Random(seed), {}
    while len(found) < count:
        k, s = draw.choice((1, 2, 3, 3, 3, 4, 5, 7)), draw.choice((1, 1, 1, 2, 2, 3))
        d = draw.choice((1, 1, 1, 2))
        groups = draw.choice((1, 1, 1, 1, 2, 4, 0))
        c, o = (int(2 ** draw.uniform(1, 9)) for _ in range(2))
        if groups == 0:
            groups = o = c
        c, o = -(-c // groups) * groups, -(-o // groups) * groups
        h, n, p = int(2 ** draw.uniform(1, 6.5)), int(2 ** draw.uniform(0, 6)), draw.randint(0, k // 2)
        if h + 2 * p <= d * (k - 1) or not 1e6 < n * h * h / s / s * c * o / groups * k * k < 2e9:
            continue
        found[f"{n}x{c}->{o} k{k}s{s}p{p}d{d}g{groups}@{h}"] = (n, c, h, h, o, k, k, s, p, d, groups)
    return found


clock = time.thread_time if THREADS == 1 else time.perf_counter
random_shapes, seed = os.environ.get("SHAPES") == "random", int(os.environ.get("SEED", "1"))
cases = drawn(int(os.environ.get("COUNT", "40")), seed) if random_shapes else chosen
bf16 = os.environ.get("DTYPE") == "bf16"
dtype = torch.bfloat16 if bf16 else torch.float32
WORST_ERROR = 2e-2 if bf16 else 1e-4
ratios = {"forward": {}, "dx": {}, "dw": {}}


def timed(f):
    t = clock()
    f()
    return clock() - t


def theirs(x, w, g, s, p, d, groups):
    back = torch.ops.aten.convolution_backward
    rest = ([s, s], [p, p], [d, d], False, [0, 0], groups)
    return (
        lambda: torch.nn.functional.conv2d(x, w, None, s, p, d, groups),
        lambda: back(g, x, w, None, *rest, [True, False, False])[0],
        lambda: back(g, x, w, None, *rest, [False, True, False])[1],
    )


def compare(name, got, want):
    error = (got - want).abs().max().item() / (want.abs().max().item() + 1e-30)
    if not error < WORST_ERROR:
        sys.exit(f"{name}: results differ by {error:.2g}")


def measure(name, n, c, h, wide, o, kh, kw, s, p, d, groups):
    x, w = torch.randn(n, c, h, wide, dtype=dtype), torch.randn(o, c // groups, kh, kw, dtype=dtype)
    y = torch.nn.functional.conv2d(x, w, None, s, p, d, groups)
    g = torch.randn_like(y)
    flops = 2 * y.numel() * w.numel() / o
    geometry = (ctypes.c_int64 * 11)(n, c, h, wide, o, kh, kw, s, p, d, groups)
    last = dict(memory_format=torch.channels_last)
    plain = theirs(x, w, g, s, p, d, groups)
    nhwc = theirs(x.contiguous(**last), w.contiguous(**last), g.contiguous(**last), s, p, d, groups)
    for kind, key in enumerate(ratios):
        out = torch.full_like((y, x, w)[kind], float("nan"))
        ptr = [ctypes.c_void_p(t.data_ptr()) for t in (x, w, g)]
        ptr[(2, 0, 1)[kind]] = ctypes.c_void_p(out.data_ptr())
        ours = lambda: library.conv_pass(kind, geometry, bf16, *ptr)
        sides = (ours, plain[kind], nhwc[kind])
        if ours():
            sys.exit(f"{name}: our pass {kind} failed")
        compare(f"{name} {key}", out, plain[kind]())
        nhwc[kind](), ours()
        runs = [[timed(f) for f in sides] for _ in range(ROUNDS)]
        pairs = sorted(min(a, b) / us for us, a, b in runs)
        us, a, b = (statistics.median(r) for r in zip(*runs))
        ratios[key][name] = statistics.median(pairs)
        print(
            f"{name:28} {key:8} {flops / us * 1e-9:7.1f} {flops / min(a, b) * 1e-9:7.1f}"
            f" {'NHWC' if b < a else 'NCHW'} {ratios[key][name]:6.2f}  ({pairs[0]:.2f} to {pairs[-1]:.2f})",
            flush=True,
        )


tuned = ", malloc tuned" * ("TUNED" in os.environ)
print(f"torch {torch.__version__}, {THREADS} thread{'s' * (THREADS > 1)}, {ROUNDS} rounds{tuned}")
print(f"{'shape':28} {'pass':8} {'ours':>7} {'torch':>7} {'':4} {'ratio':>6}")
for name, shape in cases.items():
    if pattern in name:
        measure(name, *shape)
for key, found in ratios.items():
    if found:
        mean = math.exp(statistics.fmean(math.log(r) for r in found.values()))
        worst = min(found, key=found.get)
        below = sum(r < 1 for r in found.values())
        print(
            f"{key}: geometric mean {mean:.2f}, below 1: {below} of {len(found)},"
            f" worst {found[worst]:.2f} ({worst})"
        )
