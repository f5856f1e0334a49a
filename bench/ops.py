#!/usr/bin/env python3
"""ops.py PROGRAM - every op of the registry, here and in PyTorch, in turn; worst first.

    OPS=regex         only ops whose whole name matches
    DTYPE=f32         or f64, bf16, f16, i64: of inputs that may be floats
    THREADS=1         of both sides
    ELEMENTS="1e3 1e5 1e7"    of the largest input
    ROUNDS=5 SECONDS=0.01     pairs of measurements a figure, and the length of each
    SAMPLES=1         so many samples an op, most elements first; the worst one counts
    SHAPES=random SEED=1      any sample, equal sizes multiplied by random factors
    JSON=file         the figures, with the machine and the versions

A figure is the median over the pairs of PyTorch's time over ours: above 1 ours is faster.  "fwd" is the call
where nothing requires a gradient, "both" the call and the gradients of what it returns.  PyTorch's side is
its eager function of the name that the descriptor states, called through Python.
"""

import json, os, platform, re, statistics, subprocess, sys, time, warnings

os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
warnings.filterwarnings("ignore")
try:
    import torch
except ImportError:
    sys.exit("make bench-ops compares with PyTorch: pip install torch, or set PYTHON")
import torch.nn.functional as F
import torch.onnx.ops

setting = os.environ.get
THREADS, ROUNDS = int(setting("THREADS", "1")), int(setting("ROUNDS", "5"))
SECONDS, DTYPE = float(setting("SECONDS", "0.01")), setting("DTYPE", "f32")
ELEMENTS = [int(float(e)) for e in setting("ELEMENTS", "1e3 1e5 1e7").split()]
SAMPLES, CHOSEN = int(setting("SAMPLES", "1")), re.compile(setting("OPS", ".*"))
SEED = int(setting("SEED", "1")) if setting("SHAPES") == "random" else 0
TYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
    "bool": torch.bool,
}

# ---- PyTorch's call -----------------------------------------------------------------------------
# Options that have another name there.
RENAMED = {
    "dims": "dim",
    "kernel_sizes": "kernel_size",
    "strides": "stride",
    "paddings": "padding",
    "dilations": "dilation",
    "output_paddings": "output_padding",
}
NORMS = {"101": "fro", "102": "nuc"}
CHOICES = {"p": NORMS, "ord": NORMS}


def value(text):
    if text.startswith("["):
        return [value(t) for t in text[1:-1].replace(",", " ").split()]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def options(text):
    found = re.findall(r"(\w+)=(\[[^]]*\]|[^ ]+)", text)
    return {k: CHOICES.get(k, {}).get(v, None) or value(v) for k, v in found}


def lstm_like(f, states):
    def call(x, *rest, **p):
        h, w = rest[:states], [t for t in rest[states : states + 4] if t is not None]
        biases = len(w) == 4
        if states == 2:
            return f(x, h, w, biases, 1, 0.0, False, False, False)
        return f(x, h[0], w, biases, 1, 0.0, False, False, False)

    return call


def dtype_of(p):
    return {**p, "dtype": list(TYPES.values())[p["dtype"]]} if isinstance(p.get("dtype"), int) else p


