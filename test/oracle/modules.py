"""modules.py - golden values of torch.nn's modules, for test/nn/test_modules.c.

    python test/oracle/modules.py > test/oracle/kinds/nn.golden

A new module: its cases in CASES, by PyTorch's name; a case is the text of its options, which are PyTorch's
arguments too (torch_arguments() knows the few that differ), and its inputs, by commas.  Every option must be
in a case.

    2x3         x_i = 1.5 sin(0.7 i + 0.3 + k) for input k
    2x3:.5..2   those numbers in this range
    4@5 4@1..6  (7 i) mod 5; such integers from 1 to 5
    2x3@b       bool: i mod 3 is 1
    -           none

Each case: the parameters after manual_seed(0) in f32; then in f64 the results in training after
manual_seed(1), the buffers after it, and the results in eval.
"""

import math
import sys

import torch
from torch import nn

torch.set_num_threads(1)
F = nn.functional

CONV = "in_channels=4 out_channels=6 kernel_size=3"
UP = "in_channels=4 out_channels=2 kernel_size=3"
SMALL = "input_size=3 hidden_size=4"
BLOCK = "d_model=4 nhead=2 dim_feedforward=5"
CASES = {
    "Identity": [("", "2x3")],
    "Linear": [("in_features=3 out_features=2", "4x3"), ("in_features=3 out_features=2 bias=false", "2x2x3")],
    "Embedding": [
        ("num_embeddings=5 embedding_dim=3", "2x4@5"),
        ("num_embeddings=5 embedding_dim=2 padding_idx=1 scale_grad_by_freq=true", "4@5"),
        ("num_embeddings=5 embedding_dim=2 padding_idx=-1 max_norm=0.5 norm_type=1", "4@5"),
    ],
    "Conv1d": [
        (CONV + " stride=2 padding=1", "2x4x7"),
        (CONV + " padding=-2147483648 dilation=2 bias=false padding_mode=circular", "2x4x6"),
    ],
    "Conv2d": [
        (CONV + " groups=2", "2x4x4x5"),
        (
            "in_channels=4 out_channels=2 kernel_sizes=[3 2] strides=[2 1] paddings=[1 0] dilations=[1 2]",
            "2x4x5x6",
        ),
        (CONV + " padding=1 padding_mode=reflect", "1x4x3x4"),
    ],
    "Conv3d": [
        ("in_channels=2 out_channels=2 kernel_size=2 padding=1 padding_mode=replicate", "1x2x3x2x3"),
        (
            "in_channels=2 out_channels=2 kernel_sizes=[1 2 2] strides=[2 1 1] "
            "paddings=[0 1 0] dilations=[1 1 2]",
            "1x2x3x3x4",
        ),
        ("in_channels=2 out_channels=4 kernel_size=2 stride=2 dilation=1 groups=2 bias=false", "1x2x4x2x3"),
    ],
    "ConvTranspose1d": [
        (UP + " stride=2 padding=1 output_padding=1", "2x4x5"),
        (UP + " bias=false dilation=2", "4x5"),
    ],
    "ConvTranspose2d": [
        (UP + " groups=2", "2x4x3x4"),
        (
            "in_channels=4 out_channels=2 kernel_sizes=[3 2] strides=[2 1] "
            "paddings=[1 0] output_paddings=[1 0] "
            "dilations=[1 2]",
            "2x4x3x4",
        ),
    ],
    "ConvTranspose3d": [
        (
            "in_channels=2 out_channels=2 kernel_size=2 stride=2 "
            "padding=1 output_padding=1 groups=2 dilation=1",
            "1x2x2x2x3",
        ),
        (
            "in_channels=2 out_channels=2 kernel_sizes=[1 2 2] strides=[2 1 1] paddings=[0 1 0] "
            "output_paddings=[1 0 0] dilations=[1 1 2] bias=false",
            "1x2x2x3x3",
        ),
    ],
    "MaxPool1d": [
        ("kernel_size=2", "2x3x7"),
        ("kernel_size=3 stride=2 padding=1 dilation=2 ceil_mode=true", "2x3x8"),
    ],
    "MaxPool2d": [
        ("kernel_size=2 return_indices=true", "2x2x4x5"),
        ("kernel_sizes=[1 3] strides=[2 1] paddings=[0 1] dilations=[1 2]", "2x2x4x6"),
    ],
    "MaxPool3d": [
        ("kernel_size=2 stride=1 padding=1 dilation=1 ceil_mode=true", "1x2x3x2x3"),
        (
            "kernel_sizes=[1 2 2] strides=[2 1 1] paddings=[0 1 0] dilations=[1 1 2] return_indices=true",
            "1x2x3x3x4",
        ),
    ],
    "AvgPool1d": [("kernel_size=2", "2x3x7"), ("kernel_size=3 stride=2 padding=1 ceil_mode=true", "2x3x8")],
    "AvgPool2d": [
        ("kernel_size=3 padding=1 count_include_pad=false stride=2 ceil_mode=true", "2x2x4x5"),
        ("kernel_sizes=[1 3] strides=[2 1] paddings=[0 1] divisor_override=2", "2x2x4x6"),
    ],
    "AvgPool3d": [
        ("kernel_size=2 stride=1 padding=1 count_include_pad=false", "1x2x3x2x3"),
        (
            "kernel_sizes=[1 2 2] strides=[2 1 1] paddings=[0 1 0] divisor_override=3 ceil_mode=true",
            "1x2x3x3x4",
        ),
    ],
    "FractionalMaxPool2d": [
        ("kernel_size=2 output_size=[3 2] return_indices=true", "2x2x7x5"),
        ("kernel_sizes=[3 2] output_ratio=0.5", "2x8x7"),
    ],
    "FractionalMaxPool3d": [
        ("kernel_size=2 output_ratios=[0.5 0.6 0.4]", "1x2x5x6x7"),
        ("kernel_size=1 output_size=[2 2 2] return_indices=true", "1x2x3x4x5"),
    ],
    "LPPool1d": [("norm_type=2 kernel_size=2", "2x3x7")],
    "LPPool2d": [
        ("norm_type=2 kernel_size=2 stride=1 ceil_mode=true", "2x2x4x5"),
        ("norm_type=4 kernel_sizes=[1 2] strides=[2 1]", "2x2x4x5"),
    ],
    "LPPool3d": [("norm_type=2 kernel_size=2", "1x2x3x2x3")],
    "AdaptiveAvgPool1d": [("size=[3]", "2x3x7")],
    "AdaptiveAvgPool2d": [("size=[2 3]", "2x2x5x4"), ("size=[-2147483648 2]", "2x2x5x4")],
    "AdaptiveAvgPool3d": [("size=[2 1 2]", "1x2x3x3x4"), ("size=[2 -2147483648 -2147483648]", "1x2x3x3x4")],
    "AdaptiveMaxPool1d": [("size=[3]", "2x3x7")],
    "AdaptiveMaxPool2d": [("size=[2 3] return_indices=true", "2x2x5x4"),
                          ("size=[2 -2147483648] return_indices=true", "2x2x5x4")],
    "AdaptiveMaxPool3d": [("size=[2 1 2]", "1x2x3x3x4"), ("size=[-2147483648 1 2]", "1x2x3x3x4")],
    "BatchNorm1d": [("num_features=3", "4x3"), ("num_features=3 eps=0.1 momentum=0.5", "2x3x4")],
    "BatchNorm2d": [
        ("num_features=2 momentum=-1", "2x2x3x2"),
        ("num_features=2 affine=false track_running_stats=false", "2x2x3x2"),
    ],
    "BatchNorm3d": [("num_features=2", "2x2x2x1x3"), ("num_features=2 bias=false", "2x2x2x1x3")],
    "InstanceNorm1d": [("num_features=3", "2x3x4"), ("num_features=3 affine=true bias=false", "3x4")],
    "InstanceNorm2d": [
        ("num_features=2 affine=true track_running_stats=true momentum=0.3 eps=0.01", "2x2x3x2"),
        ("num_features=2", "2x3x2"),
    ],
    "InstanceNorm3d": [("num_features=2", "1x2x2x1x3")],
    "LayerNorm": [
        ("normalized_size=4", "3x4"),
        ("normalized_shape=[2 3] eps=0.1 bias=false", "2x2x3"),
        ("normalized_size=4 elementwise_affine=false", "2x4"),
    ],
    "RMSNorm": [
        ("normalized_size=4", "3x4"),
        ("normalized_shape=[2 3] eps=0.1", "2x2x3"),
        ("normalized_size=4 elementwise_affine=false", "2x4"),
    ],
    "GroupNorm": [
        ("num_groups=1 num_channels=2 bias=false", "2x2x3"),
        ("num_groups=2 num_channels=4", "2x4x3"),
        ("num_groups=4 num_channels=4 eps=0.1 affine=false", "2x4x3"),
    ],
    "LocalResponseNorm": [("size=3", "2x4x3"), ("size=2 alpha=0.1 beta=0.5 k=2", "2x4x3")],
    "Dropout": [("", "20x10"), ("p=0.2", "30")],
    "Dropout1d": [("", "4x6x2")],
    "Dropout2d": [("p=0.3", "4x6x2x1")],
    "Dropout3d": [("", "4x6x1x2x1")],
    "AlphaDropout": [("", "10x10")],
    "FeatureAlphaDropout": [("", "4x6x2")],
    "Flatten": [("", "2x3x2"), ("start_dim=0", "2x3x2"), ("end_dim=1 start_dim=0", "2x3x2")],
    "Unflatten": [("dim=1 unflattened_size=[2 -1]", "2x6")],
    "PixelShuffle": [("upscale_factor=2", "1x4x2x3")],
    "PixelUnshuffle": [("downscale_factor=2", "1x1x4x6")],
    "ChannelShuffle": [("groups=2", "1x4x2x2")],
    "Pad": [
        ("padding=[1 2]", "2x3"),
        ("padding=[1 1 2 0] mode=reflect", "1x2x3x4"),
        ("padding=[1 1] value=3", "2x3"),
        ("padding=[1 1] mode=circular", "1x2x3"),
    ],
    "Upsample": [
        ("scale_factor=2", "1x2x3"),
        ("size=[4 5] mode=bilinear align_corners=true", "1x2x2x3"),
        ("scale_factors=[1.5 2.5] mode=nearest-exact recompute_scale_factor=true", "1x2x2x3"),
    ],
    "ReLU": [("", "3x4")],
    "ReLU6": [("", "3x4")],
    "SiLU": [("", "3x4")],
    "Mish": [("", "3x4")],
    "SELU": [("", "3x4")],
    "Tanh": [("", "3x4")],
    "Sigmoid": [("", "3x4")],
    "LogSigmoid": [("", "3x4")],
    "Softsign": [("", "3x4")],
    "Tanhshrink": [("", "3x4")],
    "Hardsigmoid": [("", "3x4")],
    "Hardswish": [("", "3x4")],
    "Threshold": [("threshold=0.3 value=-2", "3x4")],
    "Softmax": [("dim=0", "3x4")],
    "Softmin": [("dim=-1", "3x4")],
    "LogSoftmax": [("dim=1", "3x4")],
    "Softmax2d": [("", "2x3x1x2"), ("", "3x1x2")],
    "LeakyReLU": [("", "3x4"), ("negative_slope=0.3", "3x4")],
    "ELU": [("", "3x4"), ("alpha=0.5", "3x4")],
    "CELU": [("", "3x4"), ("alpha=0.5", "3x4")],
    "Softplus": [("", "3x4"), ("beta=2 threshold=1", "3x4")],
    "Softshrink": [("", "3x4"), ("lambd=0.2", "3x4")],
    "Hardshrink": [("", "3x4"), ("lambd=0.2", "3x4")],
    "Hardtanh": [("", "3x4"), ("min_val=-0.5 max_val=0.7", "3x4")],
    "RReLU": [("", "3x4"), ("lower=0.1 upper=0.9", "3x4")],
    "PReLU": [("", "3x4"), ("num_parameters=3 init=0.5", "2x3x2")],
    "GELU": [("", "3x4"), ("approximate=tanh", "3x4")],
    "GLU": [("", "3x4"), ("dim=0", "4x3")],
    "RNN": [
        (SMALL, "5x2x3"),
        (
            SMALL
            + " num_layers=2 nonlinearity=relu bias=false batch_first=true bidirectional=true dropout=0",
            "2x5x3",
        ),
    ],
    "GRU": [(SMALL + " num_layers=2 bidirectional=true", "3x2x3"), (SMALL, "3x2x3,1x2x4")],
    "LSTM": [
        (SMALL + " bidirectional=true", "3x2x3,2x2x4,2x2x4"),
        (SMALL + " num_layers=2 batch_first=true bias=false dropout=0", "2x3x3"),
        (SMALL + " bidirectional=true proj_size=2", "3x2x3"),
    ],
    "RNNCell": [(SMALL, "2x3"), (SMALL + " nonlinearity=relu bias=false", "2x3")],
    "GRUCell": [(SMALL, "2x3"), (SMALL, "2x3,2x4")],
    "LSTMCell": [(SMALL, "2x3"), (SMALL, "2x3,2x4,2x4")],
    "Bilinear": [
        ("in1_features=2 in2_features=3 out_features=2", "4x2,4x3"),
        ("in1_features=2 in2_features=3 out_features=2 bias=false", "2,3"),
    ],
    "EmbeddingBag": [
        ("num_embeddings=5 embedding_dim=3", "2x4@5"),
        ("num_embeddings=5 embedding_dim=2 mode=sum padding_idx=2", "6@5,2@0..3,6"),
        ("num_embeddings=5 embedding_dim=2 mode=max include_last_offset=true", "7@5,2@0..8"),
        ("num_embeddings=5 embedding_dim=2 max_norm=0.5 norm_type=1 scale_grad_by_freq=true", "2x3@5"),
    ],
    "MaxUnpool1d": [("kernel_size=2", "1x2x3,1x2x3@6"), ("kernel_size=3 stride=2 padding=1", "1x2x3,1x2x3@5")],
    "MaxUnpool2d": [
        ("kernel_size=2 output_size=[5 4]", "1x1x2x2,1x1x2x2@16"),
        ("kernel_sizes=[1 2] strides=[1 2] paddings=[0 0]", "1x2x2x2,1x2x2x2@8"),
    ],
    "MaxUnpool3d": [("kernel_size=2", "1x1x1x2x2,1x1x1x2x2@32")],
    "Unfold": [
        ("kernel_size=2", "1x2x3x4"),
        ("kernel_sizes=[2 1] dilations=[1 2] paddings=[1 0] strides=[2 1]", "2x1x4x3"),
        ("kernel_size=2 dilation=2 padding=1 stride=2", "1x2x4x4"),
    ],
    "Fold": [
        ("output_size=[3 4] kernel_size=2", "1x8x6"),
        ("output_size=[4 3] kernel_sizes=[2 1] dilations=[1 1] paddings=[1 0] strides=[2 1]", "1x4x9"),
        ("output_size=[4 4] kernel_size=2 dilation=2 padding=1 stride=2", "1x8x4"),
    ],
    "CosineSimilarity": [("", "3x4,3x4"), ("dim=0 eps=0.5", "3x4,3x4")],
    "PairwiseDistance": [("", "3x4,3x4"), ("p=1 eps=0.1 keepdim=true", "3x4,3x4")],
    "MSELoss": [("", "3x4,3x4"), ("reduction=sum", "3x4,3x4")],
    "L1Loss": [("", "3x4,3x4"), ("reduction=none", "3x4,3x4")],
    "SmoothL1Loss": [("beta=0.5", "3x4,3x4"), ("reduction=sum", "3x4,3x4")],
    "HuberLoss": [("delta=0.5", "3x4,3x4"), ("reduction=none", "3x4,3x4")],
    "KLDivLoss": [("reduction=batchmean", "3x4,3x4:.1..1"), ("log_target=true", "3x4,3x4")],
    "BCELoss": [("", "3x4:.1..0.9,3x4:0..1"), ("reduction=sum", "3x4:.1..0.9,3x4:0..1")],
    "BCEWithLogitsLoss": [("", "3x4,3x4:0..1"), ("reduction=none", "3x4,3x4:0..1")],
    "NLLLoss": [("", "4x3,4@3"), ("ignore_index=1 reduction=sum", "4x3,4@3")],
    "CrossEntropyLoss": [
        ("", "4x3,4@3"),
        ("ignore_index=1 label_smoothing=0.2", "2x3x2,2x2@3"),
        ("reduction=sum", "4x3,4x3:0..1"),
    ],
    "GaussianNLLLoss": [("", "3x4,3x4,3x4:.5..2"), ("full=true eps=0.1 reduction=none", "3x4,3x4,3x4:.5..2")],
    "PoissonNLLLoss": [
        ("", "3x4,3x4@4"),
        ("log_input=false full=true eps=0.1 reduction=sum", "3x4:.5..2,3x4:.2..4"),
    ],
    "HingeEmbeddingLoss": [("", "3x4,3x4@-1..2"), ("margin=0.7 reduction=none", "3x4,3x4@-1..2")],
    "MarginRankingLoss": [("", "5,5,5@-1..2"), ("margin=0.3 reduction=sum", "5,5,5@-1..2")],
    "CosineEmbeddingLoss": [("", "5x3,5x3,5@-1..2"), ("margin=0.3 reduction=none", "5x3,5x3,5@-1..2")],
    "TripletMarginLoss": [
        ("", "3x4,3x4,3x4"),
        ("margin=2 p=1 eps=0.01 swap=true reduction=sum", "3x4,3x4,3x4"),
    ],
    "SoftMarginLoss": [("", "3x4,3x4@-1..2"), ("reduction=sum", "3x4,3x4@-1..2")],
    "MultiLabelMarginLoss": [("", "3x4,3x4@-1..4"), ("reduction=none", "3x4,3x4@-1..4")],
    "MultiLabelSoftMarginLoss": [("", "3x4,3x4@2"), ("reduction=none", "3x4,3x4@2")],
    "MultiMarginLoss": [("", "3x4,3@4"), ("p=2 margin=0.5 reduction=sum", "3x4,3@4")],
    "CTCLoss": [
        ("", "6x2x4,2x2@1..4,2@6..7,2@2..3"),
        ("blank=3 zero_infinity=true reduction=none", "3x2x4,2x3@3,2@3..4,2@3..4"),
    ],
    "LinearCrossEntropyLoss": [
        ("in_features=3 num_classes=4 bias=true label_smoothing=0.1 ignore_index=1 reduction=sum", "5x3,5@4"),
        ("in_features=3 num_classes=4 out_features=[2]", "5x3,5x2@4"),
    ],
    "AdaptiveLogSoftmaxWithLoss": [
        ("in_features=8 n_classes=7 cutoffs=[2 4]", "6x8,6@7"),
        ("in_features=6 n_classes=6 cutoffs=[3] div_value=2 head_bias=true", "4x6,4@3"),
    ],
    "TransformerEncoderLayer": [
        (BLOCK, "3x2x4"),
        (BLOCK + " dropout=0 activation=gelu layer_norm_eps=0.1 batch_first=true norm_first=true bias=false",
         "2x3x4,3x3@b,2x3@b"),
    ],
    "TransformerDecoderLayer": [
        (BLOCK, "3x2x4,2x2x4"),
        (BLOCK + " dropout=0.3 norm_first=true batch_first=true",
         "2x3x4,2x3x4,3x3@b,3x3@b,2x3@b,2x3@b"),
    ],
    "Transformer": [
        (BLOCK + " num_encoder_layers=1 num_decoder_layers=2", "3x2x4,2x2x4"),
        (
            BLOCK + " num_encoder_layers=2 num_decoder_layers=1 dropout=0 activation=gelu "
            "layer_norm_eps=0.01 batch_first=true norm_first=true bias=false",
            "2x3x4,2x3x4,-,3x3@b,-,2x3@b,-,2x3@b",
        ),
    ],
    "MultiheadAttention": [
        ("embed_dim=4 num_heads=2", "3x2x4"),
        ("embed_dim=4 num_heads=2 bias=false batch_first=true dropout=0", "2x3x4"),
        ("embed_dim=4 num_heads=2 add_bias_kv=true add_zero_attn=true", "3x4"),
        ("embed_dim=4 num_heads=2 causal=true", "3x2x4"),
        ("embed_dim=4 num_heads=2 kdim=3 vdim=5", "cross"),
    ],
}


