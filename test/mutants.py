"""mutants.py N SEED - how good the suites are: N small mistakes at random places of the sources, one at a
time, each with the suites that may find it (`make mutants N=200 SEED=1`; not part of `make test`).

Works in build/mutants, a copy of the tree; the tree itself is not touched.  The copy is one shared library
that hides nothing, for one instruction set, so a mutant costs one file and one link.  First each suite runs
without a mutant: it must pass; its seconds are kept, and which functions it enters (test/mutants/entered.c).
A mutant of a function then runs those suites alone that enter it.  A mutant that does not compile, or
compiles to the same code there or in the library as it is installed, is drawn again.  In the end those that
survived meet the slower suites: the near ones under AddressSanitizer, and the emulated device.  What came of
mutant i is kept in build/mutants/SEED.jsonl: a run that was cut off goes on where it was.
"""

import collections
import difflib
import functools
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
BUILT = ["src", "nn", "optim", "train"]
FOLDER, TREE = "build/mutants", "build/mutants/tree"
SECONDS = f"{FOLDER}/seconds.json"
LIBRARY, LIBRARY_ASAN = "build/libtapegrad.so.0.1", "build/asan/libtapegrad.so.0.1"
LIBRARY_TRACED = "build/traced/libtapegrad.so.0.1"
CCACHE = "ccache " if shutil.which("ccache") else ""
INSTALLED = ["make", "-s", "-j2", f"CC={CCACHE}gcc", f"CLANGXX={CCACHE}clang++"]
QUICK = [
    *INSTALLED,
    *("ISAS=avx2" if os.uname().machine == "x86_64" else "ISAS=base", "OPT=-O1 -g1", "FAST=-O1"),
    r"LDFLAGS=-Wl,-rpath,\$$ORIGIN/.. " + ("-fuse-ld=lld" if shutil.which("ld.lld") else ""),
]
SEE = "-fvisibility=default -DSEE_HIDDEN"  # src/hidden.h
BOUNDS = f"{SEE} -fsanitize=bounds -fsanitize-undefined-trap-on-error"
ASAN = f"{SEE} -fsanitize=address,undefined -fno-sanitize-recover=all -DNO_UNROLL"
BUILD = [*QUICK, f"SAN={BOUNDS}", f"SEEN={LIBRARY}"]
BUILD_TRACED = [*QUICK, f"SAN={BOUNDS} -finstrument-functions", "B=build/traced"]
BUILD_ASAN = [*QUICK, f"SAN={ASAN}", "B=build/asan", f"SEEN={LIBRARY_ASAN}"]
EARLY = ["test_ops", "test_ops_grad", "test_tape", "test_golden"]  # every op passes through these
# Not run: suites of src/cpu, which is not mutated, and one that needs a GPU.  Run for survivors alone: SLOW.
ELSEWHERE = {"test_gemm", "test_vecmath", "test_cuda"}
EMULATED = [path.stem for path in pathlib.Path("test/cuda").glob("test_*.c") if path.stem not in ELSEWHERE]
ON_EMU = ["emu/test_golden", "emu/test_ops"]  # as CI runs them there
SLOW = ["test_faults", "test_resume", "test_accuracy", "test_ops_memory", "test_ops_threads"]
SLOW += [*EMULATED, *ON_EMU]
# Leaks are found by LeakSanitizer, preloaded.  These suites bring a malloc of their own, or fork, and hang.
LEAK_CHECKER = subprocess.check_output(["gcc", "-print-file-name=liblsan.so"], text=True).strip()
NO_LEAK_CHECK = {"test_nn_memory", "test_fork", *EMULATED}

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


OF_DECLARATION = "static|const|unsigned|struct|_Thread_local|THREAD_LOCAL"
DECLARATION = r"\s+(?!return|else|case|goto)(?:(?:%s) )*\w+ \**\w+" % OF_DECLARATION


def is_length(before):
    """Of an array that is declared; not an index in what another is set to."""
    declares = re.match(DECLARATION, before) and before.count("(") == before.count(")")
    return declares and re.search(r"(?:\w |, |\*)\w+\[$", before)


