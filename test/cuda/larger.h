/* larger.h - samples for test_device of sizes that kernels divide among tiles, blocks and pieces: those of
 * the ops' descriptors are too small for that. */
#ifndef LARGER_H
#define LARGER_H

static const struct {
    const char *op, *samples;
} larger[] = {
    { "conv2d", "2x20x9x9,70x20x3x3,70 {padding=1}; 3x66x6x7,5x66x3x3,5 {stride=2 padding=1}" },
    { "conv2d", "5x6x18x20,6x1x3x3,6 {groups=6 stride=2 padding=1}" },
    { "conv_transpose2d", "2x70x5x5,70x6x4x4,6 {stride=2 padding=1}" },
    { "conv1d", "2x40x300,6x40x13,6 {dilation=3}" },
    { "max_pool2d", "2x3x20x18 {kernel_size=7 stride=3 padding=3}" },
    { "avg_pool2d", "2x3x20x18 {kernel_size=7 stride=3 padding=3 ceil_mode=1 count_include_pad=0}" },
    { "adaptive_avg_pool2d", "2x3x17x19 {output_size=[2 1]}" },
    { "adaptive_max_pool2d", "2x3x17x19 {output_size=[2 1]}" },
    { "cumsum", "20000 {dim=0}; 3x9000 {dim=1 reverse=1}; 2x5000 {dim=0}; 300x3 {dim=0}; 40000@i64 {dim=0}" },
    { "logcumsumexp", "20000 {dim=0}; 40x2500 {dim=0}; 3x300 {dim=1}" },
    { "cummax", "17000@i64:0..90 {dim=0}; 300x3@i32 {dim=0}; 33x5000 {dim=0}" },
    { "cummin", "17000@u8 {dim=0}" },
    { "matmul", "70x40@i64,40x35@i64; 33x40@u8,40x35@u8" },
    { "linear", "33x40,24x40,24; 2x9x17,30x17,30" },
    { "linear_act", "33x40,24x40,24 {activation=gelu_tanh}; 2x9x17,30x17,30 {activation=relu}; "
                    "20x16,32x16,- {activation=gelu}" },
    { "scaled_dot_product_attention",
      "2x3x70x16,2x3x70x16,2x3x70x16,- {is_causal=1}; 2x4x67x24,2x2x81x24,2x2x81x40,67x81@bool "
      "{enable_gqa=1}; 33x72,66x72,66x80,33x66; 2x35x8,2x40x8,2x40x8,- {dropout_p=.3}" },
    { "sort", "5000 {dim=0}; 3x5000@i64:0..900 {dim=1 descending=1}; 2500x2 {dim=0}; 300x20@u8 {dim=1}" },
    { "topk", "9000 {k=7}; 3x5000 {k=2100}; 3000x2 {k=4 dim=0 largest=0}" },
    { "median_dim", "2x7001 {dim=1}; 40x50 {dim=0}" },
    { "mode", "2x5001@i64:0..300 {dim=1}; 5001:0..1 {dim=0}" },
    { "kthvalue", "9001 {k=4300 dim=0}" },
    { "searchsorted", "40,2x300" },
    { "tap_spread", "2x3x20,2x2x20@i64:-1..40,2x2x20 {size=40}" },
    { "interpolate", "1x2x12x14 {mode=bilinear size=[30 9]}" },
    { "scatter_add", "9x4,80x4@i64:0..8,80x4 {dim=0}; 3x9,3x80@i64:0..8,3x80 {dim=1}" },
    { "index_add", "9x4,80@i64:0..8,80x4 {dim=0}" },
    { "cdist", "20x40,35x40; 2x17x33,2x5x33 {p=1}; 20x7:1..2,18x7:-1..0 {p=1.5}; 20x40,35x40 {p=inf}" },
    { "pdist", "40x19 {p=3}" },
    { "histc", "5000 {bins=7}; 5000 {bins=600 min=-0.5 max=0.7}" },
    { "multilabel_margin_loss", "3x300,3x300@i64:-1..299; 2x70,2x70@i64:0..9 {reduction=none}" },
    { "ctc_loss",
      "90x2x6,2x40@i64:1..5,2@i64:80..90,2@i64:30..40; 9x2x80,2x4@i64:1..79,2@i64:8..9,2@i64:3..4" },
    { "igamma", "500:1..40,500:.5..60" },
    { "scatter_reduce", "9x4,80x4@i64:0..8,80x4 {dim=0 reduce=mean}" },
};

#endif
