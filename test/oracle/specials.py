"""Writes specials_golden.h: the elementwise rows and their gradients at special values.

    python3 specials.py > specials_golden.h

Needs PyTorch (written with 2.15) and NumPy.  Functions of one operand are taken at all VALUES, those of two
at all pairs of CROSS, in f32 and in f64, with 1 as the gradient of the result.  Numbers are the shortest
that read back as they were.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

inf, nan = math.inf, math.nan
COMMON = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -3.0,
    20.0,
    -20.0,
    100.0,
    -100.0,
    1000.0,
    -1000.0,
    inf,
    -inf,
    nan,
]
VALUES = {
    torch.float32: COMMON
    + [
        3.4028235e38,
        -3.4028235e38,
        1.1754944e-38,
        -1.1754944e-38,
        1e-45,
        -1e-45,
        1e-40,
        1e-10,
        -1e-20,
        1e10,
        -1e20,
        1e30,
        2147483648.0,
        2147483904.0,
        -4294967296.0,
        1e5,
    ],
    torch.float64: COMMON
    + [
        1.7976931348623157e308,
        -1.7976931348623157e308,
        2.2250738585072014e-308,
        -2.2250738585072014e-308,
        5e-324,
        -5e-324,
        1e-310,
        1e-20,
        -1e-200,
        1e22,
        -1e200,
        1e300,
        1048576.0,
        1048577.0,
        -4294967296.0,
        1e5,
    ],
}
CROSS = {
    torch.float32: [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, inf, -inf, nan, 3.4028235e38, 1e-45],
    torch.float64: [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, inf, -inf, nan, 1.7976931348623157e308, 5e-324],
}
UNARY = {
    name: (getattr(torch, name), [()])
    for name in (
        "neg abs square reciprocal sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh "
        "acosh atanh erf erfc sigmoid relu floor ceil round trunc"
    ).split()
}
UNARY.update(
    {
        "logsigmoid": (F.logsigmoid, [()]),
        "gelu": (F.gelu, [()]),
        "silu": (F.silu, [()]),
        "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [()]),
        "leaky_relu": (F.leaky_relu, [(0.01,), (0.0,)]),
        "elu": (F.elu, [(1.0,), (0.5,)]),
        "softplus": (F.softplus, [(1.0, 20.0), (2.0, 3.0)]),
        "hardtanh": (F.hardtanh, [(-1.0, 1.0)]),
        "clamp": (torch.clamp, [(-1.0, 1.0), (-inf, 2.0), (2.0, -2.0)]),
        "add_scalar": (lambda x, c: x + c, [(1.5,), (inf,), (nan,)]),
        "sub_scalar": (lambda x, c: x - c, [(1.5,), (inf,)]),
        "rsub_scalar": (lambda x, c: c - x, [(1.5,), (inf,)]),
        "mul_scalar": (lambda x, c: x * c, [(1.5,), (0.0,), (inf,)]),
        "div_scalar": (lambda x, c: x / c, [(1.5,), (0.0,), (-0.0,), (inf,)]),
        "pow_scalar": (
            torch.pow,
            [(c,) for c in (0.0, 1.0, 2.0, 3.0, -1.0, -2.0, -3.0, 0.5, -0.5, 2.5, inf, nan)],
        ),
    }
)
BINARY = {name: getattr(torch, name) for name in "add sub mul div pow maximum minimum".split()}
TIMES = 16  # so often the values are repeated, that PyTorch's vector loops compute them


def numbers(x, n):
    return [str(v) for v in x.detach()[:n].numpy()] if x is not None else ["0"] * n


def text(x, n):
    words, lines = numbers(x, n), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 400:
            lines.append("")
        lines[-1] += word.removesuffix(".0") + " "
    return "\n      ".join(f'"{line}"' for line in lines)


def evaluate(f, dtype, columns, params):
    x = [torch.tensor(c, dtype=dtype).repeat(TIMES).requires_grad_() for c in columns]
    y = f(*x, *params)
    dx = (
        torch.autograd.grad(y, x, torch.ones_like(y), allow_unused=True)
        if y.requires_grad
        else [None] * len(x)
    )
    n = len(columns[0])
    return ",\n      ".join(text(t, n) for t in (y, *dx))


def number(c):
    return (
        "(double)NAN"
        if c != c
        else "(double)INFINITY" if c == inf else "-(double)INFINITY" if c == -inf else repr(c)
    )


def row(name, f, arity, dtype, columns, params=()):
    listed = ", ".join(map(number, params)) or "0"
    print(
        f'    {{ "{name}", {arity}, TENSOR_F{64 if dtype == torch.float64 else 32}, {{ {listed} }}, {{\n      '
        + evaluate(f, dtype, columns, params)
        + " } },"
    )


def main():
    np.set_printoptions(floatmode="unique")
    print(
        "/* specials_golden.h - printed by specials.py with PyTorch "
        + torch.__version__.split("+")[0]
        + "; do not edit. */"
    )
    for what, values in (("values", VALUES), ("cross", CROSS)):
        for dtype, listed in values.items():
            x = torch.tensor(listed, dtype=dtype)
            print(
                f"\nstatic const char *const special_{what}_f{64 if dtype == torch.float64 else 32} =\n      {text(x, len(listed))};"
            )
    print("\n/* Of y, and of the gradients of the operands. */")
    print(
        "static const struct { const char *op; int arity; TensorDtype dtype; double params[2]; const char *text[3]; } special_golden[] = {"
    )
    for dtype in VALUES:
        for name, (f, params) in UNARY.items():
            for p in params:
                row(name, f, 1, dtype, [VALUES[dtype]], p)
        a, b = [v for v in CROSS[dtype] for _ in CROSS[dtype]], CROSS[dtype] * len(CROSS[dtype])
        for name, f in BINARY.items():
            row(name, f, 2, dtype, [a, b])
    print("};")


main()
