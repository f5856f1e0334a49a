"""cases_attention.py - attention.  Random masks leave each row something to see where PyTorch answers NaN
otherwise."""

import math

import torch
import torch.nn.functional as F

from golden import booleans, chance, choice, narrower, number, scalar, shape, uniform

OPS = {}
RANDOM = {}


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


# ---- scaled_dot_product_attention.  Our default scale is 0, PyTorch's None.
def attention_case(sq, sk, sv, mask=None, **p):
    f = lambda q, k, v, m: F.scaled_dot_product_attention(
        q,
        k,
        v,
        m,
        is_causal=p.get("is_causal", False),
        scale=p.get("scale"),
        enable_gqa=p.get("enable_gqa", False),
    )
    shifts_rows = (
        mask is not None and mask.shape[-1] == 1
    )  # then its gradient is 0, and in PyTorch what rounding leaves of it
    return (
        f,
        [uniform(*sq, lo=-2, hi=2), uniform(*sk, lo=-2, hi=2), uniform(*sv), mask],
        p,
        (3,) if shifts_rows else (),
    )


def infinite(*size):
    """A floating mask with some -inf."""
    return torch.where(
        booleans(*size) & booleans(*size),
        torch.tensor(-math.inf, dtype=torch.float64),
        uniform(*size, lo=-1, hi=1),
    )


@op("scaled_dot_product_attention")
def attention():
    yield attention_case((3, 4), (5, 4), (5, 2))
    yield attention_case((2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4), is_causal=True)
    yield attention_case((2, 5, 3), (2, 2, 3), (2, 2, 3), is_causal=True)
    yield attention_case((2, 2, 3), (2, 5, 3), (2, 5, 3), is_causal=True)
    yield attention_case((2, 3, 4), (2, 5, 4), (2, 5, 3), booleans(3, 5), scale=0.7)
    yield attention_case(
        (2, 3, 4),
        (2, 5, 4),
        (2, 5, 3),
        torch.tensor([[True, False, True, True, False], [False] * 5, [True] * 5]),
    )
    yield attention_case(
        (2, 3, 4),
        (2, 5, 4),
        (2, 5, 3),
        torch.tensor([[0.0, -math.inf, 1, 0, 2], [-math.inf] * 5, [0.5] * 5], dtype=torch.float64),
    )
    yield attention_case((2, 4, 3, 2), (2, 2, 5, 2), (2, 1, 5, 3), enable_gqa=True)
    yield attention_case((6, 3, 2), (2, 5, 2), (2, 5, 2), infinite(6, 3, 5), enable_gqa=True)
    yield attention_case((1, 2, 2, 3, 4), (2, 1, 2, 5, 4), (2, 2, 2, 5, 4), booleans(1, 1, 3, 1))
    yield attention_case((2, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6), uniform(2, 1, 1, 5))
    yield attention_case((3, 4), (5, 4), (5, 2), uniform(5))
    yield attention_case((2, 3, 4), (2, 5, 4), (2, 5, 3), booleans(5))
    yield attention_case((0, 3, 4), (0, 5, 4), (0, 5, 4))
    yield attention_case((2, 0, 4), (2, 3, 4), (2, 3, 4))
    yield attention_case((1, 1, 4), (1, 1, 4), (1, 1, 4))
    yield attention_case((1, 100, 5), (1, 70, 5), (1, 70, 3))
    yield attention_case((1, 130, 3), (1, 130, 3), (1, 130, 3), is_causal=True)


@random("scaled_dot_product_attention")
def attention_random():
    rows, cols, width, value = number(1, 9), number(2, 9), number(1, 6), number(1, 6)  # one column: as above
    kind = choice(("none", "none", "causal", "bool", "float", "infinite"))
    if kind in ("causal", "bool", "infinite"):  # a row may see one column only: let there be others
        rows, cols = rows + 3, cols + 2
    if chance(0.1):
        rows, cols = number(60, 140), number(10, 140)
    gqa = chance(0.25)
    if gqa:
        lead, heads = shape(hi=2, least=1, most=3), number(1, 3)
        batches = [lead + (heads * number(1, 3),), lead + (heads,), lead + (heads,)]
    else:
        batch = shape(hi=3, least=1, most=3)
        batches = (
            [batch, batch, batch]
            if chance(0.6)
            else [narrower(batch) if len(batch) < 2 else batch for _ in range(3)]
        )
    whole = torch.broadcast_shapes(*batches[:2]) if not gqa else batches[0]
    p = {"enable_gqa": True} if gqa else {}
    if chance(0.3):
        p["scale"] = scalar(0.1, 1.5)
    if kind == "causal":
        p["is_causal"] = True
    whole += (rows, cols)
    size = narrower(whole)
    size = size if len(size) > 1 else (rows, cols)
    mask = (
        {"bool": booleans, "float": uniform, "infinite": infinite}[kind](*size)
        if kind in ("bool", "float", "infinite")
        else None
    )
    return attention_case(
        batches[0] + (rows, width), batches[1] + (cols, width), batches[2] + (cols, value), mask, **p
    )


