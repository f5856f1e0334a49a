"""schedulers.py - golden learning rates of torch.optim.lr_scheduler, for test/optim/test_lr_scheduler.c.

    python test/oracle/schedulers.py > test/oracle/kinds/lr_scheduler.golden

Each case is named as the C test names it.  Two groups start at 0.1 and 0.02, momentum 0.5; the optimizer is
SGD, or Adam where the name begins so.  A line has, for steps 0 to 40, the rates of both, their momentum or
beta1, and get_last_lr().  The lines "state" have the numbers of the
schedule's state_dict() at step 11, its dicts and lists flattened to names with dots, without None and texts.
The line "groups" has the names of the options that the optimizer has then.
"""

import math

import torch
from torch.optim import lr_scheduler as lrs
from torch.optim.swa_utils import SWALR

STEPS = 40
METRIC = [4, 3, 2.9999, 2.5, 2.6, 2.55, 2.7, 2.5, 2.49, 2.48]
METRIC += [2.6, 2.6, 2.6, 2.6, 2.4, 2.41, 2.42, 2.43, 2.44, 2.45]


def halves(step):
    return 0.5 ** (step // 10)


def wavers(step):
    return 0.9 + 0.2 * (step % 2)


def sequence(opt):
    warm = lrs.LinearLR(opt, 0.1, 1.0, 5)
    down = lrs.CosineAnnealingLR(opt, 20, 0.001)
    return lrs.SequentialLR(opt, [warm, down, lrs.ExponentialLR(opt, 0.9)], [5, 28])


def chain(opt):
    low, falls = lrs.ConstantLR(opt, 0.5, 4), lrs.ExponentialLR(opt, 0.95)
    return lrs.ChainedScheduler([low, falls, lrs.StepLR(opt, 6, 0.7)])


def cycle_later(opt):
    return lrs.SequentialLR(opt, [lrs.ConstantLR(opt, 0.5, 9), lrs.OneCycleLR(opt, 1.0, total_steps=60)], [5])


def cycle_first(opt):
    return lrs.SequentialLR(opt, [lrs.CyclicLR(opt, 0.01, 0.2, 4), lrs.ConstantLR(opt, 0.5, 9)], [6])


def follows(opt, last):
    return lrs.SequentialLR(opt, [lrs.ExponentialLR(opt, 0.9), last(opt)], [12])


def at_once(opt):
    three = [lrs.ConstantLR(opt, 0.5, 9), lrs.StepLR(opt, 3, 0.5), lrs.ExponentialLR(opt, 0.9)]
    return lrs.SequentialLR(opt, three + [lrs.LinearLR(opt, 0.2)], [0, 7, 7])


def chain_first(opt):
    first = [lrs.ExponentialLR(opt, 0.9), lrs.PolynomialLR(opt, 30, 2.0), lrs.CosineAnnealingLR(opt, 9)]
    return lrs.SequentialLR(opt, [lrs.ChainedScheduler(first), lrs.PolynomialLR(opt, 9)], [17])


def falls(x):
    return 1 / (1 + 0.25 * x)


def nested(opt):
    first = lrs.ChainedScheduler([lrs.LinearLR(opt, 0.1), lrs.ConstantLR(opt, 0.5, 10)])
    return lrs.SequentialLR(opt, [first, lrs.ConstantLR(opt, 0.7, 10)], [4])


CASES = {
    "step": lambda o: lrs.StepLR(o, 7, 0.5),
    "step default": lambda o: lrs.StepLR(o, 10),
    "multi_step": lambda o: lrs.MultiStepLR(o, [3, 9, 9, 30], 0.3),
    "multi_step none": lambda o: lrs.MultiStepLR(o, []),
    "exponential": lambda o: lrs.ExponentialLR(o, 0.93),
    "constant": lambda o: lrs.ConstantLR(o),
    "constant 12": lambda o: lrs.ConstantLR(o, 0.25, 12),
    "linear": lambda o: lrs.LinearLR(o),
    "linear down": lambda o: lrs.LinearLR(o, 1.0, 0.125, 30),
    "linear to 0": lambda o: lrs.LinearLR(o, 1 / 3, 0.0, 5),
    "polynomial": lambda o: lrs.PolynomialLR(o, 25, 1.7),
    "polynomial default": lambda o: lrs.PolynomialLR(o),
    "lambda": lambda o: lrs.LambdaLR(o, halves),
    "multiplicative": lambda o: lrs.MultiplicativeLR(o, wavers),
    "cosine": lambda o: lrs.CosineAnnealingLR(o, 13),
    "cosine floor": lambda o: lrs.CosineAnnealingLR(o, 20, 0.005),
    "restarts": lambda o: lrs.CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "restarts even": lambda o: lrs.CosineAnnealingWarmRestarts(o, 7),
    "one_cycle": lambda o: lrs.OneCycleLR(o, 0.5, 40),
    "one_cycle three": lambda o: lrs.OneCycleLR(
        o, 0.3, 41, pct_start=0.35, anneal_strategy="linear", div_factor=10.0, final_div_factor=100.0,
        base_momentum=0.7, max_momentum=0.9, three_phase=True
    ),
    "one_cycle calm": lambda o: lrs.OneCycleLR(o, 0.5, 60, cycle_momentum=False),
    "cyclic": lambda o: lrs.CyclicLR(o, 0.01, 0.2, 6, 9),
    "cyclic halves": lambda o: lrs.CyclicLR(o, 0.01, 0.2, 5, mode="triangular2", cycle_momentum=False),
    "cyclic range": lambda o: lrs.CyclicLR(
        o, 0.01, 0.2, 8, mode="exp_range", gamma=0.97, base_momentum=0.6, max_momentum=0.95
    ),
    "cyclic scaled": lambda o: lrs.CyclicLR(o, 0.01, 0.2, 6, scale_fn=falls),
    "cyclic scaled by step": lambda o: lrs.CyclicLR(
        o, 0.01, 0.2, 4, 5, scale_fn=falls, scale_mode="iterations", mode="triangular2"
    ),
    "multi_step many": lambda o: lrs.MultiStepLR(o, [2 * (i % 20) + i // 20 for i in range(35)], 0.9),
    "one_cycle epochs": lambda o: lrs.OneCycleLR(o, 0.5, epochs=5, steps_per_epoch=9, pct_start=0.5),
    "one_cycle groups": lambda o: lrs.OneCycleLR(
        o, [0.5, 0.3], 50, base_momentum=[0.8, 0.7], max_momentum=[0.9, 0.95]
    ),
    "cyclic groups": lambda o: lrs.CyclicLR(
        o, [0.01, 0.02], [0.2, 0.1], 6, base_momentum=[0.7, 0.75], max_momentum=[0.9, 0.8]
    ),
    "plateau groups": lambda o: lrs.ReduceLROnPlateau(o, factor=0.2, patience=1, min_lr=[0.03, 0.0001]),
    "swa groups": lambda o: SWALR(o, [0.05, 0.01]),
    "adam one_cycle": lambda o: lrs.OneCycleLR(o, 0.5, 45, max_momentum=[0.97, 0.9]),
    "adam cyclic": lambda o: lrs.CyclicLR(o, 0.01, [0.2, 0.3], 6),
    "adam exponential": lambda o: lrs.ExponentialLR(o, 0.9),
    "linear of 0": lambda o: lrs.LinearLR(o, 0.25, 1.0, 0),
    "polynomial of 0": lambda o: lrs.PolynomialLR(o, 0),
    "multiplicative second": lambda o: follows(o, lambda o: lrs.MultiplicativeLR(o, wavers)),
    "swa second": lambda o: follows(o, lambda o: SWALR(o, 0.05)),
    "at once": at_once,
    "chain first": chain_first,
    "swa": lambda o: SWALR(o, 0.05),
    "swa linear": lambda o: SWALR(o, 0.3, 25, "linear"),
    "swa at once": lambda o: SWALR(o, 0.07, 0),
    "plateau": lambda o: lrs.ReduceLROnPlateau(o, factor=0.3, patience=2, cooldown=1),
    "plateau max": lambda o: lrs.ReduceLROnPlateau(
        o, "max", 0.5, 1, threshold=0.2, threshold_mode="abs", min_lr=0.004, eps=1e-3
    ),
    "sequence": sequence,
    "chain": chain,
    "chain in sequence": nested,
    "one_cycle in sequence": cycle_later,
    "cyclic in sequence": cycle_first,
    "cyclic second": lambda o: [lrs.ConstantLR(o, 0.5, 3), lrs.CyclicLR(o, 0.01, 0.2, 6, 9)][1],
}


def flatten(name, value):
    if isinstance(value, dict):
        for key in value:
            yield from flatten(f"{name}.{key}" if name else str(key), value[key])
    elif isinstance(value, list) and any(isinstance(v, (int, float)) for v in value):
        yield name, value
    elif isinstance(value, list):
        yield from flatten(name, dict(enumerate(value)))
    elif isinstance(value, (int, float)):
        yield name, value


def show_state(schedule):
    for name, value in flatten("", schedule.state_dict()):
        values = value if isinstance(value, list) else [value]
        kind = "list" if isinstance(value, list) else "number"
        print(f"state {kind} {name} " + " ".join("%.17g" % float(v) for v in values))


def main():
    print("torch " + torch.__version__.split("+")[0])
    for name, make in CASES.items():
        params = [torch.zeros(1, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.02}]
        adam = name.startswith("adam ")
        opt = torch.optim.Adam(groups, 0.1, (0.5, 0.9)) if adam else torch.optim.SGD(groups, 0.1, 0.5)
        schedule, values = make(opt), []
        print("schedule " + name)
        for step in range(STEPS + 1):
            if step == 11:
                show_state(schedule)
                print("groups " + " ".join(opt.param_groups[0]))
            values += [g["lr"] for g in opt.param_groups]
            values += [g["betas"][0] if adam else g["momentum"] for g in opt.param_groups]
            values += schedule.get_last_lr()
            opt.step()
            if step == STEPS:
                break
            if isinstance(schedule, lrs.ReduceLROnPlateau):
                schedule.step(METRIC[step % len(METRIC)] - (math.nan if step == 33 else 0))
            else:
                schedule.step()
        print("values " + " ".join("%.17g" % float(v) for v in values))


if __name__ == "__main__":
    main()
