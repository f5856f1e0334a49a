"""cases_rows.py - the rows of ops.def, and the ternary ops made of them."""

import math

import torch
import torch.nn.functional as F

from golden import (
    booleans,
    chance,
    choice,
    floats,
    integers,
    narrower,
    number,
    rounded,
    scalar,
    shape,
    uniform,
    values,
)

inf, nan = math.inf, math.nan
SPECIAL = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 0.5, -0.5, 2.0, -2.5, 1e-3, 30.0, -30.0)


def whole(x, c):
    """A parameter as the C library reads it: beside integers, one without a fraction is an integer."""
    return c if x.is_floating_point() or c != c or math.isinf(c) or c != int(c) else int(c)


def zero_gradient(f, *operands):
    """Of functions that PyTorch cannot differentiate, and whose gradient is 0 here."""
    y = f(*(x.detach() if isinstance(x, torch.Tensor) else x for x in operands))
    for x in operands:
        if isinstance(x, torch.Tensor) and x.requires_grad:
            y = y + torch.where(torch.zeros_like(x, dtype=torch.bool), x, torch.zeros_like(x))
    return y


def clamp(x, low, high):
    """PyTorch's values; the gradient 1 at the bounds, which it was in PyTorch before it became 0."""
    return (
        torch.where((x >= low) & (x <= high), x, torch.clamp(x, low, high).detach())
        if x.is_floating_point()
        else torch.clamp(x, low, high)
    )


def clamp_min(x, low):
    return (
        torch.where(x >= low, x, torch.clamp_min(x, low).detach())
        if x.is_floating_point()
        else torch.clamp_min(x, low)
    )


def clamp_max(x, high):
    return (
        torch.where(x <= high, x, torch.clamp_max(x, high).detach())
        if x.is_floating_point()
        else torch.clamp_max(x, high)
    )


def clamp_to(f, wins):
    """PyTorch's values; on ties the whole gradient is a's, in PyTorch half each, and that of a NaN both's."""

    def g(a, b):
        if not (a.is_floating_point() and b.is_floating_point()):
            return f(a, b)
        return torch.where((wins(a, b) | a.isnan()) & ~b.isnan(), a, b)

    return g


