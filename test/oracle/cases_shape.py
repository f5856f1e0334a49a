"""cases_shape.py - views, joining, indexing, choosing."""
import math

import torch
import torch.nn.functional as F

import golden
from golden import booleans, chance, choice, floats, integers, narrower, number, uniform, values

OPS, RANDOM = {}, {}


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


table("reshape", lambda x, shape: x.reshape(shape), ((2, 3, 4), {"shape": [4, 6]}), ((2, 6), {"shape": [3, -1]}), ((), {"shape": [1, 1]}),
      ((0, 3), {"shape": [3, 0]}), ((1,), {"shape": []}))
table("view", lambda x, shape: x.view(shape), ((2, 3, 4), {"shape": [4, 6]}), ((2, 6), {"shape": [3, -1]}), ((0, 3), {"shape": [3, 0]}))
table("flatten", lambda x, start_dim=0, end_dim=-1: x.flatten(start_dim, end_dim), ((2, 3, 4), {}), ((2, 3, 4), {"start_dim": 1}),
      ((2, 3, 4), {"start_dim": -3, "end_dim": 1}), ((), {}), ((0, 3), {}))
table("unflatten", lambda x, dim, sizes: x.unflatten(dim, sizes), ((2, 12), {"dim": 1, "sizes": [3, 4]}), ((6, 2), {"dim": -2, "sizes": [-1, 2]}))
table("squeeze", lambda x, dim=None: x.squeeze() if dim is None else x.squeeze(dim), ((1, 3, 1), {}), ((1, 3, 1), {"dim": [0]}), ((2, 1, 3), {"dim": [-2]}),
      ((2, 3), {"dim": [1]}), ((1, 3, 1), {"dim": [0, 2]}))
table("unsqueeze", torch.unsqueeze, ((3, 4), {"dim": 0}), ((3, 4), {"dim": -1}), ((), {"dim": 0}), ((0, 3), {"dim": 1}))
table("transpose", lambda x, dim0, dim1: x.transpose(dim0, dim1), ((3, 4), {"dim0": 0, "dim1": 1}), ((2, 3, 4), {"dim0": -1, "dim1": 0}),
      ((), {"dim0": 0, "dim1": -1}), ((0, 3), {"dim0": 0, "dim1": 1}))
table("t", torch.t, ((3, 4), {}), ((3,), {}), ((), {}))
table("permute", lambda x, dims: x.permute(dims), ((2, 3, 4), {"dims": [2, 0, 1]}), ((2, 3, 4), {"dims": [0, -1, 1]}), ((), {"dims": []}))
table("movedim", lambda x, source, destination: torch.movedim(x, source, destination), ((2, 3, 4), {"source": [0], "destination": [2]}),
      ((2, 3, 4), {"source": [0, 1], "destination": [2, 0]}))
table("expand", lambda x, shape: x.expand(shape), ((3, 1), {"shape": [3, 4]}), ((1, 3), {"shape": [2, -1, 3]}), ((), {"shape": [2, 3]}), ((1, 3), {"shape": [0, 3]}))
table("repeat", lambda x, repeats: x.repeat(repeats), ((2, 3), {"repeats": [2, 3]}), ((3,), {"repeats": [2, 1, 2]}), ((2, 3), {"repeats": [0, 2]}))
table("tile", lambda x, dims: torch.tile(x, dims), ((2, 3), {"dims": [2]}), ((3,), {"dims": [2, 2]}), ((), {"dims": [3]}))
table("repeat_interleave", lambda x, repeats, dim=None: torch.repeat_interleave(x, repeats, dim[0] if dim else None),
      ((2, 3), {"repeats": 2, "dim": [0]}), ((2, 3), {"repeats": 3, "dim": [-1]}), ((2, 3), {"repeats": 2}))


def slice_(x, dim=0, start=0, end=None, step=1):
    index = [slice(None)] * x.dim()
    index[dim] = slice(start, end, step)
    return x[tuple(index)]