class Pad(nn.Module):
    def __init__(self, padding, mode="constant", value=None):
        super().__init__()
        self.args = list(padding), mode, value

    def forward(self, x):
        return F.pad(x, *self.args)


def number(value):
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value


def parse(text):
    options, at = {}, 0
    while at < len(text):
        name, _, rest = text[at:].partition("=")
        end = rest.index("]") + 1 if rest.startswith("[") else (rest + " ").index(" ")
        value = rest[:end]
        at += len(name) + 1 + end + 1
        if value.startswith("["):
            options[name] = tuple(number(v) for v in value[1:-1].split())
        elif value in ("true", "false"):
            options[name] = value == "true"
        else:
            options[name] = number(value)
    return options


def torch_arguments(name, options):
    """What PyTorch names otherwise."""
    out = {}
    for key, value in options.items():
        if key in ("kernel_sizes", "strides", "paddings", "output_paddings", "dilations", "scale_factors",
                   "output_ratios"):
            key = key[:-1]
        if name.startswith("Adaptive") and key == "size":
            value = tuple(None if v == -2147483648 else v for v in value)
            key, value = "output_size", value[0] if len(value) == 1 else value
        if key == "normalized_size":
            key = "normalized_shape"
        if key == "padding" and value == -2147483648:
            value = "same"
        if key == "momentum" and value == -1:
            value = None
        if key != "causal" and (key != "output_size" or not name.startswith("MaxUnpool")):
            out[key] = value
    return out