# name: (function, parameters of the cases, lo, hi, takes integers)
UNARY = {
    "neg": (torch.neg, [{}], -2, 2, True),
    "abs": (torch.abs, [{}], -2, 2, True),
    "square": (torch.square, [{}], -2, 2, True),
    "reciprocal": (torch.reciprocal, [{}], -2, 2, True),
    "sign": (torch.sign, [{}], -2, 2, True),
    "exp": (torch.exp, [{}], -4, 4, True),
    "exp2": (torch.exp2, [{}], -4, 4, True),
    "expm1": (torch.expm1, [{}], -2, 2, True),
    "log": (torch.log, [{}], 0, 4, True),
    "log2": (torch.log2, [{}], 0, 4, True),
    "log10": (torch.log10, [{}], 0, 4, True),
    "log1p": (torch.log1p, [{}], -1, 4, True),
    "sqrt": (torch.sqrt, [{}], 0, 4, True),
    "rsqrt": (torch.rsqrt, [{}], 0, 4, True),
    "sin": (torch.sin, [{}], -6, 6, True),
    "cos": (torch.cos, [{}], -6, 6, True),
    "tan": (torch.tan, [{}], -1.5, 1.5, True),
    "asin": (torch.asin, [{}], -1, 1, True),
    "acos": (torch.acos, [{}], -1, 1, True),
    "atan": (torch.atan, [{}], -3, 3, True),
    "sinh": (torch.sinh, [{}], -3, 3, True),
    "cosh": (torch.cosh, [{}], -3, 3, True),
    "tanh": (torch.tanh, [{}], -1.5, 1.5, True),
    "asinh": (torch.asinh, [{}], -3, 3, True),
    "acosh": (torch.acosh, [{}], 1, 4, True),
    "atanh": (torch.atanh, [{}], -1, 1, True),
    "erf": (torch.erf, [{}], -3, 3, True),
    "erfc": (torch.erfc, [{}], -3, 3, True),
    "sigmoid": (torch.sigmoid, [{}], -6, 6, True),
    "logsigmoid": (F.logsigmoid, [{}], -6, 6, False),
    "relu": (torch.relu, [{}], -2, 2, True),
    "leaky_relu": (
        lambda x, slope=0.01: F.leaky_relu(x, slope),
        [{}, {"slope": 0.3}, {"slope": 0.0}],
        -2,
        2,
        False,
    ),
    "elu": (lambda x, alpha=1.0: F.elu(x, alpha), [{}, {"alpha": 0.5}], -3, 3, False),
    "gelu": (F.gelu, [{}], -4, 4, False),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [{}], -4, 4, False),
    "silu": (F.silu, [{}], -5, 5, False),
    "softplus": (
        lambda x, beta=1.0, threshold=20.0: F.softplus(x, beta, threshold),
        [{}, {"beta": 2.0, "threshold": 3.0}],
        -5,
        5,
        False,
    ),
    "hardtanh": (
        lambda x, low=-1.0, high=1.0: F.hardtanh(x, low, high),
        [{}, {"low": -0.5, "high": 2.0}],
        -2,
        2,
        False,
    ),
    "clamp": (
        lambda x, low=-1.0, high=1.0: clamp(x, low, high),
        [{}, {"low": -0.5, "high": 2.0}],
        -2,
        2,
        False,
    ),
    "floor": (torch.floor, [{}], -3, 3, True),
    "ceil": (torch.ceil, [{}], -3, 3, True),
    "round": (torch.round, [{}], -3, 3, True),
    "trunc": (torch.trunc, [{}], -3, 3, True),
    "add_scalar": (lambda x, c: x + whole(x, c), [{"c": 1.5}, {"c": -3.0}], -2, 2, False),
    "sub_scalar": (lambda x, c: x - whole(x, c), [{"c": 1.5}, {"c": -3.0}], -2, 2, False),
    "rsub_scalar": (lambda x, c: whole(x, c) - x, [{"c": 1.5}, {"c": -3.0}], -2, 2, False),
    "mul_scalar": (lambda x, c: x * whole(x, c), [{"c": 1.5}, {"c": 0.0}], -2, 2, False),
    "div_scalar": (lambda x, c: x / whole(x, c), [{"c": 1.5}, {"c": 0.0}], -2, 2, False),
    "pow_scalar": (
        lambda x, c: torch.pow(x, whole(x, c)),
        [{"c": c} for c in (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 2.5)],
        -2,
        2,
        False,
    ),
    "logical_not": (torch.logical_not, [{}], -2, 2, True),
    "isnan": (torch.isnan, [{}], -2, 2, True),
    "isinf": (torch.isinf, [{}], -2, 2, True),
    "isfinite": (torch.isfinite, [{}], -2, 2, True),
    "frac": (torch.frac, [{}], -3, 3, False),
    "sgn": (torch.sgn, [{}], -2, 2, True),
    "deg2rad": (torch.deg2rad, [{}], -360, 360, True),
    "rad2deg": (torch.rad2deg, [{}], -6, 6, True),
    "logit": (
        lambda x, eps=-1.0: torch.logit(x, None if eps < 0 else eps),
        [{}, {"eps": 0.1}, {"eps": 0.0}],
        0,
        1,
        True,
    ),
    "sinc": (torch.sinc, [{}], -4, 4, False),
    "erfinv": (torch.erfinv, [{}], -1, 1, True),
    "lgamma": (torch.lgamma, [{}], -4, 6, True),
    "digamma": (torch.digamma, [{}], -4, 6, True),
    "polygamma": (
        lambda x, n=1.0: torch.polygamma(int(n), x),
        [{"n": float(n)} for n in (1, 2, 3, 4, 0)],
        -4,
        6,
        True,
    ),
    "relu6": (F.relu6, [{}], -2, 8, True),
    "selu": (F.selu, [{}], -3, 3, False),
    "celu": (lambda x, alpha=1.0: F.celu(x, alpha), [{}, {"alpha": 0.5}, {"alpha": -0.5}], -3, 3, False),
    "mish": (F.mish, [{}], -5, 25, False),
    "softsign": (F.softsign, [{}], -3, 3, True),
    "tanhshrink": (F.tanhshrink, [{}], -3, 3, True),
    "softshrink": (
        lambda x, lambd=0.5: F.softshrink(x, lambd),
        [{}, {"lambd": 0.0}, {"lambd": 1.0}],
        -2,
        2,
        False,
    ),
    "hardshrink": (
        lambda x, lambd=0.5: F.hardshrink(x, lambd),
        [{}, {"lambd": 0.0}, {"lambd": -1.0}],
        -2,
        2,
        False,
    ),
    "hardsigmoid": (F.hardsigmoid, [{}], -5, 5, False),
    "hardswish": (F.hardswish, [{}], -5, 5, False),
    "threshold": (
        lambda x, threshold=0.0, value=0.0: F.threshold(x, whole(x, threshold), whole(x, value)),
        [{"threshold": 0.5, "value": -2.0}],
        -2,
        2,
        False,
    ),
    "clamp_min": (lambda x, min=0.0: clamp_min(x, whole(x, min)), [{"min": 0.5}, {"min": nan}], -2, 2, False),
    "clamp_max": (lambda x, max=0.0: clamp_max(x, whole(x, max)), [{"max": 0.5}, {"max": nan}], -2, 2, False),
    "fmod_scalar": (
        lambda x, c=1.0: torch.fmod(x, whole(x, c)),
        [{"c": 1.5}, {"c": -2.0}, {"c": 0.0}, {"c": inf}],
        -5,
        5,
        False,
    ),
    "remainder_scalar": (
        lambda x, c=1.0: torch.remainder(x, whole(x, c)),
        [{"c": 1.5}, {"c": -2.0}, {"c": 0.0}, {"c": inf}],
        -5,
        5,
        False,
    ),
    "floor_divide_scalar": (
        lambda x, c=1.0: zero_gradient(torch.floor_divide, x, whole(x, c)),
        [{"c": 1.5}, {"c": -2.0}, {"c": 0.0}, {"c": inf}],
        -5,
        5,
        False,
    ),
    "rremainder_scalar": (
        lambda x, c=1.0: torch.remainder(
            torch.full_like(x, c) if x.is_floating_point() else whole(x, c), x
        ),  # which has no gradient for a number
        [{"c": 1.5}, {"c": -7.0}, {"c": 0.0}],
        -5,
        5,
        False,
    ),
    "copysign_scalar": (
        lambda x, c=1.0: torch.copysign(x, whole(x, c)),
        [{"c": 1.5}, {"c": -2.0}, {"c": 0.0}],
        -2,
        2,
        True,
    ),
    "xlogy_scalar": (
        lambda x, c=2.0: torch.xlogy(x, whole(x, c)),
        [{"c": 1.5}, {"c": 0.0}, {"c": -2.0}],
        -2,
        2,
        True,
    ),
    "rxlogy_scalar": (
        lambda x, c=2.0: torch.xlogy(whole(x, c), x),
        [{"c": 1.5}, {"c": 0.0}, {"c": -2.0}],
        -1,
        3,
        True,
    ),
    "rpow_scalar": (
        lambda x, c=2.0: torch.pow(whole(x, c), x),
        [{"c": 1.5}, {"c": 0.0}, {"c": 1.0}, {"c": 3.0}],
        -3,
        3,
        True,
    ),
    "nan_to_num": (
        lambda x, nan=0.0, posinf=math.nan, neginf=math.nan: torch.nan_to_num(
            x, nan, None if math.isnan(posinf) else posinf, None if math.isnan(neginf) else neginf
        ),
        [{}, {"nan": 2.5, "posinf": 3.0}, {"neginf": -7.0}],
        -2,
        2,
        False,
    ),
    "rrelu": (
        lambda x, lower=1 / 8, upper=1 / 3: F.rrelu(x, lower, upper),
        [{}, {"lower": 0.2, "upper": 0.6}],
        -2,
        2,
        False,
    ),
    "signbit": (torch.signbit, [{}], -2, 2, True),
    "isposinf": (torch.isposinf, [{}], -2, 2, True),
    "isneginf": (torch.isneginf, [{}], -2, 2, True),
}


