"""optimizers.py - golden trajectories of torch.optim, for test/optim/test_optimizers.c.

    python test/oracle/optimizers.py > test/oracle/kinds/optim.golden

Lion and LAMB, which PyTorch has not, are written here from their papers.
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
        ("lr=0.1 decoupled_weight_decay=true weight_decay=0.3", "decoupled_weight_decay=false amsgrad=true"),
        ("lr=0.1 weight_decay=0.2 amsgrad=true", "decoupled_weight_decay=true maximize=true"),
    ],
    "AdamW": [
        ("lr=0.1", "weight_decay=0"),
        ("lr=0.1 eps=0.5 beta1=0.5", "beta1=0.95"),
        ("lr=0.1 weight_decay=0.5 amsgrad=true beta2=0.9", "lr=0.001"),
        ("lr=0.01 maximize=true weight_decay=0.2", "maximize=false"),
    ],
    "NAdam": [
        ("lr=0.1", "eps=0"),
        ("lr=0.02 beta1=0.8 beta2=0.95 weight_decay=0.1", "momentum_decay=0.5"),
        ("lr=0.1 decoupled_weight_decay=true weight_decay=0.1 eps=0.1", "weight_decay=0"),
        ("lr=0.1 maximize=true weight_decay=0.3", "maximize=false decoupled_weight_decay=true"),
    ],
    "RAdam": [
        ("lr=0.1", "eps=0.3"),
        ("lr=0.02 beta1=0.8 beta2=0.95 weight_decay=0.1", "beta2=0.5"),
        ("lr=0.1 decoupled_weight_decay=true weight_decay=0.1", "weight_decay=0"),
        ("lr=0.1 maximize=true weight_decay=0.3", "maximize=false decoupled_weight_decay=true"),
    ],
    "Adamax": [
        ("lr=0.1", "eps=0.3"),
        ("lr=0.02 beta1=0.8 beta2=0.5 weight_decay=0.1", "beta1=0"),
        ("lr=0.1 maximize=true weight_decay=0.3", "maximize=false"),
    ],
    "Adagrad": [
        ("lr=0.1", "eps=0.3"),
        ("lr=0.2 lr_decay=0.01 weight_decay=0.1", "lr_decay=0"),
        ("lr=0.1 initial_accumulator_value=0.5 maximize=true", "maximize=false"),
    ],
    "Adadelta": [
        ("", "eps=0.001"),
        ("lr=0.5 rho=0.7 weight_decay=0.1", "rho=0.99"),
        ("maximize=true weight_decay=0.3", "maximize=false"),
    ],
    "RMSprop": [
        ("", "eps=0.3"),
        ("lr=0.1 alpha=0.8 weight_decay=0.1", "alpha=0.5"),
        ("momentum=0.9", "momentum=0.5"),
        ("centered=true eps=0.01", "lr=0.001"),
        ("centered=true momentum=0.7 eps=0.01 weight_decay=0.01", "maximize=true"),
        ("maximize=true weight_decay=0.3", "maximize=false"),
    ],
    "Rprop": [
        ("", "lr=0.1"),
        ("eta_minus=0.3 eta_plus=1.5", "eta_plus=1.1"),
        ("lr=0.1 step_min=0.01 step_max=0.3", "step_max=0.2"),
        ("maximize=true", "maximize=false"),
    ],
    "Adafactor": [
        ("", "lr=0.1"),
        ("lr=0.05 weight_decay=0.1 d=1.5", "eps1=0.01 eps2=0.1"),
        ("lr=0.5 beta2_decay=-0.3 eps1=1e-3", "maximize=true d=3"),
        ("maximize=true weight_decay=0.3", "maximize=false"),
    ],
    "Muon": [
        ("", "lr=0.002"),
        ("momentum=0.5 nesterov=false weight_decay=0.3", "nesterov=true momentum=0"),
        ("ns_steps=3 ns_a=2 ns_b=-1.5 ns_c=0.5 eps=0.001", "ns_steps=0"),
        ("adjust_lr_fn=match_rms_adamw", "adjust_lr_fn=spectral_unclamped"),
    ],
    "ASGD": [
        ("lr=0.1", "alpha=0.5"),
        ("lr=0.1 lambd=0.05 weight_decay=0.1", "weight_decay=0"),
        ("t0=3 lambd=0.1 alpha=0.9", "t0=10"),
        ("maximize=true weight_decay=0.3 lr=0.05", "maximize=false"),
    ],
}
CASES["Lion"] = [
    ("lr=0.01 beta1=0.9 beta2=0.99", "lr=0.001"),
    ("lr=0.001 beta1=0.5 beta2=0.8 weight_decay=0.3", "maximize=true"),
    ("beta1=0.95 beta2=0.98 maximize=true", "lr=0.1 weight_decay=0.1"),
]
CASES["LAMB"] = [
    ("lr=0.1", "eps=0.3"),
    ("lr=0.05 weight_decay=0", "weight_decay=0.2 eps=0.1"),
    ("lr=0.01 beta1=0.5 beta2=0.9", "maximize=true"),
]
MATRICES = ("Muon",)  # take nothing else: p is 5 x 1
# What PyTorch takes as one tuple, by the names of its parts and their defaults.
PAIRS = {
    "betas": (("beta1", 0.9), ("beta2", 0.999)),
    "etas": (("eta_minus", 0.5), ("eta_plus", 1.2)),
    "eps": (("eps1", None), ("eps2", 1e-3)),
    "ns_coefficients": (("ns_a", 3.4445), ("ns_b", -4.775), ("ns_c", 2.0315)),
    "step_sizes": (("step_min", 1e-6), ("step_max", 50.0)),
}


class Own(torch.optim.Optimizer):
    """What PyTorch has not, written as in the papers."""

    def __init__(self, params, **options):
        super().__init__(params, {**self.options, **options})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                for name in self.states if not state else ():
                    state[name] = torch.zeros_like(p)
                state["step"] = state.get("step", torch.tensor(0.0)) + 1
                self.update(p, -p.grad if group["maximize"] else p.grad, state, *group["betas"], group)


class Lion(Own):
    """Chen et al. 2023, algorithm 2, with the learning rate times the decay."""

    options = {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0, "maximize": False}
    states = ("exp_avg",)

    def update(self, p, g, state, beta1, beta2, group):
        m = state["exp_avg"]
        direction = torch.sign(beta1 * m + (1 - beta1) * g)
        p.copy_(p - group["lr"] * (direction + group["weight_decay"] * p))
        m.copy_(beta2 * m + (1 - beta2) * g)


class LAMB(Own):
    """You et al. 2020, algorithm 2, phi(z) = z."""

    options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 1e-2, "maximize": False}
    states = ("exp_avg", "exp_avg_sq")

    def update(self, p, g, state, beta1, beta2, group):
        m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
        m.copy_(beta1 * m + (1 - beta1) * g)
        v.copy_(beta2 * v + (1 - beta2) * g * g)
        r = m / (1 - beta1**t) / (torch.sqrt(v / (1 - beta2**t)) + group["eps"])
        u = r + group["weight_decay"] * p
        ratio = p.norm() / u.norm() if p.norm() * u.norm() > 0 else 1
        p.copy_(p - group["lr"] * ratio * u)


OWN = {"Lion": Lion, "LAMB": LAMB}


def number(text):
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text


def parse(text):
    options = {}
    for item in text.split():
        name, value = item.split("=")
        options[name] = value == "true" if value in ("true", "false") else number(value)
    return options


def torch_options(options):
    """PyTorch's form."""
    options = dict(options)
    for pair, parts in PAIRS.items():
        if any(name in options for name, _ in parts):
            options[pair] = tuple(options.pop(name, default) for name, default in parts)
    return options


