"""cases_norm.py - normalisation, dropout where no number is drawn, gates, softmax."""

import math

import torch
import torch.nn.functional as F

from golden import chance, choice, floats, number, scalar, shape, uniform, values

OPS = {}
RANDOM = {}


def op(name):
    def add(f):
        OPS[name] = f
        return f

    return add


def random(name):
    def add(f):
        RANDOM[name] = f
        return f

    return add


def maybe(p, x):
    return x if chance(p) else None


def eps():
    return choice((1e-5, 1e-3, 0.5))


# ---- normalisation.  In slices of few values the gradient is a small difference of large numbers (of one
# value: rounding errors instead of 0), and PyTorch's own error is no measure: the random ones are longer.
LEAST_SLICE = 4


def normal_input(*size):
    x = floats(*size, lo=-2, hi=3, special=0.1)
    return torch.where(x.abs() == 100, x / 32, x)  # one far value leaves few digits of the others


@op("rms_norm")
def rms_norm():
    for size, normal, weight, e in (
        ((3, 5), [5], 1, None),
        ((2, 3, 4), [3, 4], 1, 0.5),
        ((2, 3, 4), [4], 0, 1e-5),
        ((6,), [6], 1, 0.0),
        ((0, 4), [4], 1, None),
        ((2, 40), [40], 1, None),
    ):
        p = {"normalized_shape": normal} | ({} if e is None else {"eps": e})
        yield (lambda x, w: F.rms_norm(x, normal, w, e)), [
            uniform(*size, lo=-2, hi=3),
            uniform(*normal) if weight else None,
        ], p
    zero = torch.zeros(2, 3, dtype=torch.float64)
    zero[1] = values(1.0, 2.0, -1.0)
    yield (lambda x, w: F.rms_norm(x, [3], w, 1e-2)), [zero, None], {"normalized_shape": [3], "eps": 1e-2}


def last_dims():
    size = shape(lo=1, hi=4, least=1)
    if chance(0.05):
        size = (0,) + size[1:]
    normal = size[number(0 if size[0] else 1, len(size) - 1) :] if size[0] or len(size) > 1 else None
    return (size, list(normal)) if normal and math.prod(normal) >= LEAST_SLICE else last_dims()


@random("rms_norm")
def rms_norm_random():
    size, normal = last_dims()
    e = choice((None, 1e-5, 1e-2))
    p = {"normalized_shape": normal} | ({} if e is None else {"eps": e})
    return (lambda x, w: F.rms_norm(x, normal, w, e)), [normal_input(*size), maybe(0.7, uniform(*normal))], p


@random("layer_norm")
def layer_norm_random():
    size, normal = last_dims()
    e = eps()
    return (
        (lambda x, w, b: F.layer_norm(x, normal, w, b, e)),
        [normal_input(*size), maybe(0.7, uniform(*normal)), maybe(0.7, uniform(*normal))],
        {"normalized_shape": normal, "eps": e},
    )


def add_layer_norm_call(normal, e):
    def f(x, branch, w, b):
        total = x + branch
        return F.layer_norm(total, normal, w, b, e), total

    return f


@random("add_layer_norm")
def add_layer_norm_random():
    size, normal = last_dims()
    e = eps()
    return (
        add_layer_norm_call(normal, e),
        [
            normal_input(*size),
            uniform(*size, lo=-2, hi=3),
            maybe(0.7, uniform(*normal)),
            maybe(0.7, uniform(*normal)),
        ],
        {"normalized_shape": normal, "eps": e},
    )


def channels_input(rank_lo, rank_hi, channels):
    """[N, channels, ...]"""
    n = number(0 if chance(0.1) else 1, 4)
    return normal_input(n, channels, *shape(lo=rank_lo - 2, hi=rank_hi - 2, least=1, most=5))


@op("group_norm")
def group_norm():
    for size, groups, weight, bias, e in (
        ((2, 6, 3), 3, 1, 1, 1e-5),
        ((2, 4, 2, 3), 2, 1, 1, 0.5),
        ((3, 4), 1, 1, 0, 1e-5),
        ((2, 3, 5), 3, 0, 1, 1e-5),
        ((2, 4, 3), 1, 0, 0, 1e-5),
        ((0, 4, 3), 2, 1, 1, 1e-5),
        ((3, 2, 2, 2, 2), 2, 1, 1, 1e-5),
        ((2, 4, 20), 2, 1, 1, 1e-5),
        ((1, 8, 40), 4, 1, 1, 1e-5),
    ):
        c = size[1]
        yield (
            (lambda x, w, b: F.group_norm(x, groups, w, b, e)),
            [uniform(*size, lo=-2, hi=3), uniform(c) if weight else None, uniform(c) if bias else None],
            {"num_groups": groups, "eps": e},
        )


