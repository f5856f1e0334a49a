"""cases_shape_random.py - views, joining, indexing, choosing: random cases."""

import math

import torch
import torch.nn.functional as F

import golden
from golden import with_one_dim, booleans, chance, choice, floats, integers, narrower, number, uniform, values

RANDOM = {}


def random(name):
    def add(f):
        RANDOM[name] = f
        return f

    return add


def shape(lo=0, hi=4, least=0, most=4):
    return golden.shape(lo, hi, least, most)


def any_of(s):
    """Only moved about by most of these ops: a few hundred values tell them apart, and the file stays
    small."""
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
    return [d - n if chance(0.4) else d for d in turned(n)[: number(0, n)]]


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
    return s, (
        {"shifts": [number(-7, 7) for _ in dims], "dims": dims}
        if dims
        else {"shifts": [number(-7, 7)], "dims": []}
    )


def expanded():
    to = shape(0, 4)
    s = narrower(to)
    lead = len(to) - len(s)
    return s, {
        "shape": [-1 if d >= lead and to[d] == s[d - lead] and chance(0.3) else n for d, n in enumerate(to)]
    }


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
    return s, {"source": source, "destination": turned(len(s))[: len(source)]}


one("reshape", lambda x, shape: x.reshape(shape), reshaped)
one("view", lambda x, shape: x.view(shape), reshaped)
one("flatten", lambda x, start_dim=0, end_dim=-1: x.flatten(start_dim, end_dim), flattened)
one("unflatten", lambda x, dim, sizes: x.unflatten(dim, sizes), unflattened)
one(
    "squeeze",
    lambda x, dim=(): x.squeeze(tuple(dim)) if dim else x.squeeze(),
    lambda: (lambda s: (s, {"dim": several_dims(s)}))(shape()),
)
one("unsqueeze", torch.unsqueeze, lambda: (lambda s: (s, {"dim": number(-len(s) - 1, len(s))}))(shape()))
one(
    "transpose",
    lambda x, dim0, dim1: x.transpose(dim0, dim1),
    lambda: (lambda s: (s, {"dim0": dim_of(s), "dim1": dim_of(s)}))(shape()),
)
one("t", torch.t, lambda: (shape(0, 2), {}))
one("permute", lambda x, dims: x.permute(dims), lambda: (lambda s: (s, {"dims": turned(len(s))}))(shape()))
one("movedim", torch.movedim, moved)
one("expand", lambda x, shape: x.expand(shape), expanded)
one(
    "repeat",
    lambda x, repeats: x.repeat(repeats),
    lambda: (lambda s: (s, {"repeats": [number(0, 3) for _ in range(len(s) + number(0, 1))]}))(
        shape(0, 3, most=4)
    ),
)
one(
    "tile",
    lambda x, dims: torch.tile(x, dims),
    lambda: (shape(0, 3, most=4), {"dims": [number(0, 3) for _ in range(number(0, 4))]}),
)
one(
    "repeat_interleave",
    lambda x, repeats, dim: torch.repeat_interleave(x, repeats, dim[0] if dim else None),
    interleaved,
)


@random("repeat_interleave_tensor")
def counts():
    s = shape()
    dim = [] if chance(0.3) or not s else [number(-len(s), len(s) - 1)]
    n = s[dim[0]] if dim else math.prod(s)
    repeats = integers(n if chance(0.8) else 1, hi=3, dtype=choice((torch.int64, torch.int32)))
    return (
        (lambda x, r: torch.repeat_interleave(x, r, dim[0] if dim else None)),
        [any_of(s), repeats],
        {"dim": dim},
    )