# Left out, because PyTorch's own value is another where its vectors end, or odd:
LEFT_OUT = {
    "hardtanh": lambda x, p: x != x,  # the gradient depends on the length
    "relu6": lambda x, p: x != x,
    "selu": lambda x, p: x != x,
    "celu": lambda x, p: x != x,
    "elu": lambda x, p: x != x,
    "softshrink": lambda x, p: x != x,
    "hardshrink": lambda x, p: x != x,
    "hardswish": lambda x, p: x != x
    or abs(x) == 3,  # 3: the gradient is 0 and 1 since some version, 1/2 off here
    "logit": lambda x, p: x != x or str(x) == "-0.0",  # the same
    "mish": lambda x, p: x == inf,  # the gradient is 1, in PyTorch NaN
    "softsign": lambda x, p: math.isinf(x),  # 1 with the gradient 0, in PyTorch NaN
    "sinc": lambda x, p: math.isfinite(x)
    and x != 0
    and x == math.floor(x),  # exactly 0 at integers, where PyTorch rounds pi x
    "polygamma": lambda x, p: math.isinf(x)
    or x <= 0
    and x == math.floor(x),  # 0; at poles infinite, in PyTorch sometimes merely large
    "digamma": lambda x, p: math.isinf(x) or x < 0 and x == math.floor(x),  # the gradient is polygamma(1)
    "logsigmoid": lambda x, p: abs(x) == 100,  # the gradient is a subnormal f32, and 0 here
    "pow_scalar": lambda x, p: abs(p["c"]) == 0.5
    and str(x) in ("-inf", "-0.0"),  # which PyTorch takes as square roots: NaN, -0
}


