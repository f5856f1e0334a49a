"""cases_reduce.py - reductions, order, softmax, sums along a dim, losses."""
import math

import torch
import torch.nn.functional as F

from golden import booleans, integers, uniform, values

inf, nan = math.inf, math.nan
REDUCTION = ("mean", "sum", "none", "batchmean")
OPS = {}


def op(name):
    def add(f):
        OPS[name] = f
        return f
    return add


# ---- reductions over dims: (shape, parameters)
DIMS = [((), {}), ((2,), {}), ((3, 5), {}), ((3, 5), {"dims": [0], "keepdim": True}), ((3, 5), {"dims": [-1]}),
        ((3, 2, 1, 2), {"dims": [1], "keepdim": True}), ((3, 2, 1, 2), {"dims": [0, -1], "keepdim": True}),
        ((3, 2, 1, 2), {"dims": [0, 2]}), ((2, 3, 4), {"dims": [0, 1, 2]}), ((), {"dims": [0]})]
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

OPS["sum"] = chain(over_dims(torch.sum, DIMS + EMPTY), fixed((torch.sum, [values(1, inf, 2)], {}), (torch.sum, [values(inf, -inf, 2)], {}),
                   (torch.sum, [integers(3, 4)], {}), (torch.sum, [booleans(3, 4)], {})))
OPS["mean"] = chain(over_dims(torch.mean, DIMS + EMPTY), fixed((torch.mean, [NANS], {})))
OPS["prod"] = chain(over_dims(single_dim(torch.prod), ONE_DIM + EMPTY), fixed(
    (torch.prod, [values(2, 0, 3)], {}), (torch.prod, [values(2, 0, 3, 0)], {}), (torch.prod, [values(0)], {}),
    (lambda x: torch.prod(x, 1), [values(1, 2, 0, 3, 0, 0, 4, 5, -1).reshape(3, 3)], {"dims": [1]}), (torch.prod, [integers(4, lo=1)], {})))
BIG = [(s, p) for s, p in DIMS if s != () and s != (3, 2, 1, 2)]
OPS["var"] = chain(over_dims(torch.var, BIG, ({}, {"correction": 0.0})), fixed(
    (lambda x: torch.var(x, correction=0.5), [uniform(3, 4)], {"correction": 0.5}), (torch.var, [values(1, 1, 1)], {}),
    (torch.var, [values(1e4 + 1, 1e4 + 2, 1e4 + 3)], {})))
OPS["std"] = chain(over_dims(torch.std, BIG, ({}, {"correction": 0.0})), fixed((torch.std, [values(1, 1, 1)], {})))
for name_, f_ in (("amax", torch.amax), ("amin", torch.amin)):
    OPS[name_] = chain(over_dims(f_, DIMS + EMPTY[:1]), fixed((f_, [TIES], {}), (f_, [NANS], {}, (0,)), (f_, [values(inf, 1, inf)], {}),
                       (f_, [integers(3, 4)], {})))
for name_, f_ in (("argmax", torch.argmax), ("argmin", torch.argmin)):
    OPS[name_] = chain(over_dims(single_dim(f_), ONE_DIM + EMPTY[:1]), fixed((f_, [TIES], {}), (f_, [NANS], {}), (f_, [integers(9)], {})))
for name_, f_ in (("all", torch.all), ("any", torch.any)):
    def draw_bool(f=f_):
        for shape, p in DIMS + EMPTY:
            yield (lambda x: with_dims(f)(x, **keyword(p)) if "dims" in p else f(x)), [booleans(*shape)], p
        yield f, [values(0, nan, 1)], {}
        yield f, [integers(5)], {}
    OPS[name_] = draw_bool
OPS["count_nonzero"] = chain(lambda: (((lambda x: torch.count_nonzero(x, dim=p.get("dims"))), [integers(*shape, lo=0, hi=1)], p)
                             for shape, p in DIMS + EMPTY if not p.get("keepdim")), fixed((torch.count_nonzero, [values(0, nan, 1, -0.0)], {})))
