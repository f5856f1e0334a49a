#!/usr/bin/env python3
"""figure.py PNG JSON... - draws the ratios of the training steps from tables of side_by_side.py.

A bar for each number of threads, with the least and the greatest ratio; PyTorch is the line at 1.
"""

import json, sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

LABELS = dict(
    mlp="MLP",
    mnist_cnn="MNIST CNN",
    resnet18="ResNet-18",
    nanogpt="nanoGPT",
    lstm="LSTM",
    dcgan="DCGAN",
    vae="VAE",
    gpt2_block="GPT-2 block",
    mnist_cnn_bf16="MNIST CNN, bf16",
    resnet18_bf16="ResNet-18, bf16",
    nanogpt_bf16="nanoGPT, bf16",
)

files = [json.load(open(path)) for path in sys.argv[2:]]
all_rows = [r for f in files for r in f["rows"] if "ratio" in r]
counts = sorted({r["threads"] for r in all_rows})
tables = [{r["case"]: r for r in all_rows if r["threads"] == n} for n in counts]
names = [name for name in LABELS if all(f"{name}_step" in rows for rows in tables)]
figure, axes = pyplot.subplots(figsize=(8, 0.42 * len(names) + 1.4), layout="constrained")
high = 0.8 / len(tables)
for i, rows in enumerate(tables):
    steps = [rows[f"{name}_step"] for name in names]
    ratios = [r["ratio"] for r in steps]
    ranges = [[r["ratio"] - r["least"] for r in steps], [r["most"] - r["ratio"] for r in steps]]
    threads = steps[0]["threads"]
    places = [k + (i - (len(tables) - 1) / 2) * high for k in range(len(names))]
    bars = axes.barh(places, ratios, high, xerr=ranges, label=f"{threads} thread{'s' * (threads > 1)}")
    axes.bar_label(bars, [f"{r:.2f}" for r in ratios], padding=6, fontsize=8)
axes.axvline(1, color="black", linewidth=1)
axes.set_yticks(range(len(names)), [LABELS[name] for name in names])
axes.invert_yaxis()
machine = files[0]["machine"]
axes.set_xlabel(
    f"times faster than PyTorch {machine['torch'].split('+')[0]} ({machine['cpu']}, {machine['date']})"
)
figure.legend(loc="outside upper right", ncols=len(tables))
figure.savefig(sys.argv[1], dpi=110)
