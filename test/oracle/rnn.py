"""rnn.py - recurrent layers of torch.nn, printed as the C header rnn_golden.h.

    python rnn.py > rnn_golden.h

After manual_seed(0): the names of the state dict, all parameters in order, and in f64 the results over
ramp(...). The f32 numbers are those of AVX2 machines: run it on one.
"""

import torch
from torch import nn

from nn import flat, note, ramp, table

F64 = torch.float64


def names(name, module):
    keys = list(module.state_dict())
    print(
        "static const char *const golden_names_%s[%d] = {\n    %s\n};"
        % (name, len(keys), ", ".join('"%s"' % k for k in keys))
    )


def seeded(make):
    torch.manual_seed(0)
    return make()


def initial(name, make):
    table("golden_init_" + name, flat(seeded(make)))


def results(name, module, *inputs):
    found = []
    for y in module(*inputs):
        found += [y] if isinstance(y, torch.Tensor) else list(y)
    table("golden_" + name, torch.cat([y.detach().flatten() for y in found]))


def main():
    print(
        "/* rnn_golden.h - printed by rnn.py with PyTorch %s; do not edit. */"
        % torch.__version__.split("+")[0]
    )
    print("#ifndef TAPEGRAD_TEST_RNN_GOLDEN_H\n#define TAPEGRAD_TEST_RNN_GOLDEN_H")
    note("names in the state dict")
    names("lstm", nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2))
    names("gru", nn.GRU(3, 4, 2, bias=False))
    names("cell", nn.LSTMCell(3, 4))
    note("after manual_seed(0), all parameters in order, f32")
    initial("lstm", lambda: nn.LSTM(2, 3, bidirectional=True, proj_size=2))
    initial("gru", lambda: nn.GRU(2, 2, 2))
    initial("rnn", lambda: nn.RNN(3, 2, bias=False))
    initial("gru_cell", lambda: nn.GRUCell(3, 2))
    note("in f64: output, h_n, c_n, from ramps (4, 2, 3) and (layers directions, 2, H)")
    results(
        "lstm",
        seeded(lambda: nn.LSTM(3, 4, 2, bidirectional=True, dtype=F64)),
        ramp(4, 2, 3),
        (ramp(4, 2, 4), ramp(4, 2, 4) / 2),
    )
    results("lstm_proj", seeded(lambda: nn.LSTM(3, 4, proj_size=2, dtype=F64)), ramp(4, 2, 3))
    results("gru", seeded(lambda: nn.GRU(3, 2, 2, batch_first=True, dtype=F64)), ramp(2, 4, 3), ramp(2, 2, 2))
    results("rnn", seeded(lambda: nn.RNN(3, 2, nonlinearity="relu", dtype=F64)), ramp(4, 2, 3), ramp(1, 2, 2))
    results(
        "lstm_cell", seeded(lambda: nn.LSTMCell(3, 2, dtype=F64)), ramp(2, 3), (ramp(2, 2), ramp(2, 2) / 2)
    )
    results("gru_cell", lambda *a: (seeded(lambda: nn.GRUCell(3, 2, dtype=F64))(*a),), ramp(2, 3), ramp(2, 2))
    results("rnn_cell", lambda *a: (seeded(lambda: nn.RNNCell(3, 2, dtype=F64))(*a),), ramp(2, 3), ramp(2, 2))
    print("\n#endif")


if __name__ == "__main__":
    main()
