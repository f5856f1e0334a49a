"""cases_pool.py - pooling over one, two and three dimensions, pixel_shuffle."""

import math

import torch
import torch.nn.functional as F

from golden import chance, choice, floats, integers, number, spell, uniform

OPS, RANDOM = {}, {}
NAN, INF = math.nan, math.inf


def op(table, name, *args):
    def add(f):
        table[name] = lambda: f(*args)
        return f

    return add


def each(p, name, n, default):
    """A parameter's list as n numbers."""
    v = p.get(name, [])
    return [default] * n if not v else list(v) * n if len(v) == 1 else list(v)


def window(p, n):
    kernel = each(p, "kernel", n, 1)
    return {
        "kernel_size": kernel,
        "stride": each(p, "stride", n, 0) if p.get("stride") else kernel,
        "padding": each(p, "padding", n, 0),
        "ceil_mode": p.get("ceil_mode", False),
    }


def max_pool(n, p):
    f = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1]
    return lambda x: f(x, dilation=each(p, "dilation", n, 1), return_indices=True, **window(p, n))


def avg_pool(n, p):
    f = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1]
    more = {"count_include_pad": p.get("count_include_pad", True)}
    if n > 1:
        more["divisor_override"] = p.get("divisor_override")
    return lambda x: f(x, **window(p, n), **more)


# ---- by hand
WINDOWS = {
    1: (
        ((2, 3, 6), {"kernel": [2]}),
        ((3, 7), {"kernel": [3], "stride": [2], "padding": [1]}),
        ((1, 2, 6), {"kernel": [3], "stride": [2], "ceil_mode": True}),
        ((1, 2, 5), {"kernel": [3], "stride": [2], "padding": [1], "ceil_mode": True}),
        ((0, 2, 5), {"kernel": [2]}),
    ),
    2: (
        ((2, 3, 4, 4), {"kernel": [2]}),
        ((1, 2, 5, 6), {"kernel": [3, 2], "stride": [2, 1]}),
        ((2, 5, 5), {"kernel": [3], "stride": [2], "padding": [1]}),
        ((1, 2, 5, 5), {"kernel": [2], "ceil_mode": True}),
        ((1, 2, 5, 5), {"kernel": [3], "stride": [2], "padding": [1], "ceil_mode": True}),
        ((0, 3, 4, 4), {"kernel": [2]}),
    ),
    3: (
        ((1, 2, 4, 4, 4), {"kernel": [2]}),
        ((2, 3, 4, 5), {"kernel": [3, 2, 2], "stride": [1, 2, 2], "padding": [1, 0, 1]}),
        ((1, 1, 5, 4, 5), {"kernel": [2], "ceil_mode": True}),
        ((1, 2, 4, 5, 5), {"kernel": [3], "stride": [2], "padding": [1], "ceil_mode": True}),
        ((0, 2, 3, 3, 3), {"kernel": [2]}),
    ),
}
DILATED = {
    1: (((1, 2, 9), {"kernel": [3], "stride": [1], "dilation": [3], "padding": [1]}),),
    2: (
        ((1, 1, 7, 7), {"kernel": [3], "stride": [1], "dilation": [2]}),
        ((1, 1, 8, 9), {"kernel": [2, 3], "padding": [1, 1], "dilation": [3, 2], "stride": [2, 1]}),
    ),
    3: (((1, 2, 5, 5, 6), {"kernel": [2], "stride": [2], "dilation": [2, 3, 1]}),),
}
COUNTED = (
    {"count_include_pad": False},
    {"divisor_override": 3},
    {"count_include_pad": False, "divisor_override": 5},
)


def max_by_hand(n):
    for shape, p in WINDOWS[n] + DILATED[n]:
        yield max_pool(n, p), [uniform(*shape)], p
    for dtype in (torch.int64, torch.int32, torch.uint8):
        for shape, p in WINDOWS[n][1:4]:
            lo = 0 if dtype == torch.uint8 else -9
            yield max_pool(n, p), [integers(*shape, lo=lo, hi=9, dtype=dtype)], p
    size, p = (4,) * n, {"kernel": [3], "stride": [1], "padding": [1]}
    yield max_pool(n, p), [torch.zeros(1, 1, *size, dtype=torch.float64)], p  # ties
    hole = uniform(1, 1, *size)
    hole.reshape(-1)[6 % 4**n] = NAN
    yield max_pool(n, p), [hole], p
    yield max_pool(n, p), [torch.full((1, 1, *size), -INF, dtype=torch.float64)], p, (0,)


def avg_by_hand(n):
    for shape, p in WINDOWS[n]:
        yield avg_pool(n, p), [uniform(*shape)], p
        if shape[0]:
            yield avg_pool(n, p), [integers(*shape, lo=-9, hi=9)], p
    shape, p = WINDOWS[n][-2]
    for more in COUNTED[:1] if n == 1 else COUNTED:
        yield avg_pool(n, {**p, **more}), [uniform(*shape)], {**p, **more}