OPS["logsumexp"] = chain(over_dims(with_dims(torch.logsumexp), DIMS + EMPTY, lo=-3, hi=3), fixed(
    (lambda x: torch.logsumexp(x, 0), [values(500, 501, 499)], {"dims": [0]}),
    (lambda x: torch.logsumexp(x, 0), [values(inf, 1, 2)], {"dims": [0]})))


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
        for shape, p in (((5,), {"dim": 0}), ((3, 4), {"dim": 1}), ((2, 3, 4), {"dim": -2, "keepdim": True}), ((), {"dim": 0}), ((0, 3), {"dim": 1})):
            yield (lambda x: tuple(f(x, **p))), [uniform(*shape)], p
        for x in (TIES, NANS):
            yield (lambda x: tuple(f(x, dim=0))), [x], {"dim": 0}
        yield (lambda x: tuple(f(x, dim=1))), [integers(3, 5)], {"dim": 1}
    return draw


OPS["max_dim"] = picks(torch.max)
OPS["min_dim"] = picks(torch.min)
OPS["median_dim"] = lambda: (c for c in picks(torch.median)() if c[1][0] is not TIES and c[1][0].is_floating_point())
OPS["median"] = fixed((torch.median, [uniform(5)], {}), (torch.median, [uniform(3, 4)], {}), (torch.median, [uniform()], {}), (torch.median, [TIES], {}),
                      (torch.median, [NANS], {}), (torch.median, [integers(7)], {}))


@op("mode")
def mode():
    for shape, p in (((5,), {"dim": 0}), ((3, 4), {}), ((2, 3, 4), {"dim": -2, "keepdim": True}), ((), {})):
        yield (lambda x: tuple(torch.mode(x, **p))), [uniform(*shape)], p


@op("sort")
def sort():
    for shape, p in (((5,), {}), ((3, 4), {"dim": 0, "descending": True}), ((2, 3, 4), {"dim": -2}), ((), {}), ((0, 3), {"dim": 0}), ((40,), {})):
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
    for shape, p in (((5,), {"k": 2}), ((3, 4), {"k": 3, "dim": 0, "largest": False}), ((2, 3, 4), {"k": 1, "dim": -2}), ((4,), {"k": 0}), ((30,), {"k": 5})):
        yield (lambda x: tuple(torch.topk(x, **p))), [uniform(*shape)], p
    yield (lambda x: tuple(torch.topk(x, 3))), [NANS], {"k": 3}


@op("kthvalue")
def kthvalue():
    for shape, p in (((5,), {"k": 2}), ((3, 4), {"k": 3, "dim": 0}), ((2, 3, 4), {"k": 1, "dim": -2, "keepdim": True}), ((), {"k": 1})):
        yield (lambda x: tuple(torch.kthvalue(x, **p))), [uniform(*shape)], p


# ---- along a dim
def along(f, zero=False):
    def draw():
        for shape, dim in (((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 3, 4), -2), ((), 0), ((0, 3), 0), ((3, 0), 1)):
            yield (lambda x: f(x, dim)), [uniform(*shape, lo=-2, hi=2)], {"dim": dim}
        if zero:
            for v in ((2, 0, 3), (2, 3, 0, 0), (0, 1), (0,), (1, 2, 3)):
                yield (lambda x: f(x, 0)), [values(*v)], {"dim": 0}
    return draw


EDGE = ([500, 501, 499], [-inf, 0, 1], [nan, 0, 1], [inf, 0, 1], [-inf, -inf])
for name_, f_ in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
    OPS[name_] = chain(along(f_), fixed(*[((lambda x, f=f_: f(x, 0)), [values(*v)], {"dim": 0}) for v in EDGE]))
OPS["cumsum"] = chain(along(torch.cumsum), fixed(((lambda x: torch.cumsum(x, 0)), [integers(5)], {"dim": 0})))
OPS["cumprod"] = along(torch.cumprod, zero=True)