table("slice", slice_, ((5, 3), {"start": 1, "end": 4}), ((2, 7), {"dim": 1, "start": 0, "end": 7, "step": 3}), ((6,), {"start": -3}),
      ((6,), {"start": -100, "end": 100, "step": 2}), ((4,), {"start": 3, "end": 1}))
table("narrow", torch.narrow, ((5, 3), {"dim": 0, "start": 1, "length": 3}), ((2, 7), {"dim": -1, "start": -2, "length": 2}), ((3,), {"dim": 0, "start": 3, "length": 0}))
table("select", torch.select, ((5, 3), {"dim": 0, "index": 1}), ((2, 3, 4), {"dim": -1, "index": -1}), ((3,), {"dim": 0, "index": 2}))
table("split", lambda x, dim=0, size=0, sizes=None: torch.split(x, sizes or size, dim), ((5, 2), {"size": 2}), ((2, 6), {"dim": -1, "size": 3}),
      ((5,), {"sizes": [2, 0, 3]}), ((2, 3, 4), {"dim": 1, "sizes": [1, 2]}))
table("unbind", lambda x, dim=0: torch.unbind(x, dim), ((3, 2), {}), ((2, 3, 4), {"dim": 1}), ((3,), {}))
table("diagonal", lambda x, offset=0, dim1=0, dim2=1: torch.diagonal(x, offset, dim1, dim2), ((3, 4), {}), ((3, 4), {"offset": 2}), ((4, 3), {"offset": -2}),
      ((2, 3, 4), {"offset": 1, "dim1": -1, "dim2": 0}), ((3, 3), {"offset": 5}))
table("diag_embed", lambda x, offset=0, dim1=-2, dim2=-1: torch.diag_embed(x, offset, dim1, dim2), ((3,), {}), ((2, 3), {"offset": 1}),
      ((2, 3), {"offset": -1, "dim1": 0, "dim2": 2}))
table("diag", lambda x, diagonal=0: torch.diag(x, diagonal), ((3,), {}), ((3,), {"diagonal": 1}), ((3, 4), {"diagonal": -1}))
TRI = [((3, 4), {}), ((3, 4), {"diagonal": 1}), ((2, 4, 3), {"diagonal": -1}), ((3, 3), {"diagonal": 7}), ((0, 3), {})]
table("tril", torch.tril, *TRI)
table("triu", torch.triu, *TRI)
table("flip", lambda x, dims: torch.flip(x, dims), ((5,), {"dims": [0]}), ((2, 3, 4), {"dims": [0, -1]}), ((2, 3), {"dims": []}))
table("roll", lambda x, shifts, dims=(): torch.roll(x, shifts, dims), ((5,), {"shifts": [2], "dims": [0]}), ((3, 4), {"shifts": [-1, 6], "dims": [1, 0]}),
      ((2, 3), {"shifts": [4]}))
table("rot90", lambda x, dims, k=1: torch.rot90(x, k, dims), ((2, 3), {"dims": [0, 1]}), ((2, 3), {"k": 2, "dims": [0, 1]}), ((2, 3, 4), {"k": -1, "dims": [0, -1]}))
table("clone", torch.clone, ((3, 4), {}), ((), {}), ((0, 3), {}))
table("contiguous", lambda x: x.contiguous(), ((3, 4), {}), ((), {}))
table("to", lambda x, dtype: x.to(torch.float32), ((3, 4), {"dtype": 0}), ((), {"dtype": 0}))


table("pixel_shuffle", lambda x, upscale_factor: F.pixel_shuffle(x, upscale_factor), ((2, 8, 2, 3), {"upscale_factor": 2}), ((9, 1, 2), {"upscale_factor": 3}))
table("pixel_unshuffle", lambda x, downscale_factor: F.pixel_unshuffle(x, downscale_factor), ((2, 2, 4, 6), {"downscale_factor": 2}), ((1, 3, 6), {"downscale_factor": 3}))


