"""cases_shape.py - views, joining, indexing, choosing, by hand; cases_shape_random.py draws random ones."""

import math

import torch
import torch.nn.functional as F

from golden import with_one_dim, booleans, integers, uniform, values

OPS = {}


def op(name):
    def add(f):
        OPS[name] = f
        return f

    return add


def table(name, f, *rows):
    """rows: (shape, parameters); f(x, **parameters)."""

    def draw():
        for shape, p in rows:
            yield (lambda x: f(x, **p)), [uniform(*shape)], p

    OPS[name] = draw


table(
    "reshape",
    lambda x, shape: x.reshape(shape),
    ((2, 3, 4), {"shape": [4, 6]}),
    ((2, 6), {"shape": [3, -1]}),
    ((), {"shape": [1, 1]}),
    ((0, 3), {"shape": [3, 0]}),
    ((1,), {"shape": []}),
)
table(
    "view",
    lambda x, shape: x.view(shape),
    ((2, 3, 4), {"shape": [4, 6]}),
    ((2, 6), {"shape": [3, -1]}),
    ((0, 3), {"shape": [3, 0]}),
)
table(
    "flatten",
    lambda x, start_dim=0, end_dim=-1: x.flatten(start_dim, end_dim),
    ((2, 3, 4), {}),
    ((2, 3, 4), {"start_dim": 1}),
    ((2, 3, 4), {"start_dim": -3, "end_dim": 1}),
    ((), {}),
    ((0, 3), {}),
)
table(
    "unflatten",
    lambda x, dim, sizes: x.unflatten(dim, sizes),
    ((2, 12), {"dim": 1, "sizes": [3, 4]}),
    ((6, 2), {"dim": -2, "sizes": [-1, 2]}),
)
table(
    "squeeze",
    lambda x, dim=None: x.squeeze() if dim is None else x.squeeze(dim),
    ((1, 3, 1), {}),
    ((1, 3, 1), {"dim": [0]}),
    ((2, 1, 3), {"dim": [-2]}),
    ((2, 3), {"dim": [1]}),
    ((1, 3, 1), {"dim": [0, 2]}),
)
table(
    "unsqueeze",
    torch.unsqueeze,
    ((3, 4), {"dim": 0}),
    ((3, 4), {"dim": -1}),
    ((), {"dim": 0}),
    ((0, 3), {"dim": 1}),
)
table(
    "transpose",
    lambda x, dim0, dim1: x.transpose(dim0, dim1),
    ((3, 4), {"dim0": 0, "dim1": 1}),
    ((2, 3, 4), {"dim0": -1, "dim1": 0}),
    ((), {"dim0": 0, "dim1": -1}),
    ((0, 3), {"dim0": 0, "dim1": 1}),
)
table("t", torch.t, ((3, 4), {}), ((3,), {}), ((), {}))
table(
    "permute",
    lambda x, dims: x.permute(dims),
    ((2, 3, 4), {"dims": [2, 0, 1]}),
    ((2, 3, 4), {"dims": [0, -1, 1]}),
    ((), {"dims": []}),
)
table(
    "movedim",
    lambda x, source, destination: torch.movedim(x, source, destination),
    ((2, 3, 4), {"source": [0], "destination": [2]}),
    ((2, 3, 4), {"source": [0, 1], "destination": [2, 0]}),
)
table(
    "expand",
    lambda x, shape: x.expand(shape),
    ((3, 1), {"shape": [3, 4]}),
    ((1, 3), {"shape": [2, -1, 3]}),
    ((), {"shape": [2, 3]}),
    ((1, 3), {"shape": [0, 3]}),
)
table(
    "repeat",
    lambda x, repeats: x.repeat(repeats),
    ((2, 3), {"repeats": [2, 3]}),
    ((3,), {"repeats": [2, 1, 2]}),
    ((2, 3), {"repeats": [0, 2]}),
)
table(
    "tile",
    lambda x, dims: torch.tile(x, dims),
    ((2, 3), {"dims": [2]}),
    ((3,), {"dims": [2, 2]}),
    ((), {"dims": [3]}),
)
table(
    "repeat_interleave",
    lambda x, repeats, dim=None: torch.repeat_interleave(x, repeats, dim[0] if dim else None),
    ((2, 3), {"repeats": 2, "dim": [0]}),
    ((2, 3), {"repeats": 3, "dim": [-1]}),
    ((2, 3), {"repeats": 2}),
)


def slice_(x, dim=0, start=0, end=None, step=1):
    index = [slice(None)] * x.dim()
    index[dim] = slice(start, end, step)
    return x[tuple(index)]


