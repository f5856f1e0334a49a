"""autocast.py - the dtypes of every op's results under PyTorch's autocast (bf16), for test_autocast.c.

    python autocast.py > kinds/autocast.golden

A line: op, the number of a case in golden/*.golden, and eight words: for cpu and then cuda, the dtypes of the
results where all floating inputs are f32, where all are bf16, where the first is f32 and the others are bf16,
and the other way round.  A letter a result: s f32, b bf16, d f64, . no float; - where PyTorch refuses the
call, or the run as cuda, which is done on tensors without values (FakeTensorMode), cannot be made so.
"""

import sys
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import golden
import ops

MOST = 4  # cases of an op
LETTERS = {torch.float32: "s", torch.bfloat16: "b", torch.float64: "d", torch.float16: "h"}


class Case(bytes):
    """A packed case that remembers what it was made of."""


def remember(pack):
    def case(f, inputs, params, no_grad=(), narrow=False):
        made = Case(pack(f, inputs, params, no_grad, narrow))
        made.call = (f, inputs)
        return made

    return case


def dtypes_of(y):
    y = list(y) if isinstance(y, (tuple, list)) else [y]
    return "".join(LETTERS.get(v.dtype, ".") for v in y)


def inputs_as(inputs, pattern, device):
    out, first = [], True
    for x in inputs:
        dtype = None if x is None else x.dtype
        if x is not None and x.is_floating_point():
            narrow = {"s": False, "b": True, "m": not first, "n": first}[pattern]
            dtype, first = torch.bfloat16 if narrow else torch.float32, False
        if x is not None and device == "cuda":
            x = torch.empty(x.shape, dtype=dtype, device="cuda")
        out.append(x if x is None else x.to(dtype))
    return out


def run(f, inputs, pattern, device):
    floats = [x for x in inputs if x is not None and x.is_floating_point()]
    if not floats or (pattern in "mn" and (len(floats) < 2 or any(x.dim() == 0 for x in floats))):
        return "-"  # a number of rank 0 has no part in PyTorch's promotion
    try:
        torch.set_autocast_dtype(device, torch.bfloat16)
        torch.set_autocast_enabled(device, True)
        if device == "cpu":
            return dtypes_of(f(*inputs_as(inputs, pattern, device)))
        with FakeTensorMode():
            return dtypes_of(f(*inputs_as(inputs, pattern, device)))
    except Exception:
        return "-"
    finally:
        torch.set_autocast_enabled(device, False)
        torch.clear_autocast_cache()


def cases_of(name, by_hand, random):
    """The first cases as ops.py draws them."""
    golden.begin(name)
    cases = []
    for f, inputs, params, *no_grad in by_hand.get(name, tuple)():
        cases.append(golden.case(f, inputs, params, *no_grad))
        if len(cases) == MOST:
            return cases
    while not by_hand.get(name) and len(cases) < MOST:
        cases.append(ops.draw(name, random[name], ops.SMALL))
    return cases


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    golden.case = remember(golden.case)
    by_hand, random = ops.table("OPS"), ops.table("RANDOM")
    print("# PyTorch %s: made by oracle/autocast.py, which says what stands here" % torch.__version__)
    for name in dict.fromkeys((*by_hand, *random)):
        for i, case in enumerate(cases_of(name, by_hand, random)):
            words = [run(*case.call, pattern, device) for device in ("cpu", "cuda") for pattern in "sbmn"]
            if any(w != "-" for w in words):
                print(name, i, *words)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