# ---- at random: a window that fits, every option
def line():
    """size, kernel, stride, padding, dilation"""
    kernel = number(1, 4)
    stride, padding, dilation = number(1, 3), number(0, kernel // 2), choice((1, 1, 2, 3))
    least = max(dilation * (kernel - 1) + 1 - 2 * padding, 1)
    return least + number(0, 6), kernel, stride, padding, dilation


def random_windows(n, dilated):
    size, kernel, stride, padding, dilation = zip(*(line() for _ in range(n)))
    p = {"kernel": list(kernel), "ceil_mode": chance(0.4)}
    if chance(0.8):
        p["stride"] = list(stride)
    if chance(0.7):
        p["padding"] = list(padding)
    if dilated and chance(0.6):
        p["dilation"] = list(dilation)
    # Room for a window whatever was left out.  PyTorch wants avg_pool3d's kernel to fit in the input
    # without padding, and reads outside the input where dilation leaves a window no tap inside.
    pads, gaps = p.get("padding", [0] * n), p.get("dilation", [1] * n)
    size = tuple(max(s, d, k, d * (k - 1) + 1 - 2 * q) for s, k, q, d in zip(size, kernel, pads, gaps))
    lead = (number(1, 3),) if chance(0.2) else (0 if chance(0.05) else number(1, 3), number(1, 3))
    return lead + size, p


def random_max(n):
    shape, p = random_windows(n, True)
    x = floats(*shape)
    if x.numel() and chance(0.2):  # the largest is one, or NaN: the first -inf is not told apart
        x.reshape(-1)[number(0, x.numel() - 1)] = choice((NAN, INF, 0.0))
    if chance(0.15):
        x = x.round()  # ties
    return max_pool(n, p), [x], p


def random_avg(n):
    shape, p = random_windows(n, False)
    if chance(0.4):
        p["count_include_pad"] = False
    if n > 1 and chance(0.3):
        p["divisor_override"] = number(1, 7)
    return avg_pool(n, p), [floats(*shape, special=0.15)], p


for n in (1, 2, 3):
    op(OPS, "max_pool%dd" % n, n)(max_by_hand)
    op(OPS, "avg_pool%dd" % n, n)(avg_by_hand)
    op(RANDOM, "max_pool%dd" % n, n)(random_max)
    op(RANDOM, "avg_pool%dd" % n, n)(random_avg)

# ---- adaptive
ADAPTIVE = {
    1: (((2, 3, 7), [3]), ((2, 5), [1]), ((1, 2, 3), [5]), ((0, 2, 5), [2]), ((1, 2, 8), [4])),
    2: (
        ((2, 3, 4, 6), [1, 1]),
        ((2, 3, 4, 6), [2, 3]),
        ((2, 5, 7), [3, 4]),
        ((1, 2, 3, 3), [5, 2]),
        ((0, 3, 5, 5), [2, 2]),
        ((1, 2, 9, 8), [7, 7]),
        ((1, 1, 8, 8), [2, 4]),
    ),
    3: (
        ((1, 2, 3, 4, 5), [2]),
        ((2, 4, 2, 3), [2, 1, 3]),
        ((0, 2, 3, 3, 3), [2]),
        ((1, 2, 2, 4, 8), [1, 2, 4]),
        ((1, 2, 2, 3, 2), [1]),
    ),
}


def adaptive(kind, n, size):
    size = size * n if len(size) == 1 else size
    if kind == "avg":
        f = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[n - 1]
        return lambda x: f(x, size)
    f = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)[n - 1]
    return lambda x: f(x, size, return_indices=True)


KEEP = -(1 << 31)  # TENSOR_KEEP


def adaptive_by_hand(kind, n):
    for shape, size in ADAPTIVE[n]:
        yield adaptive(kind, n, size), [uniform(*shape)], {"output_size": size}
    if n > 1:
        size = [None, 2, None][:n]
        kept = [KEEP if s is None else s for s in size]
        yield adaptive(kind, n, size), [
            uniform(2, 3, 4, 5, 3)[..., 0] if n == 2 else uniform(2, 3, 4, 5, 3)
        ], {"output_size": kept}
    hole = uniform(1, 1, *(5,) * n)
    hole.reshape(-1)[3] = NAN
    yield adaptive(kind, n, [3]), [hole], {"output_size": [3]}
    hole.reshape(-1)[3] = INF
    yield adaptive(kind, n, [2]), [hole], {"output_size": [2]}


def random_adaptive(kind, n):
    lead = (number(1, 3),) if chance(0.2) else (0 if chance(0.05) else number(1, 3), number(1, 3))
    size = [number(1, 9) for _ in range(n)]
    out = [choice((1, 2, s, number(1, 7))) for s in size]
    x = floats(*lead, *size, special=0.15 if kind == "avg" else 0)
    if kind == "max" and chance(0.2) and x.numel():
        x.reshape(-1)[number(0, x.numel() - 1)] = choice((NAN, INF))
    p = {"output_size": out if chance(0.8) else [choice((1, 2, 4))]}
    return adaptive(kind, n, p["output_size"]), [x], p


