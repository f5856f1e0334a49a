"""cases_cumulative.py - running values, differences, quantiles, reductions that skip NaN, statistics,
distances."""

import math

import torch
import torch.nn.functional as F

from golden import (
    with_one_dim,
    booleans,
    chance,
    choice,
    floats,
    integers,
    narrower,
    number,
    scalar,
    shape,
    uniform,
    values,
)

inf, nan = math.inf, math.nan
OPS, RANDOM = {}, {}


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


TIES = values(1, 3, 3, -2, 3, -2)
NANS = values(1, nan, 3, nan, -inf, inf)
GAPS = values(nan, 1, 5, nan, 3, 2)


def some_dim(s):
    """A dim of a shape, counted from either end."""
    return 0 if not s else number(-len(s), len(s) - 1)


def least(lo=0, hi=4, most=6):
    """Shapes without size 0: for what is chosen from elements."""
    return shape(lo, hi, least=1, most=most)


def apart(*s, lo=-2.0, hi=2.0):
    """Values of which no two are equal, nor close."""
    n = math.prod(s)
    order = torch.argsort(uniform(n)) if n else torch.zeros(0, dtype=torch.int64)
    return (lo + (hi - lo) * (order.double() + 0.5) / max(n, 1)).float().double().reshape(s)


def with_nans(x, p=0.5):
    """Some elements NaN."""
    if x.is_floating_point() and x.numel() and chance(p):
        flat = x.reshape(-1)
        for _ in range(number(1, 3)):
            flat[number(0, flat.numel() - 1)] = nan
    return x


def any_numbers(s, special=0.15):
    """Floats, or integers with ties, or bools."""
    return (
        integers(*s, lo=-2, hi=3)
        if chance(0.15)
        else booleans(*s) if chance(0.1) else floats(*s, special=special, also=(0.5, 0.5))
    )


# ---- running values
def running(f):
    def draw():
        for s, dim in (((5,), 0), ((3, 4), 1), ((2, 3, 4), -2), ((), 0), ((0, 3), 0), ((3, 0), 1)):
            yield (lambda x: tuple(f(x, dim))), [uniform(*s)], {"dim": dim}
        for x in (TIES, NANS, values(0.0, -0.0, 0.0), integers(9), booleans(5)):
            yield (lambda x: tuple(f(x, 0))), [x], {"dim": 0}

    return draw


def random_running(f):
    def draw():
        s = shape(1, 2, most=80) if chance(0.04) else shape()
        dim = some_dim(s)
        return (lambda x: tuple(f(x, dim))), [any_numbers(s)], {"dim": dim}

    return draw


for name_, f_ in (("cummax", torch.cummax), ("cummin", torch.cummin)):
    OPS[name_], RANDOM[name_] = running(f_), random_running(f_)


@op("logcumsumexp")
def logcumsumexp():
    for s, dim in (((5,), 0), ((3, 4), 1), ((2, 3, 4), -2), ((), 0), ((0, 3), 0), ((3, 0), 1)):
        yield (lambda x: torch.logcumsumexp(x, dim)), [uniform(*s, lo=-3, hi=3)], {"dim": dim}
    for v in ((500, 501, 499), (-500, 500, 0), (0, -inf, 1)):
        yield (lambda x: torch.logcumsumexp(x, 0)), [values(*v)], {"dim": 0}
    # PyTorch's gradient is NaN here
    for v in ((-inf, -inf, 1), (1, inf, 2), (inf, -inf), (1, nan, 2)):
        yield (lambda x: torch.logcumsumexp(x, 0)), [values(*v)], {"dim": 0}, (0,)


@random("logcumsumexp")
def random_logcumsumexp():
    s = shape()
    dim = some_dim(s)
    return (
        (lambda x: torch.logcumsumexp(x, dim)),
        [floats(*s, lo=-choice([1, 10, 60]), hi=choice([1, 10, 60]))],
        {"dim": dim},
    )


# ---- differences
def joined(f, p):
    return lambda x, a, b: f(x, prepend=a, append=b, **p)


