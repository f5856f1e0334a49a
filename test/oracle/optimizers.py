"""optimizers.py - golden trajectories of torch.optim, for test/optim/test_optimizers.c.

    python test/oracle/optimizers.py > test/oracle/kinds/optim.golden

A new optimizer: its cases in CASES.  Each is the text of the options of two groups; the second begins with
the options of the first.  Every option of a kind must be in one of its cases.

Two parameters in f64, one a group: p of 5 elements, q of 2 x 3; element i, counted over both, starts at
((5 i) mod 7 - 3) / 4, and its gradient in step t is sin(0.37 t + i) + 0.1 cos(1.3 t).  q has none in every
seventh step.  After step 500 the learning rates are halved.
"""

import math

import torch

STEPS, P, Q = 1000, 5, 6
SHOWN = (1, 2, 20, 1000)
CASES = {
    "SGD": [
        ("lr=0.1", ""),
        ("lr=0.1 weight_decay=0.3", "weight_decay=0"),
        ("lr=0.1 momentum=0.9", "lr=0.01"),
        ("lr=0.1 momentum=0.9 dampening=0.5 weight_decay=0.01", "momentum=0.5"),
        ("lr=0.1 momentum=0.8 nesterov=true weight_decay=0.1", "nesterov=false"),
        ("lr=0.1 maximize=true momentum=0.5", "maximize=false"),
    ],
    "Adam": [
        ("", "lr=0.1"),
        ("lr=0.1 eps=0.5", "eps=0"),
        ("lr=0.02 beta1=0.8 beta2=0.95 weight_decay=0.1", "beta1=0"),
        ("lr=0.1 beta1=0.5 beta2=0.6 amsgrad=true", "amsgrad=false"),
        ("lr=0.1 maximize=true weight_decay=0.1", "maximize=false"),
    ],
    "AdamW": [
        ("lr=0.1", "weight_decay=0"),
        ("lr=0.1 eps=0.5 beta1=0.5", "beta1=0.95"),
        ("lr=0.1 weight_decay=0.5 amsgrad=true beta2=0.9", "lr=0.001"),
        ("lr=0.01 maximize=true weight_decay=0.2", "maximize=false"),
    ],
}


def parse(text):
    options = {}
    for item in text.split():
        name, value = item.split("=")
        options[name] = value == "true" if value in ("true", "false") else float(value)
    return options


def torch_options(options):
    """PyTorch's form: beta1 and beta2 are one tuple."""
    options = dict(options)
    first, second = options.pop("beta1", None), options.pop("beta2", None)
    if first is not None or second is not None:
        options["betas"] = (0.9 if first is None else first, 0.999 if second is None else second)
    return options


def start(first, count, shape):
    values = [((5 * i) % 7 - 3) / 4 for i in range(first, first + count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()


def gradient(t, first, count, shape):
    values = [math.sin(0.37 * t + i) + 0.1 * math.cos(1.3 * t) for i in range(first, first + count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def run(name, texts):
    p, q = start(0, P, (5,)), start(P, Q, (2, 3))
    groups, options = [], {}
    for parameter, text in zip((p, q), texts):
        options = {**options, **parse(text)}
        known = torch_options(options)
        groups.append({"params": [parameter], **known})
    opt = getattr(torch.optim, name)(groups, foreach=False)
    for t in range(1, STEPS + 1):
        p.grad = gradient(t, 0, P, (5,))
        q.grad = gradient(t, P, Q, (2, 3)) if t % 7 else None
        opt.step()
        if t == STEPS // 2:
            for group in opt.param_groups:
                group["lr"] /= 2
        if t in SHOWN:
            values = p.flatten().tolist() + q.flatten().tolist()
            print("step %d " % t + " ".join("%.17g" % v for v in values))


def main():
    print("torch " + torch.__version__.split("+")[0])
    for name, cases in CASES.items():
        for texts in cases:
            print("optimizer %s|%s|%s" % ((name,) + texts))
            run(name, texts)


main()