def other_number(match):
    """Off by one; a fraction grows by half.  An array's length shrinks: a longer one is no mistake."""
    text = match.group(0)
    if is_length(match.string[: match.start()]):
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
    """All the lines that this one may become: code only, not what stands in strings and comments.  How much
    a capacity grows by is no matter."""
    if re.search(r" = ([\w.>*-]+) \? 2 \* \1 : \w+;$", line):
        return []
    code = re.sub(
        r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?(?:\*/|$)|//.*', lambda m: "\0" * len(m.group(0)), line
    )
    found = []
    for pattern, to in SWAPS:
        found += [line[: m.start()] + to + line[m.end() :] for m in re.finditer(pattern, code)]
    for m in re.finditer(r"(?<![\w.\"])(?:\d+\.\d*|\d+)(?![\w.])", code):
        if line[: m.start()].strip() != "return -":  # 0 is drawn below
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


def need(*targets, build=BUILD):
    if not make(*targets, build=build):
        sys.exit(f"mutants: the tree does not build: {FOLDER}/make.log")


def make_traced():
    """The library without a mutant, with entered.c: the objects that may be mutated are compiled again."""
    built = f"{TREE}/build"
    traced = [os.path.relpath(path, TREE)[:-2] + ".o" for path in sources()]
    paths = [path for room in BUILT for path in pathlib.Path(built, room).rglob("*.o")]
    others = sorted({os.path.relpath(path, built) for path in paths} - set(traced))
    objects = [f"build/traced/{name}" for name in [*traced, "test/mutants/entered.o"]]
    objects += [f"build/{o}" for o in others if os.path.exists(f"{TREE}/{o.partition('.')[0]}.c")]
    need(LIBRARY_TRACED, f"OBJECTS={' '.join(objects)}", build=BUILD_TRACED)


def program(suite):
    where, _, name = suite.rpartition("/")
    return os.path.join("build", "asan" if where == "asan" else "", "test", name)


def start(suite, scratch, spent):
    """A suite that eats memory, disk or time fails.  Where `spent` is not known yet, there is no mutant."""
    where, _, name = suite.rpartition("/")

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (20 + int(5 * (spent or 200)),) * 2)
        if where != "asan":
            resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    env = dict(os.environ, TMPDIR=scratch, CUEMU_ORDER="fwd")
    if where == "asan":  # its shadow memory is data, too
        env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":hard_rss_limit_mb=8192"
    if where == "emu":
        env["TAPEGRAD_TEST_DEVICE"] = "emu:0"
    if not spent:
        env["LD_LIBRARY_PATH"] = "build/asan/plain" if where == "asan" else "build/traced"
        env["ENTERED"] = os.path.join(scratch, where + name)
        open(env["ENTERED"], "w").close()
        os.chmod(env["ENTERED"], 0o666)
    if not where and name not in NO_LEAK_CHECK:
        env.update(LD_PRELOAD=LEAK_CHECKER, LSAN_OPTIONS="allocator_may_return_null=1")
    out = open(os.path.join(FOLDER, f"{where}{name}.log"), "w")
    return subprocess.Popen(program(suite), cwd=TREE, env=env, stdout=out, stderr=out, preexec_fn=limits)


def first_to_fail(suites, known):
    """Two suites at a time, until one fails; None if all pass."""
    scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    os.chmod(scratch.name, 0o755)  # a suite of root is nobody for a while
    seconds, were = known["seconds"], len(known["seconds"])
    waiting, running, failed = list(suites), [], None
    while (waiting or running) and not failed:
        while waiting and len(running) < 2:
            suite = waiting.pop(0)
            running.append((suite, start(suite, scratch.name, seconds.get(suite)), time.time()))
        time.sleep(0.01)
        for suite, process, began in list(running):
            late = time.time() - began > 60 + 10 * seconds.get(suite, 100)
            if process.poll() is None and not late:
                continue
            running.remove((suite, process, began))
            if process.returncode != 0:
                process.kill()
                failed = suite + (" (too long)" if late else "")
            elif suite not in seconds:
                seconds[suite] = time.time() - began
                if "asan/" not in suite:
                    marks = open(os.path.join(scratch.name, suite.replace("/", "")), "rb").read()
                    known["entered"][suite] = [m.start() for m in re.finditer(b"\1", marks)]
    for _, process, _ in running:
        process.kill()
        process.wait()
    scratch.cleanup()
    if len(seconds) > were:
        with open(SECONDS, "w") as f:
            json.dump(known, f)
    if failed and failed.split(" (")[0] not in seconds:
        sys.exit(f"mutants: {failed} fails without a mutant: its .log in {FOLDER}")
    return failed


