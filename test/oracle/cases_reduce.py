"""cases_reduce.py - reductions, order, softmax, sums along a dim, losses."""

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
REDUCTION = ("mean", "sum", "none", "batchmean")
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


# ---- what random cases are drawn from
def some_dim(s):
    """A dim of a shape, counted from either end."""
    return number(-len(s), len(s) - 1) if s else choice([0, -1])


def least(lo=0, hi=4, most=6):
    """Shapes without size 0: for what is chosen from elements."""
    return shape(lo, hi, least=1, most=most)


def size_of(s, p):
    """How many elements make one result."""
    return math.prod(s[d] for d in p.get("dims", range(len(s)))) if s else 1


def some_dims(s):
    """Parameters of a reduction over a list of dims, or all."""
    p = {}
    if s and chance(0.8):
        dims = sorted({number(0, len(s) - 1) for _ in range(number(1, len(s)))})
        p["dims"] = [d - len(s) if chance(0.3) else d for d in dims]
    elif chance(0.5):
        p["dims"] = [] if s else [choice([0, -1])]
    if p.get("dims") and chance(0.5):
        p["keepdim"] = True
    if "dims" in p and not p["dims"]:
        p.pop("dims")
    return p


def one_dim(s):
    return {"dims": [some_dim(s)], **({"keepdim": True} if chance(0.5) else {})} if chance(0.8) else {}


def long_shape():
    """Now and then so long that a kernel works in blocks."""
    if chance(0.03):
        return (number(100, 9000),) if chance(0.5) else (number(50, 300), number(3, 40))
    return shape()


def apart(*s, lo=-2.0, hi=2.0):
    """Values of which no two are equal, nor close."""
    n = math.prod(s)
    order = torch.argsort(uniform(n)) if n else torch.zeros(0, dtype=torch.int64)
    return (lo + (hi - lo) * (order.double() + 0.5) / max(n, 1)).float().double().reshape(s)


def numbers(s, special=0.15):
    """Floats, or integers with ties, or bools."""
    return (
        integers(*s, lo=-3, hi=3)
        if chance(0.1)
        else booleans(*s) if chance(0.08) else floats(*s, special=special)
    )


# ---- reductions over dims: (shape, parameters)
DIMS = [
    ((), {}),
    ((2,), {}),
    ((3, 5), {}),
    ((3, 5), {"dims": [0], "keepdim": True}),
    ((3, 5), {"dims": [-1]}),
    ((3, 2, 1, 2), {"dims": [1], "keepdim": True}),
    ((3, 2, 1, 2), {"dims": [0, -1], "keepdim": True}),
    ((3, 2, 1, 2), {"dims": [0, 2]}),
    ((2, 3, 4), {"dims": [0, 1, 2]}),
    ((), {"dims": [0]}),
]
EMPTY = [((0, 3), {"dims": [1]}), ((0, 3), {"dims": [0]}), ((0,), {})]
ONE_DIM = [(s, p) for s, p in DIMS if len(p.get("dims", ())) <= 1]


def keyword(p):
    q = dict(p)
    if "dims" in q:
        q["dim"] = q.pop("dims")
    return q


def over_dims(f, cases, extra=({},), **range_):
    """f(x, dim=..., keepdim=...) or f(x); params of extra go to both."""

    def draw():
        for more in extra:
            for shape, p in cases:
                yield (lambda x: f(x, **keyword(p), **more)), [uniform(*shape, **range_)], {**p, **more}

    return draw


def with_dims(f):
    """For functions that want dim spelled out."""

    def g(x, dim=None, keepdim=False, **more):
        return f(x, dim=list(range(x.dim())) if dim is None else dim, keepdim=keepdim, **more)

    return g


def single_dim(f):
    """For functions of one dim, or of all elements."""

    def g(x, dim=None, keepdim=False):
        return f(x) if dim is None else f(x, dim=dim[0], keepdim=keepdim)

    return g


def chain(*draws):
    def draw():
        for d in draws:
            yield from d()

    return draw


def fixed(*cases):
    return lambda: iter(cases)


TIES = values(1, 3, 3, -2, 3, -2)
NANS = values(1, nan, 3, nan, -inf, inf)

