"""scheduler_mixes.py - golden rates of several schedules on one optimizer, and of runs resumed by last_epoch,
for test/optim/test_lr_mixes.c.

    python test/oracle/scheduler_mixes.py > test/oracle/kinds/lr_mixes.golden

Each case is named as the C test names it; the optimizer is that of schedulers.py, of two groups.  A line has,
for each step, the rates and momentums of both groups and get_last_lr()[0] of each schedule.  Of a "mix" all
take a step each time ("all"), one after the other does ("turn"), or the second takes over from step 12 on
("switch"): steps 0 to 30.  Of "resumed" one schedule takes 14 steps, then a new optimizer loads the state of
the first, and a new schedule with last_epoch=13 goes on: its steps 0 to 20.
"""

import torch
from schedulers import falls, halves, wavers
from torch.optim import lr_scheduler as lrs
from torch.optim.swa_utils import SWALR

MIXES = {
    "all step exponential": lambda o: [lrs.StepLR(o, 7, 0.5), lrs.ExponentialLR(o, 0.93)],
    "turn step exponential": lambda o: [lrs.StepLR(o, 3, 0.5), lrs.ExponentialLR(o, 0.93)],
    "all lambda multiplicative": lambda o: [lrs.LambdaLR(o, halves), lrs.MultiplicativeLR(o, wavers)],
    "turn multiplicative lambda": lambda o: [lrs.MultiplicativeLR(o, wavers), lrs.LambdaLR(o, halves)],
    "all cosine linear": lambda o: [lrs.CosineAnnealingLR(o, 13), lrs.LinearLR(o, 0.1, 1.0, 9)],
    "turn polynomial multi_step constant": lambda o: [
        lrs.PolynomialLR(o, 25, 1.5), lrs.MultiStepLR(o, [2, 5, 5], 0.7), lrs.ConstantLR(o, 0.5, 4)
    ],
    "all cyclic exponential": lambda o: [lrs.CyclicLR(o, 0.01, 0.2, 6), lrs.ExponentialLR(o, 0.93)],
    "all exponential one_cycle": lambda o: [lrs.ExponentialLR(o, 0.93), lrs.OneCycleLR(o, 0.5, 40)],
    "all one_cycle restarts": lambda o: [
        lrs.OneCycleLR(o, 0.5, 40), lrs.CosineAnnealingWarmRestarts(o, 5, 2)
    ],
    "switch multiplicative swa": lambda o: [lrs.MultiplicativeLR(o, wavers), SWALR(o, 0.05, 8, "linear")],
    "switch cosine swa": lambda o: [lrs.CosineAnnealingLR(o, 20), SWALR(o, 0.05)],
    "all plateau step": lambda o: [lrs.ReduceLROnPlateau(o, factor=0.5, patience=2), lrs.StepLR(o, 9, 0.5)],
}

RESUMED = {
    "step": lambda o, last: lrs.StepLR(o, 7, 0.5, last),
    "multi_step": lambda o, last: lrs.MultiStepLR(o, [3, 14, 16, 16], 0.5, last),
    "exponential": lambda o, last: lrs.ExponentialLR(o, 0.93, last),
    "constant": lambda o, last: lrs.ConstantLR(o, 0.25, 14, last),
    "linear": lambda o, last: lrs.LinearLR(o, 0.125, 1.0, 20, last),
    "polynomial": lambda o, last: lrs.PolynomialLR(o, 25, 1.5, last),
    "lambda": lambda o, last: lrs.LambdaLR(o, halves, last),
    "multiplicative": lambda o, last: lrs.MultiplicativeLR(o, wavers, last),
    "cosine": lambda o, last: lrs.CosineAnnealingLR(o, 17, 0.001, last),
    "restarts": lambda o, last: lrs.CosineAnnealingWarmRestarts(o, 10, 2, 0.001, last),
    "one_cycle": lambda o, last: lrs.OneCycleLR(o, [0.5, 0.3], 40, last_epoch=last),
    "cyclic": lambda o, last: lrs.CyclicLR(o, 0.01, [0.2, 0.1], 6, scale_fn=falls, last_epoch=last),
    "swa": lambda o, last: SWALR(o, 0.05, last_epoch=last),
}


def optimizer():
    params = [torch.zeros(1, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    return torch.optim.SGD([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.02}], 0.1, 0.5)


def step(schedule, t):
    if isinstance(schedule, lrs.ReduceLROnPlateau):
        schedule.step(1 / (t + 1) if t < 5 else 1)
    else:
        schedule.step()


def show(opt, schedules):
    values = [g["lr"] for g in opt.param_groups] + [g["momentum"] for g in opt.param_groups]
    return values + [s.get_last_lr()[0] for s in schedules]


def mix(name, make):
    opt = optimizer()
    schedules, how = make(opt), name.split()[0]
    values = show(opt, schedules)
    for t in range(30):
        opt.step()
        for i, s in enumerate(schedules):
            if how == "all" or i == (t % len(schedules) if how == "turn" else t >= 12):
                step(s, t)
        values += show(opt, schedules)
    return values


def resume(make):
    first, opt = optimizer(), optimizer()
    schedule = make(first, -1)
    for t in range(14):
        first.step()
        step(schedule, t)
    opt.load_state_dict(first.state_dict())
    schedule = make(opt, 13)
    values = show(opt, [schedule])
    for t in range(20):
        opt.step()
        step(schedule, t)
        values += show(opt, [schedule])
    return values


def main():
    print("torch " + torch.__version__.split("+")[0])
    for name, make in MIXES.items():
        print("mix " + name)
        print("values " + " ".join("%.17g" % float(v) for v in mix(name, make)))
    for name, make in RESUMED.items():
        print("resumed " + name)
        print("values " + " ".join("%.17g" % float(v) for v in resume(make)))


if __name__ == "__main__":
    main()
