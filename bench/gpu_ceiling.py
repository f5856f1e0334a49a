#!/usr/bin/env python3
"""gpu_ceiling.py - what a GPU reaches at most, as PyTorch measures it: copies, and products of each kind."""

import torch


def seconds(block):
    """The median of 7 runs, by events of the device."""
    found = []
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        block()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1e-3)
    return sorted(found[3:])[3]


def product(dtype, side):
    a, b = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
    return 2 * side**3 / seconds(lambda: a @ b) / 1e12


x = torch.rand(1 << 28, device="cuda")
y = torch.empty_like(x)
print(f"copies of 1 GiB: {2 * 4 * x.numel() / seconds(lambda: y.copy_(x)) / 1e9:.0f} GB/s, read and written")
print(f"products, TFLOP/s: f32 {product(torch.float32, 8192):.1f}", end=", ")
torch.backends.cuda.matmul.allow_tf32 = True
print(f"tf32 {product(torch.float32, 8192):.1f}, bf16 {product(torch.bfloat16, 8192):.1f}")