# Calls that names do not tell.
CALLS = {
    "cat": lambda *x, dim=0: torch.cat(x, dim),
    "stack": lambda *x, dim=0: torch.stack(x, dim),
    "einsum": lambda *x, equation: torch.einsum(equation, *x),
    "block_diag": torch.block_diag,
    "split": lambda x, size=None, sizes=None, dim=0: torch.split(x, sizes or size, dim),
    "chunk": torch.chunk,
    "multi_dot": lambda *x: torch.linalg.multi_dot(x),
    "dropout": lambda x, p=0.5, training=True: F.dropout(x, p, bool(training)),
    "alpha_dropout": lambda x, p=0.5, training=True: F.alpha_dropout(x, p, bool(training)),
    "feature_alpha_dropout": lambda x, p=0.5, training=True: F.feature_alpha_dropout(x, p, bool(training)),
    "slice": lambda x, dim=0, start=0, end=2**62, step=1: torch.ops.aten.slice(x, dim, start, end, step),
    "pow_scalar": lambda x, c=2.0: torch.pow(x, c),
    "rpow_scalar": lambda x, c=2.0: torch.pow(c, x),
    "layer_norm": lambda x, w=None, b=None, normalized_shape=None, eps=1e-5: F.layer_norm(
        x, normalized_shape or (w.shape if w is not None else x.shape[-1:]), w, b, eps
    ),
    "rms_norm": lambda x, w=None, normalized_shape=None, eps=None: F.rms_norm(
        x, normalized_shape or (w.shape if w is not None else x.shape[-1:]), w, eps
    ),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "index": lambda x, *i: x[tuple(slice(None) if t is None else t for t in i)],
    "index_put": lambda x, v, *i, accumulate=False: x.index_put(i, v, bool(accumulate)),
    "median_dim": lambda x, dim=-1, keepdim=False: torch.median(x, dim, bool(keepdim)),
    "max_dim": lambda x, dim=-1, keepdim=False: torch.max(x, dim, bool(keepdim)),
    "min_dim": lambda x, dim=-1, keepdim=False: torch.min(x, dim, bool(keepdim)),
    "embedding_bag": lambda i, w, o=None, s=None, mode="mean", **p: F.embedding_bag(
        i, w, o, mode=mode, per_sample_weights=s, **p
    ),
    "lstm_cell": lambda x, h, c, *w: torch.lstm_cell(x, (h, c), *w),
    "lstm": lstm_like(torch.lstm, 2),
    "gru": lstm_like(torch.gru, 1),
    "rnn_tanh": lstm_like(torch.rnn_tanh, 1),
    "rnn_relu": lstm_like(torch.rnn_relu, 1),
    "count_nonzero": lambda x, dims=None, dim=None, keepdim=False: torch.count_nonzero(x, dims or dim),
    "renorm": lambda x, p=2, dim=0, maxnorm=1.0: torch.renorm(x, p, dim, maxnorm),
    "tensordot": lambda a, b, dims=2, dims_a=None, dims_b=None: torch.tensordot(
        a, b, (dims_a, dims_b) if dims_a else dims
    ),
    "linalg_matrix_norm": lambda x, ord="fro", dim1=-2, dim2=-1, keepdim=False: torch.linalg.matrix_norm(
        x, ord, (dim1, dim2), bool(keepdim)
    ),
    "to": lambda x, dtype=0: x.to(list(TYPES.values())[dtype]),
    "cross_entropy_probabilities": F.cross_entropy,
    "normal_log_prob": lambda x, m, s: torch.distributions.Normal(m, s, False).log_prob(x),
    "normal_entropy": lambda s: torch.distributions.Normal(s, s, False).entropy(),
    "bernoulli_log_prob": lambda l, x: torch.distributions.Bernoulli(
        logits=l, validate_args=False
    ).log_prob(x),
    "bernoulli_entropy": lambda l: torch.distributions.Bernoulli(logits=l, validate_args=False).entropy(),
    "categorical_log_prob": lambda l, i: torch.distributions.Categorical(
        logits=l, validate_args=False
    ).log_prob(i),
    "categorical_entropy": lambda l: torch.distributions.Categorical(logits=l, validate_args=False).entropy(),
    "repeat_interleave_tensor": lambda x, r, dim=None: torch.repeat_interleave(x, r, dim),
    "batch_norm": lambda x, w, b, *r, **p: F.batch_norm(x, None, None, w, b, True),
    "prelu": F.prelu,
    "flatten": torch.flatten,
    "pdist": F.pdist,
    "median": lambda x, dim=None, keepdim=False: x.median() if dim is None else x.median(dim, bool(keepdim)),
    "binary_cross_entropy_elements": lambda x, t: F.binary_cross_entropy(x, t, reduction="none"),
}