@random("group_norm")
def group_norm_random():
    groups = number(1, 4)
    c = groups * number(1, 4)
    x = channels_input(2, 5, c)
    if x[0:1].numel() < LEAST_SLICE * groups:
        x = normal_input(x.shape[0], c, 5)
    e = eps()
    return (
        (lambda x, w, b: F.group_norm(x, groups, w, b, e)),
        [x, maybe(0.7, uniform(c)), maybe(0.7, uniform(c))],
        {"num_groups": groups, "eps": e},
    )


@random("batch_norm")
def batch_norm_random():
    c = number(1, 5)
    training = chance(0.6)
    x = channels_input(2, 5, c)
    if training and x.numel() < LEAST_SLICE * c:
        x = normal_input(2, c, 3)
    e = eps()
    given = not training
    return (
        (lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, training, 0.1, e)),
        [
            x,
            uniform(c) if given else None,
            uniform(c, lo=0.5, hi=2) if given else None,
            maybe(0.7, uniform(c)),
            maybe(0.7, uniform(c)),
        ],
        {"training": training, "eps": e},
        (1, 2),
    )


def instance_case(size, stats, weight, bias, e):
    c = size[1]
    return (
        (lambda x, m, v, w, b: F.instance_norm(x, m, v, w, b, use_input_stats=stats, eps=e)),
        [
            normal_input(*size),
            None if stats else uniform(c),
            None if stats else uniform(c, lo=0.5, hi=2),
            uniform(c) if weight else None,
            uniform(c) if bias else None,
        ],
        {"use_input_stats": stats, "eps": e},
        (1, 2),
    )


@op("instance_norm")
def instance_norm():
    for size, stats, weight, bias, e in (
        ((2, 3, 5), True, 1, 1, 1e-5),
        ((2, 2, 3, 2), True, 1, 0, 0.5),
        ((1, 2, 2, 2, 2), True, 0, 0, 1e-5),
        ((0, 3, 4), True, 0, 0, 1e-5),
        ((2, 3, 4), False, 1, 1, 1e-5),
        ((2, 3), False, 0, 1, 1e-5),
        ((1, 1, 300), True, 1, 1, 1e-5),
    ):
        yield instance_case(size, stats, weight, bias, e)


@random("instance_norm")
def instance_norm_random():
    stats = chance(0.7)
    size = (number(1, 3), number(1, 4)) + shape(lo=0, hi=3, least=1, most=5)
    if stats and math.prod(size[2:]) < LEAST_SLICE:
        size = size[:2] + (number(LEAST_SLICE, 9),)
    return instance_case(size, stats, chance(0.6), chance(0.6), eps())


def response_case(size, p):
    return (lambda x: F.local_response_norm(x, **p)), [floats(*size, special=0.1)], p


@op("local_response_norm")
def local_response_norm():
    for size, p in (
        ((2, 5, 3), {"size": 3, "alpha": 0.5}),
        ((2, 4, 2, 2), {"size": 2, "alpha": 1.0, "beta": 0.5, "k": 2.0}),
        ((1, 3, 2, 2, 2), {"size": 5}),
        ((2, 3, 4), {"size": 1, "alpha": 1.0}),
        ((0, 3, 4), {"size": 2}),
        ((2, 3, 4), {"size": 9, "alpha": 2.0}),
    ):
        yield response_case(size, p)


@random("local_response_norm")
def local_response_norm_random():
    return response_case(
        shape(lo=3, hi=5, least=0 if chance(0.1) else 1),
        {
            "size": number(1, 6),
            "alpha": scalar(0.01, 2),
            "beta": choice((0.5, 0.75, 1.0, 2.0)),
            "k": scalar(0.5, 3),
        },
    )


# ---- softmax
def softmax_input(*size):
    return floats(*size, lo=-4, hi=4, special=0.25, also=(1000.0, -1000.0))


for name_, f_ in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):

    def softmax_random(f=f_):
        size = shape(hi=4, most=7) if chance(0.8) else (number(1, 3), number(20, 80))
        dim = number(-len(size), len(size) - 1) if size else choice((0, -1))
        return (lambda x: f(x, dim)), [softmax_input(*size)], {"dim": dim}

    RANDOM[name_] = softmax_random