@op("cat")
def cat():
    for shapes, p in ((((2, 3), (4, 3)), {}), (((2, 3), (2, 1), (2, 2)), {"dim": 1}), (((2, 3, 2), (2, 1, 2)), {"dim": -2}), (((0,), (2, 3)), {"dim": 1})):
        yield (lambda *x: torch.cat(x, **p)), [uniform(*s) for s in shapes], p


@op("stack")
def stack():
    for n, shape, p in ((2, (2, 3), {}), (3, (2, 3), {"dim": 1}), (2, (2, 3), {"dim": -1}), (3, (), {})):
        yield (lambda *x: torch.stack(x, **p)), [uniform(*shape) for _ in range(n)], p


# ---- indexing
@op("gather")
def gather():
    for sx, si, dim, hi in (((3, 4), (3, 2), 1, 3), ((3, 4), (2, 4), 0, 2), ((3, 4, 2), (2, 5, 1), -2, 3), ((5,), (7,), 0, 4), ((3, 4), (3, 0), 1, 3)):
        yield (lambda x, i: torch.gather(x, dim, i)), [uniform(*sx), integers(*si, hi=hi)], {"dim": dim}


@op("take_along_dim")
def take_along_dim():
    for sx, si, dim, hi in (((3, 4), (3, 2), [1], 3), ((3, 4), (1, 2), [1], 3), ((1, 4), (3, 2), [-1], 3)):
        yield (lambda x, i: torch.take_along_dim(x, i, dim[0])), [uniform(*sx), integers(*si, hi=hi)], {"dim": dim}
    yield (lambda x, i: torch.take_along_dim(x, i)), [uniform(3, 4), integers(5, hi=11)], {}


@op("scatter_add")
def scatter_add():
    for sx, si, ss, dim, hi in (((3, 4), (3, 2), (3, 2), 1, 3), ((3, 4), (2, 3), (2, 3), 0, 2), ((5,), (7,), (7,), -1, 4)):
        yield (lambda x, i, s: torch.scatter_add(x, dim, i, s)), [uniform(*sx), integers(*si, hi=hi), uniform(*ss)], {"dim": dim}


@op("scatter")
def scatter():
    """Each index once: with duplicates the winner is undefined in PyTorch."""
    for sx, index, ss, dim in (((3, 4), [[0, 2], [3, 1], [1, 0]], (3, 2), 1), ((3, 4), [[0, 2, 1], [2, 0, 0]], (2, 3), 0), ((5,), [4, 0, 2], (3,), -1)):
        yield (lambda x, i, s: torch.scatter(x, dim, i, s)), [uniform(*sx), torch.tensor(index), uniform(*ss)], {"dim": dim}


@op("scatter_value")
def scatter_value():
    for sx, si, dim, hi, v in (((3, 4), (3, 2), 1, 3, 2.5), ((3, 4), (2, 3), 0, 2, -1.0), ((5,), (7,), -1, 4, 0.0)):
        yield (lambda x, i: torch.scatter(x, dim, i, v)), [uniform(*sx), integers(*si, hi=hi)], {"dim": dim, "value": v}


@op("index_select")
def index_select():
    for sx, n, dim, hi in (((5, 3), 4, 0, 4), ((2, 3, 4), 6, 1, 2), ((2, 3), 2, -1, 2), ((5, 3), 0, 0, 4)):
        yield (lambda x, i: torch.index_select(x, dim, i)), [uniform(*sx), integers(n, hi=hi)], {"dim": dim}


@op("index_add")
def index_add():
    for sx, n, ss, dim, hi, alpha in (((5, 3), 4, (4, 3), 0, 4, 1.0), ((2, 3, 4), 6, (2, 6, 4), 1, 2, -0.5), ((5,), 3, (3,), -1, 4, 1.0)):
        yield (lambda x, i, s: torch.index_add(x, dim, i, s, alpha=alpha)), [uniform(*sx), integers(n, hi=hi), uniform(*ss)], {"dim": dim, "alpha": alpha}


