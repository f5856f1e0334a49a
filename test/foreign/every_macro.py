"""every_macro.py - writes the C program that uses every macro of the headers, for test/headers.sh.

    gcc -E -dD -Iinclude test/foreign/macros.c | python3 test/foreign/every_macro.py 'gcc -Iinclude' FILE ...

A macro that fills an options struct is called with what it cannot do without, with every option by name, and
inside a call of itself.  The others must stand in one of the FILEs, which are compiled beside this one.
"""

import re
import subprocess
import sys

compiler, users = sys.argv[1].split(), sys.argv[2:]
macros, ours, text = {}, False, sys.stdin.read()
for line in text.splitlines():
    place = re.match(r'# \d+ "([^"]*)"', line)
    if place:
        ours = place[1].startswith("include/tapegrad")
    made = re.match(r"#define (\w+)(?:\(([^)]*)\))?(.*)", line)
    if made and ours:
        macros[made[1]] = (made[2], made[3].strip())
    gone = re.match(r"#undef (\w+)", line)
    if gone:
        macros.pop(gone[1], None)


def is_public(name):
    """Not what other macros are made of, NAME_, nor defaults, nor the guard of a header."""
    parameters, body = macros[name]
    own = name.isupper() and re.search("_$|_DEFAULTS$|^TAPEGRAD_(API|PRINTF)$", name)
    return not own and (parameters is not None or body != "")


def expand(calls):
    """What the preprocessor makes of each (name, arguments)."""
    lines = ["@@ %s(%s)" % (name, ", ".join(arguments)) for name, arguments in calls]
    source = "#include <tapegrad.h>\n" + "\n".join(lines) + "\n"
    made = subprocess.run(compiler + ["-E", "-P", "-xc", "-"], input=source, capture_output=True, text=True)
    return re.sub(r"\s+", " ", made.stdout).split("@@ ")[1:]


plain = re.sub(r"\s+", " ", "\n".join(l for l in text.splitlines() if not l.startswith("#")))
members = {}
for body, struct in re.findall(r"typedef struct \w+ {([^{}]*)} (\w+Args);", plain):
    declarators = [d for line in body.split(";") for d in re.split(r",(?![^()]*\))", line)]
    found = [re.search(r"\(\*(\w+)\)|(\w+)((?:\[\w+\])?)\s*$", d.strip()) for d in declarators if d.strip()]
    members[struct] = [((f[1] or f[2]), bool(f[3])) for f in found]
hidden = {"from_defaults", "by_name", "unused_"}
names = [name for name in macros if is_public(name)]
with_places = [name for name in names if (macros[name][0] or "").endswith("...")]
parameters = {name: macros[name][0].replace("...", "").count(",") for name in with_places}
places = {name: ["V%d_" % i for i in range(parameters[name] + 1)] for name in with_places}
generated = {}
for name, made in zip(with_places, expand([(name, places[name]) for name in with_places])):
    literal = re.search(r"\(\(?(?:void\)sizeof\()?(\w+Args)\)\s*{(.*?)}\s*[;)]", made)
    if not literal or literal[1] not in members or re.match("for ", made):
        continue
    struct, given = literal[1], literal[2]
    fields = [re.search(r"\.(\w+) = \(?%s\)?(?=[ ,])" % place, given) for place in places[name]]
    if not all(fields[:-1]) or not (fields[-1] or re.search(r"(^|,) %s $" % places[name][-1], given)):
        continue
    stated = set(re.findall(r"\.(\w+) = ", given)) | hidden
    options = [
        ".%s = %s" % (field, "{ o->%s[0] }" % field if array else "o->" + field)
        for field, array in members[struct]
        if field not in stated
    ]
    least = ["o->" + field[1] for field in fields if field]
    lines = ["(void)%s(%s);" % (name, ", ".join(least))]
    lines += ["(void)%s(%s);" % (name, ", ".join(least + options))] if options else []
    generated[name] = (struct, lines)

for name in names:  # other names of functions and macros
    target = macros[name][1]
    if macros[name][0] is None and target in generated:
        struct, lines = generated[target]
        generated[name] = (struct, [line.replace(target + "(", name + "(") for line in lines])
    elif macros[name][0] is None and re.fullmatch("tensor_\\w+", target):
        generated[name] = ("Tensor", ["(void)%s;" % name])

by_hand = "".join(open(file).read() for file in users)
missing = [n for n in names if n not in generated and not re.search(r"\b%s\b" % n, by_hand)]
print("#include <tapegrad.h>\n")
for name, (struct, lines) in generated.items():
    print("void use_%s(%s *o);\nvoid use_%s(%s *o)\n{" % (name, struct, name, struct))
    print("    (void)o;\n    " + "\n    ".join(lines) + "\n}")
if missing:
    sys.exit("macros that are used nowhere: " + " ".join(missing))
