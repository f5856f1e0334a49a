"""cases_loss.py - losses (the others are in cases_reduce.py), log-probabilities."""

import math

import torch
import torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, Normal

from golden import (
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

OPS, RANDOM = {}, {}
REDUCTION = ("mean", "sum", "none", "batchmean")
inf, nan = math.inf, math.nan


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


def reduction(p):
    return REDUCTION[p["reduction"]]


def drawn_reduction(s):
    """None of an empty mean: it is NaN, and tested by hand."""
    return number(0, 2) if math.prod(s) else number(1, 2)


def signs(*s):
    return integers(*s, hi=1) * 2 - 1


def weight_for(s):
    return uniform(*narrower(s), lo=0.5, hi=2) if chance(0.3) else None


# ---- likelihoods
def gaussian(p):
    return lambda x, t, v: F.gaussian_nll_loss(
        x, t, v, full=p.get("full", False), eps=p.get("eps", 1e-6), reduction=reduction(p)
    )


@op("gaussian_nll_loss")
def gaussian_nll():
    yield gaussian({"reduction": 2}), [values(1, 2, 3), values(0, 0, 0), values(0, 1e-9, 0.5)], {
        "reduction": 2
    }  # held above eps
    yield gaussian({"reduction": 2, "eps": 1.0}), [values(1, 2, 3), values(0, 0, 0), values(0, 1, 0.5)], {
        "reduction": 2,
        "eps": 1.0,
    }
    yield gaussian({"reduction": 2}), [values(1, nan, inf, 1), values(0, 0, 0, 0), values(inf, 1, 1, nan)], {
        "reduction": 2
    }, (2,)
    yield gaussian({"reduction": 0}), [uniform(0, 3), uniform(0, 3), uniform(0, 3)], {"reduction": 0}


@random("gaussian_nll_loss")
def _():
    s = shape()
    p = {"reduction": drawn_reduction(s), "full": chance(0.5), "eps": choice((1e-6, 0.25))}
    v = s
    if len(s) and chance(0.4):
        d = number(0, len(s) - 1)
        v = s[:-1] if chance(0.4) else (*s[:d], 1, *s[d + 1 :])
    return gaussian(p), [floats(*s), floats(*s), uniform(*v, lo=0.1, hi=2)], p


def poisson(p):
    # of integers PyTorch takes the logarithm in f32
    return lambda x, t: F.poisson_nll_loss(
        x,
        t.to(x.dtype),
        log_input=p["log_input"],
        full=p["full"],
        eps=p.get("eps", 1e-8),
        reduction=reduction(p),
    )


@op("poisson_nll_loss")
def poisson_nll():
    p = {"log_input": False, "full": False, "reduction": 2}
    yield poisson(p), [values(0, 2, 0, 3), values(0, 1, 2, 1.5)], p
    p = {"log_input": True, "full": True, "reduction": 2}
    yield poisson(p), [values(1, 2, -1, 0, 3), values(0, 1, 2, 1.5, 100)], p, (
        1,
    )  # PyTorch's gradient at t = 0 is NaN
    yield poisson(p), [values(inf, -inf, nan), values(1, 1, 1)], p, (1,)


@random("poisson_nll_loss")
def _():
    s = shape()
    p = {
        "log_input": chance(0.6),
        "full": chance(0.5),
        "eps": choice((1e-8, 0.1)),
        "reduction": drawn_reduction(s),
    }
    t = integers(*s, lo=1, hi=9) if chance(0.3) else uniform(*s, lo=0.1, hi=6)
    return poisson(p), [floats(*s) if p["log_input"] else uniform(*s, lo=0.1, hi=4), t], p


# ---- pairs
def hinge(p):
    return lambda x, t: F.hinge_embedding_loss(x, t, margin=p.get("margin", 1.0), reduction=reduction(p))


@op("hinge_embedding_loss")
def hinge_embedding():
    p = {"reduction": 2}
    yield hinge(p), [values(-1, 1, 1, 0.5, inf, -inf, 2), values(1, 0, -1, -1, -1, 1, -1)], p, (
        1,
    )  # 0 at the kink
    yield hinge(p), [values(nan, nan, 1), values(1, -1, 1)], p, (0, 1)


@random("hinge_embedding_loss")
def _():
    s = shape()
    p = {"margin": choice((1.0, 0.5, scalar(-1, 2))), "reduction": drawn_reduction(s)}
    t = signs(*s) if chance(0.7) else integers(*s, lo=-1, hi=1)
    x = floats(*s, special=0.15)
    x = torch.where(x.isnan(), 0.25, x)  # PyTorch's hinges pass a NaN, and have the gradient 0 there
    return hinge(p), [x, t if chance(0.5) else t.double()], p, (1,)


def ranking(p):
    return lambda a, b, t: F.margin_ranking_loss(a, b, t, margin=p.get("margin", 0.0), reduction=reduction(p))


@op("margin_ranking_loss")
def margin_ranking():
    p = {"margin": 1.0, "reduction": 2}
    yield ranking(p), [values(1, 0, 2, inf), values(0, 1, 0, 0), values(1, -1, 1, -1)], p  # 0 at the kinks
    yield ranking(p), [values(nan, 1), values(0, nan), values(1, -1)], p, (0, 1, 2)


@random("margin_ranking_loss")
def _():
    s = shape()
    p = {"margin": choice((0.0, 0.5, scalar(-1, 2))), "reduction": drawn_reduction(s)}
    return ranking(p), [floats(*s), floats(*s), signs(*s) if chance(0.4) else floats(*s)], p


def cosine(p):
    return lambda a, b, t: F.cosine_embedding_loss(
        a, b, t, margin=p.get("margin", 0.0), reduction=reduction(p)
    )


@op("cosine_embedding_loss")
def cosine_embedding():
    p = {"reduction": 2}
    a, b = (
        torch.tensor([[1, 0], [0, 0], [1, 1], [1, 2]]).double(),
        torch.tensor([[0, 1], [0, 1], [2, 2], [3, 4]]).double(),
    )
    yield cosine(p), [a, b, values(-1, 1, -1, 0)], p, (
        0,
        1,
        2,
    )  # the kink, a zero vector (PyTorch rounds 1e-12 to f32), parallel ones, no target
    yield cosine(p), [uniform(4), uniform(4), torch.tensor(1)], p
    yield cosine({"reduction": 1}), [uniform(0, 4), uniform(0, 4), signs(0)], {"reduction": 1}


@random("cosine_embedding_loss")
def _():
    s = (
        (number(2, 6),) if chance(0.2) else (number(1, 6) if chance(0.95) else 0, number(2, 6))
    )  # in one dim cos is constant, but for 1e-12
    p = {"margin": choice((0.0, 0.5, -0.5, scalar(-1, 1))), "reduction": drawn_reduction(s)}
    t = signs(*s[:-1]) if chance(0.8) else integers(*s[:-1], lo=-1, hi=1)
    return cosine(p), [floats(*s), floats(*s), t if chance(0.5) else t.double()], p, (2,)


def triplet(p):
    more = {k: v for k, v in p.items() if k != "reduction"}
    return lambda a, b, c: F.triplet_margin_loss(a, b, c, reduction=reduction(p), **more)


@op("triplet_margin_loss")
def triplet_margin():
    p = {"eps": 0.0, "reduction": 2}
    rows = lambda *r: torch.tensor(r).double()
    # the kink; anchor and positive equal; the swapped distance equal to the other
    yield triplet(p), [rows([0, 0], [1, 0]), rows([1, 0], [1, 0]), rows([2, 0], [1.5, 0])], p
    p = {"eps": 0.0, "reduction": 2, "swap": True, "margin": 5.0}
    yield triplet(p), [rows([0, 0], [1, 0]), rows([0, 0], [1, 3]), rows([2, 0], [0, 3])], p


@random("triplet_margin_loss")
def _():
    s = (*shape(0, 3), number(2, 6))  # in one dim gradients cancel to nothing but roundings
    p = {
        "margin": choice((1.0, 0.5, 3.0)),
        "p": choice((2.0, 2.0, 1.0, 3.0, 1.5, inf)),
        "eps": choice((1e-6, 0.01)),
        "swap": chance(0.4),
        "reduction": drawn_reduction(s[:-1]),
    }
    return triplet(p), [floats(*s), floats(*s), floats(*s)], p


# ---- classes
def soft(p):
    return lambda x, t: F.soft_margin_loss(x, t, reduction=reduction(p))


@op("soft_margin_loss")
def soft_margin():
    p = {"reduction": 2}
    yield soft(p), [values(0, 30, -30, 500, nan, inf), values(1, 1, 1, 1, 1, 1)], p, (1,)


@random("soft_margin_loss")
def _():
    s = shape()
    p = {"reduction": drawn_reduction(s)}
    return soft(p), [floats(*s, lo=-8, hi=8), signs(*s) if chance(0.5) else floats(*s)], p, (1,)


def multilabel_soft(p):
    return lambda x, t, w: F.multilabel_soft_margin_loss(x, t, w, reduction=reduction(p))


@op("multilabel_soft_margin_loss")
def multilabel_soft_margin():
    p = {"reduction": 2}
    yield multilabel_soft(p), [values(0, 30, -30, 500), values(1, 0, 1, 1), None], p
    yield multilabel_soft(p), [values(nan, 1), values(1, 0), None], p


@random("multilabel_soft_margin_loss")
def _():
    s = shape(1, 4, least=1)
    p = {"reduction": drawn_reduction(s)}
    t = (
        booleans(*s).long()
        if chance(0.3)
        else booleans(*s).double() if chance(0.5) else uniform(*s, lo=0, hi=1)
    )
    return multilabel_soft(p), [floats(*s, lo=-8, hi=8), t, weight_for(s)], p, (2,)


def rows_of_classes():
    c = number(1, 6)
    return ((c,), (), c) if chance(0.2) else ((n := number(1, 6), c), (n,), c)


def multi(p):
    return lambda x, t, w: F.multi_margin_loss(
        x, t.long(), p=p.get("p", 1), margin=p.get("margin", 1.0), weight=w, reduction=reduction(p)
    )


@op("multi_margin_loss")
def multi_margin():
    for power in (1, 2):
        p = {"p": power, "reduction": 2}
        yield multi(p), [
            torch.tensor([[1.0, 0, 0.5], [0, 1, 2]]).double(),
            torch.tensor([0, 1]),
            None,
        ], p  # the kink


@random("multi_margin_loss")
def _():
    x, t, c = rows_of_classes()
    p = {"p": number(1, 2), "margin": choice((1.0, 0.5, scalar(0, 3))), "reduction": number(0, 2)}
    target = integers(*t, hi=c - 1, dtype=choice((torch.int64, torch.int32, torch.uint8)))
    return multi(p), [floats(*x), target, uniform(c, lo=0.5, hi=2) if chance(0.4) else None], p, (2,)


def multilabel(p):
    return lambda x, t: F.multilabel_margin_loss(x, t.long(), reduction=reduction(p))


@op("multilabel_margin_loss")
def multilabel_margin():
    p = {"reduction": 2}
    yield multilabel(p), [values(0.1, 0.2, 0.4, 0.8), torch.tensor([3, 0, -1, 1])], p
    yield multilabel(p), [values(0.1, 0.2, 0.4, 0.8), torch.tensor([0, 0, -1, 1])], p  # a label twice
    yield multilabel(p), [values(1, 0, 0.5), torch.tensor([0, -1, -1])], p  # the kink
    yield multilabel(p), [values(1, 0, 0.5), torch.tensor([-1, 2, 1])], p  # no label
    yield multilabel(p), [values(1, 0, 0.5), torch.tensor([2, 1, 0])], p  # all of them


@random("multilabel_margin_loss")
def _():
    x, _, c = rows_of_classes()
    p = {"reduction": number(0, 2)}
    return (
        multilabel(p),
        [floats(*x), integers(*x, lo=-1, hi=c - 1, dtype=choice((torch.int64, torch.int32)))],
        p,
    )


# ---- alignment
def ctc(p):
    def f(x, y, times, sizes):
        own = [v.long() for v in (y, times, sizes)]
        loss = F.ctc_loss(
            x, *own, blank=p.get("blank", 0), reduction="none", zero_infinity=p.get("zero_infinity", False)
        )
        # ours is the derivative by log_probs alone: PyTorch's e^log_probs is taken off, of each sequence with
        # a gradient
        inside = (torch.arange(len(x)).unsqueeze(-1) < own[1].reshape(-1)).to(x.dtype)
        mass = (x if x.dim() == 3 else x.unsqueeze(1)).exp().sum(-1) * inside
        mass = mass.sum(0) * ((loss != 0) | (own[2] == 0)).reshape(-1)
        mass = mass.reshape(loss.shape)
        loss = loss - mass + mass.detach()
        if p["reduction"] == 0:
            return (loss / own[2].clamp(min=1).reshape(loss.shape)).mean()
        return loss.sum() if p["reduction"] == 1 else loss

    return f


def log_probs(*s):
    return floats(*s).log_softmax(-1).float().double()


def lengths(*n):
    return torch.tensor(n)


@op("ctc_loss")
def ctc_loss():
    p = {"reduction": 2}
    yield ctc(p), [
        log_probs(4, 3, 3),
        torch.tensor([[1, 1], [1, 2], [0, 0]]),
        lengths(4, 3, 4),
        lengths(2, 2, 0),
    ], p  # repeated, an empty one
    yield ctc(p), [
        log_probs(2, 2, 3),
        torch.tensor([[1, 1], [1, 2]]),
        lengths(2, 2),
        lengths(2, 2),
    ], p  # no path: infinity
    yield ctc(p), [
        log_probs(3, 2, 3),
        torch.tensor([[1, 1], [1, 2]]),
        lengths(0, 0),
        lengths(0, 1),
    ], p  # no input
    p = {"reduction": 2, "zero_infinity": True}
    yield ctc(p), [log_probs(2, 2, 3), torch.tensor([[1, 1], [1, 2]]), lengths(2, 2), lengths(2, 2)], p
    p = {"reduction": 0}
    yield ctc(p), [log_probs(6, 3), torch.tensor([1, 1, 2]), torch.tensor(5), torch.tensor(3)], p
    yield ctc(p), [
        log_probs(30, 4, 8),
        integers(4, 7, lo=1, hi=7),
        lengths(30, 28, 25, 30),
        lengths(7, 3, 5, 1),
    ], p
    p = {"reduction": 1, "blank": 2}
    yield ctc(p), [log_probs(6, 2, 3), torch.tensor([1, 1, 0, 1, 0]), lengths(6, 5), lengths(3, 2)], p


@random("ctc_loss")
def _():
    t, n, c = number(1, 10), number(1, 4), number(2, 6)
    p = {
        "reduction": number(0, 2),
        "blank": number(0, c - 1) if chance(0.4) else 0,
        "zero_infinity": chance(0.5),
    }
    sizes = [number(0, 5) if chance(0.5) else number(0, 2) for _ in range(n)]
    times = [number(1, t) if chance(0.5) else t for _ in range(n)]
    if not p["zero_infinity"] and chance(
        0.8
    ):  # mostly what a path reaches: as many steps as labels and repetitions
        t = 12
        times = [number(11, 12) for _ in range(n)]
    labels = [i for i in range(c) if i != p["blank"]]
    y = torch.tensor([[choice(labels) for _ in range(5)] for _ in range(n)])
    dtype = choice((torch.int64, torch.int32))
    rest = [lengths(*times).to(dtype), lengths(*sizes)]
    if chance(0.3):
        return ctc(p), [log_probs(t, n, c), torch.cat([y[i, : sizes[i]] for i in range(n)]), *rest], p
    if chance(0.2):
        return ctc(p), [log_probs(t, c), y[0, : sizes[0]], lengths(times[0]), lengths(sizes[0])], p
    return ctc(p), [log_probs(t, n, c), y, *rest], p


# ---- log-probabilities
@op("categorical_log_prob")
def categorical_log_prob():
    yield categorical, [values(0, 1, 2), torch.tensor(1)], {}
    yield categorical, [values(0, 500, -500), torch.tensor([1, 0])], {}


def categorical(x, v):
    return Categorical(logits=x, validate_args=False).log_prob(v.long())


@random("categorical_log_prob")
def _():
    s, c = shape(0, 3), number(1, 6)
    a, b = (narrower(s), s) if chance(0.5) else (s, narrower(s))
    return (
        categorical,
        [
            floats(*a, c, lo=-4, hi=4),
            integers(*b, hi=c - 1, dtype=choice((torch.int64, torch.int32, torch.uint8))),
        ],
        {},
    )


@op("categorical_entropy")
def categorical_entropy():
    f = lambda x: Categorical(logits=x, validate_args=False).entropy()
    yield f, [values(0, 0, 0, 0)], {}
    yield f, [values(-inf, 0, 1)], {}  # 0 log 0
    yield f, [values(0, 900, -900)], {}


@random("categorical_entropy")
def _():
    return (
        (lambda x: Categorical(logits=x, validate_args=False).entropy()),
        [floats(*shape(0, 3), number(1, 6), lo=-4, hi=4)],
        {},
    )


def normal(v, m, s):
    return Normal(m, s, validate_args=False).log_prob(v)


@random("normal_log_prob")
def _():
    s = shape()
    shapes = [s, s, s]
    shapes[number(0, 2)] = narrower(s)
    if chance(0.5):
        shapes[number(0, 2)] = narrower(s)
    return (
        normal,
        [floats(*shapes[0], special=0.1), floats(*shapes[1]), uniform(*shapes[2], lo=0.2, hi=2)],
        {},
    )


@random("normal_entropy")
def _():
    s = uniform(*shape(), lo=0.2, hi=3)
    return (lambda x: Normal(torch.zeros_like(x), x, validate_args=False).entropy()), [s], {}


def bernoulli(x, v):
    return Bernoulli(logits=x, validate_args=False).log_prob(v)


@random("bernoulli_log_prob")
def _():
    s = shape()
    a, b = (narrower(s), s) if chance(0.5) else (s, narrower(s))
    return (
        bernoulli,
        [floats(*a, lo=-9, hi=9), booleans(*b).double() if chance(0.7) else uniform(*b, lo=0, hi=1)],
        {},
    )


@random("bernoulli_entropy")
def _():
    return (lambda x: Bernoulli(logits=x, validate_args=False).entropy()), [floats(*shape(), lo=-9, hi=9)], {}


# ---- logits in chunks
def linear_cross_entropy(p):
    options = {k: v for k, v in p.items() if k in ("ignore_index", "label_smoothing")}

    def f(x, w, t, b, v):
        return F.linear_cross_entropy(x, w, t, linear_bias=b, weight=v, reduction=reduction(p), **options)

    return f


def linear_classes(n, d, classes, dims, soft):
    """x, w and t of linear_cross_entropy; n None: one row without a batch."""
    rows = () if n is None else (n,)
    t = uniform(*rows, classes, *dims) if soft else integers(*rows, *dims, hi=classes - 1)
    return [uniform(*rows, d), uniform(classes, *dims, d), t]


@op("linear_cross_entropy")
def _():
    for n, d, classes, bias, p in (
        (3, 4, 5, True, {"reduction": 0}),
        (3, 4, 5, False, {"reduction": 1, "chunk": 2}),
        (5, 2, 3, True, {"reduction": 0, "ignore_index": 1, "chunk": 1}),
        (5, 2, 3, True, {"reduction": 2, "label_smoothing": 0.2, "chunk": 2}),
        (4, 3, 2, False, {"reduction": 0, "label_smoothing": 0.1, "ignore_index": 0, "chunk": 9}),
        (0, 3, 2, True, {"reduction": 1}),
        (3, 0, 2, True, {"reduction": 0}),
    ):
        t = integers(n, hi=classes - 1)
        if n:
            t[0] = classes - 1
        b = uniform(classes) if bias else None
        yield linear_cross_entropy(p), [uniform(n, d), uniform(classes, d), t, b, None], p
    for n, dims, soft, bias, p in (
        (4, (), False, True, {"reduction": 0, "chunk": 3, "ignore_index": 2}),
        (4, (), False, False, {"reduction": 1, "label_smoothing": 0.3, "chunk": 1}),
        (5, (), True, True, {"reduction": 0, "chunk": 2}),
        (5, (), True, False, {"reduction": 2, "label_smoothing": 0.3}),
        (None, (), False, True, {"reduction": 0}),
        (None, (), True, True, {"reduction": 2}),
        (3, (2,), False, True, {"reduction": 0, "label_smoothing": 0.3}),
        (3, (2, 2), True, False, {"reduction": 2}),
    ):
        x = linear_classes(n, 3, 4, dims, soft)
        b = uniform(4, *dims) if bias else None
        yield linear_cross_entropy(p), [*x, b, uniform(4, lo=0.5, hi=2)], p, (4,)
    ignored = torch.full((3,), -100, dtype=torch.int64)
    p = {"reduction": 0}
    yield linear_cross_entropy(p), [uniform(3, 2), uniform(4, 2), ignored, None, None], p


@random("linear_cross_entropy")
def _():
    n, d, classes = number(1, 6), number(1, 5), number(1, 6)
    p = {"reduction": number(1, 2) if chance(0.5) else 0, "chunk": number(0, 4)}
    if chance(0.3):
        p["label_smoothing"] = scalar(0, 1)
    if chance(0.3):
        p["ignore_index"] = number(0, classes - 1)
    soft, dims = "ignore_index" not in p and chance(0.3), ((number(1, 3),) if chance(0.2) else ())
    x = linear_classes(n, d, classes, dims, soft)
    b = floats(classes, *dims) if chance(0.5) else None
    v = uniform(classes, lo=0.5, hi=2) if chance(0.5) else None
    return linear_cross_entropy(p), [*x, b, v], p, (4,)