@op("index_copy")
def index_copy():
    for sx, index, ss, dim in (((5, 3), [4, 0, 2], (3, 3), 0), ((2, 3, 4), [2, 0], (2, 2, 4), -2), ((3,), [], (0,), 0)):
        yield (lambda x, i, s: torch.index_copy(x, dim, i, s)), [uniform(*sx), torch.tensor(index, dtype=torch.int64), uniform(*ss)], {"dim": dim}


@op("index_fill")
def index_fill():
    for sx, n, dim, hi, v in (((5, 3), 4, 0, 4, 2.0), ((2, 3, 4), 2, -2, 2, -1.0), ((3,), 0, 0, 2, 1.0)):
        yield (lambda x, i: torch.index_fill(x, dim, i, v)), [uniform(*sx), integers(n, hi=hi)], {"dim": dim, "value": v}


def indices():
    """A shape, and what indexes it."""
    return (((5, 3), (integers(4, lo=-5, hi=4),)), ((3, 4), (integers(6, hi=2), integers(6, lo=-4))), ((3, 4, 2), (integers(2, 1, hi=2), integers(3))),
            ((3, 4), (booleans(3),)), ((3, 4), (booleans(3, 4),)), ((3, 2), (integers(0),)), ((3, 2), (integers(hi=2),)))


@op("index")
def index():
    for sx, at in indices():
        yield (lambda x, *i: x[i]), [uniform(*sx), *at], {}


@op("index_put")
def index_put():
    for sx, at in indices():
        x = torch.zeros(sx)
        yield (lambda x, v, *i: x.index_put(i, v, True)), [uniform(*sx), uniform(*x[at].shape), *at], {"accumulate": True}
    for sx, at in (((5, 3), (torch.tensor([4, 0, -3]),)), ((3, 4), (booleans(3),)), ((3, 4), (torch.tensor([0, 2]), torch.tensor([1, 1])))):
        x = torch.zeros(sx)
        yield (lambda x, v, *i: x.index_put(i, v)), [uniform(*sx), uniform(*x[at].shape), *at], {}


@op("embedding")
def embedding():
    for si, rows, width, p in (((2, 3), 5, 4, {}), ((6,), 5, 3, {}), ((), 5, 2, {}), ((0,), 5, 2, {}), ((2, 5), 4, 3, {"padding_idx": 1}), ((7,), 4, 3, {"padding_idx": -1})):
        yield (lambda i, w: F.embedding(i, w, **p)), [integers(*si, hi=rows - 1), uniform(rows, width)], p


@op("one_hot")
def one_hot():
    yield (lambda i: F.one_hot(i, 4)), [integers(5)], {"num_classes": 4}
    yield (lambda i: F.one_hot(i)), [values(0, 2, 1, 4, dtype=torch.int64)], {}
    yield (lambda i: F.one_hot(i, 3)), [integers(2, 3, hi=2)], {"num_classes": 3}


# ---- masks
@op("where")
def where():
    for sc, sa, sb in (((3, 4), (3, 4), (3, 4)), ((4,), (3, 1), (3, 4)), ((), (2,), ()), ((3, 1), (), (4,)), ((0, 1), (1, 3), (3,))):
        yield torch.where, [booleans(*sc), uniform(*sa), uniform(*sb)], {}
    yield torch.where, [booleans(4), integers(4), uniform(4)], {}
    yield torch.where, [booleans(4), integers(4), booleans(4)], {}
    yield torch.where, [values(True, False, True, dtype=torch.bool), values(1, math.nan, 2), values(math.inf, 1, math.nan)], {}


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


# ---- random cases
def random(name):
    def add(f):
        RANDOM[name] = f
        return f
    return add


def shape(lo=0, hi=4, least=0, most=4):
    return golden.shape(lo, hi, least, most)


def any_of(s):
    """Only moved about by most of these ops: a few hundred values tell them apart, and the file stays small."""
    return torch.round(floats(*s, special=0.15) * 64) / 64


def turned(n):
    """0 .. n-1 in random order."""
    return torch.argsort(uniform(n)).tolist()


def dim_of(s):
    n = max(len(s), 1)
    return number(-n, n - 1)


