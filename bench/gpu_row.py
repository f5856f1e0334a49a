#!/usr/bin/env python3
"""gpu_row.py JSON TARGET=VALUE... - a row of tools/gpu_check.sh from what side_by_side.py wrote: "ok" or
"below", and how the first case stands to its targets.

FORM=1.3: at least so many times as fast as that form of PyTorch; us=3.5: at most so many microseconds;
copy=0.85: at least that share of the copy rate; memory=1: a peak of at most so many times PyTorch's.
"""

import json, re, sys

row = json.load(open(sys.argv[1]))["rows"][0]
us = row["tapegrad_ns"] / 1e3
said, missed = [], False


def units(name):
    """What a step works on, for tokens or images a second."""
    sizes = re.search(r"_step_(\d+)x(\d+)", name)
    if name.startswith("gpt2_bf16"):
        return int(sizes[1]) * int(sizes[2]), "tokens/s"
    if name.startswith("resnet50"):
        return int(sizes[1]), "images/s"
    return 0, ""


def judge(text, holds, want):
    global missed
    missed = missed or not holds
    said.append(f"{text} (want {want})")


for target in sys.argv[2:]:
    what, want = target.split("=")
    if what == "us":
        judge(f"{us:.2f} us", us <= float(want), want)
    elif what == "copy":
        judge(f"{row['ceiling']:.2f} of the copy rate", row["ceiling"] >= float(want), want)
    elif what == "memory":
        share = row["memory_kb"] / max(1, row["torch_memory_kb"])
        judge(f"{share:.2f} of its memory", share <= float(want), want)
    elif what in row["torch_forms_ns"]:
        ratio = row["torch_forms_ns"][what] / row["tapegrad_ns"]
        judge(f"{ratio:.2f} x {what}", ratio >= float(want), want)
    else:
        judge(f"no {what}", False, want)
count, unit = units(row["case"])
if count:
    said.append(f"{count / us * 1e6:,.0f} {unit}")
elif "us=" not in " ".join(sys.argv):
    said.append(f"{us:.2f} us")
print("below" if missed else "ok", ", ".join(said))
