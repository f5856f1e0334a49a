#!/usr/bin/env python3
"""ops.py PROGRAM - every op of the registry, here and in PyTorch, in turn; worst first.

    OPS=regex         only ops whose whole name matches
    DTYPE=f32         or f64, bf16, f16, i64: of inputs that may be floats
    THREADS=1         of both sides
    ELEMENTS="1e3 1e5 1e7"    of the largest input
    ROUNDS=5 SECONDS=0.01     pairs of measurements a figure, and the length of each
    AGAIN=6           more pairs of a figure whose median is below 1.0
    SAMPLES=1         so many samples an op, most elements first; the worst one counts
    SHAPES=random SEED=1      any sample, equal sizes multiplied by random factors
    JSON=file         the figures, with the machine and the versions

A figure is the median over the pairs of PyTorch's time over ours: above 1 ours is faster.  "fwd" is the call
where nothing requires a gradient, "both" the call and the gradients of what it returns.  PyTorch's side is
its eager function of the name that the descriptor states, called through Python.  On one thread times are CPU
time.
"""

import json, os, platform, re, statistics, subprocess, sys, time, warnings

os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
warnings.filterwarnings("ignore")
try:
    import torch
except ImportError:
    sys.exit("make bench-ops compares with PyTorch: pip install torch, or set PYTHON")
from torch_calls import TYPES, torch_call

setting = os.environ.get
THREADS, ROUNDS = int(setting("THREADS", "1")), int(setting("ROUNDS", "5"))
SECONDS, DTYPE = float(setting("SECONDS", "0.01")), setting("DTYPE", "f32")
ELEMENTS = [int(float(e)) for e in setting("ELEMENTS", "1e3 1e5 1e7").split()]
AGAIN = int(setting("AGAIN", "6"))
SAMPLES, CHOSEN = int(setting("SAMPLES", "1")), re.compile(setting("OPS", ".*"))
SEED = int(setting("SEED", "1")) if setting("SHAPES") == "random" else 0


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


# On one thread CPU time, on both sides: other work on the machine counts less.
clock = time.process_time if THREADS == 1 else time.perf_counter


def theirs(call):
    t = clock()
    call()
    n = int(SECONDS / max(clock() - t, 1e-7)) + 1
    t = clock()
    for i in range(n):
        call()
    return (clock() - t) / n * 1e9


def compared(call, backward):
    """(ratio, ours in ns) - medians over the pairs; over AGAIN more of them where ours was slower."""
    ratios, ours = [], []
    for k in range(ROUNDS + AGAIN):
        if k == ROUNDS and statistics.median(ratios) >= 1:
            break
        a, b = theirs(call), ask(f"time {backward} {SECONDS}").get("ns")
        if b is None:
            return None
        ratios.append(a / b)
        ours.append(b)
        if k >= 2 and (a + b) * ROUNDS > 4e9:
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
        f"{ROUNDS} pairs of {SECONDS} s, {AGAIN} more below 1.0, "
        f"load {os.getloadavg()[0]:.0f}" + (f", SHAPES=random SEED={SEED}" if SEED else "")
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