OPS["sum"] = chain(
    over_dims(torch.sum, DIMS + EMPTY),
    fixed(
        (torch.sum, [values(1, inf, 2)], {}),
        (torch.sum, [values(inf, -inf, 2)], {}),
        (torch.sum, [integers(3, 4)], {}),
        (torch.sum, [booleans(3, 4)], {}),
    ),
)
OPS["mean"] = chain(over_dims(torch.mean, DIMS + EMPTY), fixed((torch.mean, [NANS], {})))
OPS["prod"] = chain(
    over_dims(single_dim(torch.prod), ONE_DIM + EMPTY),
    fixed(
        (torch.prod, [values(2, 0, 3)], {}),
        (torch.prod, [values(2, 0, 3, 0)], {}),
        (torch.prod, [values(0)], {}),
        (lambda x: torch.prod(x, 1), [values(1, 2, 0, 3, 0, 0, 4, 5, -1).reshape(3, 3)], {"dims": [1]}),
        (torch.prod, [integers(4, lo=1)], {}),
    ),
)
BIG = [(s, p) for s, p in DIMS if s != () and s != (3, 2, 1, 2)]
OPS["var"] = chain(
    over_dims(torch.var, BIG, ({}, {"correction": 0.0})),
    fixed(
        (lambda x: torch.var(x, correction=0.5), [uniform(3, 4)], {"correction": 0.5}),
        (torch.var, [values(1, 1, 1)], {}),
        (torch.var, [values(1e4 + 1, 1e4 + 2, 1e4 + 3)], {}),
    ),
)
OPS["std"] = chain(
    over_dims(torch.std, BIG, ({}, {"correction": 0.0})), fixed((torch.std, [values(1, 1, 1)], {}))
)
for name_, f_ in (("amax", torch.amax), ("amin", torch.amin)):
    OPS[name_] = chain(
        over_dims(f_, DIMS + EMPTY[:1]),
        fixed(
            (f_, [TIES], {}),
            (f_, [NANS], {}, (0,)),
            (f_, [values(inf, 1, inf)], {}),
            (f_, [integers(3, 4)], {}),
        ),
    )
for name_, f_ in (("argmax", torch.argmax), ("argmin", torch.argmin)):
    OPS[name_] = chain(
        over_dims(single_dim(f_), ONE_DIM + EMPTY[:1]),
        fixed((f_, [TIES], {}), (f_, [NANS], {}), (f_, [integers(9)], {})),
    )
for name_, f_ in (("all", torch.all), ("any", torch.any)):

    def draw_bool(f=f_):
        for shape, p in DIMS + EMPTY:
            yield (lambda x: with_dims(f)(x, **keyword(p)) if "dims" in p else f(x)), [booleans(*shape)], p
        yield f, [values(0, nan, 1)], {}
        yield f, [integers(5)], {}

    OPS[name_] = draw_bool
OPS["count_nonzero"] = chain(
    lambda: (
        ((lambda x: torch.count_nonzero(x, dim=p.get("dims"))), [integers(*shape, lo=0, hi=1)], p)
        for shape, p in DIMS + EMPTY
        if not p.get("keepdim")
    ),
    fixed((torch.count_nonzero, [values(0, nan, 1, -0.0)], {})),
)
OPS["logsumexp"] = chain(
    over_dims(with_dims(torch.logsumexp), DIMS + EMPTY, lo=-3, hi=3),
    fixed(
        (lambda x: torch.logsumexp(x, 0), [values(500, 501, 499)], {"dims": [0]}),
        (lambda x: torch.logsumexp(x, 0), [values(inf, 1, 2)], {"dims": [0]}),
    ),
)


@op("norm")
def norm():
    for p in (2.0, 1.0, inf, -inf, 0.0, 3.0, 1.5, 0.5):
        f = lambda x, dim=None, keepdim=False: torch.linalg.vector_norm(x, p, dim=dim, keepdim=keepdim)
        for shape, q in (((5,), {}), ((3, 4), {"dims": [1]}), ((2, 3, 2), {"dims": [0, 2], "keepdim": True})):
            yield (lambda x: f(x, **keyword(q))), [uniform(*shape)], {"p": p, **q}
        yield f, [values(0, 0, 0)], {"p": p}
        yield f, [values(0, -3, 2, 3)], {"p": p}
    yield torch.linalg.vector_norm, [uniform(0)], {"p": 2.0}