@op("diff")
def diff():
    for s, p in (
        ((5,), {}),
        ((3, 4), {"n": 2, "dim": 0}),
        ((2, 3, 4), {"dim": -2}),
        ((3,), {"n": 5}),
        ((1,), {}),
        ((4,), {"n": 0}),
        ((0, 3), {"dim": 0}),
    ):
        yield joined(torch.diff, p), [uniform(*s), None, None], p
    yield joined(torch.diff, {}), [uniform(3, 4), uniform(3, 1), None], {}
    yield joined(torch.diff, {"n": 2}), [uniform(3, 4), uniform(3, 2), uniform(3, 1)], {"n": 2}
    yield joined(torch.diff, {}), [integers(5), None, None], {}
    yield joined(torch.diff, {}), [booleans(5), None, None], {}


@random("diff")
def random_diff():
    s = shape(1, 3)
    dim = some_dim(s)
    p = {"n": number(0, 3), "dim": dim}

    def end():
        e = list(s)
        e[dim] = number(0, 3)
        return floats(*e) if chance(0.5) else None

    return joined(torch.diff, p), [floats(*s), end() if p["n"] else None, end() if p["n"] else None], p


def trapezoid(f):
    def draw():
        for s, p in (
            ((5,), {}),
            ((3, 4), {"dx": 0.5, "dim": 0}),
            ((2, 3, 4), {"dim": -2}),
            ((1,), {}),
            ((0,), {}),
        ):
            yield (lambda y, x: f(y, **p)), [uniform(*s), None], p
        for s, sx, p in (
            ((5,), (5,), {}),
            ((3, 4), (4,), {}),
            ((3, 4), (3,), {"dim": 0}),
            ((2, 3, 4), (2, 3, 4), {"dim": 1}),
            ((1,), (1,), {}),
        ):
            yield (lambda y, x: f(y, x, **p)), [uniform(*s), uniform(*sx)], p

    return draw


def random_trapezoid(f):
    def draw():
        s = shape(1, 3)
        dim = some_dim(s)
        if chance(0.4):
            p = {"dx": scalar(-2, 2), "dim": dim}
            return (lambda y, x: f(y, **p)), [floats(*s), None], p
        points = floats(*s) if chance(0.5) else floats(s[dim])
        return (lambda y, x: f(y, x, dim=dim)), [floats(*s), points], {"dim": dim}

    return draw


for name_, f_ in (("trapezoid", torch.trapezoid), ("cumulative_trapezoid", torch.cumulative_trapezoid)):
    OPS[name_], RANDOM[name_] = trapezoid(f_), random_trapezoid(f_)


# ---- what skips NaN
def some_dims(s):
    """Parameters of a reduction over a list of dims, or all."""
    p = {}
    if s and chance(0.8):
        dims = sorted({number(0, len(s) - 1) for _ in range(number(1, len(s)))})
        p["dims"] = [d - len(s) if chance(0.3) else d for d in dims]
    elif not s and chance(0.5):
        p["dims"] = [choice([0, -1])]
    if "dims" in p and chance(0.5):
        p["keepdim"] = True
    return p


def one_dim(s):
    return {"dims": [some_dim(s)], **({"keepdim": True} if chance(0.5) else {})} if chance(0.8) else {}


def keyword(p, single=False):
    q = dict(p)
    if "dims" in q:
        dims = q.pop("dims")
        q["dim"] = dims[0] if single else dims
    return q


def nan_reduction(f):
    def draw():
        for s, p in (
            ((), {}),
            ((3, 5), {}),
            ((3, 5), {"dims": [-1]}),
            ((2, 3, 4), {"dims": [0, 2], "keepdim": True}),
            ((0, 3), {"dims": [0]}),
            ((0,), {}),
        ):
            yield (lambda x: f(x, **keyword(p))), [uniform(*s)], p
        for x in (GAPS, NANS, values(nan, 2)):
            yield f, [x], {}
        for x in (
            values(nan, nan),
            torch.stack([GAPS, values(nan, nan, nan, nan, nan, nan)]),
        ):  # PyTorch's gradient of nothing: NaN
            yield (lambda t: f(t, dim=[-1])), [x], {"dims": [-1]}, (0,)

    return draw


