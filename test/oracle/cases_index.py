"""cases_index.py - reducing scatters, parts written, windows, sets and counts, bags of rows."""

import math
import warnings

import torch
import torch.nn.functional as F

from golden import booleans, chance, choice, floats, integers, number, shape, uniform, values

OPS, RANDOM = {}, {}
warnings.filterwarnings("ignore", message="index_reduce\\(\\) is in beta")
NO_PADDING = -(2**63)


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


def dim_of(s):
    return number(-max(len(s), 1), max(len(s), 1) - 1)


def index_of(s, hi):
    """i64, i32 now and then; hi is included."""
    return integers(*s, hi=max(hi, 0), dtype=torch.int32 if chance(0.2) else torch.int64)


def distinct(n):
    """0 .. n-1 in random order."""
    return torch.argsort(uniform(n))


def spaced(*s):
    """Floats that all differ: no ties, and no zeros."""
    n = torch.Size(s).numel()
    return ((distinct(n).double() - n // 2 + 0.25) / 8 + 0.03).reshape(s).float().double()


# ---- reducing scatters
REDUCES = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce_case(sx, si, ss, dim, how, include, x=None, src=None):
    n = sx[dim] if sx else 1
    x = uniform(*sx) if x is None else x
    src = uniform(*ss) if src is None else src
    index = integers(*si, hi=max(n - 1, 0))
    f = lambda x, i, s: torch.scatter_reduce(x, dim, i, s, REDUCES[how], include_self=include)
    return f, [x, index, src], {"dim": dim, "reduce": how, "include_self": include}


@op("scatter_reduce")
def scatter_reduce():
    for how in range(5):
        for include in (True, False):
            yield scatter_reduce_case((3, 4), (3, 6), (3, 6), 1, how, include)
    index = torch.tensor([0, 0, 0, 1, 1, 2])
    for how in range(5):
        f = lambda x, i, s: torch.scatter_reduce(x, 0, i, s, REDUCES[how])
        p = {"dim": 0, "reduce": how}
        yield f, [values(2, 0, 5, 7), index, values(2, 0, 0, 0, 3, 0)], p  # ties with x, zeros
        yield f, [values(-1, math.inf, 0, math.nan), index, values(3, math.nan, 0, 1, 2, -math.inf)], p, (
            0,
            2,
        )
        yield f, [torch.tensor([5, -3, 2, 0]), index, torch.tensor([5, -9, 1, -4, 2, 7])], p


@random("scatter_reduce")
def random_scatter_reduce():
    sx = shape(0, 4, most=5)
    dim, how, include = dim_of(sx), number(0, 4), chance(0.5)
    if not all(sx):
        return scatter_reduce_case(sx, (0,), (0,), dim, how, include)
    si = [number(1, n) for n in sx]
    if sx:
        si[dim] = number(1, 8)
    x, src = spaced(*sx), spaced(*si) + (
        0.0625 if how > 2 else 0
    )  # ties only where the oracle is right: by hand
    if how == 1 and chance(0.3):
        src = src * (integers(*si, hi=4) > 0)
    if chance(0.2):
        x, src = integers(*sx, lo=-9, hi=9), integers(*si, lo=-9, hi=9)
    return scatter_reduce_case(sx, tuple(si), tuple(si), dim, how, include, x, src)


def index_reduce_case(sx, n, dim, how, include, gap=0.0):
    ss = list(sx)
    if sx:
        ss[dim] = n
    f = lambda x, i, s: torch.index_reduce(x, dim, i, s, REDUCES[how], include_self=include)
    return (
        f,
        [spaced(*sx), integers(n, hi=max((sx[dim] if sx else 1) - 1, 0)), spaced(*ss) + gap],
        {"dim": dim, "reduce": how, "include_self": include},
    )


@op("index_reduce")
def index_reduce():
    for how in range(1, 5):
        for include in (True, False):
            yield index_reduce_case((4, 3), 6, 0, how, include, 0.0625)
            yield index_reduce_case((2, 3, 2), 2, -2, how, include, 0.0625)


@random("index_reduce")
def random_index_reduce():
    sx = shape(1, 3, least=1)
    dim, how = dim_of(sx), number(1, 4)
    return index_reduce_case(sx, number(1, 8), dim, how, chance(0.5), 0.0625)


# ---- by position and by mask
@op("take")
def take():
    for sx, index in (
        ((3, 4), torch.tensor([-12, 11, 0, 0])),
        ((3, 4), torch.tensor([[1], [-1]])),
        ((3, 4), torch.tensor(5)),
        ((), torch.tensor([0, -1])),
    ):
        yield torch.take, [uniform(*sx), index], {}


@random("take")
def random_take():
    sx = shape(0, 4, least=1)
    n = torch.Size(sx).numel()
    return torch.take, [floats(*sx, special=0.15), integers(*shape(0, 3), lo=-n, hi=n - 1)], {}


@op("put")
def put():
    yield (lambda x, i, s: x.put(i, s)), [uniform(3, 4), torch.tensor([[3, -1], [0, 7]]), uniform(4)], {}
    yield (lambda x, i, s: x.put(i, s, True)), [uniform(3, 4), torch.tensor([3, 3, -9]), uniform(3, 1)], {
        "accumulate": True
    }
    yield (lambda x, i, s: x.put(i, s)), [uniform(3), torch.tensor([], dtype=torch.int64), uniform(0)], {}


@random("put")
def random_put():
    sx = shape(0, 4, least=1)
    n, accumulate = torch.Size(sx).numel(), chance(0.5)
    k = number(0, 9) if accumulate else number(0, n)
    index = (
        integers(k, lo=-n, hi=n - 1) if accumulate else distinct(n)[:k] - (n if chance(0.5) else 0)
    )  # the winner among equals is not defined
    return (
        (lambda x, i, s: x.put(i, s, accumulate)),
        [floats(*sx, special=0.15), index, uniform(k)],
        {"accumulate": accumulate},
    )


@op("masked_scatter")
def masked_scatter():
    for sx, sm, ss in (
        ((3, 4), (3, 4), (12,)),
        ((3, 4), (4,), (5, 5)),
        ((4,), (3, 4), (12,)),
        ((), (), (2,)),
        ((0, 3), (3,), (1,)),
    ):
        yield torch.masked_scatter, [uniform(*sx), booleans(*sm), uniform(*ss)], {}


@random("masked_scatter")
def random_masked_scatter():
    sx = shape(0, 4)
    return (
        torch.masked_scatter,
        [
            floats(*sx, special=0.15),
            booleans(*narrow(sx)),
            floats(torch.Size(sx).numel() + number(0, 3), special=0.15),
        ],
        {},
    )


def narrow(s):
    return tuple(1 if chance(0.2) else n for n in s[number(0, len(s)) :])


# ---- scatters into views
@op("slice_scatter")
def slice_scatter():
    for sx, ss, p in (
        ((5, 3), (3, 3), {"start": 1, "end": 4}),
        ((2, 7), (2, 3), {"dim": 1, "step": 3}),
        ((6,), (3,), {"start": -3}),
        ((4,), (0,), {"start": 3, "end": 1}),
    ):
        yield (lambda x, s: torch.slice_scatter(x, s, **p)), [uniform(*sx), uniform(*ss)], p


@random("slice_scatter")
def random_slice_scatter():
    sx = shape(1, 4)
    dim = dim_of(sx)
    n = sx[dim]
    p = {"dim": dim, "start": number(-n - 2, n + 2), "end": number(-n - 2, n + 2), "step": number(1, 3)}
    x = floats(*sx, special=0.15)
    part = torch.ops.aten.slice(x, dim, p["start"], p["end"], p["step"])
    return (lambda x, s: torch.slice_scatter(x, s, **p)), [x, floats(*part.shape, special=0.15)], p


@op("select_scatter")
def select_scatter():
    for sx, ss, p in (
        ((5, 3), (3,), {"dim": 0, "index": 1}),
        ((2, 3, 4), (2, 3), {"dim": -1, "index": -1}),
        ((3,), (), {"dim": 0, "index": 2}),
    ):
        yield (lambda x, s: torch.select_scatter(x, s, **p)), [uniform(*sx), uniform(*ss)], p


@random("select_scatter")
def random_select_scatter():
    sx = shape(1, 4, least=1)
    dim = dim_of(sx)
    p = {"dim": dim, "index": number(-sx[dim], sx[dim] - 1)}
    x = floats(*sx, special=0.15)
    return (lambda x, s: torch.select_scatter(x, s, **p)), [x, floats(*x.select(**p).shape, special=0.15)], p


@op("diagonal_scatter")
def diagonal_scatter():
    for sx, ss, p in (
        ((3, 4), (3,), {}),
        ((3, 4), (2,), {"offset": 2}),
        ((4, 3), (2,), {"offset": -2}),
        ((2, 3, 4), (3, 1), {"offset": 1, "dim1": -1, "dim2": 0}),
    ):
        yield (lambda x, s: torch.diagonal_scatter(x, s, **p)), [uniform(*sx), uniform(*ss)], p


@random("diagonal_scatter")
def random_diagonal_scatter():
    sx = shape(2, 4)
    dim1, dim2 = (distinct(len(sx))[:2]).tolist()
    p = {"offset": number(-4, 4), "dim1": dim1 - (len(sx) if chance(0.5) else 0), "dim2": dim2}
    x = floats(*sx, special=0.15)
    return (
        (lambda x, s: torch.diagonal_scatter(x, s, **p)),
        [x, floats(*x.diagonal(**p).shape, special=0.15)],
        p,
    )


# ---- windows, strides, channels
@op("unfold_dim")
def unfold_dim():
    for sx, dim, size, step in (
        ((7,), 0, 3, 1),
        ((2, 7), 1, 3, 2),
        ((7, 2), -2, 2, 3),
        ((), 0, 1, 1),
        ((5,), 0, 0, 2),
        ((5,), 0, 5, 9),
    ):
        yield (lambda x: x.unfold(dim, size, step)), [uniform(*sx)], {
            "dimension": dim,
            "size": size,
            "step": step,
        }


@random("unfold_dim")
def random_unfold_dim():
    sx = shape(0, 4)
    dim = dim_of(sx)
    size, step = number(0, sx[dim] if sx else 1), number(1, 4)
    return (
        (lambda x: x.unfold(dim, size, step)),
        [floats(*sx, special=0.15)],
        {"dimension": dim, "size": size, "step": step},
    )


@op("as_strided")
def as_strided():
    for sx, size, stride, offset in (
        ((9,), [3, 3], [1, 2], 0),
        ((3, 4), [2, 2, 2], [1, 4, 0], 3),
        ((5,), [], [], 2),
        ((), [4], [0], 0),
        ((6,), [2, 3], [3, 1], 0),
    ):
        yield (lambda x: x.as_strided(size, stride, offset)), [uniform(*sx)], {
            "size": size,
            "stride": stride,
            "storage_offset": offset,
        }


@random("as_strided")
def random_as_strided():
    sx = shape(0, 3, least=1)
    n = torch.Size(sx).numel()
    offset = number(0, n - 1)
    left, size, stride = n - 1 - offset, [], []
    for _ in range(number(0, 3)):
        size.append(number(1, 4))
        stride.append(number(0, left // max(size[-1] - 1, 1)))
        left -= (size[-1] - 1) * stride[-1]
    return (
        (lambda x: x.as_strided(size, stride, offset)),
        [floats(*sx, special=0.15)],
        {"size": size, "stride": stride, "storage_offset": offset},
    )


@op("channel_shuffle")
def channel_shuffle():
    for sx, groups in (((2, 6, 3), 2), ((1, 4, 2, 2), 4), ((2, 3, 1, 1, 2), 1)):
        yield (lambda x: F.channel_shuffle(x, groups)), [uniform(*sx)], {"groups": groups}


@random("channel_shuffle")
def random_channel_shuffle():
    groups = number(1, 4)
    sx = (number(1, 3), groups * number(1, 3)) + shape(1, 3, least=1, most=4)
    return (lambda x: F.channel_shuffle(x, groups)), [floats(*sx, special=0.15)], {"groups": groups}


# ---- bags
MODES = ("sum", "mean", "max")


def bag(mode, last, by_frequency, padding):
    return lambda i, w, offsets=None, each=None: F.embedding_bag(
        i,
        w,
        offsets,
        mode=MODES[mode],
        include_last_offset=last,
        per_sample_weights=each,
        scale_grad_by_freq=by_frequency,
        padding_idx=padding,
    )


def bag_case(index, weight, offsets=None, each=None, mode=1, last=False, by_frequency=False, padding=None):
    p = {
        "mode": mode,
        "include_last_offset": last,
        "scale_grad_by_freq": by_frequency,
        "padding_idx": NO_PADDING if padding is None else padding,
    }
    return bag(mode, last, by_frequency, padding), [index, weight, offsets, each], p


@op("embedding_bag")
def embedding_bag():
    for mode in range(3):
        yield bag_case(torch.tensor([[0, 1, 1], [4, 2, 0]]), uniform(5, 3), mode=mode)
        yield bag_case(
            torch.tensor([0, 1, 2, 2, 1]), uniform(4, 3), torch.tensor([0, 0, 2, 5, 5]), mode=mode
        )  # empty bags
        yield bag_case(
            torch.tensor([0, 1, 2, 2, 1]), uniform(4, 3), torch.tensor([0, 2, 2, 5]), mode=mode, last=True
        )
        yield bag_case(
            torch.tensor([0, 1, 2, 2, 1]), uniform(4, 3), torch.tensor([0, 2, 4]), mode=mode, padding=2
        )
    yield bag_case(
        torch.tensor([0, 1, 2, 2, 1]), uniform(4, 3), torch.tensor([0, 2, 4]), uniform(5), mode=0, padding=1
    )


@random("embedding_bag")
def random_embedding_bag():
    rows, width, mode = number(1, 6), number(1, 5), number(0, 2)
    padding = number(-rows, rows - 1) if chance(0.3) else None
    by_frequency = mode < 2 and chance(0.2)
    weight = spaced(rows, width)
    if chance(0.4):
        index = integers(number(1, 4), number(1, 5), hi=rows - 1)
        return bag_case(
            index,
            weight,
            None,
            uniform(*index.shape) if mode == 0 and chance(0.5) else None,
            mode,
            False,
            by_frequency,
            padding,
        )
    index, bags = integers(number(0, 9), hi=rows - 1), number(1, 5)
    offsets = torch.sort(integers(bags, hi=len(index)))[0]
    offsets[0] = 0
    last = bags > 1 and chance(0.4)  # with no bag at all PyTorch crashes
    if last:
        offsets[-1] = len(index)  # sooner, mean and max do not end there in PyTorch, but sum does
    return bag_case(
        index,
        weight,
        offsets,
        uniform(len(index)) if mode == 0 and chance(0.5) else None,
        mode,
        last,
        by_frequency,
        padding,
    )


# ---- index_fill with a tensor
@op("index_fill_tensor")
def index_fill_tensor():
    for size, index, dim in (((5, 3), [0, 4, 0], 0), ((2, 3, 4), [2, 1], -2), ((3,), [], 0), ((), [0], 0)):
        yield (lambda x, i, v: torch.index_fill(x, dim, i, v)), [
            uniform(*size),
            torch.tensor(index, dtype=torch.int64),
            uniform(),
        ], {"dim": dim}


@random("index_fill_tensor")
def _():
    size = shape(1)
    dim = number(-len(size), len(size) - 1)
    n = size[dim]
    return (
        (lambda x, i, v: torch.index_fill(x, dim, i, v)),
        [floats(*size), integers(number(0, 4) if n else 0, hi=max(n - 1, 0)), floats()],
        {"dim": dim},
    )