def keep_out(name, x, p):
    """x with 0.25 in the place of what is left out, or would be when rounded to halves."""
    left_out = LEFT_OUT.get(name)
    if left_out and x.is_floating_point():
        flat = x.reshape(-1)
        for i, (v, narrow) in enumerate(zip(flat.tolist(), rounded(flat).tolist())):
            if left_out(v, p) or left_out(narrow, p):
                flat[i] = 0.25
    return x


def unary(name, f, params, lo, hi, ints):
    left_out = LEFT_OUT.get(name, lambda x, p: False)

    def draw():
        for p in params:
            g = lambda x: f(x, **p)
            yield g, [uniform(20, lo=lo, hi=hi)], p
            yield g, [values(*[x for x in (*SPECIAL, lo, hi) if not left_out(x, p)])], p
        g = lambda x: f(x, **params[0])
        yield g, [uniform(2, 3, 4, lo=lo, hi=hi)], params[0]
        yield g, [uniform(1, 0, 3)], params[0]
        yield g, [uniform(lo=lo, hi=hi)], params[0]
        if ints:
            yield g, [integers(7, lo=1, hi=9)], params[0]

    return draw


# name: (function, parameters, lo, hi, integers, bool)
BINARY = {
    "add": (torch.add, [{}], -2, 2, True, True),
    "sub": (torch.sub, [{}], -2, 2, True, False),
    "mul": (torch.mul, [{}], -2, 2, True, True),
    "div": (torch.div, [{}], -2, 2, True, False),
    "pow": (torch.pow, [{}], 0.1, 3, False, False),
    "add_scaled": (lambda a, b, alpha=1.0: a + b * alpha, [{"alpha": 0.5}, {}], -2, 2, False, False),
    "maximum": (torch.maximum, [{}], -2, 2, True, True),
    "minimum": (torch.minimum, [{}], -2, 2, True, True),
    "eq": (torch.eq, [{}], -2, 2, True, True),
    "ne": (torch.ne, [{}], -2, 2, True, True),
    "lt": (torch.lt, [{}], -2, 2, True, True),
    "le": (torch.le, [{}], -2, 2, True, True),
    "gt": (torch.gt, [{}], -2, 2, True, True),
    "ge": (torch.ge, [{}], -2, 2, True, True),
    "logical_and": (torch.logical_and, [{}], -2, 2, True, True),
    "logical_or": (torch.logical_or, [{}], -2, 2, True, True),
    "logical_xor": (torch.logical_xor, [{}], -2, 2, True, True),
    "atan2": (torch.atan2, [{}], -2, 2, True, True),
    "hypot": (torch.hypot, [{}], -2, 2, False, False),
    "fmod": (torch.fmod, [{}], -5, 5, True, False),
    "remainder": (torch.remainder, [{}], -5, 5, True, False),
    "floor_divide": (lambda a, b: zero_gradient(torch.floor_divide, a, b), [{}], -5, 5, True, False),
    "trunc_divide": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), [{}], -5, 5, True, False),
    "fmax": (torch.fmax, [{}], -2, 2, True, True),
    "fmin": (torch.fmin, [{}], -2, 2, True, True),
    "clamp_min_tensor": (clamp_to(torch.clamp_min, torch.ge), [{}], -2, 2, True, False),
    "clamp_max_tensor": (clamp_to(torch.clamp_max, torch.le), [{}], -2, 2, True, False),
    "prelu_kernel": (
        lambda a, b: torch._prelu_kernel(*torch.broadcast_tensors(a, b)),
        [{}],
        -2,
        2,
        False,
        False,
    ),
    "logaddexp": (torch.logaddexp, [{}], -3, 3, False, False),
    "logaddexp2": (torch.logaddexp2, [{}], -3, 3, False, False),
    "xlogy": (torch.xlogy, [{}], -1, 2, True, True),
    "xlog1py": (torch.special.xlog1py, [{}], -1, 2, True, True),
    "copysign": (torch.copysign, [{}], -2, 2, True, True),
    "heaviside": (lambda a, b: zero_gradient(torch.heaviside, a, b), [{}], -2, 2, True, True),
    "float_power": (torch.float_power, [{}], 0.1, 3, True, False),
}
DIVIDES = ("fmod", "remainder", "floor_divide", "trunc_divide")  # integers are not divided by 0
SAME_DTYPE = ("heaviside", "prelu_kernel")

