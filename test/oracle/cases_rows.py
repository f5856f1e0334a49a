"""cases_rows.py - the rows of ops.def, and the ternary ops made of them."""
import math

import torch
import torch.nn.functional as F

from golden import booleans, integers, uniform, values

inf, nan = math.inf, math.nan
SPECIAL = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 0.5, -0.5, 2.0, -2.5, 1e-3, 30.0, -30.0)

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
    "tanh": (torch.tanh, [{}], -3, 3, True),
    "asinh": (torch.asinh, [{}], -3, 3, True),
    "acosh": (torch.acosh, [{}], 1, 4, True),
    "atanh": (torch.atanh, [{}], -1, 1, True),
    "erf": (torch.erf, [{}], -3, 3, True),
    "erfc": (torch.erfc, [{}], -3, 3, True),
    "sigmoid": (torch.sigmoid, [{}], -6, 6, True),
    "logsigmoid": (F.logsigmoid, [{}], -6, 6, False),
    "relu": (torch.relu, [{}], -2, 2, True),
    "leaky_relu": (lambda x, slope=0.01: F.leaky_relu(x, slope), [{}, {"slope": 0.3}, {"slope": 0.0}], -2, 2, False),
    "elu": (lambda x, alpha=1.0: F.elu(x, alpha), [{}, {"alpha": 0.5}], -3, 3, False),
    "gelu": (F.gelu, [{}], -4, 4, False),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [{}], -4, 4, False),
    "silu": (F.silu, [{}], -5, 5, False),
    "softplus": (lambda x, beta=1.0, threshold=20.0: F.softplus(x, beta, threshold), [{}, {"beta": 2.0, "threshold": 3.0}], -5, 5, False),
    "hardtanh": (lambda x, low=-1.0, high=1.0: F.hardtanh(x, low, high), [{}, {"low": -0.5, "high": 2.0}], -2, 2, False),
    "clamp": (lambda x, low=-1.0, high=1.0: torch.clamp(x, low, high), [{}, {"low": -0.5, "high": 2.0}], -2, 2, False),
    "floor": (torch.floor, [{}], -3, 3, True),
    "ceil": (torch.ceil, [{}], -3, 3, True),
    "round": (torch.round, [{}], -3, 3, True),
    "trunc": (torch.trunc, [{}], -3, 3, True),
    "add_scalar": (lambda x, c: x + c, [{"c": 1.5}, {"c": -3.0}], -2, 2, False),
    "sub_scalar": (lambda x, c: x - c, [{"c": 1.5}, {"c": -3.0}], -2, 2, False),
    "rsub_scalar": (lambda x, c: c - x, [{"c": 1.5}, {"c": -3.0}], -2, 2, False),
    "mul_scalar": (lambda x, c: x * c, [{"c": 1.5}, {"c": 0.0}], -2, 2, False),
    "div_scalar": (lambda x, c: x / c, [{"c": 1.5}, {"c": 0.0}], -2, 2, False),
    "pow_scalar": (lambda x, c: torch.pow(x, c), [{"c": c} for c in (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 2.5)], -2, 2, False),
    "logical_not": (torch.logical_not, [{}], -2, 2, True),
    "isnan": (torch.isnan, [{}], -2, 2, True),
    "isinf": (torch.isinf, [{}], -2, 2, True),
    "isfinite": (torch.isfinite, [{}], -2, 2, True),
}


# Left out: clamp's bounds, where the gradient is 1 here, and in PyTorch before it became 0; NaN for hardtanh, whose gradient in
# PyTorch depends on the length; -inf and -0 for half powers, which PyTorch takes as square roots (NaN, -0), not as pow does.
LEFT_OUT = {"clamp": lambda x, p: x in (p.get("low", -1.0), p.get("high", 1.0)), "hardtanh": lambda x, p: x != x,
            "pow_scalar": lambda x, p: abs(p["c"]) == 0.5 and str(x) in ("-inf", "-0.0")}


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
}

PAIRS = (((), ()), ((5,), ()), ((5, 1), (5,)), ((2, 5, 3), (5, 3)), ((3, 1, 2), (1, 3, 2)), ((0, 1, 3), (0, 4, 3)), ((4, 3), (4, 3)))
CROSS = (0.0, -0.0, 1.0, -2.0, 3.0, inf, -inf, nan)


def binary(f, params, lo, hi, ints, bools):
    def draw():
        for p in params:
            g = lambda a, b: f(a, b, **p)
            yield g, [uniform(12, lo=lo, hi=hi), uniform(12, lo=lo, hi=hi)], p
            a = values(*[v for v in CROSS for _ in CROSS])
            yield g, [a, values(*(CROSS * len(CROSS)))], p
        g = lambda a, b: f(a, b, **params[0])
        for sa, sb in PAIRS:
            yield g, [uniform(*sa, lo=lo, hi=hi), uniform(*sb, lo=lo, hi=hi)], params[0]
        if ints:
            yield g, [integers(3, 4, lo=-3), integers(4, lo=1)], params[0]
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


OPS = {name: unary(name, *row) for name, row in UNARY.items()}
OPS.update({name: binary(*row) for name, row in BINARY.items()})
OPS["addcmul"] = ternary(lambda x, a, b, value=1.0: torch.addcmul(x, a, b, value=value), [{}, {"value": -0.5}])
OPS["addcdiv"] = ternary(lambda x, a, b, value=1.0: torch.addcdiv(x, a, b, value=value), [{}, {"value": -0.5}])
OPS["lerp"] = lerp