def random_nan_reduction(f):
    def draw():
        s = shape()
        p = some_dims(s)
        x = with_nans(floats(*s))
        return (
            (lambda t: f(t, **keyword(p))),
            [x],
            p,
            (0,) if torch.nanmean(x, **keyword(p)).isnan().any() else (),
        )

    return draw


def chain(*draws):
    def draw():
        for d in draws:
            yield from d()

    return draw


OPS["nansum"] = chain(
    nan_reduction(torch.nansum),
    lambda: iter([(torch.nansum, [integers(3, 4)], {}), (torch.nansum, [booleans(4)], {})]),
)
OPS["nanmean"] = nan_reduction(torch.nanmean)
RANDOM["nansum"], RANDOM["nanmean"] = random_nan_reduction(torch.nansum), random_nan_reduction(torch.nanmean)

OPS["nanmedian"] = lambda: iter(
    [
        (torch.nanmedian, [x], {})
        for x in (uniform(5), uniform(3, 4), uniform(), TIES, GAPS, NANS, values(nan, nan), integers(7))
    ]
)
RANDOM["nanmedian"] = lambda: (
    torch.nanmedian,
    [
        with_nans(
            integers(*least(), lo=-2, hi=3)
            if chance(0.2)
            else floats(*least(), special=0.15, also=(0.5, 0.5))
        )
    ],
    {},
)


@op("nanmedian_dim")
def nanmedian_dim():
    for s, p in (
        ((5,), {"dim": 0}),
        ((3, 4), {}),
        ((2, 3, 4), {"dim": -2, "keepdim": True}),
        ((), {}),
        ((0, 3), {"dim": 1}),
    ):
        yield (lambda x: tuple(torch.nanmedian(x, **{"dim": -1, **p}))), [uniform(*s)], p
    yield (lambda x: tuple(torch.nanmedian(x, -1))), [GAPS], {}
    yield (lambda x: tuple(torch.nanmedian(x, -1))), [values(nan)], {}


@random("nanmedian_dim")
def random_nanmedian_dim():
    """No ties, nor lines of several NaNs alone: which of equal elements PyTorch takes is not defined."""
    s = least()
    p = {"dim": some_dim(s), "keepdim": chance(0.5)}
    x = apart(*s)
    if s and s[p["dim"]] > 1 and chance(0.5):
        x.select(p["dim"], number(0, s[p["dim"]] - 1)).fill_(nan)
    return (lambda x: tuple(torch.nanmedian(x, **p))), [x], p


@op("aminmax")
def aminmax():
    for s, p in (
        ((5,), {}),
        ((3, 4), {"dims": [1]}),
        ((2, 3, 4), {"dims": [-2], "keepdim": True}),
        ((), {}),
        ((), {"dims": [0]}),
        ((0, 3), {"dims": [1]}),
    ):
        yield (lambda x: tuple(torch.aminmax(x, **keyword(p, True)))), [uniform(*s)], p
    for x in (TIES, integers(7), values(inf, -inf, 1)):
        yield (lambda x: tuple(torch.aminmax(x))), [x], {}
    yield (lambda x: tuple(torch.aminmax(x))), [NANS], {}, (0,)


@random("aminmax")
def random_aminmax():
    s = least()
    p = one_dim(s)
    return (lambda x: tuple(torch.aminmax(x, **keyword(p, True)))), [any_numbers(s, special=0)], p


