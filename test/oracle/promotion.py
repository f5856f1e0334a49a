"""Writes promotion_golden.h: the dtype of a result, for every pair of dtypes.

    python3 promotion.py > promotion_golden.h

Needs PyTorch (written with 2.15).  One letter a result, in the order of TensorDtype: s f32, d f64, h f16, b
bf16, l i64, i i32, u u8, t bool, - where PyTorch refuses the operands. hardtanh of integers with fractional
bounds is left out: PyTorch cuts the bounds to integers, the library promotes; so is clamp_max by -1, which
PyTorch refuses for u8 and the library holds to 0.
"""

import torch
import torch.nn.functional as F

DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)
LETTER = dict(zip(DTYPES, "sdhbliut"))

PAIRS = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "lt": torch.lt,
    "logical_and": torch.logical_and,
}
PAIRS.update(
    {
        name: getattr(torch, name)
        for name in (
            "ne",
            "le",
            "gt",
            "ge",
            "logical_or",
            "logical_xor",
            "fmax",
            "fmin",
            "atan2",
            "fmod",
            "remainder",
            "floor_divide",
            "hypot",
            "logaddexp",
            "copysign",
            "xlogy",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "bitwise_left_shift",
            "bitwise_right_shift",
            "float_power",
            "gcd",
            "lcm",
            "heaviside",
            "isclose",
            "dist",
        )
    }
)
FULL = {
    "pairwise_distance": F.pairwise_distance,
    "lerp weight=0.5": lambda a, b: torch.lerp(a, b, 0.5),
    "cosine_similarity dim=0": lambda a, b: F.cosine_similarity(a, b, 0),
    "cat": lambda a, b: torch.cat([a, b]),
    "stack": lambda a, b: torch.stack([a, b]),
}  # of no rank-0 tensors
ALONE = {
    "neg": torch.neg,
    "abs": torch.abs,
    "square": torch.square,
    "reciprocal": torch.reciprocal,
    "sign": torch.sign,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "sin": torch.sin,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": torch.trunc,
    "logical_not": torch.logical_not,
    "isnan": torch.isnan,
    "isfinite": torch.isfinite,
}
ALONE.update(
    {
        name: getattr(torch, name)
        for name in (
            "exp2",
            "expm1",
            "log2",
            "log10",
            "log1p",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "asinh",
            "acosh",
            "atanh",
            "erfc",
            "erfinv",
            "lgamma",
            "digamma",
            "sgn",
            "signbit",
            "isinf",
            "isposinf",
            "isneginf",
            "deg2rad",
            "rad2deg",
            "bitwise_not",
            "frac",
            "sinc",
            "sum",
            "mean",
            "prod",
            "amax",
            "count_nonzero",
            "nansum",
            "var",
            "std",
            "nan_to_num",
            "nonzero",
            "clone",
        )
    }
)
SCALAR = {
    "add_scalar": lambda x, c: x + c,
    "sub_scalar": lambda x, c: x - c,
    "rsub_scalar": lambda x, c: c - x,
    "mul_scalar": lambda x, c: x * c,
    "div_scalar": lambda x, c: x / c,
    "pow_scalar": lambda x, c: x**c,
    "clamp": lambda x, c: torch.clamp(x, c, c + 1),
    "hardtanh": lambda x, c: F.hardtanh(x, c, c + 1),
    "clamp_min": torch.clamp_min,
    "clamp_max": torch.clamp_max,
    "fmod_scalar": torch.fmod,
    "remainder_scalar": torch.remainder,
    "floor_divide_scalar": torch.floor_divide,
}
ONES = {"v": (2,), "m": (2, 2), "b": (2, 2, 2), "s": ()}
PRODUCTS = {  # shapes of the operands, and which one has the second dtype
    "matmul": (torch.matmul, ("mm1", "vm0", "bm1")),
    "mm": (torch.mm, ("mm1",)),
    "bmm": (torch.bmm, ("bb1",)),
    "mv": (torch.mv, ("mv1",)),
    "dot": (torch.dot, ("vv1",)),
    "outer": (torch.outer, ("vv1",)),
    "inner": (torch.inner, ("vv1", "vs1", "mm0")),
    "kron": (torch.kron, ("mv1",)),
    "cross": (lambda a, b: torch.linalg.cross(three(a), three(b)), ("vv1",)),
    "vecdot": (torch.linalg.vecdot, ("vv1",)),
    "addmm": (torch.addmm, ("mmm0", "mmm2")),
    "baddbmm": (torch.baddbmm, ("bbb0", "bbb2")),
    "addmv": (torch.addmv, ("vmv0", "vmv2")),
    "addr": (torch.addr, ("mvv0", "mvv2")),
    "addbmm": (torch.addbmm, ("mbb0", "mbb2")),
    "linear": (F.linear, ("mm1", "mmv2")),
    "bilinear": (F.bilinear, ("mmb1", "mmbv3")),
    "tensordot": (lambda a, b: torch.tensordot(a, b, 1), ("mm1",)),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), ("mm1",)),
    "multi_dot": (lambda *x: torch.linalg.multi_dot(x), ("mm1", "mmm1")),
}
SCALARS = (2, 0.5, -1)
LEFT_OUT = (("hardtanh", 0.5), ("clamp_max", -1))
LAYOUTS = (
    ("full and full", 2, 2),
    ("rank 0 and full", 0, 2),
    ("full and rank 0", 2, 0),
    ("rank 0 and rank 0", 0, 0),
)