PAIRS = (
    ((), ()),
    ((5,), ()),
    ((5, 1), (5,)),
    ((2, 5, 3), (5, 3)),
    ((3, 1, 2), (1, 3, 2)),
    ((0, 1, 3), (0, 4, 3)),
    ((4, 3), (4, 3)),
)
CROSS = (0.0, -0.0, 1.0, -2.0, 3.0, inf, -inf, nan)


def binary(name, f, params, lo, hi, ints, bools):
    left_out = PAIRS_LEFT_OUT.get(name, lambda a, b: False)

    def draw():
        for p in params:
            g = lambda a, b: f(a, b, **p)
            yield g, [uniform(12, lo=lo, hi=hi), uniform(12, lo=lo, hi=hi)], p
            cross = [(v, w) for v in CROSS for w in CROSS if not left_out(v, w)]
            yield g, [values(*[v for v, _ in cross]), values(*[w for _, w in cross])], p
        g = lambda a, b: f(a, b, **params[0])
        for sa, sb in PAIRS:
            yield g, [uniform(*sa, lo=lo, hi=hi), uniform(*sb, lo=lo, hi=hi)], params[0]
        if ints:
            yield g, [integers(3, 4, lo=-3), integers(4, lo=1)], params[0]
        if ints and name not in SAME_DTYPE:
            yield g, [uniform(3, 4), integers(4, lo=1)], params[0]
            yield g, [integers(3, 4, lo=1, dtype=torch.int32), integers(3, 1, lo=1)], params[0]
        if bools:
            yield g, [booleans(3, 4), booleans(4)], params[0]

    return draw


def ternary(f, params):
    def draw():
        for p in params:
            g = lambda x, a, b: f(x, a, b, **p)
            yield g, [uniform(3, 4), uniform(3, 4), uniform(3, 4, lo=0.5, hi=2)], p
            yield g, [uniform(3, 1), uniform(4), uniform(3, 4, lo=0.5, hi=2)], p
            yield g, [uniform(), uniform(2), uniform(lo=0.5, hi=2)], p
            yield g, [uniform(0, 2), uniform(2), uniform(2)], p

    return draw


def lerp():
    for weight in (0.0, 0.3, 0.5, 0.7, 1.0, 2.0):
        g = lambda a, b: torch.lerp(a, b, weight)
        yield g, [uniform(3, 4), uniform(3, 4)], {"weight": weight}
        yield g, [uniform(3, 1), uniform(4)], {"weight": weight}


def some_integers(*shape_, lo, hi, dtypes):
    dtype = choice(dtypes)
    return (
        booleans(*shape_)
        if dtype == torch.bool
        else integers(*shape_, lo=max(lo, 0) if dtype == torch.uint8 else lo, hi=hi, dtype=dtype)
    )


NUMBERS = (torch.int64, torch.int32, torch.uint8)
ANY = NUMBERS + (torch.bool,)
NO_BOOL = (
    "neg",
    "abs",
    "relu",
    "relu6",
    "floor",
    "ceil",
    "round",
    "trunc",
    "softsign",
    "tanhshrink",
    "threshold",
)
# Ranges of random parameters, where they are not those of the cases by hand; and whether x may be an integer
# beside them.
PARAMETERS = {
    "leaky_relu": lambda: {"slope": scalar(-0.5, 1)},
    "elu": lambda: {"alpha": scalar(0.1, 2)},
    "celu": lambda: {"alpha": scalar(0.1, 2)},
    "softplus": lambda: {"beta": scalar(0.3, 3), "threshold": scalar(1, 25)},
    "hardtanh": lambda: {"low": scalar(-2, 0), "high": scalar(0, 2)},
    "clamp": lambda: {"low": scalar(-2, 1), "high": scalar(-1, 2)},
    "softshrink": lambda: {"lambd": scalar(0, 1)},
    "hardshrink": lambda: {"lambd": scalar(0, 1)},
    "logit": lambda: {"eps": scalar(0.05, 0.3)} if chance(0.5) else {},
    "polygamma": lambda: {"n": float(number(0, 6))},
    "rrelu": lambda: {"lower": scalar(0, 0.3), "upper": scalar(0.3, 1)},
    "nan_to_num": lambda: {k: scalar(-5, 5) for k in ("nan", "posinf", "neginf") if chance(0.5)},
}
for _name in (
    "add_scalar",
    "sub_scalar",
    "rsub_scalar",
    "mul_scalar",
    "div_scalar",
    "fmod_scalar",
    "remainder_scalar",
    "floor_divide_scalar",
    "rremainder_scalar",
    "copysign_scalar",
):
    PARAMETERS[_name] = lambda: {"c": choice([1.0, -2.0, 3.0, scalar(0.3, 3), scalar(-3, -0.3)])}