# ---- quantiles
MODES = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(f, skips):
    def draw():
        for mode in range(5):
            for s, k, p in (
                ((5,), (), {}),
                ((3, 4), (3,), {"dims": [1]}),
                ((2, 3, 4), (2,), {"dims": [0], "keepdim": True}),
                ((3, 4), (2,), {"keepdim": True}),
                ((), (), {}),
            ):
                yield (lambda x, q: f(x, q, interpolation=MODES[mode], **keyword(p, True))), [
                    apart(*s),
                    uniform(*k, lo=0.01, hi=0.99),
                ], {"interpolation": mode, **p}
            yield (lambda x, q: f(x, q, interpolation=MODES[mode])), [apart(6), values(0, 1)], {
                "interpolation": mode
            }, (1,)
            yield (lambda x, q: f(x, q, interpolation=MODES[mode])), [apart(3), values(0.25, 0.75)], {
                "interpolation": mode
            }, (
                1,
            )  # between two
        yield f, [GAPS, values(0.1, 0.6)], {}, () if skips else (0, 1)
        yield (lambda x, q: f(x, q, dim=1)), [torch.stack([GAPS, TIES]), values(0.3)], {"dims": [1]}, (0, 1)

    return draw


def random_quantile(f, nans):
    def draw():
        s, k = least(), () if chance(0.4) else (number(1, 4),)
        p = one_dim(s)
        mode = number(0, 4)
        x = apart(*s)
        if nans and s:
            x = with_nans(x)
        return (
            (lambda x, q: f(x, q, interpolation=MODES[mode], **keyword(p, True))),
            [x, uniform(*k, lo=0.0, hi=1.0)],
            {"interpolation": mode, **p},
        )

    return draw


OPS["quantile"], RANDOM["quantile"] = quantile(torch.quantile, False), random_quantile(torch.quantile, False)
OPS["nanquantile"], RANDOM["nanquantile"] = quantile(torch.nanquantile, True), random_quantile(
    torch.nanquantile, True
)


# ---- statistics
def moments(f):
    def draw():
        for s, p in (
            ((5,), {}),
            ((3, 4), {"dims": [1], "correction": 0.0}),
            ((2, 3, 4), {"dims": [0, 2], "keepdim": True}),
            ((3, 4), {"correction": 0.5}),
        ):
            yield (lambda x: tuple(f(x, **keyword(p)))), [uniform(*s)], p
        yield (lambda x: tuple(f(x))), [values(1, 1, 1)], {}

    return draw


def random_moments(f):
    def draw():
        s = least(1)
        p = {**some_dims(s), "correction": choice([0.0, 1.0, 0.5])}
        return (lambda x: tuple(f(x, **keyword(p)))), [floats(*s)], p

    return draw


for name_, f_ in (("var_mean", torch.var_mean), ("std_mean", torch.std_mean)):
    OPS[name_] = moments(f_)
RANDOM["var_mean"], RANDOM["std_mean"] = random_moments(torch.var_mean), random_moments(torch.std_mean)


def covariance(p):
    return lambda x, f, a: torch.cov(x, correction=p.get("correction", 1), fweights=f, aweights=a)


@op("cov")
def cov():
    for s, f, a, p in (
        ((3, 5), 0, 0, {}),
        ((5,), 0, 0, {}),
        ((3, 5), 0, 0, {"correction": 0}),
        ((2, 4), 1, 0, {}),
        ((2, 4), 0, 1, {}),
        ((2, 4), 1, 1, {"correction": 2}),
        ((1, 5), 0, 0, {}),
        ((2, 1), 0, 0, {"correction": 0}),
    ):
        n = s[-1]
        yield covariance(p), [
            uniform(*s),
            integers(n, lo=1) if f else None,
            uniform(n, lo=0.5, hi=2) if a else None,
        ], p


@random("cov")
def random_cov():
    s = choice([(number(1, 5), number(4, 9)), (number(4, 9),)])
    p = {"correction": number(0, 2)}
    return (
        covariance(p),
        [
            floats(*s),
            integers(s[-1], lo=1) if chance(0.3) else None,
            uniform(s[-1], lo=0.5, hi=2) if chance(0.3) else None,
        ],
        p,
    )


@op("corrcoef")
def corrcoef():
    for s in ((3, 5), (2, 4), (2, 3), (4, 9)):
        yield torch.corrcoef, [uniform(*s)], {}
    for s in ((5,), (1, 6), (2, 2)):  # the gradient is 0, but for roundings
        yield torch.corrcoef, [uniform(*s)], {}, (0,)


