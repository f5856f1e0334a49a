"""training.py - 50 steps of training of every family of modules in PyTorch, for test/nn/test_families.c.

    python test/oracle/training.py > test/oracle/kinds/training.golden

A case: a line a layer, as modules.py writes kinds and options ("weight_norm Linear ..." is that of a
parametrized layer); then the inputs, of which all go to the first layer, the loss and its targets.  An unpool
takes all results of the layer before it.  A loss may have parameters, which are trained, too; of several
results the last is the loss.  Every kind must be in a case.

The net is built after manual_seed(0) and trained after manual_seed(1), in f32, by SGD with momentum 0.9 on
the same batch each step.  Each line of losses is followed by the names of the state dicts of net and loss.
Transformers learn slowly here: with a rate of 0.05 rounding alone, f32 against f64, is 1e-5 after ten steps.
"""

import re
import sys
import warnings

import torch
from torch import nn
from torch.nn.utils import parametrizations

from modules import Pad, flat, made_input, parse, torch_arguments

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

TEXT = """
Linear in_features=4 out_features=8
ReLU
Linear in_features=8 out_features=2
: 6x4 | MSELoss | 6x2

Linear in_features=4 out_features=16
LeakyReLU negative_slope=0.2
Dropout p=0.3
Linear in_features=16 out_features=3
: 8x4 | CrossEntropyLoss | 8@3

Conv2d in_channels=2 out_channels=4 kernel_size=3 padding=1
BatchNorm2d num_features=4
ReLU
MaxPool2d kernel_size=2
Flatten
Linear in_features=16 out_features=3
: 6x2x4x5 | CrossEntropyLoss | 6@3

Conv1d in_channels=2 out_channels=4 kernel_size=3 padding=-2147483648 padding_mode=reflect
GroupNorm num_groups=2 num_channels=4
GELU
AdaptiveAvgPool1d size=[2]
Flatten
Linear in_features=8 out_features=3
: 6x2x7 | CrossEntropyLoss | 6@3

Conv3d in_channels=1 out_channels=4 kernel_size=2 groups=1
InstanceNorm3d num_features=4 affine=true
ELU
AvgPool3d kernel_size=2 stride=1
Flatten
Linear in_features=8 out_features=3
: 4x1x3x3x4 | CrossEntropyLoss | 4@3

Conv2d in_channels=2 out_channels=4 kernel_sizes=[1 3] groups=2
BatchNorm2d num_features=4 momentum=-1 affine=false
SiLU
LPPool2d norm_type=2 kernel_size=2
Flatten
Linear in_features=4 out_features=3
: 4x2x3x4 | CrossEntropyLoss | 4@3

ConvTranspose1d in_channels=2 out_channels=3 kernel_size=3 stride=2
Tanh
Flatten
Linear in_features=27 out_features=3
: 4x2x4 | CrossEntropyLoss | 4@3

ConvTranspose2d in_channels=2 out_channels=4 kernel_size=2 stride=2 groups=2
Mish
Conv2d in_channels=4 out_channels=1 kernel_size=3
: 3x2x3x3 | MSELoss | 3x1x4x4

ConvTranspose3d in_channels=1 out_channels=2 kernel_size=2
BatchNorm3d num_features=2
Hardswish
Flatten
Linear in_features=54 out_features=3
: 4x1x2x2x2 | CrossEntropyLoss | 4@3

Linear in_features=3 out_features=6
BatchNorm1d num_features=6
Tanh
LayerNorm normalized_size=6
Linear in_features=6 out_features=6
RMSNorm normalized_size=6
Linear in_features=6 out_features=2
: 8x3 | MSELoss | 8x2

Conv2d in_channels=1 out_channels=4 kernel_size=2
LocalResponseNorm size=3
Softplus
InstanceNorm2d num_features=4 track_running_stats=true affine=true
Dropout2d p=0.4
Flatten
Linear in_features=24 out_features=3
: 4x1x3x4 | CrossEntropyLoss | 4@3

Conv1d in_channels=1 out_channels=4 kernel_size=2
Dropout1d p=0.3
Flatten
Linear in_features=16 out_features=3
: 6x1x5 | CrossEntropyLoss | 6@3

Conv3d in_channels=1 out_channels=4 kernel_size=2
Dropout3d p=0.3
Flatten
Linear in_features=8 out_features=3
: 6x1x2x2x3 | CrossEntropyLoss | 6@3

Linear in_features=4 out_features=16
SELU
AlphaDropout p=0.2
Linear in_features=16 out_features=3
: 8x4 | CrossEntropyLoss | 8@3

Conv1d in_channels=1 out_channels=4 kernel_size=2
FeatureAlphaDropout p=0.3
Flatten
Linear in_features=16 out_features=3
: 6x1x5 | CrossEntropyLoss | 6@3

Embedding num_embeddings=7 embedding_dim=3 padding_idx=2
Flatten
Linear in_features=12 out_features=3
: 5x4@7 | CrossEntropyLoss | 5@3

Embedding num_embeddings=7 embedding_dim=3 max_norm=1
Flatten
Linear in_features=12 out_features=3
: 5x4@7 | CrossEntropyLoss | 5@3

EmbeddingBag num_embeddings=7 embedding_dim=4
Linear in_features=4 out_features=3
: 5x3@7 | CrossEntropyLoss | 5@3

EmbeddingBag num_embeddings=7 embedding_dim=3 mode=sum
: 7@7,2@0..4,7 | MSELoss | 2x3

RNN input_size=3 hidden_size=4 num_layers=2 dropout=0.3
: 5x4x3 | MSELoss | 5x4x4

RNN input_size=3 hidden_size=4 nonlinearity=relu batch_first=true
: 4x5x3 | MSELoss | 4x5x4

GRU input_size=3 hidden_size=4 bidirectional=true
Linear in_features=8 out_features=2
: 5x4x3 | MSELoss | 5x4x2

LSTM input_size=3 hidden_size=4 num_layers=2 bidirectional=true dropout=0.2
Linear in_features=8 out_features=2
: 5x4x3 | MSELoss | 5x4x2

LSTM input_size=3 hidden_size=4 proj_size=2
: 5x4x3 | MSELoss | 5x4x2

RNNCell input_size=3 hidden_size=4
Linear in_features=4 out_features=2
: 5x3 | MSELoss | 5x2

GRUCell input_size=3 hidden_size=4
Linear in_features=4 out_features=2
: 5x3,5x4 | MSELoss | 5x2

LSTMCell input_size=3 hidden_size=4
Linear in_features=4 out_features=2
: 5x3,5x4,5x4 | MSELoss | 5x2

MultiheadAttention embed_dim=4 num_heads=2 dropout=0.2
Linear in_features=4 out_features=2
: 5x3x4 | MSELoss | 5x3x2

TransformerEncoderLayer d_model=4 nhead=2 dim_feedforward=6
Linear in_features=4 out_features=2
: 5x3x4,5x5@b | MSELoss | 5x3x2

TransformerDecoderLayer d_model=4 nhead=2 dim_feedforward=6 norm_first=true activation=gelu batch_first=true
: 3x5x4,3x2x4,-,-,3x5@b,- | MSELoss | 3x5x4

Transformer d_model=4 nhead=2 dim_feedforward=6 num_encoder_layers=2 num_decoder_layers=1
: 5x3x4,4x3x4 | MSELoss | 4x3x4

Bilinear in1_features=3 in2_features=2 out_features=3
Sigmoid
: 6x3,6x2 | BCELoss | 6x3:0..1

PixelUnshuffle downscale_factor=2
Conv2d in_channels=4 out_channels=8 kernel_size=1
ChannelShuffle groups=2
PixelShuffle upscale_factor=2
Upsample scale_factor=2 mode=bilinear
Conv2d in_channels=2 out_channels=1 kernel_size=1
: 2x1x4x4 | MSELoss | 2x1x8x8

Conv2d in_channels=1 out_channels=2 kernel_size=2
Unfold kernel_size=2
Fold output_size=[3 3] kernel_size=2
AdaptiveMaxPool2d size=[2 2]
Unflatten dim=1 unflattened_size=[1 2]
Flatten
Linear in_features=8 out_features=3
: 4x1x4x4 | CrossEntropyLoss | 4@3

weight_norm Linear in_features=4 out_features=6
Tanh
weight_norm Linear in_features=6 out_features=2
: 6x4 | MSELoss | 6x2

spectral_norm Conv2d in_channels=1 out_channels=3 kernel_size=2
Tanh
spectral_norm ConvTranspose2d in_channels=3 out_channels=2 kernel_size=2
: 3x1x3x3 | MSELoss | 3x2x3x3

Linear in_features=3 out_features=5
LogSoftmax dim=2
: 6x2x3 | CTCLoss | 2x2@1..5,2@6..7,2@2..3

Conv1d in_channels=2 out_channels=4 kernel_size=3
InstanceNorm1d num_features=4 affine=true
MaxPool1d kernel_size=2 return_indices=true
MaxUnpool1d kernel_size=2
AvgPool1d kernel_size=2
Flatten
Linear in_features=16 out_features=3
: 4x2x10 | CrossEntropyLoss | 4@3

Conv1d in_channels=2 out_channels=4 kernel_size=2
LPPool1d norm_type=2 kernel_size=2
AdaptiveMaxPool1d size=[2]
Flatten
Linear in_features=8 out_features=3
: 4x2x10 | CrossEntropyLoss | 4@3

Identity
Pad padding=[1 1 1 0] mode=replicate
Conv2d in_channels=2 out_channels=4 kernel_size=2
FractionalMaxPool2d kernel_size=2 output_size=[3 3]
AvgPool2d kernel_size=2 stride=1
Flatten
Linear in_features=16 out_features=3
: 4x2x5x5 | CrossEntropyLoss | 4@3

Conv2d in_channels=2 out_channels=4 kernel_size=2
Softmax2d
MaxPool2d kernel_size=2 return_indices=true
MaxUnpool2d kernel_size=2
AdaptiveAvgPool2d size=[-2147483648 2]
Flatten
Linear in_features=32 out_features=3
: 4x2x5x5 | CrossEntropyLoss | 4@3

Conv3d in_channels=1 out_channels=2 kernel_size=2
MaxPool3d kernel_size=2 return_indices=true
MaxUnpool3d kernel_size=2
AdaptiveAvgPool3d size=[2 1 2]
Flatten
Linear in_features=8 out_features=3
: 4x1x5x3x5 | CrossEntropyLoss | 4@3

Conv3d in_channels=1 out_channels=2 kernel_size=2
FractionalMaxPool3d kernel_size=2 output_ratios=[0.6 0.7 0.5]
Sigmoid
Flatten
Linear in_features=24 out_features=3
: 4x1x6x5x6 | CrossEntropyLoss | 4@3

Conv3d in_channels=1 out_channels=4 kernel_size=2
InstanceNorm3d num_features=4
LPPool3d norm_type=2 kernel_size=2
AdaptiveMaxPool3d size=[1 1 2]
Flatten
Linear in_features=8 out_features=3
: 4x1x3x3x6 | CrossEntropyLoss | 4@3

Linear in_features=3 out_features=4
: 3 | CosineSimilarity dim=0 | 4

Linear in_features=3 out_features=4
: 3 | PairwiseDistance p=3 | 4

Linear in_features=4 out_features=8
Tanh
: 6x4 | AdaptiveLogSoftmaxWithLoss in_features=8 n_classes=7 cutoffs=[2 4] | 6@7

Linear in_features=4 out_features=3
Tanh
: 6x4 | LinearCrossEntropyLoss in_features=3 num_classes=4 bias=true | 6@4
"""

