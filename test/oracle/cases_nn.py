"""cases_nn.py - matrix products, normalisation."""

import torch
import torch.nn.functional as F

from golden import uniform

OPS = {}


def op(name):
    def add(f):
        OPS[name] = f
        return f

    return add


def table(name, f, *rows):
    """rows: (shapes, parameters); f(*tensors, **parameters).  A shape None is an absent input."""

    def draw():
        for shapes, p in rows:
            yield (lambda *x: f(*x, **p)), [None if s is None else uniform(*s) for s in shapes], p

    OPS[name] = draw


MATMUL = (
    ((6,), (6,)),
    ((3, 4), (4,)),
    ((4,), (4, 3)),
    ((3, 4), (4, 5)),
    ((3, 0), (0, 4)),
    ((2, 3, 4), (4,)),
    ((2, 3, 4), (4, 2)),
    ((2, 2, 0), (0, 3)),
    ((4,), (2, 4, 3)),
    ((3, 4), (2, 4, 3)),
    ((0, 0), (2, 0, 0)),
    ((2, 3, 2, 4), (2, 3, 4, 2)),
    ((2, 1, 3, 4), (3, 4, 2)),
    ((2, 3, 4), (1, 4, 3)),
    ((17, 40), (40, 9)),
)
table("matmul", torch.matmul, *[(s, {}) for s in MATMUL])
table("mm", torch.mm, *[(s, {}) for s in (((3, 4), (4, 5)), ((1, 5), (5, 1)), ((3, 0), (0, 4)))])
table(
    "bmm",
    torch.bmm,
    *[
        (s, {})
        for s in (
            ((2, 3, 4), (2, 4, 5)),
            ((1, 3, 4), (1, 4, 2)),
            ((0, 3, 4), (0, 4, 2)),
            ((2, 3, 0), (2, 0, 2)),
        )
    ]
)
table("mv", torch.mv, *[(s, {}) for s in (((3, 4), (4,)), ((0, 4), (4,)), ((3, 0), (0,)))])
table("dot", torch.dot, *[(s, {}) for s in (((5,), (5,)), ((0,), (0,)), ((100,), (100,)))])
table("outer", torch.outer, *[(s, {}) for s in (((3,), (4,)), ((0,), (4,)), ((1,), (1,)))])
table(
    "addmm",
    torch.addmm,
    (((3, 5), (3, 4), (4, 5)), {}),
    (((5,), (3, 4), (4, 5)), {"alpha": 2.0}),
    (((3, 1), (3, 4), (4, 5)), {"beta": 0.5, "alpha": -1.0}),
    (((), (3, 4), (4, 5)), {}),
    (((5,), (3, 0), (0, 5)), {}),
    (((5,), (3, 4), (4, 5)), {"beta": 0.0}),
)
table(
    "baddbmm",
    torch.baddbmm,
    (((2, 3, 5), (2, 3, 4), (2, 4, 5)), {}),
    (((5,), (2, 3, 4), (2, 4, 5)), {"alpha": 2.0}),
    (((2, 1, 1), (2, 3, 4), (2, 4, 5)), {"beta": 0.5}),
)
table(
    "linear",
    F.linear,
    (((3, 4), (5, 4), (5,)), {}),
    (((4,), (5, 4), (5,)), {}),
    (((2, 3, 4), (5, 4), None), {}),
    (((0, 4), (5, 4), (5,)), {}),
    (((3, 0), (5, 0), (5,)), {}),
)


# ---- normalisation
@op("layer_norm")
def layer_norm():
    for shape, normal, weight, bias, eps in (
        ((3, 5), [5], 1, 1, 1e-5),
        ((2, 3, 4), [3, 4], 1, 1, 0.5),
        ((2, 3, 4), [4], 1, 0, 1e-5),
        ((2, 3, 4), [4], 0, 1, 1e-5),
        ((3, 5), [5], 0, 0, 1e-5),
        ((6,), [6], 1, 1, 1e-5),
        ((0, 4), [4], 1, 1, 1e-5),
        ((2, 40), [40], 1, 1, 1e-5),
    ):
        f = lambda x, w, b: F.layer_norm(x, normal, w, b, eps)
        yield f, [
            uniform(*shape, lo=-2, hi=3),
            uniform(*normal) if weight else None,
            uniform(*normal) if bias else None,
        ], {"normalized_shape": normal, "eps": eps}


@op("batch_norm")
def batch_norm():
    for shape, weight, bias, eps in (
        ((5, 5, 5), 1, 1, 1e-5),
        ((3, 2, 4), 1, 1, 0.5),
        ((4, 3), 1, 1, 1e-5),
        ((3, 2, 3, 4), 1, 0, 1e-5),
        ((3, 2, 3, 4), 0, 1, 1e-5),
        ((3, 2, 2, 2, 2), 0, 0, 1e-5),
        ((1, 3, 2), 1, 1, 1e-5),
    ):
        c = shape[1]
        for training in (True, False):
            f = lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, training, 0.1, eps)
            stats = [None, None] if training else [uniform(c), uniform(c, lo=0.5, hi=2)]
            yield f, [
                uniform(*shape, lo=-2, hi=3),
                *stats,
                uniform(c) if weight else None,
                uniform(c) if bias else None,
            ], {"training": training, "eps": eps}, (1, 2)


# ---- dropout: where no number is drawn
@op("dropout")
def dropout():
    for p, training in ((0.0, True), (1.0, True), (0.5, False)):
        yield (lambda x: F.dropout(x, p, training)), [uniform(3, 4)], {"p": p, "training": training}


@op("dropout2d")
def dropout2d():
    for p, training in ((0.0, True), (1.0, True), (0.5, False)):
        yield (lambda x: F.dropout2d(x, p, training)), [uniform(2, 3, 2, 2)], {"p": p, "training": training}
