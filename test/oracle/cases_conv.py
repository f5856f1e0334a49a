"""cases_conv.py - convolution of every rank and its transpose, padding, patches."""

import math

import torch
import torch.nn.functional as F

from golden import chance, choice, floats, integers, booleans, number, scalar, spell, uniform, values

OPS, RANDOM = {}, {}
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
GRAD_INPUT = {1: torch.nn.grad.conv1d_input, 2: torch.nn.grad.conv2d_input, 3: torch.nn.grad.conv3d_input}
GRAD_WEIGHT = {1: torch.nn.grad.conv1d_weight, 2: torch.nn.grad.conv2d_weight, 3: torch.nn.grad.conv3d_weight}


def each(p, name, rank, default):
    """One number for every direction."""
    v = p.get(name, []) or [default]
    return tuple(v) if len(v) == rank else tuple(v) * rank


def options(p, rank):
    return {
        "stride": each(p, "stride", rank, 1),
        "padding": "same" if p.get("same") else each(p, "padding", rank, 0),
        "dilation": each(p, "dilation", rank, 1),
        "groups": p.get("groups", 1),
    }


def conv_case(rank, x, w, b, p):
    return (lambda x, w, b: CONV[rank](x, w, b, **options(p, rank))), [x, w, b], p


def transpose_case(rank, x, w, b, p):
    more = each(p, "output_padding", rank, 0)
    return (lambda x, w, b: TRANSPOSE[rank](x, w, b, output_padding=more, **options(p, rank))), [x, w, b], p


# ---- by hand: input, weight, bias or None, parameters
BY_HAND = {
    1: (
        ((2, 3, 7), (4, 3, 3), 4, {"stride": [2], "padding": [1]}),
        ((1, 4, 6), (4, 1, 2), None, {"groups": 4, "same": True}),
        ((3, 5), (2, 3, 5), 2, {}),
        ((2, 2, 9), (2, 2, 3), 2, {"dilation": [3], "padding": [2]}),
        ((0, 2, 4), (3, 2, 3), 3, {}),
        ((2, 4, 5), (6, 2, 1), 6, {"groups": 2}),
        ((1, 1, 1), (1, 1, 1), 1, {}),
        ((1, 1, 70), (2, 1, 7), 2, {"stride": [3]}),
        ((1, 2, 5), (2, 2, 4), 2, {"same": True}),
    ),
    2: (
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
    ),
    3: (
        ((1, 2, 4, 4, 3), (3, 2, 2, 3, 2), 3, {"stride": [2, 1, 2], "padding": [1, 2, 0]}),
        ((2, 2, 3, 4, 4), (2, 1, 2, 2, 2), 2, {"groups": 2}),
        ((2, 3, 4, 3), (2, 2, 3, 3, 3), None, {"same": True}),
        ((1, 1, 5, 4, 3), (2, 1, 2, 2, 2), 2, {"dilation": [3, 2, 1]}),
        ((0, 2, 3, 3, 3), (2, 2, 2, 2, 2), 2, {}),
        ((1, 2, 3, 3, 3), (3, 2, 1, 1, 1), 3, {}),
        ((1, 2, 2, 3, 4), (2, 2, 2, 2, 2), 2, {"same": True}),
        ((1, 2, 5, 3, 2), (4, 1, 2, 3, 2), 4, {"groups": 2, "stride": [2], "padding": [1]}),
        ((1, 3, 1, 6, 6), (2, 3, 1, 3, 3), 2, {"padding": [0, 1, 1]}),
    ),
}
TRANSPOSED_BY_HAND = {
    1: (
        ((2, 3, 4), (3, 4, 3), 4, {"stride": [2], "padding": [1], "output_padding": [1]}),
        ((1, 4, 3), (4, 2, 2), 8, {"groups": 4}),
        ((3, 5), (3, 2, 3), None, {}),
        ((0, 3, 4), (3, 2, 3), 2, {}),
        ((2, 2, 4), (2, 3, 2), 3, {"dilation": [3], "output_padding": [2], "padding": [1]}),
        ((2, 4, 5), (4, 3, 1), 6, {"groups": 2}),
    ),
    2: (
        ((1, 3, 3, 4), (3, 2, 3, 3), 2, {"stride": [2, 1], "padding": [1, 0], "output_padding": [1, 0]}),
        ((2, 4, 3, 3), (4, 2, 2, 3), 4, {"groups": 2, "stride": [3]}),
        ((2, 3, 3), (2, 3, 4, 4), 3, {"stride": [2], "padding": [1]}),
        ((2, 3, 4, 2), (3, 4, 1, 1), 4, {}),
        ((0, 3, 2, 2), (3, 2, 2, 2), 2, {}),
        ((1, 2, 3, 2), (2, 2, 2, 2), 2, {"dilation": [2, 3], "output_padding": [1, 2]}),
        ((1, 3, 4, 4), (3, 1, 3, 3), 3, {"groups": 3, "padding": [1]}),
        ((1, 5, 1, 1), (5, 3, 4, 4), None, {}),
        ((1, 2, 6, 5), (2, 3, 4, 4), 3, {"stride": [2], "padding": [1]}),
        ((3, 2, 3, 3), (2, 2, 2, 2), 2, {"stride": [2], "output_padding": [1]}),
        ((1, 2, 3, 3), (2, 2, 3, 3), 2, {"dilation": [2], "output_padding": [1], "padding": [2]}),
    ),
    3: (
        (
            (1, 2, 2, 3, 2),
            (2, 2, 2, 3, 2),
            2,
            {"stride": [2, 1, 2], "padding": [0, 1, 0], "output_padding": [1, 0, 1]},
        ),
        ((2, 2, 2, 2, 3), (2, 2, 2, 2, 2), 4, {"groups": 2}),
        ((2, 2, 3, 2), (2, 1, 3, 2, 2), None, {}),
        ((0, 2, 2, 2, 2), (2, 3, 2, 2, 2), 3, {}),
        ((1, 2, 2, 2, 2), (2, 3, 1, 1, 1), 3, {}),
        ((1, 1, 2, 2, 2), (1, 2, 2, 2, 2), 2, {"dilation": [2], "output_padding": [1, 0, 1]}),
    ),
}