def letter(f, *args):
    try:
        return LETTER[f(*args).dtype]
    except (RuntimeError, NotImplementedError, TypeError):
        return "-"


def ones(dtype, n):
    return torch.ones([n] if n else [], dtype=dtype)


def three(x):
    return x.new_ones(3)


def product(f, shapes, other):
    def call(a, b):
        return letter(f, *(torch.ones(ONES[s], dtype=b if i == other else a) for i, s in enumerate(shapes)))

    return ["".join(call(a, b) for b in DTYPES) for a in DTYPES]


def pairs(f, m, n):
    return ["".join(letter(f, ones(a, m), ones(b, n)) for b in DTYPES) for a in DTYPES]


def quoted(texts):
    return ", ".join('"%s"' % t for t in texts)


def row(head, texts):
    """A row whose last member is a list of texts, in a line or two."""
    line = "    { %s, { %s } }," % (head, quoted(texts))
    if len(line) > 110:
        line = "    { %s,\n      { %s } }," % (head, quoted(texts))
    print(line)


def main():
    print(
        "/* promotion_golden.h - printed by promotion.py with PyTorch "
        + torch.__version__.split("+")[0]
        + "; do not edit. */"
    )
    print("\nstatic const char *const promote_golden[8] = { /* tensor_promote_types: a's line, b's letter */")
    print("    %s\n};" % quoted("".join(LETTER[torch.promote_types(a, b)] for b in DTYPES) for a in DTYPES))
    print("\nstatic const struct { const char *op, *options; int ndim[2]; const char *dtype[8]; }")
    print("pair_golden[] = {")
    for name, f in PAIRS.items():
        for what, m, n in LAYOUTS:
            layout = f"{{ {min(m, 1)}, {min(n, 1)} }}"
            row(f'"{name}", "", {layout}', pairs(f, m, n))
    for name, f in FULL.items():
        op, _, options = name.partition(" ")
        row(f'"{op}", "{options}", {{ 1, 1 }}', pairs(f, 2, 2))
    print(
        "};\n\n/* shapes: s [], v [2], m [2, 2], b [2, 2, 2]; operand number `other` has b's dtype, the rest a's */"
    )
    print(
        "static const struct { const char *op, *shapes; int other; const char *dtype[8]; } product_golden[] = {"
    )
    for name, (f, layouts) in PRODUCTS.items():
        for shapes, other in ((text[:-1], int(text[-1])) for text in layouts):
            row(f'"{name}", "{shapes}", {other}', product(f, shapes, other))
    print("};\n\nstatic const struct { const char *op, *dtype; } alone_golden[] = {")
    for name, f in ALONE.items():
        print(f'    {{ "{name}", "' + "".join(letter(f, ones(x, 2)) for x in DTYPES) + '" },')
    print(
        "};\n\nstatic const struct { const char *op; double c; int ndim; const char *dtype; } scalar_golden[] = {"
    )
    for name, f in SCALAR.items():
        for c in SCALARS:
            for n in (2, 0) if (name, c) not in LEFT_OUT else ():
                print(
                    f'    {{ "{name}", {c}, {min(n, 1)}, "'
                    + "".join(letter(f, ones(x, n), c) for x in DTYPES)
                    + '" },'
                )
    print("};")


main()