for bits in ("and", "or", "xor", "left_shift", "right_shift"):
    CALLS[f"bitwise_{bits}_scalar"] = lambda x, c=1, f=getattr(torch, "bitwise_" + bits): f(x, int(c))


def named(name):
    """The function of a dotted name, or of one of the rooms that PyTorch has."""
    for room in (torch, F, torch.Tensor, torch.linalg, torch.special, torch.ops.aten):
        f = room
        for part in name.split("."):
            f = getattr(f, part, None)
        if f is not None:
            return f
    return None


def shape_of(y):
    while isinstance(y, (tuple, list)):
        y = y[0]
    return list(y.shape)


def torch_call(op, spec, x):
    """A call of PyTorch's that gives a result of our shape, or None."""
    p = options(spec["params"])
    name = spec["torch"]
    flags = {k: bool(v) if k in ("keepdim", "training", "upper") else v for k, v in p.items()}
    renamed = {RENAMED.get(k, k): v for k, v in flags.items()}
    absent = [t for t in x if t is not None]
    ways = []
    if op in CALLS:
        ways += [lambda f: f(*x, **p), lambda f: f(*absent, **p)]
    ways += [
        lambda f: f(*x, **renamed),
        lambda f: f(*absent, **renamed),
        lambda f: f(*x, **flags),
        lambda f: f(*x, **dtype_of(flags)),
        lambda f: f(*x, *flags.values()),
        lambda f: f(*absent, *flags.values()),
    ]
    candidates = [CALLS.get(op), named(name), named(name.rsplit("_", 1)[0]), named(op)]
    for f in candidates:
        for way in ways if f is not None else ():
            try:
                if shape_of(way(f)) == spec["result"]:
                    return lambda: way(f)
            except Exception:
                pass
    return None


def made(spec):
    if spec is None:
        return None
    dtype, shape = TYPES[spec["dtype"]], spec["shape"]
    if dtype.is_floating_point:
        t = torch.empty(shape).uniform_(spec["lo"], spec["hi"]).to(dtype)
        return t.requires_grad_(spec["grad"])
    return torch.randint(int(spec["lo"]), int(spec["hi"]) + 1, shape).to(dtype)


