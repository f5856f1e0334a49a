"""cases_attention.py - attention.  Random masks leave each row something to see where PyTorch answers NaN otherwise."""
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
    f = lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, is_causal=p.get("is_causal", False), scale=p.get("scale"), enable_gqa=p.get("enable_gqa", False))
    shifts_rows = mask is not None and mask.shape[-1] == 1          # then its gradient is 0, and in PyTorch what rounding leaves of it
    return f, [uniform(*sq, lo=-2, hi=2), uniform(*sk, lo=-2, hi=2), uniform(*sv), mask], p, (3,) if shifts_rows else ()


def infinite(*size):
    """A floating mask with some -inf."""
    return torch.where(booleans(*size) & booleans(*size), torch.tensor(-math.inf, dtype=torch.float64), uniform(*size, lo=-1, hi=1))


@op("scaled_dot_product_attention")
def attention():
    yield attention_case((3, 4), (5, 4), (5, 2))
    yield attention_case((2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4), is_causal=True)
    yield attention_case((2, 5, 3), (2, 2, 3), (2, 2, 3), is_causal=True)
    yield attention_case((2, 2, 3), (2, 5, 3), (2, 5, 3), is_causal=True)
    yield attention_case((2, 3, 4), (2, 5, 4), (2, 5, 3), booleans(3, 5), scale=0.7)
    yield attention_case((2, 3, 4), (2, 5, 4), (2, 5, 3), torch.tensor([[True, False, True, True, False], [False] * 5, [True] * 5]))
    yield attention_case((2, 3, 4), (2, 5, 4), (2, 5, 3), torch.tensor([[0.0, -math.inf, 1, 0, 2], [-math.inf] * 5, [0.5] * 5], dtype=torch.float64))
    yield attention_case((2, 4, 3, 2), (2, 2, 5, 2), (2, 1, 5, 3), enable_gqa=True)
    yield attention_case((6, 3, 2), (2, 5, 2), (2, 5, 2), infinite(6, 3, 5), enable_gqa=True)
    yield attention_case((1, 2, 2, 3, 4), (2, 1, 2, 5, 4), (2, 2, 2, 5, 4), booleans(1, 1, 3, 1))
    yield attention_case((2, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6), uniform(2, 1, 1, 5))
    yield attention_case((0, 3, 4), (0, 5, 4), (0, 5, 4))
    yield attention_case((2, 0, 4), (2, 3, 4), (2, 3, 4))
    yield attention_case((1, 1, 4), (1, 1, 4), (1, 1, 4))
    yield attention_case((1, 100, 5), (1, 70, 5), (1, 70, 3))
    yield attention_case((1, 130, 3), (1, 130, 3), (1, 130, 3), is_causal=True)


@random("scaled_dot_product_attention")
def attention_random():
    rows, cols, width, value = number(1, 9), number(2, 9), number(1, 6), number(1, 6)          # one column: as above
    kind = choice(("none", "none", "causal", "bool", "float", "infinite"))
    if kind in ("causal", "bool", "infinite"):      # a row may see one column only: let there be others
        rows, cols = rows + 3, cols + 2
    if chance(0.1):
        rows, cols = number(60, 140), number(10, 140)
    gqa = chance(0.25)
    if gqa:
        lead, heads = shape(hi=2, least=1, most=3), number(1, 3)
        batches = [lead + (heads * number(1, 3),), lead + (heads,), lead + (heads,)]
    else:
        batch = shape(hi=3, least=1, most=3)
        batches = [batch, batch, batch] if chance(0.6) else [narrower(batch) if len(batch) < 2 else batch for _ in range(3)]
    whole = torch.broadcast_shapes(*batches[:2]) if not gqa else batches[0]
    p = {"enable_gqa": True} if gqa else {}
    if chance(0.3):
        p["scale"] = scalar(0.1, 1.5)
    if kind == "causal":
        p["is_causal"] = True
    whole += (rows, cols)
    size = narrower(whole)
    size = size if len(size) > 1 else (rows, cols)
    mask = {"bool": booleans, "float": uniform, "infinite": infinite}[kind](*size) if kind in ("bool", "float", "infinite") else None
    return attention_case(batches[0] + (rows, width), batches[1] + (cols, width), batches[2] + (cols, value), mask, **p)