table(
    "slice",
    slice_,
    ((5, 3), {"start": 1, "end": 4}),
    ((2, 7), {"dim": 1, "start": 0, "end": 7, "step": 3}),
    ((6,), {"start": -3}),
    ((6,), {"start": -100, "end": 100, "step": 2}),
    ((4,), {"start": 3, "end": 1}),
)
table(
    "narrow",
    torch.narrow,
    ((5, 3), {"dim": 0, "start": 1, "length": 3}),
    ((2, 7), {"dim": -1, "start": -2, "length": 2}),
    ((3,), {"dim": 0, "start": 3, "length": 0}),
)
table(
    "select",
    torch.select,
    ((5, 3), {"dim": 0, "index": 1}),
    ((2, 3, 4), {"dim": -1, "index": -1}),
    ((3,), {"dim": 0, "index": 2}),
)
table(
    "split",
    lambda x, dim=0, size=0, sizes=None: torch.split(x, sizes or size, dim),
    ((5, 2), {"size": 2}),
    ((2, 6), {"dim": -1, "size": 3}),
    ((5,), {"sizes": [2, 0, 3]}),
    ((2, 3, 4), {"dim": 1, "sizes": [1, 2]}),
)
table("unbind", lambda x, dim=0: torch.unbind(x, dim), ((3, 2), {}), ((2, 3, 4), {"dim": 1}), ((3,), {}))
table(
    "diagonal",
    lambda x, offset=0, dim1=0, dim2=1: torch.diagonal(x, offset, dim1, dim2),
    ((3, 4), {}),
    ((3, 4), {"offset": 2}),
    ((4, 3), {"offset": -2}),
    ((2, 3, 4), {"offset": 1, "dim1": -1, "dim2": 0}),
    ((3, 3), {"offset": 5}),
)
table(
    "diag_embed",
    lambda x, offset=0, dim1=-2, dim2=-1: torch.diag_embed(x, offset, dim1, dim2),
    ((3,), {}),
    ((2, 3), {"offset": 1}),
    ((2, 3), {"offset": -1, "dim1": 0, "dim2": 2}),
)
table(
    "diag",
    lambda x, diagonal=0: torch.diag(x, diagonal),
    ((3,), {}),
    ((3,), {"diagonal": 1}),
    ((3, 4), {"diagonal": -1}),
)
TRI = [
    ((3, 4), {}),
    ((3, 4), {"diagonal": 1}),
    ((2, 4, 3), {"diagonal": -1}),
    ((3, 3), {"diagonal": 7}),
    ((0, 3), {}),
]
table("tril", torch.tril, *TRI)
table("triu", torch.triu, *TRI)
table(
    "flip",
    lambda x, dims: torch.flip(x, dims),
    ((5,), {"dims": [0]}),
    ((2, 3, 4), {"dims": [0, -1]}),
    ((2, 3), {"dims": []}),
)
table(
    "roll",
    lambda x, shifts, dims=(): torch.roll(x, shifts, dims),
    ((5,), {"shifts": [2], "dims": [0]}),
    ((3, 4), {"shifts": [-1, 6], "dims": [1, 0]}),
    ((2, 3), {"shifts": [4]}),
)
table(
    "rot90",
    lambda x, dims, k=1: torch.rot90(x, k, dims),
    ((2, 3), {"dims": [0, 1]}),
    ((2, 3), {"k": 2, "dims": [0, 1]}),
    ((2, 3, 4), {"k": -1, "dims": [0, -1]}),
)
table("clone", torch.clone, ((3, 4), {}), ((), {}), ((0, 3), {}))
table("contiguous", lambda x: x.contiguous(), ((3, 4), {}), ((), {}))
table("to", lambda x, dtype: x.to(torch.float32), ((3, 4), {"dtype": 0}), ((), {"dtype": 0}))


table(
    "pixel_shuffle",
    lambda x, upscale_factor: F.pixel_shuffle(x, upscale_factor),
    ((2, 8, 2, 3), {"upscale_factor": 2}),
    ((9, 1, 2), {"upscale_factor": 3}),
)
table(
    "pixel_unshuffle",
    lambda x, downscale_factor: F.pixel_unshuffle(x, downscale_factor),
    ((2, 2, 4, 6), {"downscale_factor": 2}),
    ((1, 3, 6), {"downscale_factor": 3}),
)


@op("cat")
def cat():
    for shapes, p in (
        (((2, 3), (4, 3)), {}),
        (((2, 3), (2, 1), (2, 2)), {"dim": 1}),
        (((2, 3, 2), (2, 1, 2)), {"dim": -2}),
        (((0,), (2, 3)), {"dim": 1}),
    ):
        yield (lambda *x: torch.cat(x, **p)), [uniform(*s) for s in shapes], p


