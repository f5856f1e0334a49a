"""cases_special.py - Bessel functions, the normal distribution, zeta and the incomplete gamma functions."""

import math

import torch

from golden import chance, choice, floats, integers, narrower, shape, uniform, values

inf, nan = math.inf, math.nan
OPS, RANDOM = {}, {}


def unary(name, f, lo, hi, *special):
    """Values by hand, then random ones of lo..hi."""

    def by_hand():
        yield f, [values(*special)], {}
        yield f, [uniform(3, 4, lo=lo, hi=hi)], {}
        yield f, [uniform(lo=lo, hi=hi)], {}
        yield f, [uniform(0, 3, lo=lo, hi=hi)], {}
        yield f, [integers(5, lo=max(int(lo), -3), hi=3)], {}

    OPS[name] = by_hand
    RANDOM[name] = lambda: (f, [floats(*shape(), lo=lo, hi=hi)], {})


unary("i0", torch.i0, -9.0, 9.0, 0.0, 1e-3, 5.0, -5.0, 30.0, 100.0, 700.0, nan)
unary("i1", torch.special.i1, -9.0, 9.0, 0.0, 1e-3, 5.0, -5.0, 30.0, -100.0, 700.0, nan)
unary("erfcx", torch.special.erfcx, -4.0, 9.0, 0.0, 1e-3, 1.0, -3.0, 30.0, 1e3, 1e10, inf, nan)
unary("ndtr", torch.special.ndtr, -6.0, 6.0, 0.0, 1e-3, -1.0, -8.0, 8.0, 30.0, inf, -inf, nan)
unary("log_ndtr", torch.special.log_ndtr, -9.0, 6.0, 0.0, 1e-3, -1.0, -30.0, 8.0, -1000.0, nan)
unary("ndtri", torch.special.ndtri, 0.01, 0.99, 0.5, 1e-3, 1e-30, 0.9999, 0.0, 1.0, 1.5, -0.5, nan)
unary("entr", torch.special.entr, 0.0, 4.0, 1.0, 0.5, 1e-30, inf, nan)


def pair(name, f, a, b, *special):
    """PyTorch has no gradient of the first operand."""

    def by_hand():
        x, y = zip(*special)
        yield f, [values(*x), values(*y)], {}, (0, 1)
        for s, t in (((5,), (5,)), ((3, 1), (4,)), ((), (3,)), ((3,), ()), ((0, 3), (3,))):
            yield f, [uniform(*s, lo=a[0], hi=a[1]), uniform(*t, lo=b[0], hi=b[1])], {}, (0,)
        yield f, [integers(4, lo=2, hi=5), uniform(4, lo=b[0], hi=b[1])], {}, (
            1,
        )  # PyTorch's gradient has f32's digits
        if name == "zeta":  # the others PyTorch has of floats alone
            yield f, [integers(4, lo=2, hi=5), integers(4, lo=1, hi=5)], {}

    def draw():
        s = shape(0, 3)
        s, t = (s, narrower(s)) if chance(0.5) else (narrower(s), s)
        return f, [floats(*s, lo=a[0], hi=a[1]), floats(*t, lo=b[0], hi=b[1])], {}, (0,)

    OPS[name], RANDOM[name] = by_hand, draw


ZETA = (
    (1.0, 2.0),
    (0.5, 1.0),
    (2.0, 0.0),
    (3.0, -1.0),
    (3.0, -0.5),
    (2.5, -0.5),
    (2.0, -0.5),
    (nan, 1.0),
    (2.0, nan),
)
GAMMA = (
    (0.0, 1.0),
    (1.0, 0.0),
    (0.0, 0.0),
    (-1.0, 1.0),
    (1.0, -1.0),
    (2.0, inf),
    (inf, 2.0),
    (inf, inf),
    (nan, 1.0),
)
LARGE = ((18.0, 15.0), (18.0, 22.0), (0.1, 1e-3), (12.0, 12.0))  # from 20 on PyTorch's are good to 1e-9
pair("zeta", torch.special.zeta, (1.5, 9.0), (0.5, 9.0), *ZETA)
pair("igamma", torch.igamma, (0.5, 9.0), (0.25, 15.0), *GAMMA, *LARGE)
pair("igammac", torch.igammac, (0.5, 9.0), (0.25, 15.0), *GAMMA, *LARGE)
