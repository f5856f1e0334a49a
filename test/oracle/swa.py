"""swa.py - golden averages of torch.optim.swa_utils, for test/optim/test_swa.c.

    python test/oracle/swa.py > test/oracle/kinds/swa.golden

The net is Linear(2, 3), BatchNorm1d(3) in f64.  Before update t, element i of its state dict, counted over
all entries, is sin(t + 0.3 i) + 1, and num_batches_tracked is 3 t.  A line has all averages after an update.
After the last one update_bn sees three batches of 4 samples, whose element j, over all, is sin(0.7 j).
"""

import torch
from torch.optim import swa_utils as swa

UPDATES = 6
CASES = {
    "swa": {},
    "ema 0.9": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
    "ema 0.3 buffers": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.3), "use_buffers": True},
}


def show(word, model):
    values = [v for t in model.module.state_dict().values() for v in t.flatten().tolist()]
    print(word + " " + " ".join("%.17g" % v for v in values))


@torch.no_grad()
def fill(net, t):
    i = 0
    for name, x in net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            x.fill_(3 * t)
            continue
        x.copy_((torch.arange(i, i + x.numel()) * 0.3 + t).sin().reshape(x.shape) + 1)
        i += x.numel()


torch.set_default_dtype(torch.float64)
print("torch " + torch.__version__.split("+")[0])
for name, options in CASES.items():
    print("averages " + name)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    model = swa.AveragedModel(net, **options)
    for t in range(1, UPDATES + 1):
        fill(net, t)
        model.update_parameters(net)
        show("update", model)
    data = (torch.arange(24) * 0.7).sin().reshape(3, 4, 2)
    swa.update_bn(list(data), model)
    show("bn", model)
