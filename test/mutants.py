"""mutants.py N SEED - how good the suites are: N small mistakes at random places of the sources, one at a
time,
each with the suites that should find it (`make mutants N=200 SEED=1`; not part of `make test`).

Works in build/mutants, a copy of the tree; the tree itself is not touched.  Mutant number i of a seed is
always
the same one, and what came of it is kept in build/mutants/SEED.jsonl: a run that was cut off goes on where it
was.  Mutants that do not compile, or compile to the same code, are drawn again and counted apart.
"""

import concurrent.futures
import difflib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

FOLDERS = ["src/tensor", "src/autograd", "src/op", "src/random", "src/io", "nn", "optim"]
FOLDER, TREE = "build/mutants", "build/mutants/tree"
JOBS = os.cpu_count() or 1
PARTS = {"test_ops_memory": 4, "test_ops_threads": 4, "test_golden": 2, "test_ops_layout": 2}

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


def other_number(match):
    """Off by one; a fraction grows by half."""
    text = match.group(0)
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


def make(*targets):
    command = ["make", "-s", f"-j{JOBS}", "--no-print-directory", *targets]
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    if shutil.which("ccache"):
        command.append("CC=ccache gcc")
    done = subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True)
    with open(os.path.join(FOLDER, "make.log"), "w") as f:
        f.write(done.stdout + done.stderr)
    return done.returncode == 0


def run(suite, limit, part=None):
    environment = dict(os.environ, TAPEGRAD_SHARD=part) if part else dict(os.environ)
    command = ["timeout", "-s", "KILL", str(limit), f"build/test/{suite}"]
    done = subprocess.run(
        command, cwd=TREE, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return done.returncode == 0


def passes(suite, limit):
    parts = PARTS.get(suite, 1)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        return all(
            pool.map(lambda k: run(suite, limit, f"{k + 1}/{parts}" if parts > 1 else None), range(parts))
        )


def copy_tree():
    """The tree as it is now, with the times of files that did not change, so that little is built again."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\n") if os.path.isfile(name)]
    for at, folders, files in os.walk(TREE):
        if at == TREE:
            folders[:] = [f for f in folders if f != "build"]
        for path in (os.path.join(at, f) for f in files):
            if os.path.relpath(path, TREE) not in names:
                os.remove(path)
    for name in names:
        to = os.path.join(TREE, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if not os.path.exists(to) or open(to, "rb").read() != open(name, "rb").read():
            shutil.copy(name, to)


def baseline():
    """Seconds of each suite on the tree as it is; all must pass."""
    names = [f[:-2] for _, _, files in os.walk("test") for f in files if re.fullmatch(r"test_\w+\.c", f)]
    suites = sorted(set(names) - {"test_emu", "test_cuda"})
    if not make("tests"):
        sys.exit(f"mutants: the tree does not build: make -C {TREE} tests ({FOLDER}/make.log)")
    kept = os.path.join(FOLDER, "seconds.json")
    seconds = json.load(open(kept)) if os.path.exists(kept) else {}
    for suite in [s for s in suites if s not in seconds]:
        began = time.time()
        if not passes(suite, 1800):
            sys.exit(f"mutants: {suite} fails without a mutant: {TREE}/build/test/{suite}")
        seconds[suite] = time.time() - began
        json.dump(seconds, open(kept, "w"))
    return {s: seconds[s] for s in suites}


def in_order(path, seconds):
    """The suites of the file's room first, then those of all ops, then the others; each the quick ones
    first."""
    words = set(re.split(r"[/_.]", os.path.relpath(path, TREE)))

    def rank(suite):
        room = next(at for at, _, files in os.walk("test") if suite + ".c" in files).split("/")[-1]
        near = room in words or bool(words & set(suite.split("_")[1:]))
        return (0 if near else 1 if suite in ("test_ops", "test_ops_grad", "test_tape") else 2), seconds[
            suite
        ]

    return sorted(seconds, key=rank)


def code_of(path):
    """What was compiled, without the lines that it stands on."""
    object_file = os.path.join(TREE, "build", os.path.relpath(path, TREE)[:-2] + ".o")
    stripped = os.path.join(FOLDER, "stripped.o")
    if subprocess.run(["strip", "-g", "-o", stripped, object_file]).returncode:
        return None
    return hashlib.sha256(open(stripped, "rb").read()).hexdigest()


# ---- one mutant ----------------------------------------------------------------------------------------


def judge(path, number, new, seconds):
    before = open(path).read()
    lines = before.split("\n")
    lines[number] = new
    name = os.path.relpath(path, TREE)
    diff = "\n".join(difflib.unified_diff(before.split("\n"), lines, name, name, lineterm="", n=2))
    was = code_of(path)
    result = {"file": name, "line": number + 1, "diff": diff, "fate": "survived", "by": ""}
    try:
        open(path, "w").write("\n".join(lines))
        if not make("build/libtapegrad.a"):
            return dict(result, fate="uncompilable")
        if code_of(path) == was:
            return dict(result, fate="same code")
        for suite in in_order(path, seconds):
            make(f"build/test/{suite}")
            if not passes(suite, 20 + int(6 * seconds[suite])):
                return dict(result, fate="killed", by=suite)
        return result
    finally:
        open(path, "w").write(before)
        make("build/libtapegrad.a")


def main():
    wanted, seed = int(sys.argv[1]), int(sys.argv[2])
    os.makedirs(TREE, exist_ok=True)
    copy_tree()
    seconds = baseline()
    kept = os.path.join(FOLDER, f"{seed}.jsonl")
    done = [json.loads(line) for line in open(kept)] if os.path.exists(kept) else []
    everywhere = list(places())
    while sum(d["fate"] in ("killed", "survived") for d in done) < wanted:
        draw = random.Random(f"{seed}:{len(done)}")
        path, number, line = draw.choice(everywhere)
        while not mutations(line):
            path, number, line = draw.choice(everywhere)
        result = judge(path, number, draw.choice(mutations(line)), seconds)
        done.append(result)
        with open(kept, "a") as f:
            f.write(json.dumps(result) + "\n")
        print(
            f"{len(done):4} {result['fate']:12} {result['file']}:{result['line']} {result['by']}", flush=True
        )
    report(done)


def report(done):
    count = {
        fate: [d for d in done if d["fate"] == fate]
        for fate in ("killed", "survived", "uncompilable", "same code")
    }
    for d in count["survived"]:
        print("\n" + d["diff"])
    valid = len(count["killed"]) + len(count["survived"])
    print(f"\n{len(count['uncompilable'])} did not compile, {len(count['same code'])} changed nothing")
    print(f"{len(count['killed'])} of {valid} killed ({100 * len(count['killed']) / max(valid, 1):.1f} %)")


main()
