"""ops.py - values and gradients of every op, from PyTorch, for test_golden.c.

    python ops.py [FAMILY ...]                          the committed cases: golden/FAMILY.golden of
        each cases_FAMILY.py
    python ops.py --random N --seed S FILE [PATTERN]    N fresh random cases of each op (that matches):
        what `make oracle` compares

(It needs torch; everything else reads the file only.)  A family, cases_*.py, has two tables by the op's
name here:

    OPS[name]     yields cases picked by hand: values that matter (ties, zeros, NaN, infinities), odd
    shapes, each option
    RANDOM[name]  returns one random case: shapes, values, parameters, special values in the mix

A case is (function in PyTorch, inputs, parameters by the names of the op's fields[, inputs without
gradient]).  The committed cases of an op are those of OPS and then random ones, at least LEAST_RANDOM,
until there are LEAST in all; the values of some random cases are rounded so that halves hold them.
golden.py draws and packs.
"""

import argparse
import fnmatch
import importlib
import pathlib

import torch

import golden

HERE = pathlib.Path(__file__).parent
FAMILIES = {p.stem[6:]: importlib.import_module(p.stem) for p in sorted(HERE.glob("cases_*.py"))}
LEAST, LEAST_RANDOM, SMALL = (
    40,
    24,
    600,
)  # SMALL: bytes of a committed random case, so that the file stays small


def table(kind):
    return {name: draw for module in FAMILIES.values() for name, draw in getattr(module, kind, {}).items()}


def owner(name):
    """The family whose file has an op's cases: that of its random ones, else of those by hand."""
    for kind in ("RANDOM", "OPS"):
        having = [family for family, module in FAMILIES.items() if name in getattr(module, kind, {})]
        if having:
            return having[-1]


def draw(name, random, most):
    """A random case; of several the smallest, when none is small."""
    best = None
    for _ in range(40):
        f, inputs, params, *no_grad = random()
        case = golden.case(f, inputs, params, *no_grad, narrow=golden.chance(0.3))
        if len(case) <= most:
            return case
        best = case if best is None or len(case) < len(best) else best
    return best


def draw_ops(by_hand, random, names, random_cases=0, seed=0):
    """The cases of these ops."""
    drawn = {}
    for name in names:
        golden.begin(name, seed)
        cases = []
        if not random_cases:
            cases = [
                golden.case(f, inputs, params, *no_grad)
                for f, inputs, params, *no_grad in by_hand.get(name, tuple)()
            ]
        wanted = random_cases or max(LEAST - len(cases), LEAST_RANDOM)
        for _ in range(wanted if name in random else 0):
            cases.append(draw(name, random[name], 1 << 30 if random_cases else SMALL))
        drawn[name] = cases
    return drawn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    by_hand, random = table("OPS"), table("RANDOM")
    ops = list(dict.fromkeys((*by_hand, *random)))
    if args.random:
        file, pattern = args.names[0], args.names[1] if len(args.names) > 1 else "*"
        drawn = draw_ops(by_hand, random, fnmatch.filter(ops, pattern), args.random, args.seed)
        if not drawn:
            raise SystemExit("no op is named " + pattern)
        golden.write(file, drawn)
        print("%d cases" % sum(map(len, drawn.values())))
        return
    for family in args.names or FAMILIES:
        if family not in FAMILIES:
            raise SystemExit("no family is named %s: there are %s" % (family, ", ".join(FAMILIES)))
        drawn = draw_ops(by_hand, random, [name for name in ops if owner(name) == family])
        if drawn:
            golden.write(HERE / "golden" / (family + ".golden"), drawn)
            print("%s: %d ops, %d cases" % (family, len(drawn), sum(map(len, drawn.values()))))


if __name__ == "__main__":
    main()
