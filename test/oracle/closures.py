"""closures.py - golden trajectories of optimizers that want a closure, for test/optim/test_lbfgs.c.

    python test/oracle/closures.py > test/oracle/kinds/closures.golden

x is p of 5 elements and q of 2 x 3, both in f64; element i starts at ((5 i) mod 7 - 3) / 4.  Losses:

    valley   sum over i of 10 (x_(i+1) - x_i^2)^2 + (1 - x_i)^2
    bowl     sum over i of (i + 1) log(cosh(x_i - i / 7)) + 0.05 (sum x)^2
    waves    sum over i of x_i^2 / 5 + sin(4 x_i): a long step passes hills, and goes down where it ends high

With maximize they are negated.  After step 10 the learning rate is halved.
"""

import torch
from optimizers import P, Q, parse, start

SHOWN = (1, 2, 12, 40, 1000)
CASES = (
    ("valley", "line_search_fn=strong_wolfe"),
    ("valley", "line_search_fn=strong_wolfe max_iter=3 history_size=2 lr=0.5"),
    ("valley", "line_search_fn=strong_wolfe max_iter=4 max_eval=6 maximize=true"),
    ("valley", "lr=0.01 max_iter=5"),
    ("bowl", "lr=0.4 max_iter=2 history_size=3"),
    ("bowl", "lr=0.3 max_iter=4 max_eval=3 tolerance_grad=1e-3"),
    ("bowl", "line_search_fn=strong_wolfe max_iter=2 tolerance_change=1e-4"),
    ("bowl", "lr=0.5 max_iter=6 maximize=true"),
    ("waves", "line_search_fn=strong_wolfe max_iter=3"),
    ("waves", "line_search_fn=strong_wolfe max_iter=4 lr=3"),
    ("waves", "line_search_fn=strong_wolfe max_iter=2 lr=8"),
)


def valley(x):
    return (10 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x) ** 2)[:-1].sum()


def bowl(x):
    i = torch.arange(P + Q, dtype=torch.float64)
    return ((i + 1) * torch.log(torch.cosh(x - i / 7))).sum() + 0.05 * x.sum() ** 2


def waves(x):
    return (x**2 / 5 + torch.sin(4 * x)).sum()


def run(loss_name, text):
    options = parse(text)
    p, q = start(0, P, (5,)), start(P, Q, (2, 3))
    opt = torch.optim.LBFGS([p, q], **options)
    sign = -1 if options.get("maximize") else 1

    def closure():
        opt.zero_grad()
        loss = sign * globals()[loss_name](torch.cat([p.flatten(), q.flatten()]))
        loss.backward()
        return loss

    for t in range(1, SHOWN[-1] + 1):
        loss = opt.step(closure).item()
        if t in SHOWN:
            values = [loss, opt.state[p]["func_evals"], opt.state[p]["n_iter"]]
            values += p.flatten().tolist() + q.flatten().tolist()
            print("step %d " % t + " ".join("%.17g" % v for v in values))
        if t == 10:
            opt.param_groups[0]["lr"] /= 2


if __name__ == "__main__":
    print("torch " + torch.__version__.split("+")[0])
    for loss_name, text in CASES:
        print("closure LBFGS|%s|%s" % (loss_name, text))
        run(loss_name, text)