RANDOM["corrcoef"] = lambda: (torch.corrcoef, [floats(number(2, 5), number(3, 9))], {})


# ---- distances
ORDERS = (2.0, 1.0, 3.0, 1.5, inf, 0.5)


@op("normalize")
def normalize():
    for s, p in (
        ((3, 4), {}),
        ((5,), {"dim": 0}),
        ((2, 3, 4), {"dim": -1, "p": 1.0}),
        ((3, 4), {"p": 3.0}),
        ((3, 4), {"p": inf}),
        ((2, 3), {"eps": 10.0}),
        ((0, 3), {}),
        ((3, 0), {}),
    ):
        yield (lambda x: F.normalize(x, **p)), [uniform(*s)], p
    yield F.normalize, [torch.zeros(2, 3, dtype=torch.float64)], {}
    yield (lambda x: F.normalize(x, dim=0)), [values(3e-13, 4e-13)], {"dim": 0}


@random("normalize")
def random_normalize():
    s = shape(1, 4)
    p = {"p": choice(ORDERS), "dim": some_dim(s), "eps": choice([1e-12, 0.4321])}
    if math.isinf(p["p"]) and not s[p["dim"]]:
        p["p"] = 2.0
    return (
        (lambda x: F.normalize(x, **p)),
        [apart(*s)],
        p,
        (0,) if s[p["dim"]] == 1 else (),
    )  # x / |x|: gradient 0, but for roundings


@op("renorm")
def renorm():
    for s, p in (
        ((3, 4), {"p": 2.0, "dim": 0, "maxnorm": 0.5}),
        ((3, 4), {"p": 2.0, "dim": -1, "maxnorm": 9.0}),
        ((2, 3, 4), {"p": 1.0, "dim": 1, "maxnorm": 1.0}),
        ((2, 3), {"p": 3.0, "dim": 0, "maxnorm": 0.3}),
    ):
        yield (lambda x: torch.renorm(x, **p)), [uniform(*s)], p
    yield (lambda x: torch.renorm(x, 2, 0, 0.0)), [uniform(2, 3)], {"p": 2.0, "dim": 0, "maxnorm": 0.0}


@random("renorm")
def random_renorm():
    s = shape(2, 4, least=1)
    p = {"p": choice((2.0, 1.0, 3.0, 1.5)), "dim": some_dim(s), "maxnorm": scalar(0, 4)}
    return (lambda x: torch.renorm(x, **p)), [apart(*s)], p, (0,) if math.prod(s) == s[p["dim"]] else ()


@op("dist")
def dist():
    for order in (2.0, 1.0, 3.0, inf, -inf, 1.5):
        for a, b in (((5,), (5,)), ((3, 4), (4,)), ((), ())):
            yield (lambda x, y: torch.dist(x, y, order)), [uniform(*a), uniform(*b)], {"p": order}
        yield (lambda x, y: torch.dist(x, y, order)), [values(1, 2, 3), values(1, 2, 3)], {"p": order}
    yield (lambda x, y: torch.dist(x, y, 0)), [values(1, 2, 3), values(1, 4, 5)], {"p": 0.0}, (
        0,
        1,
    )  # PyTorch's backward fails


@random("dist")
def random_dist():
    s, order = least(), choice((2.0, 1.0, 3.0, 1.5, inf))
    return (lambda x, y: torch.dist(x, y, order)), [floats(*s), floats(*narrower(s))], {"p": order}


@op("pairwise_distance")
def pairwise_distance():
    for a, b, p in (
        ((3, 4), (3, 4), {}),
        ((3, 4), (4,), {"keepdim": True}),
        ((5,), (5,), {"p": 1.0}),
        ((2, 3, 4), (3, 4), {"p": 3.0}),
        ((3, 4), (3, 4), {"p": inf, "eps": 0.1}),
    ):
        yield (lambda x, y: F.pairwise_distance(x, y, **p)), [uniform(*a), uniform(*b)], p
    yield F.pairwise_distance, [values(1, 2, 3), values(1, 2, 3)], {}


