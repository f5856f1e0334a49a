"""cases_conv.py - convolution of every rank and its transpose, padding, patches."""
import math

import torch
import torch.nn.functional as F

from golden import chance, choice, floats, integers, booleans, number, scalar, uniform, values

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
    return {"stride": each(p, "stride", rank, 1), "padding": "same" if p.get("same") else each(p, "padding", rank, 0),
            "dilation": each(p, "dilation", rank, 1), "groups": p.get("groups", 1)}


def conv_case(rank, x, w, b, p):
    return (lambda x, w, b: CONV[rank](x, w, b, **options(p, rank))), [x, w, b], p


def transpose_case(rank, x, w, b, p):
    more = each(p, "output_padding", rank, 0)
    return (lambda x, w, b: TRANSPOSE[rank](x, w, b, output_padding=more, **options(p, rank))), [x, w, b], p


# ---- by hand: input, weight, bias or None, parameters
BY_HAND = {
    1: (((2, 3, 7), (4, 3, 3), 4, {"stride": [2], "padding": [1]}), ((1, 4, 6), (4, 1, 2), None, {"groups": 4, "same": True}), ((3, 5), (2, 3, 5), 2, {}),
        ((2, 2, 9), (2, 2, 3), 2, {"dilation": [3], "padding": [2]}), ((0, 2, 4), (3, 2, 3), 3, {}), ((2, 4, 5), (6, 2, 1), 6, {"groups": 2}),
        ((1, 1, 1), (1, 1, 1), 1, {}), ((2, 1, 300), (2, 1, 7), 2, {"stride": [3]}), ((1, 2, 5), (2, 2, 4), 2, {"same": True})),
    3: (((1, 2, 4, 4, 3), (3, 2, 2, 3, 2), 3, {"stride": [2, 1, 2], "padding": [1, 2, 0]}), ((2, 2, 3, 4, 4), (2, 1, 2, 2, 2), 2, {"groups": 2}),
        ((2, 3, 4, 3), (2, 2, 3, 3, 3), None, {"same": True}), ((1, 1, 5, 4, 3), (2, 1, 2, 2, 2), 2, {"dilation": [3, 2, 1]}),
        ((0, 2, 3, 3, 3), (2, 2, 2, 2, 2), 2, {}), ((1, 2, 3, 3, 3), (3, 2, 1, 1, 1), 3, {}), ((1, 2, 2, 3, 4), (2, 2, 2, 2, 2), 2, {"same": True}),
        ((1, 2, 5, 3, 2), (4, 1, 2, 3, 2), 4, {"groups": 2, "stride": [2], "padding": [1]}), ((1, 3, 1, 6, 6), (2, 3, 1, 3, 3), 2, {"padding": [0, 1, 1]})),
}
TRANSPOSED_BY_HAND = {
    1: (((2, 3, 4), (3, 4, 3), 4, {"stride": [2], "padding": [1], "output_padding": [1]}), ((1, 4, 3), (4, 2, 2), 8, {"groups": 4}), ((3, 5), (3, 2, 3), None, {}),
        ((0, 3, 4), (3, 2, 3), 2, {}), ((2, 2, 4), (2, 3, 2), 3, {"dilation": [3], "output_padding": [2], "padding": [1]}), ((2, 4, 5), (4, 3, 1), 6, {"groups": 2})),
    2: (((1, 3, 3, 4), (3, 2, 3, 3), 2, {"stride": [2, 1], "padding": [1, 0], "output_padding": [1, 0]}), ((2, 4, 3, 3), (4, 2, 2, 3), 4, {"groups": 2, "stride": [3]}),
        ((2, 3, 3), (2, 3, 4, 4), 3, {"stride": [2], "padding": [1]}), ((2, 3, 4, 2), (3, 4, 1, 1), 4, {}), ((0, 3, 2, 2), (3, 2, 2, 2), 2, {}),
        ((1, 2, 3, 2), (2, 2, 2, 2), 2, {"dilation": [2, 3], "output_padding": [1, 2]}), ((1, 3, 4, 4), (3, 1, 3, 3), 3, {"groups": 3, "padding": [1]}),
        ((1, 5, 1, 1), (5, 3, 4, 4), None, {}), ((1, 2, 6, 5), (2, 3, 4, 4), 3, {"stride": [2], "padding": [1]}), ((3, 2, 3, 3), (2, 2, 2, 2), 2, {"stride": [2], "output_padding": [1]}),
        ((1, 2, 3, 3), (2, 2, 3, 3), 2, {"dilation": [2], "output_padding": [1], "padding": [2]})),
    3: (((1, 2, 2, 3, 2), (2, 2, 2, 3, 2), 2, {"stride": [2, 1, 2], "padding": [0, 1, 0], "output_padding": [1, 0, 1]}), ((2, 2, 2, 2, 3), (2, 2, 2, 2, 2), 4, {"groups": 2}),
        ((2, 2, 3, 2), (2, 1, 3, 2, 2), None, {}), ((0, 2, 2, 2, 2), (2, 3, 2, 2, 2), 3, {}), ((1, 2, 2, 2, 2), (2, 3, 1, 1, 1), 3, {}),
        ((1, 1, 2, 2, 2), (1, 2, 2, 2, 2), 2, {"dilation": [2], "output_padding": [1, 0, 1]})),
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
    return groups * number(1, 1 if chance(0.3) else 4), groups * number(1, 4), groups


def some_sizes(rank, most):
    return tuple(1 if chance(0.1) else number(1, most[rank]) for _ in range(rank))


MOST_SIZE, MOST_KERNEL = {1: 40, 2: 9, 3: 4}, {1: 7, 2: 4, 3: 3}


def batch():
    return () if chance(0.15) else (0,) if chance(0.05) else (number(1, 4),)


def signal(*shape):
    """Special values in the mix; but 100 among numbers of 1 leaves PyTorch's error in f32 a matter of the order of additions."""
    x = floats(*shape, special=0.15)
    return torch.where(x.abs() == 100, x / 64, x)


def reach(kernel, dilation):
    return dilation * (kernel - 1) + 1


def geometry(rank, may_be_same):
    """Shapes of input and weight, bias or not, and parameters, for a convolution whose kernel fits into its input."""
    kernel = tuple(number(1, MOST_KERNEL[rank]) for _ in range(rank))
    same = may_be_same and chance(0.2)
    p = some_options(rank, kernel, same)
    inside, out, groups = some_channels()
    if groups > 1:
        p["groups"] = groups
    pad, dilation = each(p, "padding", rank, 0), each(p, "dilation", rank, 1)
    size = some_sizes(rank, MOST_SIZE)
    if not same:
        size = tuple(max(n, reach(k, d) - 2 * q) for n, k, d, q in zip(size, kernel, dilation, pad))
    return (*batch(), inside, *size), (out, inside // groups, *kernel), p


def telling(*shapes):
    """Where a result is one sum that nearly vanishes, PyTorch's own error in f32 is luck, and no measure of ours."""
    return all(math.prod(s) == 0 or math.prod(s) >= 8 for s in shapes)


def result_of(rank, sx, sw, p):
    return CONV[rank](torch.zeros(sx), torch.zeros(sw), **options(p, rank)).shape


def random_conv(rank):
    def draw():
        while True:
            sx, sw, p = geometry(rank, True)
            if telling(sx, sw, result_of(rank, sx, sw, p)):
                break
        # A NaN or an infinity of x spreads to the windows that hold it; one in the weight would also meet the padding's zeros, which
        # some of PyTorch's kernels skip and others multiply.
        return conv_case(rank, signal(*sx), uniform(*sw), uniform(sw[0]) if chance(0.6) else None, p)
    return draw


def random_transpose(rank):
    def draw():
        while True:
            kernel = tuple(number(1, MOST_KERNEL[rank]) for _ in range(rank))
            p = some_options(rank, kernel, False)
            stride, dilation, pad = each(p, "stride", rank, 1), each(p, "dilation", rank, 1), each(p, "padding", rank, 0)
            if chance(0.6):
                p["output_padding"] = [number(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
            more = each(p, "output_padding", rank, 0)
            inside, out, groups = some_channels()
            if groups > 1:
                p["groups"] = groups
            sx, sw = (*batch(), inside, *some_sizes(rank, {1: 20, 2: 5, 3: 3})), (inside, out // groups, *kernel)
            size = [(n - 1) * s - 2 * q + reach(k, d) + o for n, s, q, k, d, o in zip(sx[-rank:], stride, pad, kernel, dilation, more)]
            if min(size) > 0 and telling(sx, sw, (*sx[:-rank - 1], out, *size)):
                break
        # No special values: the weight's gradient has products of x and the zeros round g, which some kernels skip and others form.
        return transpose_case(rank, uniform(*sx), uniform(*sw), uniform(out) if chance(0.6) else None, p)
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
            return f, [uniform(*sx), uniform(*sy)], {**p, "size": list(sw[2:])}
        return (lambda g, w: grad(sx, w, g, **options(p, rank))), [uniform(*sy), uniform(*sw)], {**p, "size": list(sx[2:])}
    return draw


for rank in (1, 2, 3):
    if rank != 2:                       # conv2d's are in cases_nn.py
        OPS["conv%dd" % rank] = by_hand(conv_case, rank, BY_HAND[rank])
    OPS["conv_transpose%dd" % rank] = by_hand(transpose_case, rank, TRANSPOSED_BY_HAND[rank])
    RANDOM["conv%dd" % rank] = random_conv(rank)
    RANDOM["conv_transpose%dd" % rank] = random_transpose(rank)
    RANDOM["conv%dd_grad_input" % rank] = random_gradient(rank, GRAD_INPUT[rank], False)
    RANDOM["conv%dd_grad_weight" % rank] = random_gradient(rank, GRAD_WEIGHT[rank], True)