# ---- dropout: where no number is drawn, that is p = 0, p = 1 and outside training
DROPOUTS = {
    "dropout": (F.dropout, 0, 4),
    "dropout1d": (F.dropout1d, 2, 3),
    "dropout2d": (F.dropout2d, 4, 4),
    "dropout3d": (F.dropout3d, 4, 5),
    "alpha_dropout": (F.alpha_dropout, 0, 4),
    "feature_alpha_dropout": (F.feature_alpha_dropout, 2, 5),
}


def dropout_case(f, size, p, training):
    x = floats(
        *size, special=0.0 if p == 1 and training else 0.15
    )  # PyTorch multiplies by 0: ours is 0 also where x is infinite
    return (lambda x: f(x, p, training)), [x], {"p": p, "training": training}


for name_, (f_, lo_, hi_) in DROPOUTS.items():

    def dropout_random(f=f_, lo=lo_, hi=hi_):
        p, training = choice(((0.0, True), (1.0, True), (0.3, False), (0.0, False), (1.0, False)))
        return dropout_case(f, shape(lo=lo, hi=hi, least=0 if chance(0.1) else 1), p, training)

    def dropout_fixed(f=f_, lo=lo_):
        for size in ((2, 3, 2, 2, 2)[: max(lo, 1)], (0, 3, 2, 2)[: max(lo, 1)]):
            for p, training in ((0.0, True), (1.0, True), (0.5, False)):
                yield dropout_case(f, size, p, training)

    RANDOM[name_] = dropout_random
    if name_ not in ("dropout", "dropout2d"):
        OPS[name_] = dropout_fixed


# ---- gates
def glu_case(size, p):
    return (lambda x: F.glu(x, **p)), [floats(*size, lo=-4, hi=4, special=0.2)], p


@op("glu")
def glu():
    for size, p in (
        ((6,), {}),
        ((3, 4), {}),
        ((4, 3), {"dim": 0}),
        ((2, 6, 3), {"dim": -2}),
        ((0, 4), {}),
        ((4, 0), {}),
        ((2, 40), {}),
    ):
        yield glu_case(size, p)
    for v in ((math.inf, 0.0, -math.inf, 1.0), (0.0, math.inf, 100.0, -10.0), (math.nan, 1.0, 1.0, math.nan)):
        yield (lambda x: F.glu(x)), [values(*v)], {}


@random("glu")
def glu_random():
    size = shape(lo=1, hi=4)
    dim = number(-len(size), len(size) - 1)
    size = tuple(2 * n if d == dim % len(size) else n for d, n in enumerate(size))
    return glu_case(size, {"dim": dim})


# Along a size of 1 the noise does not matter; test_traps_norm.c compares values under a seed.
@random("gumbel_softmax")
def gumbel_softmax_random():
    size = shape(hi=4)
    dim = number(-len(size), len(size) - 1) if size else -1
    size = tuple(1 if d == dim % len(size) else n for d, n in enumerate(size))
    p = {"tau": scalar(0.5, 2), "hard": chance(0.5), "dim": dim}
    return (lambda x: F.gumbel_softmax(x, **p)), [uniform(*size)], p


# ---- norms over all dims but one
def except_dim(s, p):
    return lambda v: torch.norm_except_dim(v, int(p.get("pow", 2)), p.get("dim", 0)), [uniform(*s)], p


@op("norm_except_dim")
def norm_except_dim():
    for s in ((3, 4), (2, 3, 4), (4,)):
        for dim in (0, -1, len(s) - 1):
            yield except_dim(s, {"dim": dim})


@random("norm_except_dim")
def _():
    s = shape(1, 4, least=1)
    p = {"dim": number(-1, len(s) - 1)} if chance(0.7) else {}
    return except_dim(s, p | ({} if chance(0.5) else {"pow": choice([1.0, 3.0])}))


def weight_norm_of(s, dim):
    lengths = [] if dim == -1 else [n if d == dim else 1 for d, n in enumerate(s)]
    return lambda v, g: torch._weight_norm(v, g, dim), [uniform(*s), uniform(*lengths)], {"dim": dim}


@op("weight_norm")
def weight_norm():
    for s, dim in (((3, 4), 0), ((2, 3, 4), 1), ((2, 3, 4), 2), ((3, 4), -1), ((4,), 0), ((4, 3, 2, 2), 0)):
        yield weight_norm_of(s, dim)


@random("weight_norm")
def _():
    s = shape(1, 4, least=1)
    return weight_norm_of(s, number(-1, len(s) - 1))