def several_dims(s):
    """Some dims, each once, counted from either end."""
    n = len(s)
    return [d - n if chance(0.4) else d for d in turned(n)[:number(0, n)]]


def parted(n):
    """Sizes whose product is n."""
    sizes = []
    while n > 1 and len(sizes) < 3:
        sizes.append(choice([k for k in range(1, n + 1) if n % k == 0]))
        n //= sizes[-1]
    return sizes + [n] if n != 1 or not sizes or chance(0.2) else sizes


def one(name, f, draw):
    """An op of one tensor: draw() gives a shape and the parameters."""
    def case():
        s, p = draw()
        return (lambda x: f(x, **p)), [any_of(s)], p
    RANDOM[name] = case


def reshaped():
    s = shape()
    n = torch.Size(s).numel()
    if n == 0:
        return s, {"shape": [0, number(1, 3)]}
    to = parted(n)
    if chance(0.4):
        to[number(0, len(to) - 1)] = -1
    return s, {"shape": to}


def flattened():
    s = shape()
    d = sorted(turned(len(s))[:2]) if len(s) > 1 else []
    return s, {"start_dim": d[0], "end_dim": d[1] - (len(s) if chance(0.5) else 0)} if d else {}


def unflattened():
    s = shape(1, 3, least=1)
    d = dim_of(s)
    return s, {"dim": d, "sizes": parted(s[d])}


def diagonals():
    s = shape(2, 4)
    dims = turned(len(s))
    return s, {"offset": number(-4, 4), "dim1": dims[0] - (len(s) if chance(0.5) else 0), "dim2": dims[1]}


def embedded():
    s = shape(1, 3, most=4)
    dims = turned(len(s) + 1)
    return s, {"offset": number(-3, 3), "dim1": dims[0] - (len(s) + 1 if chance(0.5) else 0), "dim2": dims[1]}


def two_dims(s):
    return turned(len(s))[:2]


def with_dim(draw, lo=0):
    """A shape, one of its dims, and more parameters from both."""
    def case():
        s = shape(lo)
        d = dim_of(s)
        return s, {"dim": d, **draw(s, d)}
    return case


def interleaved():
    s = shape(0, 3)
    return s, {"repeats": number(0, 4), "dim": [dim_of(s)] if s and chance(0.7) else []}


def rolled():
    s = shape(1, 4)
    dims = several_dims(s)
    return s, {"shifts": [number(-7, 7) for _ in dims], "dims": dims} if dims else {"shifts": [number(-7, 7)], "dims": []}


def expanded():
    to = shape(0, 4)
    s = narrower(to)
    lead = len(to) - len(s)
    return s, {"shape": [-1 if d >= lead and to[d] == s[d - lead] and chance(0.3) else n for d, n in enumerate(to)]}


def pieces():
    s = shape(1, 4)
    d = dim_of(s)
    if chance(0.5) and s[d] > 0:
        cut = sorted([0, s[d]] + [number(0, s[d]) for _ in range(number(0, 3))])
        return s, {"dim": d, "sizes": [b - a for a, b in zip(cut, cut[1:])]}
    return s, {"dim": d, "size": number(1, 7)}


def moved():
    s = shape(1, 4)
    source = several_dims(s)
    return s, {"source": source, "destination": turned(len(s))[:len(source)]}


