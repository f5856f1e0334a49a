"""by_name.py - fails where an enum among the options of a call may be given by place.  C makes one of any
number without a word, so that a value meant for another option would be lost: TensorByName (tensor.h) stands
before it, and the defaults bear its mark.

    gcc -E -dD -P -Iinclude include/tapegrad.h | python3 test/by_name.py
"""

import re
import sys

# Enums that stand where a call must name them anyway.
GIVEN = {"TensorReduceIntoArgs.reduce", "DataMnistArgs.split", "TensorAutocastArgs.dtype"}

text = sys.stdin.read()
code = re.sub(r"\s+", " ", re.sub(r"^#.*$", "", text, flags=re.M))
enums = set(re.findall(r"typedef enum \w* ?{[^}]*} (\w+);", code))


def members(body):
    """(name, is it an enum); None for a TensorByName."""
    found = []
    for line in (part.strip() for part in body.split(";")):
        function = re.match(r".*\(\*(\w+)\)\(.*\)$", line)
        names = [function[1]] if function else re.findall(r"[ *](\w+)(?:\[\w+\])*(?=,|$)", line)
        found += [(n, line.split()[0] in enums) for n in names]
        if line.startswith("TensorByName"):
            found.append((None, False))
    return found


bodies = dict(re.findall(r"typedef struct (\w+Args) {([^{}]*)}", code))
structs = {name: members(body) for name, body in bodies.items()}
for struct, fields in structs.items():
    for name, is_enum in fields:
        if name is None:
            break
        if is_enum and "%s.%s" % (struct, name) not in GIVEN:
            sys.exit("by_name: %s.%s may be given by place" % (struct, name))

# A 0 by place is a null pointer where TensorByName stands: the mark in the defaults tells.
for struct, constant in re.findall(r"extern const (\w+) (\w+)_defaults ?;", code):
    mark = r"^#define %s_DEFAULTS .*?(TENSOR_BY_NAME\b|\w+_DEFAULTS\b)" % constant.upper()
    marked = re.search(mark, text, re.M)
    if "TensorByName" in bodies[struct] and "TensorFromDefaults" in bodies[struct] and not marked:
        sys.exit("by_name: %s_DEFAULTS lacks TENSOR_BY_NAME" % constant.upper())
