"""ops.py - golden values of every op, from PyTorch.

    python ops.py ops.golden          (needs torch; everything else reads the file only)

One entry an op of the registry: its name here, what computes it in PyTorch, and cases: shapes, parameters by the names of the
op's fields, and values that matter (ties, zeros, NaN, infinities).  An op without an entry fails test_golden.c.
golden.py draws and packs; cases_*.py hold the families.
"""
import sys

import torch

import cases_nn
import cases_rows
import cases_reduce
import cases_shape
import golden


def main():
    torch.set_num_threads(1)
    cases = []
    for family in (cases_rows, cases_reduce, cases_shape, cases_nn):
        for name, draw in family.OPS.items():
            golden.begin(name)
            for f, inputs, params, *no_grad in draw():
                cases.append(golden.case(name, f, inputs, params, *no_grad))
    golden.write(sys.argv[1], cases)
    print("%d cases" % len(cases))


if __name__ == "__main__":
    main()