def picks(f):
    def draw():
        for shape, p in (
            ((5,), {"dim": 0}),
            ((3, 4), {"dim": 1}),
            ((2, 3, 4), {"dim": -2, "keepdim": True}),
            ((), {"dim": 0}),
            ((0, 3), {"dim": 1}),
        ):
            yield (lambda x: tuple(f(x, **p))), [uniform(*shape)], p
        for x in (TIES, NANS):
            yield (lambda x: tuple(f(x, dim=0))), [x], {"dim": 0}
        yield (lambda x: tuple(f(x, dim=1))), [integers(3, 5)], {"dim": 1}

    return draw


OPS["max_dim"] = picks(torch.max)
OPS["min_dim"] = picks(torch.min)
OPS["median_dim"] = lambda: (
    c for c in picks(torch.median)() if c[1][0] is not TIES and c[1][0].is_floating_point()
)
OPS["median"] = fixed(
    (torch.median, [uniform(5)], {}),
    (torch.median, [uniform(3, 4)], {}),
    (torch.median, [uniform()], {}),
    (torch.median, [TIES], {}),
    (torch.median, [NANS], {}),
    (torch.median, [integers(7)], {}),
)


@op("mode")
def mode():
    for shape, p in (((5,), {"dim": 0}), ((3, 4), {}), ((2, 3, 4), {"dim": -2, "keepdim": True}), ((), {})):
        yield (lambda x: tuple(torch.mode(x, **p))), [uniform(*shape)], p


@op("sort")
def sort():
    for shape, p in (
        ((5,), {}),
        ((3, 4), {"dim": 0, "descending": True}),
        ((2, 3, 4), {"dim": -2}),
        ((), {}),
        ((0, 3), {"dim": 0}),
        ((40,), {}),
    ):
        q = {"dim": -1, **p}
        yield (lambda x: tuple(torch.sort(x, stable=True, **q))), [uniform(*shape)], p
    for x in (TIES, NANS):
        for d in (False, True):
            yield (lambda x: tuple(torch.sort(x, stable=True, descending=d))), [x], {"descending": d}
    yield (lambda x: tuple(torch.sort(x, stable=True))), [integers(12)], {}


@op("argsort")
def argsort():
    for shape, p in (((5,), {}), ((3, 4), {"dim": 0, "descending": True}), ((), {})):
        q = {"dim": -1, **p}
        yield (lambda x: torch.argsort(x, stable=True, **q)), [uniform(*shape)], p
    yield (lambda x: torch.argsort(x, stable=True)), [TIES], {}


@op("topk")
def topk():
    for shape, p in (
        ((5,), {"k": 2}),
        ((3, 4), {"k": 3, "dim": 0, "largest": False}),
        ((2, 3, 4), {"k": 1, "dim": -2}),
        ((4,), {"k": 0}),
        ((30,), {"k": 5}),
    ):
        yield (lambda x: tuple(torch.topk(x, **p))), [uniform(*shape)], p
    yield (lambda x: tuple(torch.topk(x, 3))), [NANS], {"k": 3}


@op("kthvalue")
def kthvalue():
    for shape, p in (
        ((5,), {"k": 2}),
        ((3, 4), {"k": 3, "dim": 0}),
        ((2, 3, 4), {"k": 1, "dim": -2, "keepdim": True}),
        ((), {"k": 1}),
    ):
        yield (lambda x: tuple(torch.kthvalue(x, **p))), [uniform(*shape)], p


# ---- dtype: x is cast first
F32 = {"dtype": "f32"}


def add_cases(name, *cases):
    OPS[name] = chain(OPS[name], fixed(*cases))


for name_, f_ in (("sum", torch.sum), ("mean", torch.mean), ("prod", torch.prod)):
    add_cases(
        name_,
        ((lambda x, f=f_: f(x, dtype=torch.float32)), [integers(3, 4, lo=1)], F32),
        ((lambda x, f=f_: f(x, dim=1, dtype=torch.float32)), [booleans(3, 4)], {"dim": 1, **F32}),
    )
for name_, f_ in (("sum", torch.sum), ("prod", torch.prod)):
    add_cases(
        name_,
        ((lambda x, f=f_: f(x, dtype=torch.int64)), [values(0.5, 1.75, -2.5)], {"dtype": "i64"}, (0,)),
        ((lambda x, f=f_: f(x, dtype=torch.int32)), [integers(5)], {"dtype": "i32"}),
        ((lambda x, f=f_: f(x, dtype=torch.bool)), [integers(5)], {"dtype": "bool"}),
    )


