"""grad_scaler.py - golden runs of torch.amp.GradScaler, for test/optim/test_grad_scaler.c.

    python test/oracle/grad_scaler.py > test/oracle/kinds/grad_scaler.golden

p in f32 starts at 1, 2, 3; the loss of step t is sum(p c), c_i = sin(t + i), where c_1 is infinite in the
steps of BAD; SGD with momentum 0.9 and rate 0.01.
"""

import math

import torch

BAD = (3, 4, 11, 30)
STEPS = 40
CASES = (
    "init_scale=1024 growth_interval=5",
    "init_scale=3e38 growth_interval=2 growth_factor=4",
    "init_scale=8 growth_factor=3 backoff_factor=0.25 growth_interval=1",
)


def run(text):
    options = {k: float(v) for k, v in (item.split("=") for item in text.split())}
    options["growth_interval"] = int(options["growth_interval"])
    scaler = torch.amp.GradScaler("cpu", **options)
    p = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    opt = torch.optim.SGD([p], lr=0.01, momentum=0.9)
    for t in range(1, STEPS + 1):
        c = torch.tensor([math.sin(t + i) for i in range(3)])
        if t in BAD:
            c[1] = math.inf
        opt.zero_grad()
        scaler.scale((p * c).sum()).backward()
        scaler.step(opt)
        scaler.update()
        state = scaler.state_dict()
        values = [state["scale"], state["_growth_tracker"]] + p.tolist()
        print("step %d " % t + " ".join("%.9g" % v for v in values))


print("torch " + torch.__version__.split("+")[0])
for text in CASES:
    print("scaler " + text)
    run(text)