def run_without_mutant(suites, known):
    first_to_fail([s for s in suites if s not in known["seconds"]], known)


# ---- the suites that enter a function ------------------------------------------------------------------


@functools.cache
def definitions(name):
    """Of each line of a source, 0 first: where its definition begins, and is it a function's body?"""
    begin, body, of = 0, False, [(0, False)]
    for number, line in enumerate(open(os.path.join(TREE, name)).read().split("\n"), 1):
        if re.match(r"\w(?!\w*:$)", line):
            begin, body = number, False
        body = (body or line.startswith("{")) and not line.startswith("}")
        of.append((begin, body))
    return of


@functools.cache
def functions():
    """(file, line where its definition begins) of each function, by its offset in the traced library."""
    library = os.path.join(TREE, LIBRARY_TRACED)
    symbols = subprocess.check_output(["nm", "--defined-only", library], text=True).split("\n")
    at = [line.split()[0] for line in symbols if re.match(r"\w+ [tT] ", line)]
    lines = subprocess.check_output(["addr2line", "-e", library], input="\n".join(at), text=True).split("\n")
    names, found = {os.path.relpath(path, TREE) for path in sources()}, {}
    for offset, line in zip(at, lines):
        path, _, number = line.partition(" ")[0].rpartition(":")
        parts = path.split("/")
        name = next((n for n in ("/".join(parts[i:]) for i in range(len(parts))) if n in names), None)
        if name and number.isdigit() and int(number) < len(definitions(name)):
            found[int(offset, 16)] = (name, definitions(name)[int(number)][0])
    return found


def entering(suites, mutant, known):
    """Those of the suites that enter the mutant's function; all, where it stands in none."""
    begin, body = definitions(mutant["file"])[mutant["line"]]
    offsets = {o for o, place in functions().items() if place == (mutant["file"], begin)}
    if not body or not offsets:
        return suites
    return [s for s in suites if offsets & set(known["entered"][s.removeprefix("asan/")])]


def copied(name):
    """A file as it is in the copy: every symbol is visible there, so that suites reach them all."""
    return b"{ global: *; };\n" if name == "src/export.map" else open(name, "rb").read()


def copy_tree():
    """True where one changed that suites are made of; the others keep their times: little is built again."""
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
            changed |= name.startswith((*BUILT, "include", "test", "Makefile", "mk")) and name[-3:] != ".py"
    return changed


def in_order(name, seconds):
    """The suites of the file's room and name first, then those of all ops, then the others by their seconds;
    the slow ones; the near ones under AddressSanitizer.  No op calls what lies above src/op."""
    words = set(re.split(r"[/_.]", name))
    above = name.startswith(("nn/", "optim/", "train/", "src/io/"))
    rooms = {path.stem: path.parent.name for path in pathlib.Path(TREE).glob("test/*/test_*.c")}
    rooms |= {suite: "op" for suite in ON_EMU}

    def rank(suite):
        spent = seconds.get(suite, 1)
        near = spent < 5 and (rooms[suite] in words or words & set(suite.split("_")[1:]))
        return 0 if near else 1 if suite in EARLY else 2, spent

    order = [s for s in sorted(rooms, key=rank) if s not in ELSEWHERE]
    order = [s for s in order if not (above and rooms[s] in ("op", "cpu"))]
    quick = [s for s in order if s not in SLOW]
    near = [f"asan/{s}" for s in quick if rank(s)[0] == 0 and s not in NO_LEAK_CHECK]
    return quick, [s for s in order if s in SLOW], near


def code_of(path, text=None):
    """What was compiled, without the lines that it stands on; of a text, as in the installed library."""
    name, stripped = os.path.relpath(path, TREE)[:-2] + ".o", os.path.join(FOLDER, "stripped.o")
    folder = "build/installed" if text else "build"
    if text:
        open(path, "w").write(text)
        make(f"{folder}/{name}", build=[*INSTALLED, f"B={folder}"])
    subprocess.run(["strip", "-g", "-o", stripped, os.path.join(TREE, folder, name)], check=True)
    return open(stripped, "rb").read()


# ---- one mutant ----------------------------------------------------------------------------------------