def flat(results):
    if torch.is_tensor(results):
        return [results]
    return [y for r in results or () for y in flat(r)]


def results(module, name, options, inputs):
    x = inputs[0]
    if name == "MultiheadAttention":
        mask = None
        if options.get("causal"):
            mask = torch.triu(torch.ones(x.shape[0], x.shape[0], dtype=torch.bool), 1)
        return [module(x, x, x, attn_mask=mask, need_weights=False)[0]]
    if name.startswith("LSTM"):
        return flat(module(x, tuple(inputs[1:]) or None))
    if name == "EmbeddingBag":
        return [module(*inputs[:2], per_sample_weights=inputs[2] if len(inputs) > 2 else None)]
    if name.startswith("MaxUnpool"):
        return [module(*inputs, output_size=options.get("output_size"))]
    if name in ("SoftMarginLoss", "MultiLabelSoftMarginLoss"):
        inputs = [y.double() for y in inputs]
    return flat(module(*inputs))


def made_input(text, k=0):
    if text == "-":
        return None
    shape, _, kind = text.partition("@")
    shape, _, bounds = shape.partition(":")
    dims = [int(d) for d in shape.split("x")]
    n = math.prod(dims)
    if kind == "b":
        return torch.tensor([i % 3 == 1 for i in range(n)]).reshape(dims)
    if kind:
        low, _, high = kind.rpartition("..")
        low = int(low or 0)
        return torch.tensor([low + (7 * i) % (int(high) - low) for i in range(n)]).reshape(dims)
    wave = [math.sin(0.7 * i + 0.3 + k) for i in range(n)]
    low, _, high = bounds.partition("..")
    values = [float(low) + (float(high) - float(low)) * (0.5 + 0.5 * w) if bounds else 1.5 * w for w in wave]
    return torch.tensor(values, dtype=torch.float64).reshape(dims)


