"""mutants.py N SEED - how good the suites are: N small mistakes at random places of the sources, one at a
time, each with the suites that should find it (`make mutants N=200 SEED=1`; not part of `make test`).

Works in build/mutants, a copy of the tree; the tree itself is not touched.  The copy is one shared library
that hides nothing, for one instruction set, so a mutant costs one file and one link.  A mutant that does not
compile, or compiles to the same code there or in the library as it is installed, is drawn again.  One that
survives the suites meets those that are slower: under AddressSanitizer, and on the emulated device.  What
came of mutant i is kept in build/mutants/SEED.jsonl: a run that was cut off goes on where it was.
"""

import difflib
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

FOLDERS = ["src/tensor", "src/autograd", "src/op", "src/random", "src/io", "nn", "optim", "train"]
FOLDER, TREE = "build/mutants", "build/mutants/tree"
LIBRARY, LIBRARY_ASAN = "build/libtapegrad.so.0.1", "build/asan/libtapegrad.so.0.1"
INSTALLED = ["make", "-s", "-j2", "CC=ccache gcc" if shutil.which("ccache") else "CC=gcc"]
QUICK = [
    *INSTALLED,
    *("ISAS=avx2" if os.uname().machine == "x86_64" else "ISAS=base", "OPT=-O1 -g1", "FAST=-O1"),
    r"LDFLAGS=-Wl,-rpath,\$$ORIGIN/.. " + ("-fuse-ld=lld" if shutil.which("ld.lld") else ""),
]
BOUNDS = "-fvisibility=default -fsanitize=bounds -fsanitize-undefined-trap-on-error"
ASAN = "-fvisibility=default -fsanitize=address,undefined -fno-sanitize-recover=all -DNO_UNROLL"
BUILD = [*QUICK, f"SAN={BOUNDS}", f"WHOLE={LIBRARY}"]
BUILD_ASAN = [*QUICK, f"SAN={ASAN}", "B=build/asan", f"WHOLE={LIBRARY_ASAN}"]
EARLY = ["test_ops", "test_ops_grad", "test_tape", "test_golden"]  # every op passes through these
LONG = {"test_ops_memory": ["1/4", "2/4", "3/4", "4/4"]}
# Not run: suites of src/cpu, which is not mutated, and one that needs a GPU.  Run for survivors alone: SLOW.
ELSEWHERE = {"test_gemm", "test_vecmath", "test_cuda"}
SLOW = ["test_queue", "test_list", "test_emu", "test_device", "test_ops_threads", "test_accuracy"]
# Leaks are found by LeakSanitizer, preloaded.  These suites bring a malloc of their own, or fork, and hang.
LEAK_CHECKER = subprocess.check_output(["gcc", "-print-file-name=liblsan.so"], text=True).strip()
NO_LEAK_CHECK = {"test_nn_memory", "test_fork"}

# ---- what a mutant is ----------------------------------------------------------------------------------

SWAPS = [
    (r"(?<![<>=!-])<=(?!=)", "<"),
    (r"(?<![<>=!-])>=(?!=)", ">"),
    (r"(?<= )<(?= )", "<="),
    (r"(?<= )>(?= )", ">="),
    (r"==", "!="),
    (r"!=", "=="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"(?<= )\+(?= )", "-"),
    (r"(?<= )-(?= )", "+"),
    (r"(?<= )\*(?= )", "+"),
    (r"(?<= )/(?= )", "*"),
    (r"\+=", "-="),
    (r"-=", "+="),
    (r"\+\+", "--"),
    (r"(?<![\w!])!(?=[\w(])", ""),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
]


ARRAY = r"\s+(?!return|else|case|goto)(?:(?:static|const|unsigned|struct) )*\w+ \**\w+\[[^=]*"


def other_number(match):
    """Off by one; a fraction grows by half.  An array's length shrinks: a longer one is no mistake."""
    text = match.group(0)
    declared = re.match(ARRAY, match.string)
    if declared and match.start() < declared.end():
        return str(int(text) - 1)
    if re.fullmatch(r"\d+", text):
        return str(int(text) + 1) if text != "1" else "0"
    return f"{float(text) * 1.5!r}" if float(text) else "1.0"


def negated(line):
    found = re.search(r"\b(?:if|while) \(", line)
    depth, begin = 1, found.end() if found else 0
    for at in range(begin, len(line)) if found else ():
        depth += (line[at] == "(") - (line[at] == ")")
        if depth == 0:
            return line[:begin] + "!(" + line[begin:at] + ")" + line[at:]
    return None


