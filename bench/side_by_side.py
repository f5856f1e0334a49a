#!/usr/bin/env python3
"""side_by_side.py BENCH THREADS... - the same cases here and in PyTorch, in turn, in one run.

Both sides are processes that have set the case up and wait (bench.c, torch_worker.py). Each round measures
each form of PyTorch, then ours, so that what disturbs the machine disturbs all; the form of the least
median counts. The ratio is the median over the rounds, with the least and the greatest; above 1, ours is
faster. "ceiling": the share of what the machine can do at most, measured at the start of the run: multiply-
adds in registers (products, convolutions, networks, by the operations that PyTorch counts), copies of as
many bytes (elementwise ops). "memory": by how much the peak of memory grew, ours and as a share of
PyTorch's. "compiled": the ratio to torch.compile, where that was measured.

CASES=regex chooses, ROUNDS and SECONDS say how long, FORMS="eager" leaves out torch.compile and
channels_last, JSON=path writes the table as JSON, with the machine, the versions, the load and the time of
each form; --names lists the cases.  AVX2=1 measures each case a
second time with the vectors of both sides limited to AVX2, for a column of its ratios.
CLOCK=cpu measures the CPU's time instead of the clock's, for one thread on a machine that does other work.
CLOCK=issue: until a block is queued on a device, without the wait for it.
PYTHON chooses the interpreter that has PyTorch.  DEVICE=cuda:0 measures there, and shares are those of a copy
of as many bytes there; with GRAPH=1 ours are captured and replayed.  ONLY="names" measures these cases, of
any size.
"""

import json, os, platform, re, statistics, subprocess, sys, time

ROUNDS, SECONDS = int(os.environ.get("ROUNDS", "7")), float(os.environ.get("SECONDS", "0.5"))
FORMS = os.environ.get("FORMS", "eager channels_last compiled fused foreach").split()
DEVICE = os.environ.get("DEVICE", "").removeprefix("cpu")
AVX2 = bool(os.environ.get("AVX2"))
LIMITED = dict(
    TAPEGRAD_ISA="avx2",
    ATEN_CPU_CAPABILITY="avx2",
    ONEDNN_MAX_CPU_ISA="AVX2",
    MKL_ENABLE_INSTRUCTIONS="AVX2",
)
MAY_FAIL = "graph", "reduced"  # what PyTorch cannot capture
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_worker.py")

STEPS = "mlp mnist_cnn resnet18 nanogpt lstm".split()
PRODUCTS = """256x256x256_NN 1024x1024x1024_NN 64x256x784_NT 256x784x64_TN 64x10x128_NT 64x128x9216_NT
    768x384x128_NT 768x128x512_NT 512x128x768_TN 768x65x128_NT 32x1024x256_NT 1024x256x1024_TN
    8192x1536x384_NT 64x64x32768_TN""".split()
CONVS = "32x64x32_64_3_1 32x128x32_128_3_2 32x256x8_256_3_1 64x1x28_32_3_1 64x64x16_128_4_2".split()
MAPS = "add relu exponential gelu tangent softmax layer_norm sum sum_columns".split()
names = [f"{n}_step" for n in STEPS + ["dcgan", "vae", "gpt2_block"]] + [
    f"{n}_inference" for n in STEPS
]
names += [f"{n}_bf16_step" for n in ("mnist_cnn", "resnet18", "nanogpt")]
names += [f"product_{p}" for p in PRODUCTS + [f"medium_{p}" for p in PRODUCTS[1::5]]]
names += [f"conv_{which}_{c}" for c in CONVS for which in ("forward", "dx", "dw")]
names += [f"attention_{w}_{s}" for s in ("12x4x64x32", "2x12x256x64") for w in ("forward", "both")]
names += [f"{n}_layer_both" for n in ("lstm", "gru", "rnn")]
names += [
    f"{m}_{w}_{n}" for n in (4 << 10, 4 << 20, 64 << 20) for m in MAPS for w in ("forward", "both")
]
names += "sum_middle_100x100x100 cumsum_100k sort_100k lgamma_100k chain20_forward chain20_both".split()
names += "adamw_1 adamw_150 adamw_10000 clip_norm_150 clip_norm_scaling_150 clip_norm_10000".split()
names += "state_dict_write state_dict_read loader_batch".split()
OWN = "profiler_never profiler_off_again profiler_on".split()


