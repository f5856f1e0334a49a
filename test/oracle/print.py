"""Writes print_golden.h: tensors as PyTorch prints them, dtypes named as here.

    python3 print.py > print_golden.h

Needs PyTorch (written with 2.15).  A case is a dtype, a shape, and values: listed ones, repeated as often
as the shape needs, or start + i step.
"""

import torch
from torch import _tensor_str

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
    "bool": torch.bool,
}
inf, nan = float("inf"), float("nan")

LISTS = [
    ("f32", [], [3.14159]),
    ("f32", [], [2]),
    ("i64", [], [-7]),
    ("bool", [], [1]),
    ("f64", [], [nan]),
    ("f16", [], [65504]),
    ("f32", [0], []),
    ("f32", [0, 3], []),
    ("f64", [0], []),
    ("i64", [2, 0, 3], []),
    ("bool", [3, 0], []),
    ("f32", [3], [1, 2, 3]),
    ("f32", [3], [0, 0, 0]),
    ("f32", [2], [-0.0, 1.5]),
    ("f32", [4], [1, nan, inf, -inf]),
    ("f32", [4], [1.5, nan, inf, -inf]),
    ("f32", [3], [nan, inf, 0]),
    ("f32", [2], [1e-5, 1]),
    ("f32", [2], [1000, 1]),
    ("f32", [2], [1001, 1]),
    ("f32", [2], [1.5, 2000.25]),
    ("f32", [1], [1e8]),
    ("f32", [1], [123456789]),
    ("f32", [2], [1e-4, 0.05]),
    ("f32", [2], [0.00009, 0.05]),
    ("f32", [3], [1e-38, 3e38, -inf]),
    ("f32", [2], [99999.99, 1000.5]),
    ("f32", [2], [0.99999, 0.5]),
    ("f64", [3], [1 / 3, 2 / 3, 1e300]),
    ("f16", [3], [0.1, 6e-8, 1000]),
    ("bf16", [3], [0.1, 3e38, 1]),
    ("i32", [3], [-5, 100, 7]),
    ("u8", [3], [0, 255, 3]),
    ("bool", [4], [1, 0, 0, 1]),
    ("i64", [3], [-(2**62), 0, 5]),
    ("f32", [2, 3], [1, 2, 3, 4, 5, 6]),
    ("f32", [2, 2], [0.5, -0.25, 10, 100]),
    ("bool", [2, 2], [1, 0, 0, 1]),
    ("f32", [2, 1, 2, 2], [1, -1, 0.5]),
    ("f64", [1, 1, 1], [1]),
    ("i64", [3, 1], [1, 20, 300]),
    ("f32", [30], [0.123456, -7, 100]),
    ("f32", [17], [1]),
    ("i64", [41], [12]),
    ("f64", [12], [0.5]),
    ("f64", [9], [1.25]),
    ("f64", [13], [1.25]),
    ("f32", [2, 12], [1e-9, 1]),
    ("bool", [40], [1, 0]),
    ("i32", [19], [10]),
    ("i32", [20], [10]),
    ("u8", [3, 27], [7]),
]
RAMPS = [
    ("i64", [1001], 0, 1),
    ("i64", [1000], 0, 1),
    ("f32", [2000], 0, 0.5),
    ("f32", [40, 30], 0, 1),
    ("f32", [3, 400], -1, 0.01),
    ("i32", [500, 3], 0, 1),
    ("f64", [2, 30, 20], 0, 1),
    ("u8", [7, 2, 1, 80], 0, 0),
    ("f32", [1100, 1], 0, 1),
    ("f32", [1, 9, 2, 64], 1, 1),
    ("bf16", [1, 1001], 0, 1),
]


def text(x, dtype):
    suffixes = []
    if x.numel() == 0:
        if x.dim() != 1:
            suffixes.append(f"size={tuple(x.shape)}")
        if dtype != "f32":
            suffixes.append(f"dtype={dtype}")
        body = "[]"
    else:
        if dtype not in ("f32", "i64", "bool"):
            suffixes.append(f"dtype={dtype}")
        body = _tensor_str._tensor_str(x, 7)
    return _tensor_str._add_suffixes("tensor(" + body, suffixes, 7, False)


def number(value):
    if value != value:
        return "(double)NAN"
    if abs(value) == inf:
        return "-(double)INFINITY" if value < 0 else "(double)INFINITY"
    return repr(float(value))


def case(dtype, shape, values, step, x):
    # cut between lines of the text, so that the header can be read
    lines = text(x, dtype).split("\n")
    quoted = "\n        ".join(
        '"' + line + ("\\n" if i + 1 < len(lines) else "") + '"' for i, line in enumerate(lines)
    )
    dims = ", ".join(map(str, shape)) or "0"
    listed = ", ".join(map(number, values)) or "0"
    print(
        f"    {{ TENSOR_{dtype.upper()}, {len(shape)}, {{ {dims} }}, {len(values)}, {{ {listed} }}, {number(step)},\n        {quoted} }},"
    )


def main():
    print(
        "/* Written by print.py: tensors and their text, after PyTorch "
        + torch.__version__.split("+")[0]
        + ". */"
    )
    print(
        "static const struct { TensorDtype dtype; int ndim; int64_t shape[4]; int count; double value[6]; double step; const char *text; }"
    )
    print("print_golden[] = {")
    for dtype, shape, values in LISTS:
        n = torch.Size(shape).numel()
        listed = [values[i % len(values)] for i in range(n)]
        x = (
            torch.tensor(listed, dtype=torch.int64 if dtype == "i64" else torch.float64)
            .to(DTYPES[dtype])
            .reshape(shape)
        )
        case(dtype, shape, values, 0, x)
    for dtype, shape, start, step in RAMPS:
        n = torch.Size(shape).numel()
        x = (start + step * torch.arange(n, dtype=torch.float64)).to(DTYPES[dtype]).reshape(shape)
        case(dtype, shape, [start], step, x)
    print("};")


main()