# ---- measuring ----------------------------------------------------------------------------------
program = subprocess.Popen(
    [sys.argv[1], str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
)


def ask(line):
    program.stdin.write(line + "\n")
    program.stdin.flush()
    answer = program.stdout.readline()
    if not answer:
        sys.exit(f"{sys.argv[1]} ended at: {line}")
    return json.loads(answer)


def theirs(call):
    t = time.perf_counter()
    call()
    first = time.perf_counter() - t
    n = int(SECONDS / max(first, 1e-7)) + 1
    t = time.perf_counter()
    for i in range(n):
        call()
        if first > SECONDS and i:
            break
    return (time.perf_counter() - t) / (i + 1) * 1e9


def compared(call, backward):
    """(ratio, ours in ns) - medians over the pairs."""
    ratios, ours = [], []
    for k in range(ROUNDS):
        a, b = theirs(call), ask(f"time {backward} {SECONDS}").get("ns")
        if b is None:
            return None
        ratios.append(a / b)
        ours.append(b)
        if k == 2 and (a + b) * ROUNDS > 4e9:
            break
    return statistics.median(ratios), statistics.median(ours)


def roots_of(y):
    return [t for t in (y if isinstance(y, (tuple, list)) else [y]) if getattr(t, "requires_grad", False)]


def with_gradients(call, x):
    roots = roots_of(call())
    wanted = [t for t in x if t is not None and t.requires_grad]
    if not roots or not wanted:
        return None
    v = [torch.randn_like(t) for t in roots]

    def both():
        torch.autograd.grad(roots_of(call()), wanted, v, allow_unused=True)

    both()
    return both


def measured(op, elements, rank):
    """{"fwd": (ratio, ns), "both": ...} of one sample; a text where there is none."""
    spec = ask(f"take {op} {elements} {DTYPE} {SEED} {rank}")
    if not spec:
        return "no sample grows so far"
    x = [made(s) for s in spec["inputs"]]
    torch.manual_seed(0)
    call = torch_call(op, spec, x)
    if not call:
        return f"PyTorch's call of {spec['torch']} is unknown"
    shapes = ",".join("x".join(map(str, s["shape"])) if s else "-" for s in spec["inputs"])
    found = {"sample": shapes + (" {%s}" % spec["params"] if spec["params"] else "")}

    def forward():
        with torch.no_grad():
            return call()

    with torch.no_grad():
        found["fwd"] = compared(call, 0)
    if spec["backward"]:
        try:
            both = with_gradients(call, x)
        except Exception:
            both = None
        found["both"] = compared(both, 1) if both else None
    return found


def all_ops(lines, left_out, figures):
    for op in [o for o in ask("ops") if CHOSEN.fullmatch(o)]:
        cells, why = {}, ""
        for elements in ELEMENTS:
            for rank in range(SAMPLES):
                try:
                    found = measured(op, elements, rank)
                except Exception as e:
                    found = f"PyTorch: {type(e).__name__} {str(e)[:60]}"
                if isinstance(found, str):
                    why = found
                    continue
                for kind in ("fwd", "both"):
                    if found.get(kind):
                        ratio, ns = found[kind]
                        figures.append([op, elements, kind, found["sample"], round(ratio, 3), round(ns)])
                        if (elements, kind) not in cells or ratio < cells[elements, kind][0]:
                            cells[elements, kind] = (ratio, ns, found["sample"])
        if not cells:
            left_out[op] = why
            continue
        lines.append((min(c[0] for c in cells.values()), op, cells))
        if sys.stderr.isatty():
            print(f"{len(lines)} {op}", file=sys.stderr, flush=True)


def main():
    torch.set_num_threads(THREADS)
    lines, left_out, figures = [], {}, []
    try:
        all_ops(lines, left_out, figures)
    except KeyboardInterrupt:
        print("interrupted: these ops are done")
    report(sorted(lines, key=lambda l: l[0]), left_out, figures)


def machine():
    try:
        return re.search("model name\\s*: (.*)", open("/proc/cpuinfo").read()).group(1)
    except (OSError, AttributeError):
        return platform.machine()


def report(lines, left_out, figures):
    about = (
        f"{machine()}, ISA {setting('TAPEGRAD_ISA', 'best')}, {time.strftime('%Y-%m-%d')}, "
        f"torch {torch.__version__}, {DTYPE}, {THREADS} thread{'s' * (THREADS > 1)}, "
        f"{ROUNDS} pairs of {SECONDS} s" + (f", SHAPES=random SEED={SEED}" if SEED else "")
    )
    print(about + "; PyTorch's time / ours, at so many elements")
    heads = [(e, k) for e in ELEMENTS for k in ("fwd", "both")]
    print(f"{'op':32}" + "".join(f"{e:.0e}".replace("e+0", "e").rjust(6) + f" {k:4}" for e, k in heads))
    for worst, op, cells in lines:
        row = "".join(f"{cells[h][0]:11.2f}" if h in cells else " " * 10 + "-" for h in heads)
        print(f"{op:32}{row}   {cells[min(cells, key=lambda h: cells[h][0])][2]}")
    below = sum(l[0] < 1 for l in lines)
    cells = [c[0] for l in lines for c in l[2].values()]
    print(
        f"ops with a figure below 1.0: {below} of {len(lines)} ({100 * below / max(len(lines), 1):.0f} %); "
        f"figures below 1.0: {sum(c < 1 for c in cells)} of {len(cells)}"
    )
    if left_out:
        print(f"not compared: {len(left_out)}: " + "; ".join(f"{o} ({w})" for o, w in left_out.items()))
    if setting("JSON"):
        with open(setting("JSON"), "w") as file:
            json.dump({"about": about, "figures": figures, "left_out": left_out}, file, indent=0)


main()