# ---- reductions at random
def random_over_dims(f, draw=numbers, shapes=long_shape, params=some_dims, no_grad=lambda x: ()):
    def g():
        s = shapes()
        p = params(s)
        x = draw(s)
        return (lambda t: f(t, **keyword(p))), [x], p, no_grad(x)

    return g


def unless_nan(x):
    """The gradient of NaNs is theirs to share: PyTorch has it so in some functions only."""
    return (0,) if x.is_floating_point() and x.isnan().any() else ()


def spread_case(f):
    """With more elements than the correction; without any to spare the values are NaN or infinite, their
    gradients arbitrary."""

    def g():
        s = shape(0, 4)
        p = {**some_dims(s), "correction": choice([0.0, 1.0, 2.0, 0.5])}
        n = size_of(s, p)
        return (lambda x: f(x, **keyword(p))), [floats(*s)], p, () if n > p["correction"] + 1 else (0,)

    return g


RANDOM["sum"] = random_over_dims(torch.sum)
RANDOM["mean"] = random_over_dims(torch.mean, draw=lambda s: floats(*s, special=0.15))
RANDOM["prod"] = random_over_dims(
    single_dim(torch.prod),
    draw=lambda s: (
        floats(*s, also=(0.0, 0.0, 0.0), special=0.0)
        if chance(0.6)
        else torch.where(uniform(*s) < -0.7, 0.0, uniform(*s)) if chance(0.7) else integers(*s, lo=-2, hi=3)
    ),
    shapes=shape,
    params=one_dim,
)
RANDOM["var"], RANDOM["std"] = spread_case(torch.var), spread_case(torch.std)
for name_, f_ in (("amax", torch.amax), ("amin", torch.amin)):
    RANDOM[name_] = random_over_dims(f_, shapes=least, no_grad=unless_nan)
for name_, f_ in (("argmax", torch.argmax), ("argmin", torch.argmin)):
    RANDOM[name_] = random_over_dims(
        single_dim(f_),
        shapes=least,
        params=one_dim,
        draw=lambda s: floats(*s, special=0.3) if chance(0.8) else integers(*s),
    )
for name_, f_ in (("all", torch.all), ("any", torch.any)):
    RANDOM[name_] = random_over_dims(
        lambda x, dim=None, keepdim=False, f=f_: f(x) if dim is None else f(x, dim=dim, keepdim=keepdim),
        draw=lambda s: (
            booleans(*s)
            if chance(0.4)
            else (
                integers(*s, hi=1)
                if chance(0.5)
                else torch.where(uniform(*s) < 0.5, 0.0, floats(*s, special=0.3))
            )
        ),
    )
RANDOM["count_nonzero"] = random_over_dims(
    lambda x, dim=None: torch.count_nonzero(x, dim),
    params=lambda s: {k: v for k, v in some_dims(s).items() if k == "dims"},
    draw=lambda s: (
        integers(*s, hi=1) if chance(0.4) else torch.where(uniform(*s) < 0.5, 0.0, floats(*s, special=0.3))
    ),
)


@random("logsumexp")
def random_logsumexp():
    """No line of -inf alone, or with inf: PyTorch's gradient is NaN there, ours 0 and NaN."""
    s = long_shape()
    p = some_dims(s)
    x = floats(*s, lo=-choice([2, 30, 300]), hi=choice([2, 30, 300]))
    return (lambda t: with_dims(torch.logsumexp)(t, **keyword(p))), [x], p


@random("norm")
def random_norm():
    s = shape()
    order = choice([2.0, 1.0, 3.0, 1.5, 0.5, 0.0, inf, -inf, -1.0])
    if order < 0 or math.isinf(order):
        s = least()
    p = some_dims(s)
    x = floats(*s) if order < 1 or math.isinf(order) else torch.where(uniform(*s) < -0.8, 0.0, floats(*s))
    f = lambda t, dim=None, keepdim=False: torch.linalg.vector_norm(t, order, dim=dim, keepdim=keepdim)
    return (lambda t: f(t, **keyword(p))), [x], {"p": order, **p}


# ---- picks and orders at random
def random_pick(f, draw, default=None):
    """f(x, dim=..., keepdim=...) -> values, indices."""

    def g():
        s = least()
        p = {"dim": some_dim(s), "keepdim": chance(0.5)}
        return (lambda x: tuple(f(x, **p))), [draw(s)], p

    return g