for _name, _p in (("clamp_min", "min"), ("clamp_max", "max")):
    PARAMETERS[_name] = lambda p=_p: {p: choice([1.0, 0.0, scalar(-1, 1)])}
PARAMETERS["threshold"] = lambda: {
    "threshold": choice([1.0, scalar(0, 1)]),
    "value": choice([2.0, scalar(0, 3)]),
}
for _name in ("xlogy_scalar", "rxlogy_scalar", "rpow_scalar"):
    PARAMETERS[_name] = lambda: {"c": choice([1.0, 2.0, 3.0, scalar(0.3, 3)])}
PARAMETERS["pow_scalar"] = lambda: {"c": choice([0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, scalar(-3, 3)])}
WITH_INTEGERS = (
    "add_scalar",
    "sub_scalar",
    "rsub_scalar",
    "mul_scalar",
    "div_scalar",
    "fmod_scalar",
    "remainder_scalar",
    "floor_divide_scalar",
    "clamp_min",
    "clamp_max",
    "threshold",
    "pow_scalar",
    "nan_to_num",
)
NO_BOOL += ("sub_scalar", "rsub_scalar")


def random_unary(name):
    f, params, lo, hi, ints = UNARY[name]

    def draw():
        p = PARAMETERS[name]() if name in PARAMETERS else choice(params)
        fits = (
            name in WITH_INTEGERS
            and not (name == "pow_scalar" and p["c"] < 0)
            and not (name == "threshold" and any(v % 1 for v in p.values()))
        )
        if (ints or fits) and chance(0.2):
            x = some_integers(
                *shape(),
                lo=1 if name == "polygamma" else -9,
                hi=9,
                dtypes=NUMBERS if name in NO_BOOL else ANY
            )
        else:
            x = keep_out(name, floats(*shape(), lo=lo, hi=hi, special=0.15, also=(lo, hi)), p)
        return lambda x: f(x, **p), [x], p

    return draw


def pair():
    """Two shapes that broadcast."""
    s = shape()
    a, b = (s, narrower(s)) if chance(0.7) else (narrower(s), s)
    return (b, a) if chance(0.3) else (a, b)


# Pairs of values that are left out, as LEFT_OUT says of single ones.
PAIRS_LEFT_OUT = {
    "logaddexp": lambda a, b: a == b and math.isinf(a),  # half the gradient each; in PyTorch NaN
    "logaddexp2": lambda a, b: a == b and math.isinf(a),
}


def keep_pairs_out(name, a, b):
    left_out = PAIRS_LEFT_OUT.get(name)
    if left_out and a.is_floating_point() and b.is_floating_point():
        c, d = torch.broadcast_tensors(rounded(a), rounded(b))  # what is equal between halves is equal here
        if any(left_out(v, w) for v, w in zip(c.reshape(-1).tolist(), d.reshape(-1).tolist())):
            return uniform(*a.shape, lo=0.5, hi=1), uniform(*b.shape, lo=1.5, hi=2)
    return a, b


def random_binary(name):
    f, params, lo, hi, ints, bools = BINARY[name]

    def draw():
        p = {"alpha": choice([0.5, -2.0, scalar(-2, 2)])} if name == "add_scaled" else choice(params)
        sa, sb = pair()
        kind = number(0, 9) if ints else 9
        dtypes = ANY if bools else NUMBERS
        least = 1 if name in DIVIDES else -3
        if kind == 0:  # integers of two dtypes, or one
            a, b = some_integers(*sa, lo=-9, hi=9, dtypes=dtypes), some_integers(
                *sb, lo=least, hi=4, dtypes=NUMBERS if name in DIVIDES else dtypes
            )
            if name in SAME_DTYPE:
                b = b.to(a.dtype)
        elif kind == 1 and name not in SAME_DTYPE:
            a, b = uniform(*sa, lo=lo, hi=hi), some_integers(*sb, lo=least, hi=4, dtypes=dtypes)
        else:
            a, b = keep_pairs_out(
                name,
                floats(*sa, lo=lo, hi=hi, special=0.15, also=(lo,)),
                floats(*sb, lo=lo, hi=hi, special=0.15, also=(lo,)),
            )
        return lambda a, b: f(a, b, **p), [a, b], p

    return draw