class Worker:
    """A process that waits until it is told to measure."""

    def __init__(self, command, threads, limits):
        quiet = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", **limits)
        command = command + [str(threads)]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process = subprocess.Popen(command, env=quiet, **pipes)
        self.ready = self.process.stdout.readline().split()
        self.memory = 0
        if not self.ready and command[-2] not in MAY_FAIL:
            sys.exit(f"{' '.join(command)}: failed")

    def measure(self, seconds=SECONDS):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        ns, kilobytes = self.process.stdout.readline().split()
        self.memory = int(kilobytes)
        return float(ns)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours(name, threads, limits={}):
    return Worker([bench, name], threads, limits)


def theirs(name, threads, limits):
    """PyTorch's forms that apply to the case, and the operations of a block."""
    forms = {form: Worker([sys.executable, WORKER, name, form], threads, limits) for form in FORMS}
    for form in [form for form, w in forms.items() if w.ready[:1] in ([], ["none"])]:
        forms.pop(form).close()
    if not forms:
        sys.exit(f"{name}: none of the forms {FORMS} applies")
    return forms, max(float(w.ready[1]) for w in forms.values())


MOVED = dict(add=3, sum=1, cross_entropy=1, adamw=7)  # times the bytes of an operand; 2


def device_copy(size):
    """Bytes a second, read and written, of copies on the device."""
    worker = ours(f"copy_forward_{size}", 1)
    ns = statistics.median(worker.measure() for _ in range(3))
    worker.close()
    return 2 * size / (ns * 1e-9)


def share(name, threads, ns, flops, ceiling):
    """Of the ceiling: of copies for an elementwise forward, of multiply-adds where PyTorch counts them."""
    maps = "add|relu|exponential|gelu|tangent|softmax|layer_norm"
    size = re.fullmatch(rf"({maps}|sum|cross_entropy|adamw)_(?:forward|update)_(\d+)", name)
    if size and (DEVICE or size[1] in maps.split("|")):
        bytes_of = int(size[2])
        if bytes_of not in ceiling["copy"]:
            ceiling["copy"][bytes_of] = device_copy(bytes_of)
        return bytes_of * MOVED.get(size[1], 2) / (ns * 1e-9) / ceiling["copy"][bytes_of]
    # The ceiling is that of f32 on the CPU.
    counted = flops and "_bf16_" not in name and not DEVICE
    return flops / (ns * 1e-9) / (ceiling["flops"] * threads) if counted else None


def measure(name, threads, ceiling, limits={}):
    forms, flops = theirs(name, threads, limits)
    us = ours(name, threads, limits)
    a, b = {form: [] for form in forms}, []
    for _ in range(ROUNDS):
        for form, them in forms.items():
            a[form].append(them.measure())
        b.append(us.measure())
    form = min(forms, key=lambda f: statistics.median(a[f]))
    for worker in [us, *forms.values()]:
        worker.close()
    ratios = [p / q for p, q in zip(a[form], b)]
    row = dict(case=name, threads=threads, form=form, torch_ns=statistics.median(a[form]))
    row.update(tapegrad_ns=statistics.median(b), ratio=statistics.median(ratios))
    row.update(least=min(ratios), most=max(ratios))
    row.update(ceiling=share(name, threads, statistics.median(b), flops, ceiling))
    row.update(torch_forms_ns={f: statistics.median(times) for f, times in a.items()})
    if "compiled" in a:
        row.update(compiled=statistics.median(p / q for p, q in zip(a["compiled"], b)))
    return dict(row, memory_kb=us.memory, torch_memory_kb=forms[form].memory)