for n in (1, 2, 3):
    for kind in ("avg", "max"):
        op(OPS, "adaptive_%s_pool%dd" % (kind, n), kind, n)(adaptive_by_hand)
        op(RANDOM, "adaptive_%s_pool%dd" % (kind, n), kind, n)(random_adaptive)


# ---- max_unpool: positions are drawn without repetition, for PyTorch does not say which one wins
def unpool(n, p):
    f = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[n - 1]
    kernel = each(p, "kernel", n, 1)
    stride = each(p, "stride", n, 0) if p.get("stride") else kernel
    return lambda x, i: f(x, i, kernel, stride, each(p, "padding", n, 0), p.get("output_size"))


def random_unpool(n):
    lead = (number(1, 3),) if chance(0.2) else (0 if n > 1 and chance(0.05) else number(1, 3), number(1, 2))
    size, p = [number(1, 4) for _ in range(n)], {"kernel": [number(1, 3) for _ in range(n)]}
    if chance(0.6):
        p["stride"] = [max(k, number(1, 3)) for k in p["kernel"]]
    if chance(0.5):
        p["padding"] = [number(0, k // 2) if s > 1 else 0 for k, s in zip(p["kernel"], size)]
    stride = p.get("stride", p["kernel"])
    out = [
        (s - 1) * t - 2 * q + k for s, t, q, k in zip(size, stride, p.get("padding", [0] * n), p["kernel"])
    ]
    if chance(0.5):
        out = p["output_size"] = [o + number(0, t - 1) for o, t in zip(out, stride)]
    x = floats(*lead, *size, special=0.1)
    index = torch.empty(x.shape, dtype=torch.int64)
    for plane in index.view(-1, math.prod(size)):
        plane.copy_(torch.argsort(uniform(math.prod(out)))[: plane.numel()])
    return unpool(n, p), [x, index], p


def unpool_by_hand(n):
    x = uniform(2, 3, *(6,) * n)
    y, index = max_pool(n, {"kernel": [2]})(x)
    yield unpool(n, {"kernel": [2]}), [y, index], {"kernel": [2]}
    yield unpool(n, {"kernel": [2]}), [y, index * 0 + 3], {"kernel": [2]}  # one place for all: the last one's


for n in (1, 2, 3):
    op(OPS, "max_unpool%dd" % n, n)(unpool_by_hand)
    op(RANDOM, "max_unpool%dd" % n, n)(random_unpool)


# ---- lp_pool
def lp_pool(n, p):
    kernel = each(p, "kernel", n, 1)
    f, kernel, stride = (
        (F.lp_pool1d, kernel[0], p.get("stride", kernel)[0])
        if n == 1
        else (F.lp_pool2d if n == 2 else F.lp_pool3d, tuple(kernel), tuple(p.get("stride", kernel)))
    )
    return lambda x: f(x, p["norm_type"], kernel, stride, p["ceil_mode"])


def random_lp(n):
    shape, windows = random_windows(n, False)
    p = {
        "norm_type": choice((1.0, 2.0, 3.0, 0.5, 1.7, -1.0, INF, -INF)),
        "kernel": windows["kernel"],
        "ceil_mode": windows["ceil_mode"],
    }
    if "stride" in windows:
        p["stride"] = windows["stride"]
    if n == 1 and "stride" not in p and p["ceil_mode"]:
        p["stride"] = p["kernel"]
    size = tuple(max(s, k) for s, k in zip(shape[-n:], p["kernel"]))
    odd = p["norm_type"] in (2.0, INF)  # others have no power of negative numbers, or no root
    return lp_pool(n, p), [floats(*shape[:-n], *size, lo=-2.0 if odd else 0.2)], p


def lp_by_hand(n):
    p = {"norm_type": 3.0, "kernel": [2], "ceil_mode": False}
    yield lp_pool(n, p), [uniform(1, 2, *(5,) * n)], p  # sums that are negative: NaN


for n in (1, 2, 3):
    op(OPS, "lp_pool%dd" % n, n)(lp_by_hand)
    op(RANDOM, "lp_pool%dd" % n, n)(random_lp)


# ---- pixels
@op(RANDOM, "pixel_shuffle")
def pixel_shuffle():
    r, lead = number(1, 3), [number(1, 3) for _ in range(number(0, 2))]
    x = floats(*lead, number(1, 3) * r * r, number(1, 4), number(1, 4), special=0.15)
    return (lambda t: F.pixel_shuffle(t, r)), [x], {"upscale_factor": r}


@op(RANDOM, "pixel_unshuffle")
def pixel_unshuffle():
    r, lead = number(1, 3), [number(1, 3) for _ in range(number(0, 2))]
    x = floats(*lead, number(1, 3), number(1, 3) * r, number(1, 3) * r, special=0.15)
    return (lambda t: F.pixel_unshuffle(t, r)), [x], {"downscale_factor": r}


for table in (OPS, RANDOM):
    for name in table:
        table[name] = spell(table[name])