one("reshape", lambda x, shape: x.reshape(shape), reshaped)
one("view", lambda x, shape: x.view(shape), reshaped)
one("flatten", lambda x, start_dim=0, end_dim=-1: x.flatten(start_dim, end_dim), flattened)
one("unflatten", lambda x, dim, sizes: x.unflatten(dim, sizes), unflattened)
one("squeeze", lambda x, dim=(): x.squeeze(tuple(dim)) if dim else x.squeeze(), lambda: (lambda s: (s, {"dim": several_dims(s)}))(shape()))
one("unsqueeze", torch.unsqueeze, lambda: (lambda s: (s, {"dim": number(-len(s) - 1, len(s))}))(shape()))
one("transpose", lambda x, dim0, dim1: x.transpose(dim0, dim1), lambda: (lambda s: (s, {"dim0": dim_of(s), "dim1": dim_of(s)}))(shape()))
one("t", torch.t, lambda: (shape(0, 2), {}))
one("permute", lambda x, dims: x.permute(dims), lambda: (lambda s: (s, {"dims": turned(len(s))}))(shape()))
one("movedim", torch.movedim, moved)
one("expand", lambda x, shape: x.expand(shape), expanded)
one("repeat", lambda x, repeats: x.repeat(repeats), lambda: (lambda s: (s, {"repeats": [number(0, 3) for _ in range(len(s) + number(0, 1))]}))(shape(0, 3, most=4)))
one("tile", lambda x, dims: torch.tile(x, dims), lambda: (shape(0, 3, most=4), {"dims": [number(0, 3) for _ in range(number(0, 4))]}))
one("repeat_interleave", lambda x, repeats, dim: torch.repeat_interleave(x, repeats, dim[0] if dim else None), interleaved)
one("slice", lambda x, **p: torch.ops.aten.slice(x, **p),
    with_dim(lambda s, d: {"start": number(-s[d] - 2, s[d] + 2), "end": number(-s[d] - 2, s[d] + 2), "step": number(1, 4)}, 1))
one("narrow", torch.narrow, with_dim(lambda s, d: (lambda a: {"start": a - (s[d] if a < s[d] and chance(0.4) else 0), "length": number(0, s[d] - a)})(number(0, s[d])), 1))
one("split", lambda x, dim=0, size=0, sizes=None: torch.split(x, sizes or size, dim), pieces)
one("diagonal", lambda x, offset, dim1, dim2: torch.diagonal(x, offset, dim1, dim2), diagonals)
one("diag_embed", lambda x, offset, dim1, dim2: torch.diag_embed(x, offset, dim1, dim2), embedded)
one("diag", torch.diag, lambda: (shape(1, 2), {"diagonal": number(-7, 7)}))
one("tril", torch.tril, lambda: (shape(2, 4), {"diagonal": number(-7, 7)}))
one("triu", torch.triu, lambda: (shape(2, 4), {"diagonal": number(-7, 7)}))
one("flip", torch.flip, lambda: (lambda s: (s, {"dims": several_dims(s)}))(shape()))
one("roll", torch.roll, rolled)
one("rot90", lambda x, k, dims: torch.rot90(x, k, dims), lambda: (lambda s: (s, {"k": number(-5, 5), "dims": two_dims(s)}))(shape(2, 4)))
one("clone", torch.clone, lambda: (shape(), {}))
one("contiguous", lambda x: x.contiguous(), lambda: (shape(), {}))
one("to", lambda x, dtype: x.to(torch.float32), lambda: (shape(), {"dtype": 0}))


@random("select")
def random_select():
    s = shape(1, 4, least=1)
    d = dim_of(s)
    p = {"dim": d, "index": number(-s[d], s[d] - 1)}
    return (lambda x: x.select(**p)), [any_of(s)], p


@random("unbind")
def random_unbind():
    s = shape(1, 4, least=1)
    p = {"dim": dim_of(s)}
    return (lambda x: torch.unbind(x, **p)), [any_of(s)], p


def shuffled(back):
    def case():
        r, c, h, w = number(1, 3), number(1, 3), number(1, 4), number(1, 4)
        lead = shape(0, 2, least=1, most=3)              # of nothing PyTorch's gradient has a wrong shape
        name = "downscale_factor" if back else "upscale_factor"
        f = F.pixel_unshuffle if back else F.pixel_shuffle
        return (lambda x: f(x, r)), [any_of(lead + ((c, h * r, w * r) if back else (c * r * r, h, w)))], {name: r}
    return case


RANDOM["pixel_shuffle"], RANDOM["pixel_unshuffle"] = shuffled(False), shuffled(True)


