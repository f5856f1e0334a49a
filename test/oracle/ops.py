"""ops.py - values and gradients of every op, from PyTorch, for test_golden.c.

    python ops.py ops.golden                            the committed cases
    python ops.py --random N --seed S FILE [PATTERN]    N fresh random cases of each op (that matches): what `make oracle` compares

(It needs torch; everything else reads the file only.)  A family, cases_*.py, has two tables by the op's name here:

    OPS[name]     yields cases picked by hand: values that matter (ties, zeros, NaN, infinities), odd shapes, each option
    RANDOM[name]  returns one random case: shapes, values, parameters, special values in the mix

A case is (function in PyTorch, inputs, parameters by the names of the op's fields[, inputs without gradient]).  The committed
cases of an op are those of OPS and then random ones, at least LEAST_RANDOM, until there are LEAST in all; the values of some random
cases are rounded so that halves hold them.  golden.py draws and packs.
"""

import argparse
import fnmatch
import importlib
import pathlib

import torch

import golden

FAMILIES = [importlib.import_module(p.stem) for p in sorted(pathlib.Path(__file__).parent.glob("cases_*.py"))]
LEAST, LEAST_RANDOM, SMALL = (
    40,
    24,
    600,
)  # SMALL: bytes of a committed random case, so that the file stays small


def table(kind):
    return {name: draw for family in FAMILIES for name, draw in getattr(family, kind, {}).items()}


def draw(name, random, most):
    """A random case; of several the smallest, when none is small."""
    best = None
    for _ in range(40):
        f, inputs, params, *no_grad = random()
        case = golden.case(name, f, inputs, params, *no_grad, narrow=golden.chance(0.3))
        if len(case) <= most:
            return case
        best = case if best is None or len(case) < len(best) else best
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("file")
    parser.add_argument("pattern", nargs="?", default="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    by_hand, random = table("OPS"), table("RANDOM")
    cases, names = [], fnmatch.filter(dict.fromkeys((*by_hand, *random)), args.pattern)
    if not names:
        raise SystemExit("no op is named " + args.pattern)
    for name in names:
        golden.begin(name, args.seed)
        drawn = []
        if not args.random:
            drawn += [
                golden.case(name, f, inputs, params, *no_grad)
                for f, inputs, params, *no_grad in by_hand.get(name, tuple)()
            ]
        wanted = args.random or max(LEAST - len(drawn), LEAST_RANDOM)
        for _ in range(wanted if name in random else 0):
            drawn.append(draw(name, random[name], SMALL if not args.random else 1 << 30))
        cases += drawn
    golden.write(args.file, cases)
    print("%d cases" % len(cases))


if __name__ == "__main__":
    main()
