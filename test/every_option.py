"""every_option.py - writes the C program that gives every option of every calling macro by name, for
test/headers.sh: it must compile without a warning.

    gcc -E -dD -P -Iinclude include/tapegrad.h | python3 test/every_option.py > build/every_option.c

Fails where an enum may be given by place: C makes one of any number without a word, so that a value meant for
another option would be lost (TensorByName in tensor.h stands before it).
"""

import re
import subprocess
import sys

# Enums that stand where a call must name them anyway.
GIVEN = {"TensorReduceIntoArgs.reduce", "DataMnistArgs.split", "TensorAutocastArgs.dtype"}

text = sys.stdin.read()
macros = re.findall(r"^#define ((?:tensor|nn|optim|io|data)_\w+)\(([^)]*)\.\.\.\)", text, re.M)
code = re.sub(r"\s+", " ", re.sub(r"^#.*$", "", text, flags=re.M))
enums = set(re.findall(r"typedef enum \w* ?{[^}]*} (\w+);", code))


def members(body):
    """(name, is it an array, is it an enum), up to what no call gives."""
    found = []
    for line in (part.strip() for part in body.split(";")):
        function = re.match(r".*\(\*(\w+)\)\(.*\)$", line)
        names = [function[1]] if function else re.findall(r"[ *](\w+)(?:\[\w+\])*(?=,|$)", line)
        names = [n for n in names if n not in ("by_name", "from_defaults", "unused_")]
        found += [(n, re.search(n + r"\[", line), line.split()[0] in enums) for n in names]
        if line.startswith("TensorByName"):
            found.append((None, False, False))
    return found


bodies = dict(re.findall(r"typedef struct (\w+Args) {([^{}]*)}", code))
structs = {name: members(body) for name, body in bodies.items()}
for struct, fields in structs.items():
    for name, _, is_enum in fields:
        if name is None:
            break
        if is_enum and "%s.%s" % (struct, name) not in GIVEN:
            sys.exit("every_option: %s.%s may be given by place" % (struct, name))

# A 0 by place is a null pointer where TensorByName stands: the mark in the defaults tells.
for struct, constant in re.findall(r"extern const (\w+) (\w+)_defaults ?;", code):
    mark = r"^#define %s_DEFAULTS .*?(TENSOR_BY_NAME\b|\w+_DEFAULTS\b)" % constant.upper()
    marked = re.search(mark, text, re.M)
    if "TensorByName" in bodies[struct] and "TensorFromDefaults" in bodies[struct] and not marked:
        sys.exit("every_option: %s_DEFAULTS lacks TENSOR_BY_NAME" % constant.upper())

named = {macro: params.split(",")[:-1] for macro, params in macros}
probes = ["PROBE_%s %s(%s LAST)" % (n, n, "GIVEN_, " * len(named[n])) for n in named]
expanded = subprocess.run(
    ["gcc", "-E", "-P", "-Iinclude", "-include", "tapegrad.h", "-"],
    input="\n".join(probes), capture_output=True, text=True, check=True
).stdout
count = 0
print("#include <tapegrad.h>")
for name, call in re.findall(r"PROBE_(\w+) (.*?)(?=PROBE_|\Z)", expanded, re.S):
    call = re.search(r"sizeof\((\w+)\) ?\{([^{}]*) LAST ?\}", re.sub(r"\s+", " ", call))
    if not call or call[1] not in structs or call[2].count("GIVEN_") != len(named[name]):
        continue  # no call with options, or one that takes more than the options struct has
    if ".from_defaults" in call[2]:
        sys.exit("every_option: %s takes its defaults for options of the caller's" % name)
    fields = [f for f in structs[call[1]] if f[0]]
    set_by_macro = re.findall(r"\.(\w+) =", call[2])
    given = ["o->" + n for n in re.findall(r"\.(\w+) =(?:[^,]*GIVEN_|$)", call[2])]
    for option, is_array, _ in fields:
        if option not in set_by_macro:
            given.append(".%s = %s" % (option, "{ o->%s[0] }" % option if is_array else "o->" + option))
    print("void all_of_%s(const %s *o) { (void)%s(%s); }" % (name, call[1], name, ", ".join(given)))
    count += 1
print("%d calls with all their options" % count, file=sys.stderr)