RANDOM["max_dim"] = random_pick(torch.max, numbers)
RANDOM["min_dim"] = random_pick(torch.min, numbers)
# Which of equal elements these take is not defined in PyTorch.
RANDOM["median_dim"] = random_pick(torch.median, lambda s: apart(*s))
RANDOM["mode"] = random_pick(torch.mode, lambda s: apart(*s))


@random("median")
def random_median():
    x = floats(*least(), special=0.3, also=(0.5, 0.5)) if chance(0.8) else integers(*least())
    return torch.median, [x], {}


def ordered(s):
    return floats(*s, special=0.3, also=(0.5, 0.5, 0.5)) if chance(0.8) else integers(*s, lo=-3, hi=3)


def random_order(f):
    def g():
        s = (number(20, 200),) if chance(0.1) else shape()
        p = {"dim": some_dim(s), "descending": chance(0.5)}
        return (lambda x: f(x, **p)), [ordered(s)], p

    return g


RANDOM["sort"] = random_order(lambda x, **p: tuple(torch.sort(x, stable=True, **p)))
RANDOM["argsort"] = random_order(lambda x, **p: torch.argsort(x, stable=True, **p))


@random("topk")
def random_topk():
    s = (number(20, 200),) if chance(0.1) else shape(1)
    dim = some_dim(s)
    p = {"k": number(0, s[dim]), "dim": dim, "largest": chance(0.5)}
    return (lambda x: tuple(torch.topk(x, **p))), [apart(*s)], p


@random("kthvalue")
def random_kthvalue():
    s = least(1)
    dim = some_dim(s)
    p = {"k": number(1, s[dim]), "dim": dim, "keepdim": chance(0.5)}
    return (lambda x: tuple(torch.kthvalue(x, **p))), [apart(*s)], p


# ---- along a dim
def along(f, zero=False):
    def draw():
        for shape, dim in (
            ((5,), 0),
            ((3, 4), 1),
            ((3, 4), 0),
            ((2, 3, 4), -2),
            ((), 0),
            ((0, 3), 0),
            ((3, 0), 1),
        ):
            yield (lambda x: f(x, dim)), [uniform(*shape, lo=-2, hi=2)], {"dim": dim}
        if zero:
            for v in ((2, 0, 3), (2, 3, 0, 0), (0, 1), (0,), (1, 2, 3)):
                yield (lambda x: f(x, 0)), [values(*v)], {"dim": 0}

    return draw


EDGE = ([500, 501, 499], [-inf, 0, 1], [nan, 0, 1], [inf, 0, 1], [-inf, -inf])
for name_, f_ in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
    OPS[name_] = chain(
        along(f_), fixed(*[((lambda x, f=f_: f(x, 0)), [values(*v)], {"dim": 0}) for v in EDGE])
    )
OPS["cumsum"] = chain(along(torch.cumsum), fixed(((lambda x: torch.cumsum(x, 0)), [integers(5)], {"dim": 0})))
OPS["cumprod"] = along(torch.cumprod, zero=True)


for name_, f_ in (
    ("softmax", torch.softmax),
    ("log_softmax", torch.log_softmax),
    ("cumsum", torch.cumsum),
    ("cumprod", torch.cumprod),
):
    add_cases(name_, ((lambda x, f=f_: f(x, 0, dtype=torch.float32)), [integers(3, 4)], {"dim": 0, **F32}))
for name_, f_ in (("cumsum", torch.cumsum), ("cumprod", torch.cumprod)):
    add_cases(
        name_,
        (
            (lambda x, f=f_: f(x, 0, dtype=torch.int64)),
            [values(0.5, 1.75, -2.5)],
            {"dim": 0, "dtype": "i64"},
            (0,),
        ),
        ((lambda x, f=f_: f(x, 0, dtype=torch.int32)), [integers(5)], {"dim": 0, "dtype": "i32"}),
    )
for name_, f_ in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
    add_cases(
        name_,
        *[
            ((lambda x, f=f_: f(x, 0)), [values(*v)], {"dim": 0})
            for v in ((0.3,), (-inf, -3.7, -inf), (0.1, -2000.0))
        ]
    )