@random("pairwise_distance")
def random_pairwise_distance():
    s = shape(1, 3, least=1)
    p = {"p": choice((2.0, 1.0, 3.0, inf)), "eps": choice([1e-6, 0.1]), "keepdim": chance(0.5)}
    return (
        (lambda x, y: F.pairwise_distance(x, y, **p)),
        [floats(*s), floats(*(narrower(s) if chance(0.5) else s))],
        p,
    )


@op("cosine_similarity")
def cosine_similarity():
    for a, b, p in (
        ((3, 4), (3, 4), {}),
        ((5,), (5,), {"dim": 0}),
        ((2, 3, 4), (3, 4), {"dim": -1}),
        ((3, 4), (3, 1), {"dim": 0}),
        ((0, 3), (0, 3), {}),
        ((3, 0), (3, 0), {}),
    ):
        yield (lambda x, y: F.cosine_similarity(x, y, **p)), [uniform(*a), uniform(*b)], p
    yield F.cosine_similarity, [torch.zeros(2, 3, dtype=torch.float64), uniform(2, 3)], {}
    yield (lambda x, y: F.cosine_similarity(x, y, dim=0)), [values(1e-9, 2e-9, -1e-9), values(1, 2, 3)], {
        "dim": 0
    }


@random("cosine_similarity")
def random_cosine_similarity():
    """Of vectors of one element, or a constant one, the gradient is 0 but for roundings."""
    s = shape(1, 4)
    p = {"dim": some_dim(s), "eps": choice([1e-8, 0.4321])}
    other = narrower(s) if chance(0.4) else s
    at = p["dim"] % len(s) - len(s)
    flat = s[at] == 1 or len(other) < -at or other[at] == 1
    return (
        (lambda x, y: F.cosine_similarity(x, y, **p)),
        [floats(*s), floats(*other)],
        p,
        (0, 1) if flat else (),
    )


MODE = "donot_use_mm_for_euclid_dist"


@op("cdist")
def cdist():
    for order in (2.0, 1.0, 3.0, inf, 0.0, 1.5, 0.5):
        for a, b in (
            ((3, 4), (2, 4)),
            ((2, 3, 2), (2, 2, 2)),
            ((2, 1, 3, 2), (4, 2, 2)),
            ((3, 0), (2, 0)),
            ((0, 4), (2, 4)),
        ):
            yield (lambda x, y: torch.cdist(x, y, order, MODE)), [uniform(*a), uniform(*b)], {"p": order}
        same = uniform(2, 3)
        yield (lambda x, y: torch.cdist(x, y, order, MODE)), [same, same.clone()], {"p": order}
    yield (lambda x, y: torch.cdist(x, y, inf)), [values(3, 3).reshape(1, 2), values(0, 0).reshape(1, 2)], {
        "p": inf
    }


@random("cdist")
def random_cdist():
    batch, m, order = shape(0, 2, least=1, most=3), number(0, 5), choice((2.0, 1.0, 3.0, inf, 0.0, 1.5))
    a, b = (*narrower(batch), number(1, 6), m), (*batch, number(1, 6), m)
    return (lambda x, y: torch.cdist(x, y, order, MODE)), [floats(*a), floats(*b)], {"p": order}


@op("pdist")
def pdist():
    for order in (2.0, 1.0, 3.0, inf, 1.5):
        for s in ((4, 3), (3, 1), (1, 3), (0, 3)):
            yield (lambda x: F.pdist(x, order)), [uniform(*s)], {"p": order}, (
                () if s[0] > 1 else (0,)
            )  # PyTorch's backward crashes
    yield F.pdist, [values(1, 2, 1, 2, 3, 4).reshape(3, 2)], {}


@random("pdist")
def random_pdist():
    order = choice((2.0, 1.0, 3.0, inf, 1.5))
    return (lambda x: F.pdist(x, order)), [floats(number(2, 8), number(1, 5))], {"p": order}


# ---- options of one dim, where the cases above draw lists
for name_ in ("aminmax", "quantile", "nanquantile"):
    for table_ in (OPS, RANDOM):
        if name_ in table_:
            table_[name_] = with_one_dim(table_[name_])