@random("cat")
def random_cat():
    s = shape(1, 4)
    p = {"dim": dim_of(s)}
    parts = []
    for _ in range(number(1, 5)):
        part = list(s)
        part[p["dim"]] = number(0, 5)
        parts.append(any_of((0,)) if chance(0.1) else any_of(part))
    if all(x.shape == (0,) for x in parts):
        parts.append(any_of(s))
    return (lambda *x: torch.cat(x, **p)), parts, p


@random("stack")
def random_stack():
    s = shape(0, 3)
    p = {"dim": number(-len(s) - 1, len(s))}
    return (lambda *x: torch.stack(x, **p)), [any_of(s) for _ in range(number(1, 5))], p


def indices_of(s, hi):
    return integers(*s, hi=max(hi, 0), dtype=torch.int64)


def along(least=0):
    """A shape, one of its dims, and the shape of an index that fits."""
    s = shape(0, 4, least=1)
    d = dim_of(s)
    si = [number(least, n) for n in s]
    if s:
        si[d] = number(least, 7)
    return s, d, tuple(si), (s[d] if s else 1) - 1


@random("gather")
def random_gather():
    s, d, si, hi = along()
    return (lambda x, i: torch.gather(x, d, i)), [any_of(s), indices_of(si, hi)], {"dim": d}


@random("take_along_dim")
def random_take_along_dim():
    if chance(0.2):
        s = shape(0, 3, least=1)
        return torch.take_along_dim, [any_of(s), indices_of((number(0, 9),), torch.Size(s).numel() - 1)], {}
    s = shape(1, 4, least=1)
    d = dim_of(s)
    si = [1 if chance(0.3) else n for n in s]
    si[d] = number(1, 6)
    sx = [1 if n == d % len(s) or not chance(0.2) else 0 for n in range(len(s))]
    sx = [s[n] if sx[n] else 1 if chance(0.2) and n != d % len(s) else s[n] for n in range(len(s))]
    return (lambda x, i: torch.take_along_dim(x, i, d)), [any_of(sx), indices_of(si, s[d] - 1)], {"dim": [d]}


@random("scatter_add")
def random_scatter_add():
    s, d, si, hi = along()
    return (lambda x, i, v: torch.scatter_add(x, d, i, v)), [any_of(s), indices_of(si, hi), any_of(si)], {"dim": d}


@random("scatter")
def random_scatter():
    """Each index once: with duplicates the winner is undefined in PyTorch."""
    s = shape(1, 4, least=1)
    d = dim_of(s)
    si = [number(1, n) for n in s]
    index = torch.argsort(uniform(*[n if k == d % len(s) else si[k] for k, n in enumerate(s)]), dim=d).narrow(d, 0, si[d])
    return (lambda x, i, v: torch.scatter(x, d, i, v)), [any_of(s), index, any_of(si)], {"dim": d}


@random("scatter_value")
def random_scatter_value():
    s, d, si, hi = along()
    v = number(-3, 3) / 2
    return (lambda x, i: torch.scatter(x, d, i, v)), [any_of(s), indices_of(si, hi)], {"dim": d, "value": v}


def slices(name, draw):
    """An op of x, a dim and a list of indices: draw(x, list, dim) gives the function, more inputs, more parameters."""
    def case():
        s = shape(1, 4, least=1)
        d = dim_of(s)
        f, inputs, p = draw(s, d)
        return f, [any_of(s), *inputs], {"dim": d, **p}
    RANDOM[name] = case


def with_length(s, d, n):
    s = list(s)
    s[d] = n
    return s


def select_draw(s, d):
    return (lambda x, i: torch.index_select(x, d, i)), [integers(number(0, 7), hi=s[d] - 1, dtype=choice((torch.int64, torch.int32)))], {}


def add_draw(s, d):
    n, alpha = number(0, 7), choice((1.0, -0.5, 2.0))
    return (lambda x, i, v: torch.index_add(x, d, i, v, alpha=alpha)), [indices_of((n,), s[d] - 1), any_of(with_length(s, d, n))], {"alpha": alpha}