@op("stack")
def stack():
    for n, shape, p in ((2, (2, 3), {}), (3, (2, 3), {"dim": 1}), (2, (2, 3), {"dim": -1}), (3, (), {})):
        yield (lambda *x: torch.stack(x, **p)), [uniform(*shape) for _ in range(n)], p


# ---- indexing
@op("gather")
def gather():
    for sx, si, dim, hi in (
        ((3, 4), (3, 2), 1, 3),
        ((3, 4), (2, 4), 0, 2),
        ((3, 4, 2), (2, 5, 1), -2, 3),
        ((5,), (7,), 0, 4),
        ((3, 4), (3, 0), 1, 3),
    ):
        yield (lambda x, i: torch.gather(x, dim, i)), [uniform(*sx), integers(*si, hi=hi)], {"dim": dim}


@op("take_along_dim")
def take_along_dim():
    for sx, si, dim, hi in (((3, 4), (3, 2), [1], 3), ((3, 4), (1, 2), [1], 3), ((1, 4), (3, 2), [-1], 3)):
        yield (lambda x, i: torch.take_along_dim(x, i, dim[0])), [uniform(*sx), integers(*si, hi=hi)], {
            "dim": dim
        }
    yield (lambda x, i: torch.take_along_dim(x, i)), [uniform(3, 4), integers(5, hi=11)], {}
    yield (lambda x, i: torch.take_along_dim(x, i, 1)), [uniform(3, 4), integers(3, 2, lo=-4)], {"dim": [1]}


@op("scatter_add")
def scatter_add():
    for sx, si, ss, dim, hi in (
        ((3, 4), (3, 2), (3, 2), 1, 3),
        ((3, 4), (2, 3), (2, 3), 0, 2),
        ((5,), (7,), (7,), -1, 4),
    ):
        yield (lambda x, i, s: torch.scatter_add(x, dim, i, s)), [
            uniform(*sx),
            integers(*si, hi=hi),
            uniform(*ss),
        ], {"dim": dim}


@op("scatter")
def scatter():
    """Each index once: with duplicates the winner is undefined in PyTorch."""
    for sx, index, ss, dim in (
        ((3, 4), [[0, 2], [3, 1], [1, 0]], (3, 2), 1),
        ((3, 4), [[0, 2, 1], [2, 0, 0]], (2, 3), 0),
        ((5,), [4, 0, 2], (3,), -1),
    ):
        yield (lambda x, i, s: torch.scatter(x, dim, i, s)), [
            uniform(*sx),
            torch.tensor(index),
            uniform(*ss),
        ], {"dim": dim}


@op("scatter_value")
def scatter_value():
    for sx, si, dim, hi, v in (
        ((3, 4), (3, 2), 1, 3, 2.5),
        ((3, 4), (2, 3), 0, 2, -1.0),
        ((5,), (7,), -1, 4, 0.0),
    ):
        yield (lambda x, i: torch.scatter(x, dim, i, v)), [uniform(*sx), integers(*si, hi=hi)], {
            "dim": dim,
            "value": v,
        }


@op("index_select")
def index_select():
    for sx, n, dim, hi in (((5, 3), 4, 0, 4), ((2, 3, 4), 6, 1, 2), ((2, 3), 2, -1, 2), ((5, 3), 0, 0, 4)):
        yield (lambda x, i: torch.index_select(x, dim, i)), [uniform(*sx), integers(n, hi=hi)], {"dim": dim}


@op("index_add")
def index_add():
    for sx, n, ss, dim, hi, alpha in (
        ((5, 3), 4, (4, 3), 0, 4, 1.0),
        ((2, 3, 4), 6, (2, 6, 4), 1, 2, -0.5),
        ((5,), 3, (3,), -1, 4, 1.0),
    ):
        yield (lambda x, i, s: torch.index_add(x, dim, i, s, alpha=alpha)), [
            uniform(*sx),
            integers(n, hi=hi),
            uniform(*ss),
        ], {"dim": dim, "alpha": alpha}


@op("index_copy")
def index_copy():
    for sx, index, ss, dim in (
        ((5, 3), [4, 0, 2], (3, 3), 0),
        ((2, 3, 4), [2, 0], (2, 2, 4), -2),
        ((3,), [], (0,), 0),
    ):
        yield (lambda x, i, s: torch.index_copy(x, dim, i, s)), [
            uniform(*sx),
            torch.tensor(index, dtype=torch.int64),
            uniform(*ss),
        ], {"dim": dim}