def texts(mutant):
    path = os.path.join(TREE, mutant["file"])
    before = open(path).read()
    lines = before.split("\n")
    lines[mutant["line"] - 1] = mutant["new"]
    return path, before, "\n".join(lines)


def judge(mutant, known):
    suites = entering(in_order(mutant["file"], known["seconds"])[0], mutant, known)
    path, before, after = texts(mutant)
    diff = difflib.unified_diff(
        before.split("\n"), after.split("\n"), *[mutant["file"]] * 2, lineterm="", n=2
    )
    result = dict(mutant, diff="\n".join(diff), by="", met="quick")
    compiled = os.path.join(TREE, "build", mutant["file"][:-2] + ".o")
    was, kept = code_of(path), open(compiled, "rb").read()
    try:
        open(path, "w").write(after)
        if not make(LIBRARY):
            return dict(result, fate="uncompilable")
        if code_of(path) == was:
            return dict(result, fate="same code")
        failed = first_to_fail(suites, known)
        if failed:
            return dict(result, fate="killed", by=failed)
        same = code_of(path, before) == code_of(path, after)
        return dict(result, fate="same code" if same else "survived")
    finally:
        open(path, "w").write(before)
        open(compiled, "wb").write(kept)


def judge_survivor(mutant, known):
    """By the slower suites, then by the near ones under AddressSanitizer."""
    _, slow, asan = in_order(mutant["file"], known["seconds"])
    need(*{program(s) for s in slow})
    run_without_mutant(slow, known)
    for library, build, suites in (LIBRARY, BUILD, slow), (LIBRARY_ASAN, BUILD_ASAN, asan):
        suites = entering(suites, mutant, known)
        if not suites:
            continue
        need(library, build=build)
        need(*{program(s) for s in suites}, build=build)
        if library == LIBRARY_ASAN:
            os.makedirs(f"{TREE}/build/asan/plain", exist_ok=True)
            shutil.copy(f"{TREE}/{library}", f"{TREE}/build/asan/plain")
        path, before, after = texts(mutant)
        try:
            open(path, "w").write(after)
            failed = first_to_fail(suites, known) if make(library, build=build) else "the compiler"
        finally:
            open(path, "w").write(before)
        if failed:
            return dict(mutant, fate="killed", by=failed, met="slow")
    return dict(mutant, met="slow")


def main():
    wanted, seed = int(sys.argv[1]), int(sys.argv[2])
    os.makedirs(TREE, exist_ok=True)
    if copy_tree() and os.path.exists(SECONDS):
        os.remove(SECONDS)
    need(LIBRARY)
    need("tests")
    make_traced()
    known = json.load(open(SECONDS)) if os.path.exists(SECONDS) else {"seconds": {}, "entered": {}}
    run_without_mutant(in_order("src/op", known["seconds"])[0], known)
    kept = os.path.join(FOLDER, f"{seed}.jsonl")
    done = [json.loads(line) for line in open(kept)] if os.path.exists(kept) else []

    def tell(i):
        with open(kept, "w") as f:
            f.write("".join(json.dumps(d) + "\n" for d in done))
        print("{0:4} {fate:12} {file}:{line} {by}".format(i + 1, **done[i]), flush=True)

    everywhere = [place for place in places() if mutations(place[2])]
    while sum(d["fate"] in ("killed", "survived") for d in done) < wanted:
        draw = random.Random(f"{seed}:{len(done)}")
        path, number, line = draw.choice(everywhere)
        mutant = {
            "file": os.path.relpath(path, TREE),
            "line": number + 1,
            "new": draw.choice(mutations(line)),
        }
        done.append(judge(mutant, known))
        tell(len(done) - 1)
    for i, d in enumerate(done):
        if d["fate"] == "survived" and d["met"] == "quick":
            done[i] = judge_survivor(d, known)
            tell(i)
    report(done)


def report(done):
    for d in done:
        print(f"\n{d['diff']}" if d["fate"] == "survived" else "", end="")
    count = collections.Counter(d["fate"] for d in done)
    valid = count["killed"] + count["survived"]
    print(f"\n{count['uncompilable']} did not compile, {count['same code']} changed nothing")
    print(f"{count['killed']} of {valid} killed ({100 * count['killed'] / max(valid, 1):.1f} %)")


main()