def by_hand(make, rank, rows):
    def draw():
        for sx, sw, bias, p in rows:
            yield make(rank, uniform(*sx), uniform(*sw), uniform(bias) if bias else None, p)

    return draw


# ---- at random
def some_options(rank, kernel, same):
    """A list is left out, or has one number, or one for each direction."""

    def list_of(lo, hi):
        return [number(lo, hi) for _ in range(choice([1, rank]))]

    p = {}
    if same:
        p["same"] = True
    elif chance(0.5):
        p["stride"] = list_of(1, 3)
    if chance(0.4):
        p["dilation"] = list_of(1, 3)
    if not same and chance(0.5):
        p["padding"] = list_of(0, max(kernel))
    return p


def some_channels():
    """Of input and result, and groups: one, some, or one for each channel."""
    groups = choice([1, 1, 2, 3])
    return groups * number(1, 1 if chance(0.3) else 3), groups * number(1, 3 if groups < 3 else 2), groups


def some_sizes(rank, most):
    return tuple(1 if chance(0.1) else number(1, most[rank]) for _ in range(rank))


MOST_SIZE, MOST_KERNEL = {1: 20, 2: 6, 3: 3}, {1: 5, 2: 3, 3: 2}


def batch():
    return () if chance(0.15) else (0,) if chance(0.05) else (number(1, 2 if chance(0.8) else 3),)


def eighths(*shape):
    """Numbers of few digits: the file of cases is a third as large, and results are exact in f32."""
    return (uniform(*shape, lo=-2, hi=2) * 8).round() / 8


def signal(*shape):
    """Special values in the mix; but 100 among numbers of 1 leaves PyTorch's error in f32 a matter of the
    order of additions."""
    x = floats(*shape, special=0.15)
    return torch.where(x.abs() == 100, x / 64, (x * 8).round() / 8)


def reach(kernel, dilation):
    return dilation * (kernel - 1) + 1


