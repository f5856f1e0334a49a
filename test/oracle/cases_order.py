"""cases_order.py - sets and counts, positions, slopes, sums to a shape."""

import math

import torch

from golden import booleans, chance, choice, floats, integers, narrower, number, shape, uniform, values

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


def dim_of(s):
    return number(-max(len(s), 1), max(len(s), 1) - 1)


# ---- sets
def any_values(*s):
    """Few different values; no -0 beside 0, of which either may stand for both."""
    kind = number(0, 4)
    if kind == 0:
        return booleans(*s)
    if kind < 3:
        return integers(
            *s,
            lo=-2 if kind == 1 else 0,
            hi=3,
            dtype=choice((torch.int64, torch.int32)) if kind == 1 else torch.uint8
        )
    x = integers(*s, lo=-2, hi=2).double() / 2
    if x.numel() and chance(0.3):
        x.reshape(-1)[number(0, x.numel() - 1)] = choice((inf, -inf, nan))
    return x


def unique_of(f, dim, consecutive=False):
    more = {} if consecutive else {"sorted": True}
    return lambda x: f(x, return_inverse=True, return_counts=True, **more, **({"dim": dim[0]} if dim else {}))


def unique_cases(name, f, consecutive):
    def by_hand():
        yield unique_of(f, [], consecutive), [values(2, 1, 2, 3, 3, -1)], {}, (0,)
        yield unique_of(f, [], consecutive), [values(nan, 1, nan, inf, 1)], {}, (0,)
        yield unique_of(f, [0], consecutive), [values([1, 2], [1, 2], [0, 3], [1, 2])], {"dim": 0}, (0,)
        yield unique_of(f, [], consecutive), [values()], {}, (0,)

    def at_random():
        if chance(0.5):
            return unique_of(f, [], consecutive), [any_values(*shape(0, 3))], {}, (0,)
        sx = shape(1, 3, least=1, most=4)
        x = any_values(*sx)
        if x.dtype == torch.float64:
            x = torch.nan_to_num(x, 0.0, inf, -inf)  # PyTorch orders slices with NaN as it comes
        dim = [dim_of(sx)]
        return unique_of(f, dim, consecutive), [x], {"dim": dim[0]}, (0,)

    OPS[name], RANDOM[name] = by_hand, at_random


unique_cases("unique", torch.unique, False)
unique_cases("unique_consecutive", torch.unique_consecutive, True)


# ---- counts
@op("bincount")
def bincount():
    for x, w, n in (
        (torch.tensor([1, 2, 2, 5]), None, 0),
        (torch.tensor([], dtype=torch.int64), None, 3),
        (torch.tensor([1, 0, 1]), values(0.5, 2, inf), 5),
    ):
        yield (lambda x, w=None: torch.bincount(x, w, n)), [x, w], {"minlength": n}, (1,)


@random("bincount")
def random_bincount():
    n, least = number(0, 12), number(0, 6)
    w = (
        floats(n, special=0.15) if n and chance(0.6) else None
    )  # with weights for nothing PyTorch's result is i64
    dtype = choice((torch.int64, torch.int32, torch.uint8))
    return (
        (lambda x, w=None: torch.bincount(x, w, least)),
        [integers(n, hi=number(0, 9), dtype=dtype), w],
        {"minlength": least},
        (1,),
    )


@op("histc")
def histc():
    for x, p in (
        (values(1, 2, 1, 3, 2.5), {"bins": 4}),
        (values(1, 2, nan, 3, inf), {"bins": 4, "min": 1, "max": 3}),
        (values(2, 2), {"bins": 3}),
        (values(0, 0.5, 1, 1.5, 2), {"bins": 2, "min": 0, "max": 2}),
        (uniform(0), {"bins": 3}),
    ):
        yield (lambda x: torch.histc(x, **p)), [x], p, (0,)


@random("histc")
def random_histc():
    lo = number(-2, 1)
    p = {"bins": number(1, 20)}
    if chance(0.6):
        p.update(min=lo, max=lo + number(1, 3))
    x = floats(*shape(0, 3), special=0.3) if "min" in p else uniform(*shape(0, 3))
    return (lambda x: torch.histc(x, **p)), [x], p, (0,)