ACTIVATIONS = """PReLU num_parameters=5 | RReLU | GLU | Softmax dim=1 | LogSoftmax dim=1 | Softmin dim=1
CELU alpha=0.5 | Hardtanh | Hardsigmoid | LogSigmoid | Softsign | Tanhshrink | Softshrink lambd=0.1
Hardshrink lambd=0.1 | ReLU6 | Threshold threshold=0.1 value=0.2 | Sigmoid | GELU approximate=tanh"""

LOSSES = """
L1Loss | 6x4
SmoothL1Loss beta=0.5 | 6x4
HuberLoss delta=0.5 | 6x4
KLDivLoss reduction=batchmean log_target=true | 6x4
BCEWithLogitsLoss | 6x4:0..1
NLLLoss ignore_index=1 | 6@4
CrossEntropyLoss label_smoothing=0.1 | 6@4
CrossEntropyLoss | 6x4:0..1
GaussianNLLLoss | 6x4,6x4:.5..2
PoissonNLLLoss | 6x4:0..3
HingeEmbeddingLoss | 6x4@-1..2
MarginRankingLoss margin=0.5 | 6x4,6x4@-1..2
CosineEmbeddingLoss | 6x4,6@-1..2
TripletMarginLoss | 6x4,6x4
SoftMarginLoss | 6x4:-1..1
MultiLabelMarginLoss | 6x4@-1..4
MultiLabelSoftMarginLoss | 6x4:0..1
MultiMarginLoss | 6@4
"""