def random_along(f, draw):
    def g():
        s = long_shape() if chance(0.3) else shape()
        dim = some_dim(s)
        return (lambda x: f(x, dim)), [draw(s)], {"dim": dim}

    return g


def random_softmax(f):
    """-inf beside others has the probability 0; in a line of -inf alone all is NaN.  Where one is nearly 1,
    its gradient is what
    roundings leave: it is compared for values of moderate size only."""

    def g():
        s = long_shape() if chance(0.3) else shape()
        dim = some_dim(s)
        size = choice([2, 2, 30, 200])
        x = floats(*s, lo=-size, hi=size)
        if s and x.numel() and s[dim] > 1 and chance(0.15):
            x.reshape(-1)[number(0, x.numel() - 1)] = -inf
        return (lambda t: f(t, dim)), [x], {"dim": dim}, () if size == 2 else (0,)

    return g


RANDOM["softmax"], RANDOM["log_softmax"] = random_softmax(torch.softmax), random_softmax(torch.log_softmax)
RANDOM["cumsum"] = random_along(torch.cumsum, numbers)
RANDOM["cumprod"] = random_along(
    torch.cumprod,
    lambda s: (
        torch.where(uniform(*s) < -0.7, 0.0, floats(*s, lo=-1.5, hi=1.5))
        if chance(0.8)
        else integers(*s, lo=-2, hi=2)
    ),
)


# ---- losses
def loss(f, params, target, no_grad=()):
    def draw():
        for p in params:
            for r in (0, 1, 2) if "reduction" not in p else (p["reduction"],):
                q = {k: v for k, v in p.items() if k != "reduction"}
                for shape in ((5,), (3, 4), ()) + (((0, 3),) if r else ()):
                    if r == 3 and len(shape) < 2:
                        continue
                    yield (lambda x, t: f(x, t, reduction=REDUCTION[r], **q)), [
                        uniform(*shape, lo=-2, hi=2),
                        target(*shape),
                    ], {"reduction": r, **q}

    return draw


def same(*shape):
    return uniform(*shape, lo=-2, hi=2)


def kinks(f, p):
    return fixed(
        (
            lambda x, t: f(x, t, reduction="none", **p),
            [values(0, 1, -1, 2, 0.5, nan, inf), values(0, 0, 0, 0, 0, 0, 0)],
            {"reduction": 2, **p},
        )
    )


def weighted(f, p):
    def draw():
        for g, inputs, q in chain(loss(f, [p], same), kinks(f, p))():
            yield (lambda x, t, w: g(x, t)), [*inputs, None], q
        for r in (0, 1, 2):
            for shape in ((5,), (3, 4), ()) + (((0, 3),) if r else ()):
                yield (lambda x, t, w: f(x, t, reduction=REDUCTION[r], weight=w, **p)), [
                    uniform(*shape, lo=-2, hi=2),
                    uniform(*shape, lo=-2, hi=2),
                    uniform(*shape, lo=0.5, hi=2),
                ], {"reduction": r, **p}

    return draw


OPS["mse_loss"], OPS["l1_loss"] = weighted(F.mse_loss, {}), weighted(F.l1_loss, {})
OPS["smooth_l1_loss"] = chain(
    loss(F.smooth_l1_loss, [{"beta": 1.0}, {"beta": 0.5}, {"beta": 0.0}], same),
    kinks(F.smooth_l1_loss, {"beta": 1.0}),
)
OPS["huber_loss"] = chain(weighted(F.huber_loss, {"delta": 1.0}), weighted(F.huber_loss, {"delta": 0.5}))
OPS["kl_div"] = chain(
    loss(F.kl_div, [{}, {"reduction": 3}], lambda *s: uniform(*s, lo=0.1, hi=1)),
    loss(F.kl_div, [{"log_target": True}], same),
    fixed(
        (
            lambda x, t: F.kl_div(x, t, reduction="none"),
            [values(-1, -2, -3), values(0, 0.5, 1)],
            {"reduction": 2},
            (1,),
        )
    ),
)


@op("binary_cross_entropy")
def bce():
    for r in (0, 1, 2):
        f = lambda x, t, w: F.binary_cross_entropy(x, t, w, reduction=REDUCTION[r])
        for shape in ((5,), (3, 4), ()):
            yield f, [uniform(*shape, lo=0.1, hi=0.9), uniform(*shape, lo=0, hi=1), None], {"reduction": r}
        yield f, [uniform(3, 4, lo=0.1, hi=0.9), uniform(3, 4, lo=0, hi=1), uniform(4)], {"reduction": r}, (
            2,
        )
    yield f, [values(0, 1, 0, 1, 0.5), values(0, 1, 1, 0, 1), None], {"reduction": 2}, (1,)


