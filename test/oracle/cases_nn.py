"""cases_nn.py - matrix products, convolution, normalisation."""

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


def pair(p, name, default):
    v = p.get(name, [default])
    return tuple(v) if len(v) == 2 else (v[0], v[0]) if v else (default, default)


# ---- convolution: input, weight, bias or None, parameters
CONV = (
    ((1, 3, 4, 4), (3, 3, 3, 3), 3, {"stride": [2, 2], "padding": [2, 2]}),
    ((2, 4, 8, 8), (2, 2, 3, 3), 2, {"stride": [3, 2], "padding": [2, 1], "groups": 2}),
    ((1, 4, 5, 5), (1, 4, 2, 3), 1, {"stride": [2], "padding": [1]}),
    ((1, 4, 5, 5), (1, 4, 2, 3), None, {"same": True}),
    ((3, 4, 5, 5), (4, 2, 3, 3), 4, {"padding": [1], "groups": 2}),
    ((2, 4, 6, 6), (4, 1, 3, 3), 4, {"groups": 4, "padding": [1]}),
    ((2, 2, 6, 7), (4, 1, 3, 2), None, {"groups": 2, "stride": [2, 1], "dilation": [1, 2]}),
    ((1, 2, 9, 9), (3, 2, 2, 2), 3, {"dilation": [4, 4]}),
    ((2, 3, 4, 4), (5, 3, 1, 1), 5, {}),
    ((3, 5, 5), (2, 3, 3, 3), 2, {"padding": [1]}),
    ((0, 3, 4, 4), (2, 3, 3, 3), 2, {}),
    ((2, 2, 5, 5), (3, 2, 5, 5), 3, {}),
    ((1, 2, 4, 5), (2, 2, 4, 2), 2, {"same": True, "dilation": [1, 2]}),
    ((3, 2, 4, 4), (3, 2, 1, 1), None, {"stride": [2]}),
)


def conv_args(p):
    return {
        "stride": pair(p, "stride", 1),
        "padding": "same" if p.get("same") else pair(p, "padding", 0),
        "dilation": pair(p, "dilation", 1),
        "groups": p.get("groups", 1),
    }


@op("conv2d")
def conv2d():
    for sx, sw, bias, p in CONV:
        yield (lambda x, w, b: F.conv2d(x, w, b, **conv_args(p))), [
            uniform(*sx),
            uniform(*sw),
            uniform(bias) if bias else None,
        ], p


def conv_grad(grad, size_of, operands):
    def draw():
        for sx, sw, _, p in CONV:
            if p.get("same") or len(sx) == 3 or sx[0] == 0:
                continue
            sy = F.conv2d(torch.zeros(sx), torch.zeros(sw), **conv_args(p)).shape
            shape = {"x": sx, "w": sw, "y": sy}
            a, b = operands
            yield (lambda u, v: grad(u, v, sx, sw, conv_args(p))), [uniform(*shape[a]), uniform(*shape[b])], {
                **p,
                "size": list(size_of(sx, sw)),
            }

    return draw


OPS["conv2d_grad_input"] = conv_grad(
    lambda g, w, sx, sw, a: torch.nn.grad.conv2d_input(sx, w, g, **a), lambda sx, sw: sx[2:], "yw"
)
OPS["conv2d_grad_weight"] = conv_grad(
    lambda x, g, sx, sw, a: torch.nn.grad.conv2d_weight(x, sw, g, **a), lambda sx, sw: sw[2:], "xy"
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