# ---- losses
def loss(f, params, target, no_grad=()):
    def draw():
        for p in params:
            for r in (0, 1, 2) if "reduction" not in p else (p["reduction"],):
                q = {k: v for k, v in p.items() if k != "reduction"}
                for shape in ((5,), (3, 4), ()) + (((0, 3),) if r else ()):
                    if r == 3 and len(shape) < 2:
                        continue
                    yield (lambda x, t: f(x, t, reduction=REDUCTION[r], **q)), [uniform(*shape, lo=-2, hi=2), target(*shape)], {"reduction": r, **q}
    return draw


def same(*shape):
    return uniform(*shape, lo=-2, hi=2)


def kinks(f, p):
    return fixed((lambda x, t: f(x, t, reduction="none", **p), [values(0, 1, -1, 2, 0.5, nan, inf), values(0, 0, 0, 0, 0, 0, 0)], {"reduction": 2, **p}))


OPS["mse_loss"] = chain(loss(F.mse_loss, [{}], same), kinks(F.mse_loss, {}))
OPS["l1_loss"] = chain(loss(F.l1_loss, [{}], same), kinks(F.l1_loss, {}))
OPS["smooth_l1_loss"] = chain(loss(F.smooth_l1_loss, [{"beta": 1.0}, {"beta": 0.5}, {"beta": 0.0}], same), kinks(F.smooth_l1_loss, {"beta": 1.0}))
OPS["huber_loss"] = chain(loss(F.huber_loss, [{"delta": 1.0}, {"delta": 0.5}], same), kinks(F.huber_loss, {"delta": 1.0}))
OPS["kl_div"] = chain(loss(F.kl_div, [{}, {"reduction": 3}], lambda *s: uniform(*s, lo=0.1, hi=1)),
                      loss(F.kl_div, [{"log_target": True}], same),
                      fixed((lambda x, t: F.kl_div(x, t, reduction="none"), [values(-1, -2, -3), values(0, 0.5, 1)], {"reduction": 2}, (1,))))


@op("binary_cross_entropy")
def bce():
    for r in (0, 1, 2):
        f = lambda x, t, w: F.binary_cross_entropy(x, t, w, reduction=REDUCTION[r])
        for shape in ((5,), (3, 4), ()):
            yield f, [uniform(*shape, lo=0.1, hi=0.9), uniform(*shape, lo=0, hi=1), None], {"reduction": r}
        yield f, [uniform(3, 4, lo=0.1, hi=0.9), uniform(3, 4, lo=0, hi=1), uniform(4)], {"reduction": r}, (2,)
    yield f, [values(0, 1, 0, 1, 0.5), values(0, 1, 1, 0, 1), None], {"reduction": 2}, (1,)


@op("binary_cross_entropy_elements")
def bce_elements():
    for shape in ((5,), (3, 4), (), (0, 3)):
        yield (lambda x, t: F.binary_cross_entropy(x, t, reduction="none")), [uniform(*shape, lo=0.1, hi=0.9), uniform(*shape, lo=0, hi=1)], {}


@op("binary_cross_entropy_with_logits")
def bce_logits():
    for r in (0, 1, 2):
        f = lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, reduction=REDUCTION[r], pos_weight=p)
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
                        yield g, [uniform(*sx, lo=-2, hi=2), integers(*st, hi=c - 1), weight], {"reduction": r, **more}, (2,)
        g = lambda x, t, w: f(x, t, w, ignore_index=1)
        yield g, [uniform(5, 3), values(0, 1, 2, 1, 1, dtype=torch.int64), uniform(3, lo=0.5, hi=2)], {"ignore_index": 1}, (2,)
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
                    yield f, [uniform(*shape), uniform(*shape, lo=0, hi=1), weight], {"reduction": r, "label_smoothing": s}, (2,)