def start(first, count, shape):
    values = [((5 * i) % 7 - 3) / 4 for i in range(first, first + count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()


def gradient(t, first, count, shape):
    values = [math.sin(0.37 * t + i) + 0.1 * math.cos(1.3 * t) for i in range(first, first + count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def run(name, texts):
    shape = (5, 1) if name in MATRICES else (5,)
    p, q = start(0, P, shape), start(P, Q, (2, 3))
    groups, options = [], {}
    for parameter, text in zip((p, q), texts):
        options = {**options, **parse(text)}
        known = torch_options(options)
        groups.append({"params": [parameter], **known})
    first = torch_options(parse(texts[0]))  # Adagrad takes its initial value from here alone
    how = {} if name in MATRICES or name in OWN else {"foreach": False}
    opt = (OWN.get(name) or getattr(torch.optim, name))(groups, **how, **first)
    for t in range(1, STEPS + 1):
        p.grad = gradient(t, 0, P, shape)
        q.grad = gradient(t, P, Q, (2, 3)) if t % 7 else None
        opt.step()
        if t == STEPS // 2:
            for group in opt.param_groups:
                group["lr"] /= 2
        if t in SHOWN:
            values = p.flatten().tolist() + q.flatten().tolist()
            print("step %d " % t + " ".join("%.17g" % v for v in values))
    print("names " + " ".join(sorted(name for name, v in opt.state[p].items() if v is not None)))
    kept = (name for name, v in opt.param_groups[0].items() if v is not None and not isinstance(v, str))
    print("options " + " ".join(sorted(kept)))  # those that tensors can hold


def main():
    torch.set_default_dtype(torch.float64)  # numbers such as NAdam's mu_product too
    print("torch " + torch.__version__.split("+")[0])
    for name, cases in CASES.items():
        for texts in cases:
            print("optimizer %s|%s|%s" % ((name,) + texts))
            run(name, texts)


if __name__ == "__main__":
    main()