@op("binary_cross_entropy_elements")
def bce_elements():
    for shape in ((5,), (3, 4), (), (0, 3)):
        yield (lambda x, t: F.binary_cross_entropy(x, t, reduction="none")), [
            uniform(*shape, lo=0.1, hi=0.9),
            uniform(*shape, lo=0, hi=1),
        ], {}


@op("binary_cross_entropy_with_logits")
def bce_logits():
    for r in (0, 1, 2):
        f = lambda x, t, w, p: F.binary_cross_entropy_with_logits(
            x, t, w, reduction=REDUCTION[r], pos_weight=p
        )
        for shape in ((5,), (3, 4), ()):
            yield f, [uniform(*shape, lo=-4, hi=4), uniform(*shape, lo=0, hi=1), None, None], {"reduction": r}
        yield f, [uniform(3, 4), uniform(3, 4, lo=0, hi=1), uniform(4), uniform(4)], {"reduction": r}, (2, 3)
        yield f, [uniform(3, 4), uniform(3, 4, lo=0, hi=1), None, uniform(4)], {"reduction": r}, (2, 3)
    yield f, [values(100, -100, 1000, -1000), values(0, 1, 1, 0), None, None], {"reduction": 2}


def classes(f, extra):
    def draw():
        for r in (0, 1, 2):
            for more in extra:
                g = lambda x, t, w: f(x, t, w, reduction=REDUCTION[r], **more)
                for sx, st in (((3, 4), (3,)), ((4,), ()), ((2, 3, 4), (2, 4)), ((2, 3, 2, 2), (2, 2, 2))):
                    c = sx[0] if len(sx) == 1 else sx[1]
                    for weight in (None, uniform(c, lo=0.5, hi=2)):
                        yield g, [uniform(*sx, lo=-2, hi=2), integers(*st, hi=c - 1), weight], {
                            "reduction": r,
                            **more,
                        }, (2,)
        g = lambda x, t, w: f(x, t, w, ignore_index=1)
        yield g, [uniform(5, 3), values(0, 1, 2, 1, 1, dtype=torch.int64), uniform(3, lo=0.5, hi=2)], {
            "ignore_index": 1
        }, (2,)
        yield g, [uniform(2, 3), values(1, 1, dtype=torch.int64), None], {"ignore_index": 1}
        yield (lambda x, t, w: f(x, t, w)), [uniform(3, 3), values(-100, 2, 0, dtype=torch.int64), None], {}

    return draw


OPS["nll_loss"] = classes(F.nll_loss, [{}])
OPS["cross_entropy"] = classes(F.cross_entropy, [{}, {"label_smoothing": 0.2}])


@op("cross_entropy_probabilities")
def cross_entropy_probabilities():
    for r in (0, 1, 2):
        for s in (0.0, 0.2):
            f = lambda x, t, w: F.cross_entropy(x, t, w, reduction=REDUCTION[r], label_smoothing=s)
            for shape in ((3, 4), (4,), (2, 4, 3)):
                for weight in (None, uniform(4, lo=0.5, hi=2)):
                    yield f, [uniform(*shape), uniform(*shape, lo=0, hi=1), weight], {
                        "reduction": r,
                        "label_smoothing": s,
                    }, (2,)


# ---- losses at random
def random_loss(f, target, parameter=None, most=2, weights=False):
    def g():
        r = number(0, most)
        s = shape() if r else least()
        if r == 3:
            s = least(1)
        p = {"reduction": r, **({parameter: choice([1.0, scalar(0.05, 3)])} if parameter else {})}
        q = {k: v for k, v in p.items() if k != "reduction"}
        if not weights:
            return (lambda x, t: f(x, t, reduction=REDUCTION[r], **q)), [floats(*s), target(*s)], p
        w = uniform(*s, lo=0.5, hi=2) if chance(0.5) else None
        return (
            (lambda x, t, w: f(x, t, reduction=REDUCTION[r], weight=w, **q)),
            [floats(*s), target(*s), w],
            p,
        )

    return g


