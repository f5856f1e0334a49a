"""every_function.py - writes the C++ program that calls every function of the headers, for test/foreign.sh.

    gcc -E -P -Iinclude include/tapegrad.h | python3 test/foreign/every_function.py > build/every_function.cpp

call.hpp says how a function is called.  What is read here is names alone: functions, options structs with
their constants, and which of their members are a Tensor *.
"""

import re
import sys

API = r'__attribute__\(\(visibility\("default"\)\)\)'
text = re.sub(r"\s+", " ", sys.stdin.read())
functions = sorted(
    set(re.findall(API + r" [^;{]*?[ *](\w+)\((?:[^()]|\([^()]*\))*\)[^;{()]*(?:__attribute__[^;]*)?;", text))
)
# Of several constants of one struct (adam's and adamw's), one serves.
constants = sorted(dict(re.findall(API + r" extern const (\w+) (\w+_defaults) ?;", text)).items())
members = dict(re.findall(r"typedef struct (\w+Args) {([^{}]*)}", text))
structs = set(members)
without = sorted(structs - {name for name, _ in constants})
if without and "--lenient" not in sys.argv:
    sys.exit("options structs without a constant of defaults: " + ", ".join(without))

print('#include <tapegrad.h>\n#include <tapegrad.hpp>\n#include "foreign/call.hpp"\n')
for struct, constant in constants:
    tensors = [
        name
        for names in re.findall(r"(?:^|;) Tensor (\*\w+(?:, \*\w+)*)(?=;)", members[struct])
        for name in names.replace("*", "").split(", ")
    ]
    first = "true" if re.match(r" Tensor \*\w", members[struct]) else "false"
    print("template <> struct Options<%s> {" % struct)
    print("    static constexpr bool is = true, of_tensor = %s;" % first)
    print("    static const %s &get() { return %s; }" % (struct, constant))
    fill = "".join(" a.%s = x;" % name for name in tensors)
    print("    static void fill(%s &a, Tensor *x) { (void)a, (void)x;%s } };" % (struct, fill))
print("\nint main()\n{")
for name in functions:
    print('    call("%s", %s);' % (name, name))
print("    return finish(%d);\n}" % len(functions))
print("%d functions, %d options structs" % (len(functions), len(constants)), file=sys.stderr)