BITWISE = ("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor")


def bits(name, by_hand):
    f = getattr(torch, name)

    def one():
        dtypes = ANY if name in BITWISE else NUMBERS
        if name == "bitwise_not":
            return f, [some_integers(*shape(), lo=-300, hi=300, dtypes=dtypes)], {}
        sa, sb = pair()
        return (
            f,
            [
                some_integers(*sa, lo=-300, hi=300, dtypes=dtypes),
                some_integers(*sb, lo=-70, hi=70, dtypes=dtypes),
            ],
            {},
        )

    def draw():
        for _ in range(12):
            yield one()

    return draw if by_hand else one


def random_ternary(f):
    def draw():
        p = {"value": scalar(-2, 2)} if chance(0.5) else {}
        s = shape()
        x, a, b = (uniform(*(s if chance(0.6) else narrower(s)), lo=0.5, hi=2) for _ in range(3))
        return lambda x, a, b: f(x, a, b, **p), [x, a, b], p

    return draw


def random_lerp():
    weight = choice([0.0, 0.5, 1.0, scalar(-1, 2)])
    sa, sb = pair()
    return lambda a, b: torch.lerp(a, b, weight), [uniform(*sa), uniform(*sb)], {"weight": weight}


def random_lerp_tensor():
    s = shape()
    return torch.lerp, [uniform(*(s if chance(0.6) else narrower(s))) for _ in range(3)], {}


def lerp_tensor():
    for sa, sb, sw in (
        ((3, 4), (3, 4), (3, 4)),
        ((3, 1), (4,), ()),
        ((), (2,), (3, 1)),
        ((0, 2), (2,), (2,)),
    ):
        yield torch.lerp, [uniform(*sa), uniform(*sb), uniform(*sw)], {}


def prelu_of(s, one):
    return F.prelu, [floats(*s, special=0.2), floats(1 if one or len(s) < 2 else s[1])], {}


def prelu():
    for s in ((3, 4), (2, 3, 2), (5,), (), (0, 3), (2, 3, 2, 2)):
        yield prelu_of(s, True)
        yield prelu_of(s, False)


def clamp_tensor_of(a, b, c):
    """Ties are left out, also between halves: the gradient is x's, in PyTorch half the bound's."""
    x, low, high = (
        uniform(*a, lo=-2, hi=2),
        uniform(*b, lo=-1, hi=0.5) if b is not None else None,
        uniform(*c, lo=-0.5, hi=1) if c is not None else None,
    )
    inputs = [(x * 16).floor() / 16] + [
        v if v is None else (v * 16).floor() / 16 + shift for v, shift in ((low, 1 / 64), (high, 1 / 32))
    ]
    return torch.clamp, inputs, {}


def clamp_tensor():
    for a, b, c in (
        ((3, 4), (3, 4), (3, 4)),
        ((3, 4), (4,), None),
        ((3,), None, (2, 1)),
        ((), (), ()),
        ((0, 3), (3,), (3,)),
        ((5,), (), ()),
    ):
        yield clamp_tensor_of(a, b, c)


def random_clamp_tensor():
    s = shape()
    x, b, c = (s if chance(0.6) else narrower(s) for _ in range(3))
    return clamp_tensor_of(x, b if chance(0.8) else None, c) if chance(0.8) else clamp_tensor_of(x, b, None)


def isclose_of(a, noise, p):
    b = (a + noise).float().double() if a.is_floating_point() else a + noise
    return lambda a, b: torch.isclose(a, b, **p), [a, b], p


def isclose():
    yield isclose_of(values(0.0, inf, -inf, nan, 1.0, inf), values(0.0, 0.0, 0.0, 0.0, 1e-4, -inf), {})
    yield isclose_of(
        values(0.0, inf, -inf, nan, 1.0, inf),
        values(0.0, 0.0, 0.0, 0.0, 1e-4, -inf),
        {"equal_nan": True, "rtol": 0.5},
    )
    for rtol, atol in ((0.1, 0.0), (0.0, 0.1), (0.0, 0.0)):
        yield isclose_of(uniform(20), uniform(20, lo=-0.2, hi=0.2), {"rtol": rtol, "atol": atol})


