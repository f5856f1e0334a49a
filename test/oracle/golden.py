"""golden.py - draws cases, asks PyTorch, packs the answers.  ops.py holds the cases themselves.

A file (little endian), one a family; all after the header is one zlib stream:

    header   8 bytes "TGOLD3\\0\\0", u64 size of the stream when unpacked
    text     u16 length, bytes
    stream   text PyTorch's version, u32 number of sections, the sections
    section  text op, u32 number of cases, u32 their bytes, the cases
    case     text sample (the notation of samples.h: shapes, dtypes, parameters), u8 narrow,
             for each input that is there: its values (f32 for floats, i64 for i64 and i32, u8 for u8 and
             bool),
             u8 number of results, the results, for each input: u8 has a gradient, then f64 values, f64 error
    result   u8 dtype (TensorDtype, in the run in f64), u8 rank, u32 sizes, values (f64 for floats, u8 for
    bool and
             u8, else i64), and for floats: f64 error, u8 has a cotangent, then its f32 values

Inputs and cotangents are exact in f32, those of a narrow case also in f16 and bf16; results and gradients
are those
of f64.  "error" is the largest |f32 - f64| of PyTorch's own run in f32, over the elements where both are
finite;
infinite where f32 is not finite and f64 is.
"""

import math
import struct
import warnings
import zlib

import torch

DTYPES = {
    torch.float32: 0,
    torch.float64: 1,
    torch.float16: 2,
    torch.bfloat16: 3,
    torch.int64: 4,
    torch.int32: 5,
    torch.uint8: 6,
    torch.bool: 7,
}
NAMES = {torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8", torch.bool: "bool"}

generator = torch.Generator()
warnings.filterwarnings(
    "ignore", message="reduction: 'mean'|Using padding='same'|Support for mismatched key_padding_mask"
)


def begin(name, seed=0):
    """The same cases for an op whatever the others are."""
    generator.manual_seed(zlib.crc32(name.encode()) + seed)


def uniform(*shape, lo=-1.0, hi=1.0):
    return (lo + (hi - lo) * torch.rand(shape, generator=generator, dtype=torch.float64)).float().double()


def choice(options):
    return options[int(torch.randint(0, len(options), (), generator=generator))]


def chance(p):
    return bool(torch.rand((), generator=generator) < p)


def number(lo, hi):
    """hi is included."""
    return int(torch.randint(lo, hi + 1, (), generator=generator))


def scalar(lo, hi):
    return round(lo + (hi - lo) * float(torch.rand((), generator=generator, dtype=torch.float64)), 3)


def shape(lo=0, hi=4, least=0, most=6):
    """Sizes of a random rank lo..hi; a size is 0 rarely, 1 now and then."""

    def size():
        return (
            least
            if least and chance(0.1)
            else 0 if not least and chance(0.03) else 1 if chance(0.15) else number(max(least, 2), most)
        )

    return tuple(size() for _ in range(number(lo, hi)))


def narrower(shape_):
    """A shape that broadcasts to this one."""
    cut = shape_[number(0, len(shape_)) :] if chance(0.4) else shape_
    return tuple(1 if chance(0.3) else n for n in cut)


SPECIAL = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-3, -2.5, 100.0, -100.0)


def floats(*shape_, lo=-2.0, hi=2.0, special=0.0, also=()):
    """Uniform values; with the chance `special`, some elements are special ones (and those of `also`)."""
    x = uniform(*shape_, lo=lo, hi=hi)
    if special and x.numel() and chance(special):
        flat = x.reshape(-1)
        for _ in range(number(1, 3)):
            flat[number(0, flat.numel() - 1)] = choice(SPECIAL + tuple(also))
    return x.float().double()  # 1e-3 is not exact in f32


def integers(*shape, lo=0, hi=3, dtype=torch.int64):
    """hi is included."""
    return torch.randint(lo, hi + 1, shape, generator=generator).to(dtype)


def booleans(*shape):
    return integers(*shape, hi=1).bool()


def values(*list_, dtype=torch.float64):
    t = torch.tensor(list_, dtype=dtype)
    return t.float().double() if dtype == torch.float64 else t


def with_one_dim(draw, key="dims"):
    """A case's list of one dim (p[key]) as the option dim; none where the list is empty, as it is where it is longer."""

    def rename(case):
        f, inputs, params, *rest = case
        p = {("dim" if k == key and len(v) < 2 else "dims" if k == key else k): v for k, v in params.items()}
        if isinstance(p.get("dim"), list):
            dims = p.pop("dim")
            p.update({"dim": dims[0]} if dims else {})
        return (f, inputs, p, *rest)

    def drawn():
        cases = draw()
        return rename(cases) if isinstance(cases, tuple) and callable(cases[0]) else map(rename, cases)

    return drawn


def text(s):
    b = s.encode()
    return struct.pack("<H", len(b)) + b


def plain(v):
    if isinstance(v, bool):
        return str(int(v))
    if isinstance(v, (list, tuple)):
        return "[" + " ".join(repr(e) if isinstance(e, float) else str(int(e)) for e in v) + "]"
    return v if isinstance(v, str) else repr(v)


def sample(inputs, params):
    shapes = []
    for x in inputs:
        if x is None:
            shapes.append("-")
        else:
            shapes.append(
                "x".join(str(n) for n in x.shape) + ("@" + NAMES[x.dtype] if x.dtype in NAMES else "")
            )
    given = " ".join(k + "=" + plain(v) for k, v in params.items())
    return ",".join(shapes) + (" {" + given + "}" if given else "")