def cases():
    """(layers, inputs, loss, targets)"""
    for text in TEXT.strip().split("\n\n"):
        *layers, rest = text.split("\n")
        inputs, loss, targets = (part.strip() for part in rest[1:].split("|"))
        yield "; ".join(layers), inputs, loss, targets
    for act in re.split(r" \| |\n", ACTIVATIONS):
        wide, narrow = (6, 3) if act == "GLU" else (5, 5)
        first, last = "Linear in_features=4 out_features=%d", "Linear in_features=%d out_features=2"
        yield "; ".join((first % wide, act, last % narrow)), "6x4", "MSELoss", "6x2"
    for text in LOSSES.strip().split("\n"):
        loss, target = text.split(" | ")
        yield "Linear in_features=3 out_features=4", "6x3", loss, target


class Net(nn.Sequential):
    def forward(self, *inputs):
        for i, m in enumerate(self):
            if isinstance(m, nn.MultiheadAttention):
                y = m(inputs[0], inputs[0], inputs[0], need_weights=False)
            elif isinstance(m, (nn.LSTM, nn.LSTMCell)):
                y = m(inputs[0], tuple(inputs[1:]) or None)
            elif isinstance(m, nn.EmbeddingBag):
                y = m(*inputs[:2], per_sample_weights=inputs[2] if len(inputs) > 2 else None)
            else:
                y = m(*inputs)
            unpool = type(self[i + 1]).__name__.startswith("MaxUnpool") if i + 1 < len(self) else False
            inputs = flat(y) if unpool else flat(y)[:1]
        return inputs[0]