def random_isclose():
    """The noise is far from the tolerances' edge, which f32 and f64 place differently."""
    s = shape()
    p = {"rtol": choice([0.0, 0.1]), "atol": choice([0.0, 0.1]), "equal_nan": chance(0.5)}
    if chance(0.2):
        return isclose_of(integers(*s, lo=-5, hi=5), integers(*s, lo=0, hi=1), p)
    return isclose_of(
        floats(*s, lo=1, hi=2, special=0.3),
        0.0625 * integers(*s, lo=0, hi=1) * integers(*s, lo=0, hi=1) * 8,
        p,
    )


BITS_SCALAR = (*BITWISE[1:], "bitwise_left_shift", "bitwise_right_shift")


def bits_scalar(name, by_hand):
    f = getattr(torch, name)

    def one():
        c = number(0, 7) if "shift" in name else number(-9, 300)
        return (
            lambda x: f(x, c),
            [some_integers(*shape(), lo=-300, hi=300, dtypes=NUMBERS)],
            {"c": float(c)},
        )

    def draw():
        yield lambda x: f(x, 5), [booleans(3, 4)], {"c": 5.0}
        for _ in range(12):
            yield one()

    return draw if by_hand else one


def with_a_number(f, name):
    """One operand and the number c."""

    def one():
        c = choice([1.0, 2.0, 3.0, scalar(0.3, 3)])
        g = lambda x: f(x, whole(x, c))
        if chance(0.2):
            return g, [integers(*shape(), lo=1, hi=4)], {"c": c}
        return g, [uniform(*shape(), lo=0.1, hi=3)], {"c": c}

    def draw():
        for c in (0.0, 1.0, 0.5, 2.0, -1.0):
            yield lambda x, c=c: f(x, c), [uniform(20, lo=0.1, hi=3)], {"c": c}
        yield lambda x: f(x, 2.0), [uniform()], {"c": 2.0}
        yield lambda x: f(x, 2.0), [uniform(1, 0, 3)], {"c": 2.0}

    return draw, one


def round_decimals(decimals):
    """Values away from the halves, which the widths of floats place differently."""
    x = (uniform(*shape(), lo=-9, hi=9) * 10**decimals).floor() + choice([0.25, 0.75])
    return (
        lambda x: torch.round(x, decimals=decimals),
        [(x / 10**decimals).float().double()],
        {"decimals": decimals},
    )


OPS = {name: unary(name, *row) for name, row in UNARY.items()}
OPS.update({name: binary(name, *row) for name, row in BINARY.items()})
BITS = (*BITWISE, "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm")
OPS.update({name: bits(name, True) for name in BITS})
OPS.update({name + "_scalar": bits_scalar(name, True) for name in BITS_SCALAR})
POWERS = {
    "float_power_scalar": with_a_number(torch.float_power, "float_power_scalar"),
    "rfloat_power_scalar": with_a_number(lambda x, c: torch.float_power(c, x), "rfloat_power_scalar"),
}
OPS.update({name: draw for name, (draw, _) in POWERS.items()})
OPS["round_decimals"] = lambda: (round_decimals(d) for d in (0, 1, 2, 3, -1))
OPS["addcmul"] = ternary(
    lambda x, a, b, value=1.0: torch.addcmul(x, a, b, value=value), [{}, {"value": -0.5}]
)
OPS["addcdiv"] = ternary(
    lambda x, a, b, value=1.0: torch.addcdiv(x, a, b, value=value), [{}, {"value": -0.5}]
)
OPS.update(lerp=lerp, lerp_tensor=lerp_tensor, prelu=prelu, clamp_tensor=clamp_tensor, isclose=isclose)

RANDOM = {name: random_unary(name) for name in UNARY}
RANDOM.update({name: random_binary(name) for name in BINARY})
RANDOM.update({name: bits(name, False) for name in BITS})
RANDOM.update({name + "_scalar": bits_scalar(name, False) for name in BITS_SCALAR})
RANDOM.update({name: one for name, (_, one) in POWERS.items()})
RANDOM["round_decimals"] = lambda: round_decimals(number(-1, 3))
RANDOM["addcmul"] = random_ternary(lambda x, a, b, value=1.0: torch.addcmul(x, a, b, value=value))
RANDOM["addcdiv"] = random_ternary(lambda x, a, b, value=1.0: torch.addcdiv(x, a, b, value=value))
RANDOM.update(
    lerp=random_lerp,
    lerp_tensor=random_lerp_tensor,
    clamp_tensor=random_clamp_tensor,
    isclose=random_isclose,
    prelu=lambda: prelu_of(shape(), chance(0.3)),
)