def line(word, tensor, digits):
    shape = "x".join(str(d) for d in tensor.shape) or "-"
    print(word, shape, " ".join("%.*g" % (digits, v) for v in tensor.detach().flatten().tolist()))


def attention_calls(module, options):
    """3 queries, 5 keys: plain; with bool masks (true is ignored); with a float mask and weights a head."""
    query = made_input("3x2x4")
    key, value = (
        made_input("5x2x%d" % options.get("kdim", 4)),
        made_input("5x2x%d" % options.get("vdim", 4)) * 0.5,
    )
    if options.get("batch_first"):
        query, key, value = (x.transpose(0, 1).contiguous() for x in (query, key, value))
    i, j = torch.arange(3)[:, None], torch.arange(5)[None, :]
    ignored, padding = (i + 2 * j) % 3 == 0, (torch.arange(2)[:, None] + j) % 4 == 3
    added = 0.3 * torch.sin((5 * i + j).double())
    for how in (
        {},
        {"attn_mask": ignored, "key_padding_mask": padding},
        {"attn_mask": added, "average_attn_weights": False},
    ):
        y, weights = module(query, key, value, **how)
        line("call", y, 17)
        line("weights", weights, 17)


def run(name, text, shape):
    options = parse(text)
    kind = Pad if name == "Pad" else getattr(nn, name)
    torch.manual_seed(0)
    module = kind(**torch_arguments(name, options))
    print("module %s|%s|%s" % (name, text, shape))
    for key, p in module.named_parameters():
        line("param " + key, p, 9)
    module = module.double()
    if name == "MultiheadAttention" and "causal" not in text:
        attention_calls(module, options)
    if shape == "cross":
        return
    inputs = [made_input(text, k) for k, text in enumerate(shape.split(","))]
    torch.manual_seed(1)
    for y in results(module, name, options, inputs):
        line("train", y, 17)
    for key, b in module.named_buffers():
        line("buffer " + key, b, 17)
    module.eval()
    for y in results(module, name, options, inputs):
        line("eval", y, 17)


def main():
    print("torch " + torch.__version__.split("+")[0])
    for name, cases in CASES.items():
        for text, shape in cases:
            run(name, text, shape)


if __name__ == "__main__":
    sys.exit(main())