def made(text):
    text = text.strip()
    word, _, rest = text.partition(" ")
    if word in ("weight_norm", "spectral_norm"):
        return getattr(parametrizations, word)(made(rest))
    return (Pad if word == "Pad" else getattr(nn, word))(**torch_arguments(word, parse(rest)))


def tensors(text, k):
    found = [made_input(t, k + i) for i, t in enumerate(text.split(","))]
    return [t.float() if t is not None and t.is_floating_point() else t for t in found]


def main():
    print("torch " + torch.__version__.split("+")[0])
    for layers, inputs, loss, targets in cases():
        lr = 0.003 if "Transformer" in layers else 0.05
        torch.manual_seed(0)
        net = Net(*[made(text) for text in layers.split(";")])
        criterion = made(loss)
        opt = torch.optim.SGD([*net.parameters(), *criterion.parameters()], lr=lr, momentum=0.9)
        x, t = tensors(inputs, 0), tensors(targets, 3)
        torch.manual_seed(1)
        losses = []
        for _ in range(50):
            opt.zero_grad()
            value = flat(criterion(net(*x), *t))[-1]
            value.backward()
            opt.step()
            losses.append(value.item())
        print("train %s|%s|%s|%s|%g" % (layers, inputs, loss, targets, lr))
        print("losses " + " ".join("%.9g" % v for v in losses))
        print("state " + " ".join([*net.state_dict(), *criterion.state_dict()]))


if __name__ == "__main__":
    sys.exit(main())