@op("index_fill")
def index_fill():
    for sx, n, dim, hi, v in (((5, 3), 4, 0, 4, 2.0), ((2, 3, 4), 2, -2, 2, -1.0), ((3,), 0, 0, 2, 1.0)):
        yield (lambda x, i: torch.index_fill(x, dim, i, v)), [uniform(*sx), integers(n, hi=hi)], {
            "dim": dim,
            "value": v,
        }


def indices():
    """A shape, and what indexes it."""
    return (
        ((5, 3), (integers(4, lo=-5, hi=4),)),
        ((3, 4), (integers(6, hi=2), integers(6, lo=-4))),
        ((3, 4, 2), (integers(2, 1, hi=2), integers(3))),
        ((3, 4), (booleans(3),)),
        ((3, 4), (booleans(3, 4),)),
        ((3, 2), (integers(0),)),
        ((3, 2), (integers(hi=2),)),
    )


@op("index")
def index():
    for sx, at in indices():
        yield (lambda x, *i: x[i]), [uniform(*sx), *at], {}


@op("index_put")
def index_put():
    for sx, at in indices():
        x = torch.zeros(sx)
        yield (lambda x, v, *i: x.index_put(i, v, True)), [uniform(*sx), uniform(*x[at].shape), *at], {
            "accumulate": True
        }
    for sx, at in (
        ((5, 3), (torch.tensor([4, 0, -3]),)),
        ((3, 4), (booleans(3),)),
        ((3, 4), (torch.tensor([0, 2]), torch.tensor([1, 1]))),
    ):
        x = torch.zeros(sx)
        yield (lambda x, v, *i: x.index_put(i, v)), [uniform(*sx), uniform(*x[at].shape), *at], {}


@op("embedding")
def embedding():
    for si, rows, width, p in (
        ((2, 3), 5, 4, {}),
        ((6,), 5, 3, {}),
        ((), 5, 2, {}),
        ((0,), 5, 2, {}),
        ((2, 5), 4, 3, {"padding_idx": 1}),
        ((7,), 4, 3, {"padding_idx": -1}),
    ):
        yield (lambda i, w: F.embedding(i, w, **p)), [integers(*si, hi=rows - 1), uniform(rows, width)], p


@op("one_hot")
def one_hot():
    yield (lambda i: F.one_hot(i, 4)), [integers(5)], {"num_classes": 4}
    yield (lambda i: F.one_hot(i)), [values(0, 2, 1, 4, dtype=torch.int64)], {}
    yield (lambda i: F.one_hot(i, 3)), [integers(2, 3, hi=2)], {"num_classes": 3}


# ---- masks
@op("where")
def where():
    for sc, sa, sb in (
        ((3, 4), (3, 4), (3, 4)),
        ((4,), (3, 1), (3, 4)),
        ((), (2,), ()),
        ((3, 1), (), (4,)),
        ((0, 1), (1, 3), (3,)),
    ):
        yield torch.where, [booleans(*sc), uniform(*sa), uniform(*sb)], {}
    yield torch.where, [booleans(4), integers(4), uniform(4)], {}
    yield torch.where, [booleans(4), integers(4), booleans(4)], {}
    yield torch.where, [
        values(True, False, True, dtype=torch.bool),
        values(1, math.nan, 2),
        values(math.inf, 1, math.nan),
    ], {}


@op("masked_fill")
def masked_fill():
    for sx, sm, v in (((3, 4), (3, 4), 1.5), ((3, 4), (4,), -math.inf), ((3, 4), (3, 1), 0.0), ((), (), 2.0)):
        yield (lambda x, m: x.masked_fill(m, v)), [uniform(*sx), booleans(*sm)], {"value": v}


@op("masked_fill_tensor")
def masked_fill_tensor():
    for sx, sm in (((3, 4), (3, 4)), ((3, 4), (4,)), ((), ())):
        yield (lambda x, m, v: x.masked_fill(m, v)), [uniform(*sx), booleans(*sm), uniform()], {}


@op("masked_select")
def masked_select():
    for sx, sm in (((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (4,)), ((), ())):
        yield torch.masked_select, [uniform(*sx), booleans(*sm)], {}


@op("nonzero")
def nonzero():
    for shape in ((3, 4), (5,), ()):
        yield torch.nonzero, [booleans(*shape)], {}
    yield torch.nonzero, [values(0, 1, math.nan, -0.0)], {}


# ---- options of one dim, where the cases above draw lists
for name_ in ("squeeze", "repeat_interleave"):
    OPS[name_] = with_one_dim(OPS[name_], "dim")