def mutations(line):
    """All the lines that this one may become: code only, not what stands in strings and comments."""
    code = re.sub(
        r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?(?:\*/|$)|//.*', lambda m: "\0" * len(m.group(0)), line
    )
    found = []
    for pattern, to in SWAPS:
        found += [line[: m.start()] + to + line[m.end() :] for m in re.finditer(pattern, code)]
    for m in re.finditer(r"(?<![\w.\"])(?:\d+\.\d*|\d+)(?![\w.])", code):
        found.append(line[: m.start()] + other_number(m) + line[m.end() :])
    if negated(code):
        found.append(negated(line))
    if re.match(
        r"\s+(?!(?:return|break|continue|goto|static|const|else|case)\b)"
        r"[\w*>.\[\]()-]+( [-+*/|&]?= |\().*;$",
        code,
    ):
        found.append(re.match(r"\s*", line).group(0) + ";")
    if re.match(r"\s+return (?!0;|NULL;)[^;]+;$", code):
        found.append(re.sub(r"return .*;$", "return 0;", line))
    return [new for new in found if new and new != line]


def sources():
    for folder in FOLDERS:
        for at, _, names in sorted(os.walk(os.path.join(TREE, folder))):
            yield from (os.path.join(at, name) for name in sorted(names) if name.endswith(".c"))


def places():
    """(file, number, line) of the lines with code."""
    for path in sources():
        comment = False
        with open(path) as f:
            for number, line in enumerate(f.read().split("\n")):
                inside = comment
                comment = (comment or "/*" in line) and "*/" not in line[
                    line.rfind("/*") if "/*" in line else 0 :
                ]
                if (
                    not inside
                    and line.startswith(" ")
                    and not line.lstrip().startswith(("/*", "*", "#", "//"))
                ):
                    yield path, number, line


# ---- building and running ------------------------------------------------------------------------------


def make(*targets, build=BUILD):
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    with open(os.path.join(FOLDER, "make.log"), "w") as log:
        done = subprocess.run([*build, *targets], cwd=TREE, env=environment, stdout=log, stderr=log)
    return done.returncode == 0


def start(suite, scratch):
    """A suite that eats memory or disk, or hangs, fails."""

    def limits():
        resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    name, _, part = suite.partition(" ")
    folder, _, name = name.rpartition("/")
    environment = dict(os.environ, TMPDIR=scratch, TAPEGRAD_SHARD=part or "1/1", CUEMU_ORDER="fwd")
    if not is_slow(suite) and name not in NO_LEAK_CHECK:
        environment.update(LD_PRELOAD=LEAK_CHECKER, LSAN_OPTIONS="allocator_may_return_null=1")
    out = open(os.path.join(FOLDER, f"{folder}{name}.log"), "w")
    program = [os.path.join("build", folder, "test", name)]
    return subprocess.Popen(program, cwd=TREE, env=environment, stdout=out, stderr=out, preexec_fn=limits)


def first_to_fail(suites, seconds):
    """Two suites at a time, until one fails; None if all pass."""
    scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    waiting, running, failed = list(suites), [], None
    while (waiting or running) and not failed:
        while waiting and len(running) < 2:
            running.append((waiting[0], start(waiting.pop(0), scratch.name), time.time()))
        time.sleep(0.01)
        for suite, process, began in list(running):
            late = time.time() - began > 20 + 10 * seconds.get(suite, 100)
            if process.poll() is not None:
                running.remove((suite, process, began))
            if process.returncode or late:
                failed = suite + (" (too long)" if late else "")
            elif process.returncode == 0 and suite not in seconds:
                seconds[suite] = time.time() - began
    for _, process, _ in running:
        process.kill()
        process.wait()
    scratch.cleanup()
    return failed


def copied(name):
    """A file as it is in the copy: every symbol is visible there, so that suites reach them all."""
    if name == "src/export.map":
        return b"{ global: *; };\n"
    text = open(name, "rb").read()
    return re.sub(rb'(visibility[ (push]*"?)hidden', rb"\1default", text) if name.endswith(".h") else text