def sorted_values(*s):
    return torch.sort(integers(*s, lo=-4, hi=4).double() / 2)[0]


def search(right, **more):
    return lambda a, b, sorter=None: torch.searchsorted(a, b, right=right, sorter=sorter, **more)


@op("searchsorted")
def searchsorted():
    for right in (False, True):
        yield search(right), [values(1, 2, 2, 3), values(0, 1, 2, 2.5, 3, 4, nan, inf), None], {
            "right": right
        }, (0, 1)
        yield search(right), [values([1, 2, 3], [4, 5, 6]), values([2, 5], [2, 5]), None], {"right": right}, (
            0,
            1,
        )
        yield search(right), [torch.tensor([1, 3, 3]), torch.tensor(3), None], {"right": right}
        yield search(right), [values(3, 1, 2, 2), values(0, 2, 2.5, 9), torch.tensor([1, 2, 3, 0])], {
            "right": right
        }, (0, 1)
    for side in ("left", "right"):
        f = lambda a, b, sorter=None: torch.searchsorted(a, b, side=side, sorter=sorter)
        yield f, [torch.tensor([1, 3, 3]), torch.tensor([0, 1, 3, 4]), None], {"side": side}
    yield search(False, out_int32=True), [torch.tensor([1, 3, 3]), torch.tensor([3, 4]), None], {
        "out_int32": True
    }


@random("searchsorted")
def random_searchsorted():
    right, lead, n = chance(0.5), shape(0, 2, least=1, most=4), number(0, 6)
    p = {"right": right, **({"out_int32": True} if chance(0.2) else {})}
    if chance(0.3):
        lists, v = torch.sort(integers(n, hi=5))[0], integers(*shape(0, 3), hi=6)
    elif chance(0.4):
        lists, v = sorted_values(n), sorted_values(*shape(1, 3))
    else:
        lists, v = sorted_values(*lead, n), integers(*lead, number(0, 4), lo=-5, hi=5).double() / 2
    sorter = None
    if chance(0.4):  # the list out of order
        turned = torch.argsort(uniform(*lists.shape))
        lists, sorter = lists.gather(-1, turned), torch.argsort(turned)
    f = lambda a, b, sorter=None: torch.searchsorted(a, b, sorter=sorter, **p)
    return f, [lists, v, sorter], p, (0, 1)


@op("bucketize")
def bucketize():
    for right in (False, True):
        yield (lambda x, b: torch.bucketize(x, b, right=right)), [values([0, 1], [2, 9]), values(1, 2, 3)], {
            "right": right
        }, (0, 1)
        yield (lambda x, b: torch.bucketize(x, b, right=right)), [torch.tensor(3), torch.tensor([1, 3, 3])], {
            "right": right
        }


@random("bucketize")
def random_bucketize():
    right = chance(0.5)
    return (
        (lambda x, b: torch.bucketize(x, b, right=right)),
        [integers(*shape(0, 4), lo=-5, hi=5).double() / 2, sorted_values(number(0, 6))],
        {"right": right},
        (0, 1),
    )


@op("isin")
def isin():
    for invert in (False, True):
        f = lambda a, b: torch.isin(a, b, invert=invert)
        yield f, [values(1, nan, 2, -0.0), values(nan, 0, 2)], {"invert": invert}, (0, 1)
        yield f, [torch.tensor([1, 2, 3]), values(1, 2.5)], {"invert": invert}, (1,)


@random("isin")
def random_isin():
    invert = chance(0.5)
    draw = lambda s: integers(*s, hi=9) if chance(0.6) else integers(*s, hi=9).double() / 2
    a, b = draw(shape(0, 3)), draw(shape(1, 2))
    return (lambda a, b: torch.isin(a, b, invert=invert)), [a, b], {"invert": invert}, (0, 1)