def spelled(params):
    """A window's lists by the names of the options: one number for all directions, or the plural."""
    out = {}
    for name, v in params.items():
        option = "kernel_size" if name == "kernel" else name
        if name == "same":
            out["padding"] = -(1 << 31)  # TENSOR_SAME
        elif option not in ("kernel_size", "stride", "padding", "dilation", "output_padding"):
            out[name] = v
        elif len(v) == 1:
            out[option] = v[0]
        elif v:
            out[option + "s"] = v
    return out


def spell(draw):
    """The case, or the cases, that draw gives, with their windows spelled so."""
    respelled = lambda c: (c[0], c[1], spelled(c[2]), *c[3:])

    def drawn():
        cases = draw()
        return respelled(cases) if isinstance(cases, tuple) else map(respelled, cases)

    return drawn


def raw(t, dtype):
    return t.detach().to(dtype).contiguous().reshape(-1).numpy().tobytes()


def raw_input(t):
    return raw(
        t,
        (
            torch.float32
            if t.is_floating_point()
            else torch.uint8 if t.dtype in (torch.uint8, torch.bool) else torch.int64
        ),
    )


def rounded(t):
    """The values with the 8 bits of bf16, none that f16 could not hold."""
    t = t.to(torch.bfloat16).double()
    t = torch.where(t.abs() < 2.0**-14, 0.0 * t.sign(), t)
    return torch.where(t.isfinite(), t.clamp(-60000.0, 60000.0), t)


def narrowed(inputs):
    """The inputs rounded to what halves hold, or None where that would make values equal, or integers,
    that were not."""
    narrow = [rounded(x) if x is not None and x.is_floating_point() else x for x in inputs]
    wide = torch.cat(
        [torch.zeros(0)] + [x.reshape(-1) for x in inputs if x is not None and x.is_floating_point()]
    )
    less = torch.cat(
        [torch.zeros(0)] + [x.reshape(-1) for x in narrow if x is not None and x.is_floating_point()]
    )
    same = len(torch.unique(wide)) == len(torch.unique(less)) and torch.equal(
        wide == wide.floor(), less == less.floor()
    )
    return narrow if same else None


def run(f, inputs, cotangents, dtype, no_grad, narrow=False):
    leaves = []
    for i, x in enumerate(inputs):
        if x is not None and x.is_floating_point():
            x = x.to(dtype).clone().requires_grad_(i not in no_grad)
        leaves.append(x)
    y = f(*leaves)
    y = list(y) if isinstance(y, (tuple, list)) else [y]
    roots = [k for k, v in enumerate(y) if v.requires_grad]
    if cotangents is None:
        cotangents = {
            k: torch.randn(y[k].shape, generator=generator, dtype=torch.float64).float().double()
            for k in roots
        }
        if narrow:
            cotangents = {k: rounded(v) for k, v in cotangents.items()}
    wanted = [x for x in leaves if x is not None and x.is_floating_point() and x.requires_grad]
    grads = {}
    if roots and wanted:
        got = torch.autograd.grad(
            [y[k] for k in roots], wanted, [cotangents[k].to(y[k].dtype) for k in roots], allow_unused=True
        )
        got = iter(got)
        for i, x in enumerate(leaves):
            if x is not None and x.is_floating_point() and x.requires_grad:
                g = next(got)
                grads[i] = torch.zeros_like(x) if g is None or g._is_zerotensor() else g
    return [v.detach() for v in y], grads, cotangents


def error(narrow, exact):
    ok = torch.isfinite(exact)
    if not ok.any():
        return 0.0
    off = (narrow.double() - exact.double())[ok].abs()
    return float("inf") if not torch.isfinite(off).all() else float(off.max())


def case(f, inputs, params, no_grad=(), narrow=False):
    if narrow:
        exact = narrowed(inputs)
        inputs, narrow = (inputs, False) if exact is None else (exact, True)
    y, grads, cot = run(f, inputs, None, torch.float64, no_grad, narrow)
    y32, grads32, _ = run(f, inputs, cot, torch.float32, no_grad)
    out = text(sample(inputs, params)) + struct.pack("<B", narrow)
    for x in inputs:
        if x is not None:
            out += raw_input(x)
    out += struct.pack("<B", len(y))
    for k, v in enumerate(y):
        out += struct.pack("<BB", DTYPES[v.dtype], v.dim()) + b"".join(struct.pack("<I", n) for n in v.shape)
        if not v.is_floating_point():
            out += raw_input(v)
            continue
        out += raw(v, torch.float64) + struct.pack("<dB", error(y32[k], v), k in cot)
        if k in cot:
            out += raw(cot[k], torch.float32)
    for i in range(len(inputs)):
        out += struct.pack("<B", i in grads)
        if i in grads:
            out += raw(grads[i], torch.float64) + struct.pack("<d", error(grads32[i], grads[i]))
    return out


def write(path, drawn):
    """drawn: the cases of each op, by its name."""
    stream = text(torch.__version__) + struct.pack("<I", len(drawn))
    for name, cases in drawn.items():
        stream += text(name) + struct.pack("<II", len(cases), sum(map(len, cases))) + b"".join(cases)
    with open(path, "wb") as file:
        file.write(b"TGOLD3\0\0" + struct.pack("<Q", len(stream)) + zlib.compress(stream, 9))