one(
    "slice",
    lambda x, **p: torch.ops.aten.slice(x, **p),
    with_dim(
        lambda s, d: {
            "start": number(-s[d] - 2, s[d] + 2),
            "end": number(-s[d] - 2, s[d] + 2),
            "step": number(1, 4),
        },
        1,
    ),
)
one(
    "narrow",
    torch.narrow,
    with_dim(
        lambda s, d: (
            lambda a: {"start": a - (s[d] if a < s[d] and chance(0.4) else 0), "length": number(0, s[d] - a)}
        )(number(0, s[d])),
        1,
    ),
)
one("split", lambda x, dim=0, size=0, sizes=None: torch.split(x, sizes or size, dim), pieces)
one("diagonal", lambda x, offset, dim1, dim2: torch.diagonal(x, offset, dim1, dim2), diagonals)
one("diag_embed", lambda x, offset, dim1, dim2: torch.diag_embed(x, offset, dim1, dim2), embedded)
one("diag", torch.diag, lambda: (shape(1, 2), {"diagonal": number(-7, 7)}))
one("tril", torch.tril, lambda: (shape(2, 4), {"diagonal": number(-7, 7)}))
one("triu", torch.triu, lambda: (shape(2, 4), {"diagonal": number(-7, 7)}))
one("flip", torch.flip, lambda: (lambda s: (s, {"dims": several_dims(s)}))(shape()))
one("roll", torch.roll, rolled)
one(
    "rot90",
    lambda x, k, dims: torch.rot90(x, k, dims),
    lambda: (lambda s: (s, {"k": number(-5, 5), "dims": two_dims(s)}))(shape(2, 4)),
)
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
        lead = shape(0, 2, least=1, most=3)  # of nothing PyTorch's gradient has a wrong shape
        name = "downscale_factor" if back else "upscale_factor"
        f = F.pixel_unshuffle if back else F.pixel_shuffle
        return (
            (lambda x: f(x, r)),
            [any_of(lead + ((c, h * r, w * r) if back else (c * r * r, h, w)))],
            {name: r},
        )

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
    return (
        (lambda x, i, v: torch.scatter_add(x, d, i, v)),
        [any_of(s), indices_of(si, hi), any_of(si)],
        {"dim": d},
    )


@random("scatter")
def random_scatter():
    """Each index once: with duplicates the winner is undefined in PyTorch."""
    s = shape(1, 4, least=1)
    d = dim_of(s)
    si = [number(1, n) for n in s]
    index = torch.argsort(uniform(*[n if k == d % len(s) else si[k] for k, n in enumerate(s)]), dim=d).narrow(
        d, 0, si[d]
    )
    return (lambda x, i, v: torch.scatter(x, d, i, v)), [any_of(s), index, any_of(si)], {"dim": d}


@random("scatter_value")
def random_scatter_value():
    s, d, si, hi = along()
    v = number(-3, 3) / 2
    return (lambda x, i: torch.scatter(x, d, i, v)), [any_of(s), indices_of(si, hi)], {"dim": d, "value": v}


def slices(name, draw):
    """An op of x, a dim and a list of indices: draw(x, list, dim) gives the function, more inputs, more
    parameters."""

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
    return (
        (lambda x, i: torch.index_select(x, d, i)),
        [integers(number(0, 7), hi=s[d] - 1, dtype=choice((torch.int64, torch.int32)))],
        {},
    )


def add_draw(s, d):
    n, alpha = number(0, 7), choice((1.0, -0.5, 2.0))
    return (
        (lambda x, i, v: torch.index_add(x, d, i, v, alpha=alpha)),
        [indices_of((n,), s[d] - 1), any_of(with_length(s, d, n))],
        {"alpha": alpha},
    )


def copy_draw(s, d):
    n = number(0, s[d])
    return (
        (lambda x, i, v: torch.index_copy(x, d, i, v)),
        [torch.tensor(turned(s[d])[:n], dtype=torch.int64), any_of(with_length(s, d, n))],
        {},
    )


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
            at.append(booleans(*s[d : d + k]))  # beside others a mask must have their count
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
    positions = torch.ops.aten.index(
        torch.arange(torch.Size(s).numel()).reshape(s), at
    )  # x[...] takes a tensor of rank 0 for a number
    accumulate = (
        chance(0.5) or positions.unique().numel() < positions.numel()
    )  # the winner among equals is undefined in PyTorch
    return (
        (lambda x, v, *i: torch.ops.aten.index_put(x, list(i), v, accumulate)),
        [any_of(s), any_of(narrower(tuple(positions.shape))), *at],
        {"accumulate": accumulate},
    )


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


# ---- options of one dim, where the cases above draw lists
for name_ in ("squeeze", "repeat_interleave", "repeat_interleave_tensor"):
    RANDOM[name_] = with_one_dim(RANDOM[name_], "dim")