def copy_tree():
    """True where a file changed; the others keep their times, so that little is built again."""
    changed = False
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    names = {name for name in listed.stdout.split("\n") if os.path.isfile(name)}
    for at, folders, files in os.walk(TREE):
        if at == TREE:
            folders[:] = [f for f in folders if f != "build"]
        for path in (os.path.join(at, f) for f in files):
            if os.path.relpath(path, TREE) not in names:
                os.remove(path)
    for name in names:
        to = os.path.join(TREE, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if not os.path.exists(to) or open(to, "rb").read() != copied(name):
            shutil.copy(name, to)
            open(to, "wb").write(copied(name))
            changed = True
    return changed


def baseline(changed):
    """{suite, "suite part" or "asan/suite": (seconds, room)} on the tree as it is; all must pass."""
    slow = [f"build/test/{name}" for name in SLOW]
    asan = make(LIBRARY_ASAN, build=BUILD_ASAN) and make("tests", build=BUILD_ASAN)
    if not (asan and make(LIBRARY) and make("tests", *slow)):
        sys.exit(f"mutants: the tree does not build: {FOLDER}/make.log")
    kept = os.path.join(FOLDER, "seconds.json")
    if not changed and os.path.exists(kept):
        return json.load(open(kept))
    rooms = {}
    for path in pathlib.Path("test").glob("*/test_*.c"):
        for part in LONG.get(path.stem, [""] if path.stem not in ELSEWHERE else []):
            rooms[f"{path.stem} {part}".strip()] = path.parent.name
            if path.stem not in NO_LEAK_CHECK and path.stem not in SLOW:
                rooms[f"asan/{path.stem} {part}".strip()] = path.parent.name
    seconds = {}
    failed = first_to_fail(sorted(rooms, reverse=True), seconds)
    if failed:
        sys.exit(f"mutants: {failed} fails without a mutant: its .log in {FOLDER}")
    suites = {suite: (spent, rooms[suite]) for suite, spent in seconds.items()}
    json.dump(suites, open(kept, "w"))
    return suites


def is_slow(suite):
    return suite.startswith("asan/") or suite in SLOW


def in_order(path, suites):
    """The suites of the file's room and name first, then those of all ops, then the others by their seconds;
    the slow ones last.  No op calls what does not lie in src/op and below it."""
    name = os.path.relpath(path, TREE)
    words = set(re.split(r"[/_.]", name))
    above = name.startswith(("nn/", "optim/", "train/", "src/io/"))

    def rank(suite):
        spent, room = suites[suite]
        near = spent < 5 and (room in words or words & set(re.split("[_ ]", suite)[1:]))
        return is_slow(suite), (0 if near else 1 if suite in EARLY else 2), spent

    return sorted((s for s in suites if not (above and suites[s][1] in ("op", "cpu"))), key=rank)


def code_of(path, folder="build"):
    """What was compiled, without the lines that it stands on."""
    stripped = os.path.join(FOLDER, "stripped.o")
    object_file = os.path.join(folder, os.path.relpath(path, TREE)[:-2] + ".o")
    if folder != "build":
        make(object_file, build=[*INSTALLED, f"B={folder}"])
    subprocess.run(["strip", "-g", "-o", stripped, os.path.join(TREE, object_file)], check=True)
    return hashlib.sha256(open(stripped, "rb").read()).hexdigest()


def same_installed(path, before, after):
    code = []
    for text in (before, after):
        open(path, "w").write(text)
        code.append(code_of(path, "build/installed"))
    return code[0] == code[1]


def fate_of(path, before, after, suites):
    """Fate, and by what; path holds the text `after`."""
    order = in_order(path, suites)
    seconds = {suite: spent for suite, (spent, _) in suites.items()}
    failed = first_to_fail([s for s in order if not is_slow(s)], seconds)
    if failed:
        return "killed", failed
    if same_installed(path, before, after):
        return "same code", ""
    if not make(LIBRARY_ASAN, build=BUILD_ASAN):
        sys.exit(f"mutants: no build for AddressSanitizer: {FOLDER}/make.log")
    failed = first_to_fail([s for s in order if is_slow(s)], seconds)
    return ("killed", failed) if failed else ("survived", "")


# ---- one mutant ----------------------------------------------------------------------------------------


def judge(path, number, new, suites):
    before = open(path).read()
    lines = before.split("\n")
    lines[number] = new
    name = os.path.relpath(path, TREE)
    diff = "\n".join(difflib.unified_diff(before.split("\n"), lines, name, name, lineterm="", n=2))
    was = code_of(path)
    result = {"file": name, "line": number + 1, "diff": diff, "fate": "survived", "by": ""}
    try:
        open(path, "w").write("\n".join(lines))
        if not make(LIBRARY):
            return dict(result, fate="uncompilable")
        if code_of(path) == was:
            return dict(result, fate="same code")
        result["fate"], result["by"] = fate_of(path, before, "\n".join(lines), suites)
        return result
    finally:
        open(path, "w").write(before)
        make(LIBRARY)


def main():
    wanted, seed = int(sys.argv[1]), int(sys.argv[2])
    os.makedirs(TREE, exist_ok=True)
    suites = baseline(copy_tree())
    kept = os.path.join(FOLDER, f"{seed}.jsonl")
    done = [json.loads(line) for line in open(kept)] if os.path.exists(kept) else []
    everywhere = [place for place in places() if mutations(place[2])]
    while sum(d["fate"] in ("killed", "survived") for d in done) < wanted:
        draw = random.Random(f"{seed}:{len(done)}")
        path, number, line = draw.choice(everywhere)
        done.append(judge(path, number, draw.choice(mutations(line)), suites))
        with open(kept, "a") as f:
            f.write(json.dumps(done[-1]) + "\n")
        print("{0:4} {fate:12} {file}:{line} {by}".format(len(done), **done[-1]), flush=True)
    report(done)


def report(done):
    fates = ("killed", "survived", "uncompilable", "same code")
    killed, survived, broken, same = ([d for d in done if d["fate"] == fate] for fate in fates)
    for d in survived:
        print("\n" + d["diff"])
    print(f"\n{len(broken)} did not compile, {len(same)} changed nothing")
    valid = len(killed) + len(survived)
    print(f"{len(killed)} of {valid} killed ({100 * len(killed) / max(valid, 1):.1f} %)")


main()