def copy_draw(s, d):
    n = number(0, s[d])
    return (lambda x, i, v: torch.index_copy(x, d, i, v)), [torch.tensor(turned(s[d])[:n], dtype=torch.int64), any_of(with_length(s, d, n))], {}


def fill_draw(s, d):
    v = number(-3, 3) / 2
    return (lambda x, i: torch.index_fill(x, d, i, v)), [indices_of((number(0, 7),), s[d] - 1)], {"value": v}


slices("index_select", select_draw)
slices("index_add", add_draw)
slices("index_copy", copy_draw)
slices("index_fill", fill_draw)


def random_indices():
    """A shape, and tensors for its first dims, or for some of them (None: a whole dim)."""
    s, wide, at, d = shape(1, 4, least=1), shape(0, 2, least=1, most=4), [], 0
    while d < len(s) and (not at or chance(0.6)):
        k = number(1, min(2, len(s) - d))
        kind = number(0, 9)
        if kind == 0 and not any(i is not None and i.dtype == torch.bool for i in at) and len(wide) == 0:
            at.append(booleans(*s[d:d + k]))                    # beside others a mask must have their count
            d += k
            continue
        at.append(None if kind < 3 and d + 1 < len(s) else integers(*narrower(wide), lo=-s[d], hi=s[d] - 1))
        d += 1
    if all(i is None for i in at):
        at[-1] = integers(*wide, lo=0, hi=s[len(at) - 1] - 1)
    while at[-1] is None:
        at.pop()
    return s, at


@random("index")
def random_index():
    s, at = random_indices()
    return (lambda x, *i: torch.ops.aten.index(x, list(i))), [any_of(s), *at], {}


@random("index_put")
def random_index_put():
    s, at = random_indices()
    where = tuple(slice(None) if t is None else t for t in at)
    positions = torch.arange(torch.Size(s).numel()).reshape(s)[where]
    accumulate = chance(0.5) or positions.unique().numel() < positions.numel()      # the winner among equals is undefined in PyTorch
    return (lambda x, v, *i: torch.ops.aten.index_put(x, list(i), v, accumulate)), \
        [any_of(s), any_of(narrower(tuple(positions.shape))), *at], {"accumulate": accumulate}


@random("embedding")
def random_embedding():
    rows = number(1, 6)
    p = {"padding_idx": number(-rows, rows - 1)} if chance(0.4) else {}
    if chance(0.4):
        p["scale_grad_by_freq"] = True
    index = integers(*shape(0, 3), hi=rows - 1, dtype=choice((torch.int64, torch.int64, torch.int32)))
    return (lambda i, w: F.embedding(i, w, **p)), [index, any_of((rows, number(0, 5)))], p


@random("one_hot")
def random_one_hot():
    n = number(1, 6)
    s = shape(0, 3)
    p = {"num_classes": n} if chance(0.6) or 0 in s else {}
    return (lambda i: F.one_hot(i, **p)), [indices_of(s, n - 1)], p


@random("where")
def random_where():
    s = shape()
    draw = choice((any_of, any_of, any_of, lambda s: integers(*s, lo=-9, hi=9)))
    return torch.where, [booleans(*narrower(s)), draw(narrower(s)), any_of(s)], {}


@random("masked_fill")
def random_masked_fill():
    s = shape()
    v = choice((0.0, -2.5, math.inf, -math.inf, math.nan))
    return (lambda x, m: x.masked_fill(m, v)), [any_of(s), booleans(*narrower(s))], {"value": v}


@random("masked_fill_tensor")
def random_masked_fill_tensor():
    s = shape()
    return (lambda x, m, v: x.masked_fill(m, v)), [any_of(s), booleans(*narrower(s)), any_of(())], {}


@random("masked_select")
def random_masked_select():
    s = shape()
    return torch.masked_select, [any_of(narrower(s) if chance(0.3) else s), booleans(*narrower(s))], {}


@random("nonzero")
def random_nonzero():
    s = shape()
    x = choice((booleans, integers, lambda *s: any_of(s)))(*s)
    return torch.nonzero, [x], {}