RANDOM["mse_loss"] = random_loss(F.mse_loss, floats, weights=True)
RANDOM["l1_loss"] = random_loss(F.l1_loss, floats, weights=True)
RANDOM["smooth_l1_loss"] = random_loss(F.smooth_l1_loss, floats, "beta")
RANDOM["huber_loss"] = random_loss(F.huber_loss, floats, "delta", weights=True)


@random("kl_div")
def random_kl_div():
    logs = chance(0.4)
    g = random_loss(
        lambda x, t, reduction: F.kl_div(x, t, reduction=reduction, log_target=logs),
        floats if logs else lambda *s: uniform(*s, lo=0.05, hi=1),
        most=3,
    )
    f, inputs, p = g()
    return f, inputs, {**p, "log_target": logs}


def weights(s):
    return uniform(*narrower(s), lo=0.1, hi=2) if chance(0.4) else None


@random("binary_cross_entropy")
def random_bce():
    r = number(0, 2)
    s = shape() if r else least()
    return (
        (lambda x, t, w: F.binary_cross_entropy(x, t, w, reduction=REDUCTION[r])),
        [uniform(*s, lo=0.05, hi=0.95), uniform(*s, lo=0, hi=1), weights(s)],
        {"reduction": r},
        (2,),
    )


@random("binary_cross_entropy_elements")
def random_bce_elements():
    s = shape()
    return (
        (lambda x, t: F.binary_cross_entropy(x, t, reduction="none")),
        [uniform(*s, lo=0.05, hi=0.95), uniform(*s, lo=0, hi=1)],
        {},
    )


@random("binary_cross_entropy_with_logits")
def random_bce_logits():
    r = number(0, 2)
    s = shape() if r else least()
    f = lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, reduction=REDUCTION[r], pos_weight=p)
    return (
        f,
        [
            floats(*s, lo=-choice([3, 40]), hi=choice([3, 40])),
            uniform(*s, lo=0, hi=1),
            weights(s),
            weights(s),
        ],
        {"reduction": r},
        (2, 3),
    )


def class_shapes():
    """Logits [C] or [N, C, ...], and their targets' shape.  Of one class alone the gradient is 0, but for
    roundings."""
    c, rest = number(2, 7), least(0, 2, 4)
    if chance(0.15):
        return (c,), (), c
    n = number(1, 6)
    return (n, c, *rest), (n, *rest), c


def random_classes(f, smooth):
    """Some targets are ignored; if all are, the mean is NaN, its gradient arbitrary."""

    def g():
        sx, st, c = class_shapes()
        p = {"reduction": number(0, 2), "ignore_index": choice([-100, 0, -1])}
        if smooth:
            p["label_smoothing"] = choice([0.0, scalar(0, 0.9)])
        t = integers(*st, hi=c - 1)
        if p["ignore_index"] < 0 and chance(0.3):
            t = torch.where(uniform(*st) < -0.5, p["ignore_index"], t)
        q = {**p, "reduction": REDUCTION[p["reduction"]]}
        w = uniform(c, lo=0.5, hi=2) if chance(0.4) else None
        x = floats(*sx) if smooth else uniform(*sx, lo=-4, hi=-0.1)
        return (
            (lambda x, y, v: f(x, y, v, **q)),
            [x, t, w],
            p,
            (0, 2) if (t == p["ignore_index"]).all() else (2,),
        )

    return g


RANDOM["nll_loss"], RANDOM["cross_entropy"] = random_classes(F.nll_loss, False), random_classes(
    F.cross_entropy, True
)


@random("cross_entropy_probabilities")
def random_cross_entropy_probabilities():
    sx, _, c = class_shapes()
    p = {"reduction": number(0, 2), "label_smoothing": choice([0.0, scalar(0, 0.9)])}
    q = {**p, "reduction": REDUCTION[p["reduction"]]}
    w = uniform(c, lo=0.5, hi=2) if chance(0.4) else None
    return (
        (lambda x, t, v: F.cross_entropy(x, t, v, **q)),
        [floats(*sx), uniform(*sx, lo=0, hi=1), w],
        p,
        (2,),
    )


# ---- options of one dim, where the cases above draw lists
for name_ in ("prod", "argmax", "argmin"):
    for table_ in (OPS, RANDOM):
        if name_ in table_:
            table_[name_] = with_one_dim(table_[name_])
