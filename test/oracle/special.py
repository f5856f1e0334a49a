"""Writes special_golden.h: values of special functions, right to the last bit, for test_special.c.

    python3 special.py > special_golden.h

Needs mpmath.
"""

import math
import random

import mpmath as mp

mp.mp.dps = 60


def ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def ndtri(p):
    """By Newton's method for log ndtr, from a guess in the tail or in the middle."""
    tail = min(p, 1 - p)
    x = -mp.sqrt(-2 * mp.log(tail)) if tail < mp.mpf("0.1") else (tail - mp.mpf(1) / 2) * 2
    for _ in range(60):
        x -= mp.log(ndtr(x) / tail) * ndtr(x) / (mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi))
    return x if p < mp.mpf(1) / 2 else -x


def igamma(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def igammac(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def uniform(lo, hi):
    return random.uniform(lo, hi)


def tiny(lo, hi):
    return 10.0 ** random.uniform(lo, hi)


def near(a):
    """Where the incomplete gamma function of a is neither 0 nor 1."""
    return max(1e-3, a + random.uniform(-4, 4) * math.sqrt(a))


def pair_near(lo, hi):
    a = uniform(lo, hi)
    return a, near(a)


UNARY = {
    "i0": (lambda x: mp.besseli(0, x), [lambda: uniform(-25, 25)] * 3 + [lambda: uniform(20, 713)]),
    "i1": (
        lambda x: mp.besseli(1, x),
        [lambda: uniform(-25, 25)] * 3 + [lambda: uniform(20, 713), lambda: tiny(-30, 0)],
    ),
    "erfcx": (
        lambda x: mp.exp(x * x) * mp.erfc(x),
        [lambda: uniform(-26, 26), lambda: uniform(-2, 2), lambda: tiny(1, 8)],
    ),
    "ndtr": (ndtr, [lambda: uniform(-37, 8), lambda: uniform(-3, 3)]),
    "log_ndtr": (
        lambda x: mp.log(ndtr(x)) if x < 0 else mp.log1p(-ndtr(-x)),
        [lambda: uniform(-38, 35), lambda: uniform(-3, 3)],
    ),
    "ndtri": (ndtri, [lambda: uniform(0, 1), lambda: tiny(-300, -1), lambda: 1 - tiny(-15, -1)]),
}
BINARY = {
    "zeta": (
        mp.zeta,
        [
            lambda: (uniform(1.01, 30), uniform(0.01, 30)),
            lambda: (float(random.randint(2, 12)), -uniform(0.1, 20)),
        ],
    ),
    "igamma": (
        igamma,
        [
            lambda: (uniform(0.01, 10), uniform(0.01, 25)),
            lambda: pair_near(10, 200),
            lambda: pair_near(200, 3000),
        ],
    ),
    "igammac": (
        igammac,
        [
            lambda: (uniform(0.01, 10), uniform(0.01, 25)),
            lambda: pair_near(10, 200),
            lambda: pair_near(200, 3000),
        ],
    ),
}
EACH = 20


def main():
    random.seed(8)
    print("/* special_golden.h - printed by special.py; do not edit. */")
    for kind, table in (("unary", UNARY), ("binary", BINARY)):
        print(
            "static const struct { const char *name; double x[%d], y; } %s_golden[] = {"
            % (1 + (kind == "binary"), kind)
        )
        for name, (f, draws) in table.items():
            for draw in draws:
                for _ in range(EACH):
                    x = draw()
                    x = x if isinstance(x, tuple) else (x,)
                    y = f(*map(mp.mpf, x))
                    if 1e-290 < abs(y) < 1e300:
                        print(
                            '    { "%s", { %s }, %s },'
                            % (name, ", ".join(v.hex() for v in x), float(y).hex())
                        )
        print("};")


main()
