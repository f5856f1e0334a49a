"""Writes index_language_golden.h: what brackets give in PyTorch, read and written, for expressions drawn at
random.

    python index_language.py [SEED [COUNT]] > index_language_golden.h

Needs PyTorch (written with 2.15).  x is 0, 1, 2, ... in f64, so what is read are positions in x; values
written are 1000, 1001, ...; cotangents are 1, 2, 3, ....  Nothing is written where an element is named
twice: who wins then is not defined in PyTorch.
"""

import random
import sys

import torch

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 20
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 160
NAMES = {torch.int64: "I64", torch.int32: "I32", torch.uint8: "U8", torch.bool: "BOOL"}
rng = random.Random(SEED)


def bound(n):
    return rng.choice(("", "", str(rng.randint(-n - 2, n + 2))))


def spaced(text):
    return text + rng.choice(("", "", " "))


def slice_text(n):
    if rng.random() < 0.3:
        return ":"
    return bound(n) + ":" + bound(n) + rng.choice(("", "", ":", ":1", ":2", ":3"))


def draw_tensor(sizes, broadcast):
    """A tensor for the next dims, and how many of them it takes."""
    kind = rng.random()
    if kind < 0.3:
        k = rng.randint(1, min(2, len(sizes)))
        mask = torch.tensor(
            [rng.random() < 0.5 for _ in range(torch.Size(sizes[:k]).numel())], dtype=torch.bool
        ).reshape(sizes[:k])
        return (mask.to(torch.uint8) if rng.random() < 0.2 else mask), k
    if kind < 0.4:
        return torch.tensor(rng.randint(-sizes[0], sizes[0] - 1)), 1
    if kind < 0.45:
        return torch.tensor(rng.random() < 0.7), 0
    shape = tuple(1 if rng.random() < 0.25 else n for n in broadcast[rng.randint(0, len(broadcast)) :])
    count = torch.Size(shape).numel()
    v = [rng.randint(-sizes[0], sizes[0] - 1) for _ in range(count)]
    return torch.tensor(v, dtype=rng.choice((torch.int64, torch.int64, torch.int32))).reshape(shape), 1


def draw():
    shape = tuple(rng.choice((1, 2, 3, 3, 4)) for _ in range(rng.randint(1, 4)))
    broadcast = tuple(rng.choice((1, 2, 3)) for _ in range(rng.randint(1, 2)))
    items, args, names, d, dots = [], [], [], 0, False
    for _ in range(rng.randint(1, 5)):
        r = rng.random()
        if r < 0.1:
            items.append("None")
        elif r < 0.15:
            items.append(rng.choice(("True", "True", "False")))
        elif r < 0.25 and not dots:
            items.append("...")
            dots = True
            d += rng.randint(0, len(shape) - d)
        elif d == len(shape):
            break
        elif r < 0.45:
            items.append(str(rng.randint(-shape[d], shape[d] - 1)))
            d += 1
        elif r < 0.7:
            items.append(slice_text(shape[d]))
            d += 1
        elif len(args) < 3:
            t, taken = draw_tensor(shape[d:], broadcast)
            names.append(rng.choice(("rows", "mask", "idx", "_i2", "Nonesuch")) + "abc"[len(args)])
            items.append(names[-1])
            args.append(t)
            d += taken
    if not items:
        return draw()
    text = ",".join(spaced(spaced(" " if rng.random() < 0.2 else "") + i) for i in items)
    return shape, rng.choice((text, text, "[" + text + "]", text + ",")), names, args


def evaluate(x, text, scope):
    inner = text.strip()
    return eval("x[" + (inner[1:-1] if inner.startswith("[") else inner) + "]", {"x": x, **scope})


def assign(x, v, text, scope):
    inner = text.strip()
    exec("x[" + (inner[1:-1] if inner.startswith("[") else inner) + "] = v", {"x": x, "v": v, **scope})


def numbers(t):
    return '"' + " ".join("%d" % v for v in t.reshape(-1).tolist()) + '"'


def sizes(shape):
    return '"' + " ".join(str(n) for n in shape) + '"'


def count_from_one(shape):
    return torch.arange(1.0, 1.0 + torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)


def case():
    shape, text, names, args = draw()
    scope = dict(zip(names, args))
    x = torch.arange(float(torch.Size(shape).numel()), dtype=torch.float64).reshape(shape).requires_grad_()
    try:
        y = evaluate(x, text, scope)
    except IndexError:  # index tensors that do not broadcast, masks that meet the wrong sizes behind "..."
        return None
    (dx,) = torch.autograd.grad(y, x, count_from_one(y.shape), allow_unused=True)
    dx = torch.zeros(shape) if dx is None else dx
    vshape = tuple(
        1 if rng.random() < 0.2 else n
        for n in y.shape[rng.randint(0, y.dim()) if rng.random() < 0.4 else 0 :]
    )
    if len(vshape) == y.dim() and rng.random() < 0.2:
        vshape = (1,) + vshape
    written = ["NULL"] * 3
    old_mask = any(
        a.dtype == torch.uint8 for a in args
    )  # PyTorch reads with those masks, and writes one value with bool ones only
    if len(set(y.reshape(-1).tolist())) == y.numel() and not old_mask:
        v = (1000 + count_from_one(vshape) - 1).requires_grad_()
        z = x.clone()
        assign(z, v, text, scope)
        g = torch.autograd.grad(z, [x, v], count_from_one(shape), allow_unused=True)
        written = [numbers(z), numbers(g[0]), numbers(torch.zeros(vshape) if g[1] is None else g[1])]
    v = 1000 + count_from_one(vshape) - 1
    while v.dim() > y.dim():
        v = v[0]
    sums = x.detach().reshape(-1).index_add(0, y.detach().long().reshape(-1), v.expand(y.shape).reshape(-1))
    given = ["{ TENSOR_%s, %s, %s }" % (NAMES[a.dtype], sizes(a.shape), numbers(a)) for a in args] + [
        "{ 0, NULL, NULL }"
    ] * (3 - len(args))
    basic = y.data_ptr() == x.data_ptr() or y._is_view()
    return '    { "%s", %s, { %s },\n      %s, %s, %s, %s, %s, %s, %s, %s, %s },' % (
        text,
        sizes(shape),
        ", ".join(given),
        "true" if basic else "false",
        sizes(y.shape),
        numbers(y),
        numbers(dx),
        sizes(vshape),
        *written,
        numbers(sums),
    )


print(
    "/* index_language_golden.h - printed by index_language.py %d %d with PyTorch %s; do not edit. */"
    % (SEED, COUNT, torch.__version__.split("+")[0])
)
print("""
static const struct IndexCase {
    const char *text, *shape;
    struct { int dtype; const char *shape, *values; } arg[3];
    bool view;
    const char *y_shape, *y, *dx;                       /* read, and the gradient */
    const char *value_shape, *set, *set_dx, *set_dv;    /* written; NULL where an element is named twice */
    const char *sums;                                   /* accumulated */
} index_golden[] = {""")
left = COUNT
while left:
    line = case()
    if line:
        print(line)
        left -= 1
print("};")