# ---- multi_head_attention_forward.  Fully masked rows are NaN in PyTorch when it forms weights: the masks
# below leave the first positions visible.  is_causal is given to PyTorch as the mask that it wants beside
# it.
def heads_case(
    rows, cols, batch, heads, width, padding=None, mask=None, in_bias=True, extra=False, separate=None, **p
):
    """separate: the widths of keys and values, which have weights of their own then."""
    e = heads * width
    size = lambda n, width: (n, width) if batch is None else (n, batch, width)
    wide_k, wide_v = separate or (e, e)
    q, k, v = uniform(*size(rows, e)), uniform(*size(cols, wide_k)), uniform(*size(cols, wide_v))
    causal = torch.ones(rows, cols).triu(1).bool() if p.get("is_causal") else None

    def f(q, k, v, w, b, bk, bv, ow, ob, kpm, am, qw, kw, vw):
        y, a = F.multi_head_attention_forward(
            q,
            k,
            v,
            e,
            heads,
            w,
            b,
            bk,
            bv,
            p.get("add_zero_attn", False),
            0.0,
            ow,
            ob,
            True,
            kpm,
            p.get("need_weights", True),
            causal if am is None and causal is not None else am,
            use_separate_proj_weight=separate is not None,
            q_proj_weight=qw,
            k_proj_weight=kw,
            v_proj_weight=vw,
            average_attn_weights=p.get("average_attn_weights", True),
        )
        return y if a is None else (y, a)

    more = [uniform(1, 1, e), uniform(1, 1, e)] if extra else [None, None]
    return (
        f,
        [
            q,
            k,
            v,
            None if separate else uniform(3 * e, e),
            uniform(3 * e) if in_bias else None,
            *more,
            uniform(e, e),
            uniform(e) if in_bias else None,
            padding,
            mask,
            *([uniform(e, e), uniform(e, wide_k), uniform(e, wide_v)] if separate else [None] * 3),
        ],
        {
            "num_heads": heads,
            "need_weights": True,
            **p,
            **({"use_separate_proj_weight": True} if separate else {}),
        },
    )


def ignored(*size):
    """Where true, ignored: never the first two positions (of one alone, gradients are 0, and in PyTorch
    what rounding leaves)."""
    m = booleans(*size)
    m[..., :2] = False
    return m


def added(*size):
    m = infinite(*size)
    m[..., :2] = 0.5
    return m


@op("multi_head_attention_forward")
def heads():
    yield heads_case(3, 2, 2, 2, 2)
    yield heads_case(3, 4, None, 2, 3, average_attn_weights=False)
    yield heads_case(4, 4, 2, 1, 3, need_weights=False, is_causal=True)
    yield heads_case(3, 5, 2, 2, 2, ignored(2, 5), ignored(3, 5))
    yield heads_case(3, 5, 2, 2, 2, ignored(2, 5), added(4, 3, 5), need_weights=False)
    yield heads_case(3, 5, 2, 2, 2, None, ignored(4, 3, 5), extra=True, add_zero_attn=True)
    yield heads_case(3, 5, None, 2, 2, ignored(5), in_bias=False, add_zero_attn=True, need_weights=False)
    yield heads_case(2, 3, 1, 3, 1, None, added(2, 3), average_attn_weights=False)
    yield heads_case(3, 4, 2, 2, 2, separate=(3, 5))
    yield heads_case(3, 5, None, 2, 2, ignored(5), separate=(4, 4), extra=True, add_zero_attn=True)
    yield heads_case(3, 5, 2, 2, 2, None, added(3, 5), separate=(1, 6), in_bias=False, need_weights=False)


@random("multi_head_attention_forward")
def heads_random():
    rows, cols, batch, n = number(3, 6), number(3, 6), choice((None, 1, 2, 3)), number(2, 3)
    flat = n if batch is None else batch * n
    padding = ignored(*((cols,) if batch is None else (batch, cols))) if chance(0.4) else None
    kind = choice(("none", "none", "bool", "float", "bool3", "float3", "causal"))
    size = (flat, rows, cols) if kind.endswith("3") else (rows, cols)
    mask = ignored(*size) if kind.startswith("bool") else added(*size) if kind.startswith("float") else None
    p = {"is_causal": True} if kind == "causal" else {}
    if chance(0.3):
        p["add_zero_attn"] = True
    if chance(0.5):
        p["need_weights"] = False
    elif chance(0.4):
        p["average_attn_weights"] = False
    separate = (number(1, 8), number(1, 8)) if chance(0.3) else None
    return heads_case(
        rows, cols, batch, n, number(3, 5), padding, mask, chance(0.7), chance(0.3), separate, **p
    )


# ---- rotary_embedding by complex numbers, or by halves as most PyTorch users write it
def rotary_case(size, angles, interleaved):
    def f(x, cos, sin):
        r = 2 * cos.shape[-1]
        turn, rest = x[..., :r], x[..., r:]
        if interleaved:
            z = torch.view_as_complex(turn.unflatten(-1, (-1, 2)).contiguous()) * torch.complex(cos, sin)
            return torch.cat([torch.view_as_real(z).flatten(-2), rest], -1)
        half = torch.cat([-turn[..., r // 2 :], turn[..., : r // 2]], -1)
        return torch.cat([turn * torch.cat([cos, cos], -1) + half * torch.cat([sin, sin], -1), rest], -1)

    return f, [uniform(*size), uniform(*angles), uniform(*angles)], {"interleaved": interleaved}


@op("rotary_embedding")
def rotary():
    for interleaved in (False, True):
        for size, angles in (((3, 4), (3, 2)), ((2, 2, 3, 6), (3, 2)), ((4,), (2,)), ((2, 3, 5), (2, 1, 2))):
            yield rotary_case(size, angles, interleaved)


@random("rotary_embedding")
def rotary_random():
    size = shape(lo=1, hi=4, least=1)
    pairs = number(1, 3)
    size = size[:-1] + (2 * pairs + (number(1, 3) if chance(0.3) else 0),)
    return rotary_case(size, narrower(size[:-1]) + (pairs,), chance(0.5))