# ---- positions
@op("nonzero_static")
def nonzero_static():
    for x, p in (
        (values(0, nan, 2, -0.0), {"size": 3}),
        (torch.tensor([[1, 0], [0, 5]]), {"size": 4, "fill_value": 7}),
        (torch.tensor([[1, 0], [0, 5]]), {"size": 1}),
        (torch.tensor([True, True]), {"size": 0}),
        (torch.zeros(0, 3), {"size": 2}),
    ):
        yield (lambda x: torch.nonzero_static(x, **p)), [x], p, (0,)


@random("nonzero_static")
def random_nonzero_static():
    s = shape(1, 3)
    x = booleans(*s) if chance(0.5) else integers(*s, lo=-1, hi=1).double()
    p = {"size": number(0, 12), **({"fill_value": number(-5, 5)} if chance(0.5) else {})}
    return (lambda x: torch.nonzero_static(x, **p)), [x], p, (0,)


def unravel(s):
    return lambda x: tuple(t.clone() for t in torch.unravel_index(x, s))


@op("unravel_index")
def unravel_index():
    for x, s in (
        (torch.tensor([0, 5, 11, 7]), (3, 4)),
        (torch.tensor([[23, 0], [12, 13]], dtype=torch.int32), (2, 3, 4)),
        (torch.tensor(5), (6,)),
        (torch.tensor([3, 4], dtype=torch.uint8), (1, 6, 1)),
    ):
        yield unravel(s), [x], {"shape": list(s)}


@random("unravel_index")
def random_unravel_index():
    s = shape(1, 4, least=1)
    x = integers(*shape(0, 2), hi=math.prod(s) - 1, dtype=choice((torch.int64, torch.int32)))
    return unravel(s), [x], {"shape": list(s)}


# ---- slopes
def slopes(p, coordinates):
    def f(x, at=None):
        return torch.gradient(
            x,
            spacing=(at,) if coordinates else p.get("spacing", 1.0),
            dim=p["dim"],
            edge_order=p.get("edge_order", 1),
        )[0]

    return f


def spread(n):
    """Coordinates that differ by no less than 1 / 2."""
    return (torch.cumsum(uniform(n, lo=0.5, hi=2.0), 0) - 3).float().double()


@op("gradient")
def gradient():
    for s, p in (
        ((5,), {"dim": 0}),
        ((3, 4), {"dim": 1, "spacing": 0.5}),
        ((2, 4, 3), {"dim": -2, "edge_order": 2}),
        ((2,), {"dim": 0}),
        ((3, 2), {"dim": 1, "spacing": -2.0}),
        ((3,), {"dim": 0, "edge_order": 2, "spacing": 3.0}),
    ):
        yield slopes(p, False), [uniform(*s), None], p
    for s, p in (((5,), {"dim": 0}), ((4, 3), {"dim": 1, "edge_order": 2}), ((2,), {"dim": 0})):
        yield slopes(p, True), [uniform(*s), spread(s[p["dim"]])], p


@random("gradient")
def random_gradient():
    p = {"edge_order": number(1, 2)}
    s = list(shape(1, 3, least=1, most=5))
    p["dim"] = dim_of(s)
    s[p["dim"]] = max(s[p["dim"]], p["edge_order"] + 1)
    if chance(0.5):
        return slopes(p, True), [floats(*s), spread(s[p["dim"]])], p
    p["spacing"] = choice([0.25, 1.0, 3.0, -2.0])
    return slopes(p, False), [floats(*s), None], p


# ---- sums to a shape
def sum_to(s):
    return lambda x: x.sum_to_size(s) * 1  # not x itself


@op("sum_to_size")
def sum_to_size():
    for s, to in (
        ((3, 4), (3, 1)),
        ((3, 4), (4,)),
        ((2, 3, 4), (1, 1, 4)),
        ((2, 3), ()),
        ((2, 3), (2, 3)),
        ((), ()),
        ((0, 3), (1, 3)),
    ):
        yield sum_to(to), [uniform(*s)], {"size": list(to)}
    yield sum_to((3,)), [integers(2, 3)], {"size": [3]}


@random("sum_to_size")
def random_sum_to_size():
    s = shape()
    to = narrower(s)
    x = floats(*s, special=0.15) if chance(0.85) else integers(*s, lo=-3)
    return sum_to(to), [x], {"size": list(to)}