def geometry(rank, may_be_same):
    """Shapes of input and weight, bias or not, and parameters, for a convolution whose kernel fits into
    its input."""
    kernel = tuple(number(1, MOST_KERNEL[rank]) for _ in range(rank))
    same = may_be_same and chance(0.2)
    p = some_options(rank, kernel, same)
    inside, out, groups = some_channels()
    size = some_sizes(rank, MOST_SIZE)
    if groups > 1:
        p["groups"] = groups
    pad, dilation = each(p, "padding", rank, 0), each(p, "dilation", rank, 1)
    if not same:
        size = tuple(max(n, reach(k, d) - 2 * q) for n, k, d, q in zip(size, kernel, dilation, pad))
    return (*batch(), inside, *size), (out, inside // groups, *kernel), p


def telling(*shapes):
    """Where a result is one sum that nearly vanishes, PyTorch's own error in f32 is luck, and no measure
    of ours."""
    return all(math.prod(s) == 0 or math.prod(s) >= 8 for s in shapes)


def result_of(rank, sx, sw, p):
    return CONV[rank](torch.zeros(sx), torch.zeros(sw), **options(p, rank)).shape


def random_conv(rank):
    def draw():
        while True:
            sx, sw, p = geometry(rank, True)
            if telling(sx, sw, result_of(rank, sx, sw, p)):
                break
        # A NaN or an infinity of x spreads to the windows that hold it; one in the weight would also meet
        # the padding's zeros, which some of PyTorch's kernels skip and others multiply.
        return conv_case(rank, signal(*sx), eighths(*sw), eighths(sw[0]) if chance(0.6) else None, p)

    return draw


def random_transpose(rank):
    def draw():
        while True:
            kernel = tuple(number(1, MOST_KERNEL[rank]) for _ in range(rank))
            p = some_options(rank, kernel, False)
            stride, dilation, pad = (
                each(p, "stride", rank, 1),
                each(p, "dilation", rank, 1),
                each(p, "padding", rank, 0),
            )
            if chance(0.6):
                p["output_padding"] = [number(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
            more = each(p, "output_padding", rank, 0)
            inside, out, groups = some_channels()
            if groups > 1:
                p["groups"] = groups
            sx, sw = (*batch(), inside, *some_sizes(rank, {1: 12, 2: 4, 3: 2})), (
                inside,
                out // groups,
                *kernel,
            )
            size = [
                (n - 1) * s - 2 * q + reach(k, d) + o
                for n, s, q, k, d, o in zip(sx[-rank:], stride, pad, kernel, dilation, more)
            ]
            if min(size) > 0 and telling(sx, sw, (*sx[: -rank - 1], out, *size)):
                break
        # No special values: the weight's gradient has products of x and the zeros round g, which some kernels
        # skip and others form.
        return transpose_case(rank, eighths(*sx), eighths(*sw), eighths(out) if chance(0.6) else None, p)

    return draw


def random_gradient(rank, grad, of_weight):
    """PyTorch's functions for these want a batch, and no "same"."""

    def draw():
        while True:
            sx, sw, p = geometry(rank, False)
            if len(sx) == rank + 2 and sx[0] > 0:
                sy = result_of(rank, sx, sw, p)
                if telling(sx, sw, sy):
                    break
        if of_weight:
            f = lambda x, g: grad(x, sw, g, **options(p, rank))
            return f, [eighths(*sx), eighths(*sy)], {**p, "size": list(sw[2:])}
        return (
            (lambda g, w: grad(sx, w, g, **options(p, rank))),
            [eighths(*sy), eighths(*sw)],
            {**p, "size": list(sx[2:])},
        )

    return draw


def with_integers(draw, make, rank, dtypes, weight):
    """PyTorch's transposed convolution has i64 alone, as its dilated one."""

    def drawn():
        yield from draw()
        for dtype in dtypes:
            x, w = integers(2, 2, *(4,) * rank, lo=0, hi=9, dtype=dtype), integers(
                *weight, *(2,) * rank, lo=0, hi=9, dtype=dtype
            )
            yield make(rank, x, w, integers(4, hi=200, dtype=dtype), {"stride": [2], "padding": [1]})
            yield make(rank, x[0], w, None, {"padding": [1] if rank == 1 else [1, 0, 1][:rank]})

    return drawn


ALL_INTEGERS = (torch.int64, torch.int32, torch.uint8)
for rank in (1, 2, 3):
    OPS["conv%dd" % rank] = with_integers(
        by_hand(conv_case, rank, BY_HAND[rank]), conv_case, rank, ALL_INTEGERS, (4, 2)
    )
    OPS["conv_transpose%dd" % rank] = with_integers(
        by_hand(transpose_case, rank, TRANSPOSED_BY_HAND[rank]),
        transpose_case,
        rank,
        (torch.int64,),
        (2, 4),
    )
    RANDOM["conv%dd" % rank] = random_conv(rank)
    RANDOM["conv_transpose%dd" % rank] = random_transpose(rank)
    RANDOM["conv%dd_grad_input" % rank] = random_gradient(rank, GRAD_INPUT[rank], False)
    RANDOM["conv%dd_grad_weight" % rank] = random_gradient(rank, GRAD_WEIGHT[rank], True)


def gradient_by_hand(grad, of_weight):
    def draw():
        for sx, sw, _, p in BY_HAND[2]:
            if p.get("same") or len(sx) == 3 or sx[0] == 0:
                continue
            sy, o = result_of(2, sx, sw, p), options(p, 2)
            if of_weight:
                yield (lambda x, g: grad(x, sw, g, **o)), [uniform(*sx), uniform(*sy)], {
                    **p,
                    "size": list(sw[2:]),
                }
            else:
                yield (lambda g, w: grad(sx, w, g, **o)), [uniform(*sy), uniform(*sw)], {
                    **p,
                    "size": list(sx[2:]),
                }

    return draw


OPS["conv2d_grad_input"] = gradient_by_hand(GRAD_INPUT[2], False)
OPS["conv2d_grad_weight"] = gradient_by_hand(GRAD_WEIGHT[2], True)


# ---- padding
MODES = ("constant", "reflect", "replicate", "circular")


def pad_case(x, pad, mode=0, value=0.0):
    p = {"pad": pad, "mode": mode, "value": value}
    return (lambda x: F.pad(x, pad, MODES[mode], value if mode == 0 else None)), [x], p


def constant_case(x, pad, value):
    return (lambda x: torch.constant_pad_nd(x, pad, value)), [x], {"pad": pad, "value": value}


def pad():
    special = values(float("nan"), float("inf"), -0.0, 2.0).reshape(1, 4)
    for shape, pads, mode, value in (
        ((3, 4), [1, 2], 0, 1.5),
        ((3, 4), [-1, 2, 1, -1], 0, -2.0),
        ((), [], 0, 0.0),
        ((5,), [-2, -3], 0, 1.0),
        ((0, 3), [1, 1], 0, 2.0),
        ((2, 0), [2, 1], 0, 3.0),
        ((2, 3, 2), [0, 0, 1, 0, 2, -1], 0, 0.5),
        ((2, 3), [1, 1], 0, float("-inf")),
        ((2, 4), [3, 2], 1, 0.0),
        ((1, 2, 3, 4), [1, 3, 2, 1], 1, 0.0),
        ((2, 4), [-1, 2], 1, 0.0),
        ((2, 4), [2, -3], 1, 0.0),
        ((1, 2, 2, 3, 2), [1, 1, 1, 0, 1, 1], 1, 0.0),
        ((2, 3), [4, 1], 2, 0.0),
        ((2, 2, 3), [2, 1, 0, 3], 2, 0.0),
        ((1, 1, 2, 3, 2), [1, 0, 2, 1, 0, 1], 2, 0.0),
        ((2, 3), [-1, 2], 2, 0.0),
        ((2, 3), [3, 2], 3, 0.0),
        ((1, 2, 3, 4), [1, 4, 3, 2], 3, 0.0),
        ((2, 5), [-1, 3], 3, 0.0),
        ((2, 5), [2, -3], 3, 0.0),
        ((0, 2, 3), [1, 1], 1, 0.0),
        ((2, 1, 2, 2, 3), [0, 0, 1, 2, 0, 0], 3, 0.0),
        ((2, 3), [0, 0], 2, 0.0),
        ((1, 1), [5, 0], 2, 0.0),
        ((1, 1), [1, 1], 3, 0.0),
    ):
        yield pad_case(uniform(*shape), pads, mode, value)
    for mode in range(4):
        yield pad_case(special, [1, 2], mode)
        if mode != 1 and mode != 2:  # not made for bool in PyTorch
            yield pad_case(booleans(2, 3), [2, 1], mode, 0.0)
        for dtype in (torch.int64, torch.int32, torch.uint8):
            yield pad_case(integers(2, 3, hi=9, dtype=dtype), [1, 2], mode, 5.0 if mode == 0 else 0.0)
    yield pad_case(booleans(3), [1, 1], 0, 2.0)
    yield pad_case(integers(3, hi=9), [1, 1], 0, -1.75)


def constant_pad_nd():
    for shape, pads, value in (
        ((3, 4), [1, 2], 1.5),
        ((2, 3, 4), [-1, 2, 1, -1, 3, 0], -2.0),
        ((5,), [-2, -3], 0.0),
        ((2, 0), [0, 2], 1.0),
    ):
        yield constant_case(uniform(*shape), pads, value)


def random_constant(case):
    """Any rank and dtype; crops leave nothing at times."""

    def draw():
        rank = number(0, 5)
        size = tuple(0 if chance(0.03) else number(1, 5) for _ in range(rank))
        pads = []
        for n in reversed(size[rank - number(0, rank) :]):
            before = number(-n, 4) if chance(0.4) else number(0, 3)
            pads += [before, number(-(n - max(0, -before)), 4) if chance(0.4) else number(0, 3)]
        value = choice([0.0, 0.0, 1.5, -2.0, 7.0, float("inf"), float("nan")])
        x = floats(*size, special=0.15)
        if chance(0.25):
            x, value = choice(
                [
                    integers(*size, hi=9),
                    integers(*size, hi=9, dtype=torch.int32),
                    integers(*size, hi=9, dtype=torch.uint8),
                    booleans(*size),
                ]
            ), float(number(0, 9))
        return case(x, pads, value)

    return draw


def random_pad():
    mode = number(0, 3)
    if mode == 0:
        return random_constant(lambda x, pads, value: pad_case(x, pads, 0, value))()
    padded = number(1, 3)
    size = (*batch(), number(1, 3), *(number(1, 6 if padded < 3 else 4) for _ in range(padded)))
    pads = []
    for n in reversed(size[-padded:]):
        most = n - 1 if mode == 1 else n + 2 if mode == 2 else n
        before = -number(0, n - 1) if chance(0.2) else number(0, most)
        left = n - max(0, -before)
        if mode == 3:  # goes round what the crop leaves
            most = left
        pads += [
            before,
            -number(0, left - 1) if chance(0.2) and (mode != 3 or before <= 0) else number(0, most),
        ]
    x = (
        integers(*size, hi=9, dtype=choice([torch.int64, torch.int32, torch.uint8]))
        if chance(0.15)
        else floats(*size, special=0.15)
    )
    return pad_case(x, pads, mode)


# ---- patches
def window(p):
    return {
        "kernel_size": each(p, "kernel", 2, 1),
        "dilation": each(p, "dilation", 2, 1),
        "padding": each(p, "padding", 2, 0),
        "stride": each(p, "stride", 2, 1),
    }


def unfold_case(x, p):
    return (lambda x: F.unfold(x, **window(p))), [x], p


def fold_case(y, size, p):
    return (
        (lambda y: F.fold(y, each({"size": size}, "size", 2, 0), **window(p))),
        [y],
        {"output_size": size, **p},
    )


def unfold():
    for shape, p in (
        ((2, 3, 4, 5), {"kernel": [2, 3]}),
        ((1, 2, 5, 4), {"kernel": [3], "padding": [1, 2], "stride": [2, 1]}),
        ((2, 6, 5), {"kernel": [2], "dilation": [3, 2], "padding": [1]}),
        ((0, 2, 3, 3), {"kernel": [2]}),
        ((1, 1, 4, 4), {"kernel": [2], "stride": [3]}),
        ((1, 1, 2, 1), {"kernel": [2], "padding": [3], "stride": [4]}),
        ((1, 2, 8, 8), {"kernel": [4], "stride": [4]}),
        ((1, 1, 1, 1), {"kernel": [1]}),
    ):
        yield unfold_case(uniform(*shape), p)


def fold():
    for shape, size, p in (
        ((2, 12, 9), [4, 4], {"kernel": [2]}),
        ((1, 18, 6), [5, 4], {"kernel": [3], "padding": [1], "stride": [2]}),
        ((8, 25), [6, 5], {"kernel": [2], "dilation": [3, 2], "padding": [1]}),
        ((0, 4, 4), [3], {"kernel": [2]}),
        ((1, 4, 4), [4], {"kernel": [2], "stride": [2]}),
        ((1, 32, 4), [8, 8], {"kernel": [4], "stride": [4]}),
        ((1, 1, 1), [1, 1], {"kernel": [1]}),
    ):
        yield fold_case(uniform(*shape), size, p)


def random_window():
    """A window, and the size of an image that it fits into."""

    def list_of(lo, hi):
        return [number(lo, hi) for _ in range(choice([1, 2]))]

    p = {"kernel": list_of(1, 4)}
    for name, lo, hi, often in (("dilation", 1, 3, 0.4), ("padding", 0, 3, 0.5), ("stride", 1, 3, 0.5)):
        if chance(often):
            p[name] = list_of(lo, hi)
    w = window(p)
    size = [
        max(number(1, 8), reach(k, d) - 2 * q)
        for k, d, q in zip(w["kernel_size"], w["dilation"], w["padding"])
    ]
    return p, size


def random_unfold():
    p, size = random_window()
    return unfold_case(signal(*batch(), number(1, 3), *size), p)


def random_fold():
    while True:
        p, size = random_window()
        columns = F.unfold(torch.zeros(1, 1, *size), **window(p)).shape[1:]
        x = signal(*batch(), number(1, 3) * columns[0], columns[1])
        if telling(x.shape):
            return fold_case(x, size, p)


OPS.update(pad=pad, constant_pad_nd=constant_pad_nd, unfold=unfold, fold=fold)
RANDOM.update(
    pad=random_pad, constant_pad_nd=random_constant(constant_case), unfold=random_unfold, fold=random_fold
)

for table in (OPS, RANDOM):
    for name in table:
        table[name] = spell(table[name])