def line(r):
    of = f"{100 * r['ceiling']:4.0f} %" if r["ceiling"] else "     -"
    memory = f"{r['memory_kb'] / 1024:8.1f} {r['memory_kb'] / max(1, r['torch_memory_kb']):6.2f}"
    times = f"{r['torch_ns'] / 1e3:12.2f} {r['tapegrad_ns'] / 1e3:12.2f} {r['ratio']:7.2f}"
    compiled = f"{r['compiled']:8.2f}" if "compiled" in r else "       -"
    avx2 = f" {r['avx2']:6.2f}" if AVX2 else ""
    start = f"{r['case']:34} {r['threads']:2} {r['form']:13} {times}  ({r['least']:.2f} to {r['most']:.2f})"
    return f"{start} {of} {memory} {compiled}{avx2}"


def own_costs(threads):
    """The profiler's, in turn: never used, off again after use, on."""
    rows = []
    workers = {name: ours(name, threads) for name in OWN}
    found = {name: [] for name in OWN}
    for _ in range(ROUNDS):
        for name, worker in workers.items():
            found[name].append(worker.measure())
    for name, times in found.items():
        over = statistics.median(t / n for t, n in zip(times, found[OWN[0]])) - 1
        rows.append(dict(case=name, threads=threads, tapegrad_ns=statistics.median(times), over=over))
        print(
            f"{name:34} {threads:2} {'ns an op':13} {'':12} {rows[-1]['tapegrad_ns']:12.1f} {100 * over:+6.1f} %",
            flush=True,
        )
    return rows


def main():
    chosen = [n for n in names if re.search(os.environ.get("CASES", ""), n)]
    chosen = os.environ.get("ONLY", "").split() or chosen
    flops, copies = 0, []  # of the CPU
    if not DEVICE:
        found = subprocess.run([bench, "ceiling"], capture_output=True, text=True).stdout
        flops, *copies = map(float, found.split())
    ceiling = dict(flops=flops, copy=dict(zip((4 << 10, 4 << 20, 64 << 20), copies)))
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    machine = dict(cpu=model[1] if model else platform.machine(), device=DEVICE)
    machine.update(date=time.strftime("%Y-%m-%d"), load=os.getloadavg())
    machine["clock"] = os.environ.get("CLOCK", "wall")
    version = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True
    )
    machine.update(
        torch=version.stdout.decode().strip(), ceiling=ceiling, rounds=ROUNDS, seconds=SECONDS
    )
    if not machine["torch"]:
        sys.exit(
            "make bench compares with PyTorch, which this Python lacks: pip install torch, or set PYTHON"
        )
    machine.update(python=platform.python_version(), system=platform.platform())
    print(f"{machine['cpu']}, torch {machine['torch']}, load {machine['load'][0]:.1f}", end="")
    if copies:
        print(f"; at most {flops / 1e9:.0f} GFLOP/s a thread, copies of 4 KiB, 4 MiB, 64 MiB", end=" ")
        print(", ".join(f"{c / 1e9:.0f}" for c in copies), "GB/s (read and written)", end="")
    print()
    print(
        f"{'case':30} threads {'torch':12} {'torch us':>12} {'us':>12} {'ratio':>7}",
        " (range) ceiling memory MB  share compiled",
        "  avx2" * AVX2,
    )
    rows = []
    for name, n in ((name, n) for name in chosen for n in threads):
        rows.append(measure(name, n, ceiling))
        if AVX2:
            rows[-1]["avx2"] = measure(name, n, ceiling, LIMITED)["ratio"]
        print(line(rows[-1]), flush=True)
    if not os.environ.get("ONLY") and re.search(os.environ.get("CASES", ""), "profiler"):
        rows += own_costs(threads[0])
    if os.environ.get("JSON"):
        path = os.environ["JSON"].replace("%", str(threads[0]))
        json.dump(dict(machine=machine, rows=rows), open(path, "w"), indent=1)


if sys.argv[1:] == ["--names"]:
    print("\n".join(names + OWN))
else:
    bench, threads = sys.argv[1], sorted({int(n) for n in sys.argv[2:]})
    main()
