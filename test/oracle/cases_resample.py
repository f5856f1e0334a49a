"""cases_resample.py - interpolate, grid_sample, affine_grid."""

import math

import torch
import torch.nn.functional as F

from golden import chance, choice, floats, number, scalar, uniform

OPS, RANDOM = {}, {}
MODES = ["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"]
DIMS = {"linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,)}
PADDINGS = ["zeros", "border", "reflection"]


def op(table, name):
    def add(f):
        table[name] = f
        return f

    return add


# ---- interpolate
def interpolate(p):
    mode, n = MODES[p.get("mode", 0)], len(p.get("size", []))
    scales = p.get("scale_factors") or [p.get("scale_factor")]
    size = (
        {"size": p["size"] if n > 1 else p["size"][0]}
        if n
        else {"scale_factor": scales if len(scales) > 1 else scales[0]}
    )
    corners = None if mode in ("nearest", "nearest-exact", "area") else p.get("align_corners", False)
    return lambda x: F.interpolate(
        x,
        mode=mode,
        align_corners=corners,
        antialias=p.get("antialias", False),
        recompute_scale_factor=p.get("recompute_scale_factor") or None,
        **size
    )


@op(OPS, "interpolate")
def interpolate_by_hand():
    for shape, p in (
        ((2, 3, 4), {"size": [7]}),
        ((2, 2, 3, 4), {"scale_factor": 2.0}),
        ((1, 2, 2, 3, 2), {"size": [3], "mode": 1}),
        ((1, 2, 3, 3), {"size": [3]}),
        ((2, 1, 4), {"scale_factor": 1.7, "mode": 2}),
        ((2, 1, 4), {"scale_factor": 1.7, "mode": 2, "recompute_scale_factor": True}),
        ((2, 2, 3, 4), {"size": [5, 6], "mode": 3, "align_corners": True}),
        ((2, 2, 3, 4), {"size": [1, 6], "mode": 3, "align_corners": True}),
        ((2, 2, 8, 9), {"size": [3, 4], "mode": 3, "antialias": True}),
        ((2, 2, 8, 9), {"size": [3, 12], "mode": 5, "antialias": True}),
        ((2, 2, 3, 4), {"size": [5, 6], "mode": 5}),
        ((2, 2, 2, 3, 4), {"scale_factor": 1.6, "mode": 4}),
        ((2, 2, 5, 4), {"size": [3, 2], "mode": 6}),
        ((0, 2, 3, 3), {"size": [5], "mode": 3}),
        ((1, 1, 1, 1), {"size": [3], "mode": 5}),
        ((1, 2, 41), {"size": [37]}),
        ((1, 2, 5), {"scale_factor": 1 / 3, "mode": 1}),
    ):
        yield interpolate(p), [uniform(*shape)], p


def uneven(scale, size, out):
    """A scale that is not the sizes' own, where PyTorch takes shortcuts that forget it - in its backward,
    or in one of both."""
    return scale and size in (out, 2 * size, out / 2) and scale != out / size


@op(RANDOM, "interpolate")
def random_interpolate():
    mode = choice(MODES)
    n = choice(DIMS.get(mode, (1, 2, 3)))
    size = [number(1, 9) for _ in range(n)]
    p = {"mode": MODES.index(mode)}
    scales = [scalar(0.4, 3.0) if chance(0.7) else choice((0.5, 1.0, 2.0)) for _ in size]
    scales = [s if math.floor(k * s) >= 1 else 2.0 for k, s in zip(size, scales)]
    if n > 1 and chance(0.3):
        size, scales = [size[0]] * n, [scales[0]] * n
        p["scale_factor"] = scales[0]
    elif chance(0.5):
        p.update({"scale_factors": scales} if n > 1 else {"scale_factor": scales[0]})
    else:
        p["size"] = [choice((k, 2 * k, number(1, 12))) for k in size]
    if mode in DIMS:
        p["align_corners"] = chance(0.4)
    if n == 2 and mode in DIMS:
        p["antialias"] = chance(0.4)
    if "size" not in p and chance(0.3):
        p["recompute_scale_factor"] = True
    out = p.get("size") or [math.floor(k * s) for k, s in zip(size, scales)]
    shape = [0 if chance(0.03) else number(1, 3), number(1, 3), *size]
    if p.get("antialias") and out[1] == 1:  # PyTorch reads other elements when the last size becomes 1
        p["antialias"] = False
    given = "size" not in p and not p.get("recompute_scale_factor")
    no_grad = (
        (0,)
        if given
        and any(uneven(s, k, o) or (k == o and s != 1) for s, k, o in zip(scales, size, out))
        and mode != "area"
        else ()
    )
    x = floats(*shape)
    if x.numel() and chance(0.1) and mode != "bicubic":
        x.reshape(-1)[number(0, x.numel() - 1)] = math.nan
    return interpolate(p), [x], p, no_grad


# ---- grid_sample: away from where the derivative jumps, for f32 may come down on the other side
def grid_sample(p):
    mode, padding = MODES[p.get("mode", 3)], PADDINGS[p.get("padding_mode", 0)]
    return lambda x, g: F.grid_sample(x, g, mode, padding, p.get("align_corners", False))


def smooth(size, shape, corners):
    """Positions in [-2, 2] whose pixels' coordinates are at least 0.02 away from halves of integers."""
    columns = []
    for n in reversed(size):
        span = n - 1 if corners else n
        cell = uniform(*shape, lo=0.02, hi=0.48) + 0.5 * torch.floor(uniform(*shape, lo=-2.0 * n, hi=4.0 * n))
        at = cell * 2 / span - 1 if corners and span else (2 * cell + 1) / n - 1
        columns.append(at.float().double())
    return torch.stack(columns, -1)


@op(OPS, "grid_sample")
def grid_sample_by_hand():
    corners = torch.tensor(
        [[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 0.0], [-2.0, 0.5], [0.5, 3.0]], dtype=torch.float64
    ).reshape(1, 2, 3, 2)
    for mode in (0, 3, 5):
        for padding in (0, 1, 2):
            for align in (False, True):
                p = {"mode": mode, "padding_mode": padding, "align_corners": align}
                yield grid_sample(p), [
                    uniform(1, 2, 3, 5),
                    corners,
                ], p  # at the corners and the middle, where it jumps


@op(RANDOM, "grid_sample")
def random_grid_sample():
    n = choice((2, 2, 3))
    mode = choice((0, 3, 3, 5)) if n == 2 else choice((0, 3))
    p = {"mode": mode, "padding_mode": number(0, 2), "align_corners": chance(0.5)}
    least = (
        2 if p["padding_mode"] else 1
    )  # the gradient by the grid of a single pixel that is everywhere is 0, and noise
    size, out = [number(least, 6) for _ in range(n)], [
        0 if chance(0.03) else number(2, 4) for _ in range(n)
    ]  # several: one alone may cancel
    batch = 0 if chance(0.05) else number(1, 3)
    x, no_grad = floats(batch, number(1, 3), *size), ()
    if x.numel() and chance(0.1):  # PyTorch multiplies by the 0 of a clipped coordinate what we do not select
        x.reshape(-1)[number(0, x.numel() - 1)] = choice((math.nan, math.inf))
        no_grad = (1,)
    return grid_sample(p), [x, smooth(size, (batch, *out), p["align_corners"])], p, no_grad


# ---- affine_grid
def affine_grid(p):
    return lambda theta: F.affine_grid(theta, p["size"], p["align_corners"])


@op(OPS, "affine_grid")
def affine_grid_by_hand():
    for size in ([2, 3, 4, 5], [1, 1, 1, 1], [1, 2, 1, 3], [2, 1, 2, 3, 4]):
        for align in (
            (False, True) if min(size[2:]) > 1 else (False,)
        ):  # PyTorch warns of align_corners and one pixel
            n, p = len(size) - 2, {"size": size, "align_corners": align}
            yield affine_grid(p), [uniform(size[0], n, n + 1)], p


@op(RANDOM, "affine_grid")
def random_affine_grid():
    n = choice((2, 3))
    align = chance(0.5)
    p = {
        "size": [number(1, 3), number(1, 3)] + [number(2 if align else 1, 6) for _ in range(n)],
        "align_corners": align,
    }
    return affine_grid(p), [floats(p["size"][0], n, n + 1, special=0.1)], p
