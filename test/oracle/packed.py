"""packed.py - sequences of different lengths in PyTorch, printed as the C header packed_golden.h.

    python packed.py > packed_golden.h

Of ramp(4, 3, 2) with the lengths 2, 4, 3 after manual_seed(0), in f64: the padded results, the last states.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nn import note, ramp, table

F64 = torch.float64


def results(name, make, *states, first=False, train=False):
    torch.manual_seed(0)
    module = make().to(F64).train(train)
    x = ramp(4, 3, 2)
    x = x.transpose(0, 1).contiguous() if first else x
    packed = pack_padded_sequence(x, torch.tensor([2, 4, 3]), batch_first=first, enforce_sorted=False)
    torch.manual_seed(1)
    y, last = module(packed, *states)
    y, _ = pad_packed_sequence(y, batch_first=first, padding_value=7)
    found = [y] + ([last] if isinstance(last, torch.Tensor) else list(last))
    table("golden_packed_" + name, torch.cat([t.detach().flatten() for t in found]))


def main():
    print(
        "/* packed_golden.h - printed by packed.py with PyTorch %s; do not edit. */"
        % torch.__version__.split("+")[0]
    )
    print("#ifndef TAPEGRAD_TEST_PACKED_GOLDEN_H\n#define TAPEGRAD_TEST_PACKED_GOLDEN_H")
    note("padded results, with 7 behind the ends; h_n, c_n")
    results("lstm", lambda: nn.LSTM(2, 3, 2, bidirectional=True), (ramp(4, 3, 3), ramp(4, 3, 3) / 2))
    results("lstm_proj", lambda: nn.LSTM(2, 3, proj_size=2, bias=False))
    results("gru", lambda: nn.GRU(2, 3, bidirectional=True, batch_first=True), ramp(2, 3, 3), first=True)
    results("rnn", lambda: nn.RNN(2, 3, 2, nonlinearity="relu"))
    results("dropout", lambda: nn.LSTM(2, 4, 2, dropout=0.5), train=True)
    print("\n#endif")


if __name__ == "__main__":
    main()
