"""read.py FOLDER [--if-reachable] - reads what write.c wrote with the programs that users have: safetensors,
TensorBoard's own reader, and PyTorch, without which it fails unless it may."""

import io
import math
import os
import struct
import sys

import numpy as np
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2

folder = sys.argv[1]
checked = []


def path(name):
    return os.path.join(folder, name)


def check(what, good):
    if not good:
        sys.exit("interop: " + what + " is wrong")
    checked.append(what)


def read_dtypes():
    names = {"f32": "F32", "f64": "F64", "f16": "F16", "bf16": "BF16", "i64": "I64", "i32": "I32", "u8": "U8"}
    with safe_open(path("dtypes.safetensors"), "np") as f:
        check("metadata", f.metadata()["note"] == 'a "quoted" \u00e4' and len(f.metadata()["crc32c"]) == 8)
        for name, code in names.items():
            piece = f.get_slice(name)
            check(name, piece.get_dtype() == code and piece.get_shape() == [2, 3])
            if code != "BF16":
                check("values of " + name, np.array_equal(f.get_tensor(name), np.arange(6).reshape(2, 3)))
        check("an empty tensor", f.get_tensor("empty").shape == (0, 3))
        check("a scalar", f.get_tensor("scalar").shape == () and f.get_tensor("scalar") == -0.5)


def read_checkpoint():
    files = os.listdir(path("run"))
    check("names of checkpoints", files == ["checkpoint-00000001.safetensors"])
    with safe_open(path("run/" + files[0]), "np") as f:
        check("format", f.metadata()["format"] == "tapegrad checkpoint" and f.metadata()["version"] == "1")
        check("numbers", f.get_tensor("scalars.step") == 6)
        check("position", f.get_tensor("loader._num_yielded") == 2)
        check("keys", {"model.0.weight", "optimizer.state.0.exp_avg", "rng.state"} <= set(f.keys()))


def events_of(name):
    """The records of an event file, by hand: TensorBoard's reader passes over bad ones."""
    data, at = open(name, "rb").read(), 0
    while at < len(data):
        (n,) = struct.unpack("<Q", data[at : at + 8])
        yield event_pb2.Event.FromString(data[at + 12 : at + 12 + n])
        at += n + 16


def read_board():
    board = event_accumulator.EventAccumulator(path("board"), size_guidance={"histograms": 0, "images": 0})
    board.Reload()
    files = sorted(os.listdir(path("board")))
    count = [len(list(events_of(path("board/" + f)))) for f in files]
    check("events", count == [9, 3])
    loss = board.Scalars("loss/train")
    check("steps after a purge", [e.step for e in loss] == [0, 1, 2, 3, 4])
    want = [math.exp(-i) for i in range(4)] + [42]
    check("scalars", np.allclose([e.value for e in loss], want, rtol=1e-6))
    x = load_file(path("histogram.safetensors"))["histogram"].astype(np.float64)
    h = board.Histograms("weights")[0].histogram_value
    sums = (h.min, h.max, h.num, h.sum, h.sum_squares)
    check("sums of a histogram", np.allclose(sums, (x.min(), x.max(), x.size, x.sum(), (x * x).sum())))
    check("buckets", sum(h.bucket) == x.size and len(h.bucket) == len(h.bucket_limit))
    image = board.Images("image")[0]
    picture = Image.open(io.BytesIO(image.encoded_image_string))
    check("image", (image.width, image.height, picture.size, picture.mode) == (10, 8, (10, 8), "RGB"))
    text = board.Tensors("words/text_summary")[0].tensor_proto.string_val[0].decode()
    check("text", text == "one **two** \u00e4")
    return h, x


def read_pictures():
    image = load_file(path("grids.safetensors"))["image"]
    check("image grid", np.array_equal(np.array(Image.open(path("image.png"))), image.transpose(1, 2, 0)))
    curves = np.array(Image.open(path("curves.png")))
    check("curves", curves.shape == (360, 640, 3) and len(np.unique(curves.reshape(-1, 3), axis=0)) == 6)


def grid(torch, x, nrow=8, padding=2, pad_value=0.0):
    """torchvision.utils.make_grid, which this Python may lack."""
    x = x.expand(-1, 3, -1, -1)
    across = min(nrow, len(x))
    down, (h, w) = -(-len(x) // across), x.shape[2:]
    out = torch.full((3, (h + padding) * down + padding, (w + padding) * across + padding), pad_value)
    for i in range(len(x)):
        top, left = i // across * (h + padding) + padding, i % across * (w + padding) + padding
        out[:, top : top + h, left : left + w] = x[i]
    return out


def scaled(x, low=None, high=None):
    low, high = (float(x.min()), float(x.max())) if low is None else (low, high)
    return x.clone().clamp_(min=low, max=high).sub_(low).div_(max(high - low, 1e-5))


def read_with_torch(h, x):
    try:
        import torch
        from safetensors.torch import load_file as load
    except ImportError:
        if "--if-reachable" in sys.argv:
            return "without PyTorch, which this Python lacks"
        sys.exit("interop: failed: this Python lacks PyTorch; PYTHON= names one that has it")
    from torch.utils.tensorboard.summary import make_histogram

    state = load(path("run/checkpoint-00000001.safetensors"))
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)
    )
    net.load_state_dict({k[6:]: v for k, v in state.items() if k.startswith("model.")})
    answer = load(path("answer.safetensors"))
    check("load_state_dict", torch.allclose(net.eval()(answer["x"]), answer["y"], atol=1e-5))
    opt = torch.optim.AdamW(net.parameters())
    own = [k.split(".") for k in state if k.startswith("optimizer.state.")]
    per = [{k[3]: state[".".join(k)] for k in own if k[2] == str(i)} for i in range(len({k[2] for k in own}))]
    opt.load_state_dict({"state": dict(enumerate(per)), "param_groups": opt.state_dict()["param_groups"]})
    check("an optimizer's state", set(per[0]) == {"step", "exp_avg", "exp_avg_sq"} and per[0]["step"] == 6)
    generator = torch.Generator()
    generator.set_state(state["rng.state"][:5056])
    check("a generator's state", generator.initial_seed() == 1)
    edges, v = [], 1e-12
    while v < 1e20:
        edges.append(v)
        v *= 1.1
    want = make_histogram(x, [-v for v in edges[::-1]] + [0] + edges)
    check("PyTorch's buckets", list(want.bucket) == list(h.bucket))
    check("PyTorch's limits", np.allclose(want.bucket_limit, h.bucket_limit, rtol=1e-12, atol=0))
    g = load(path("grids.safetensors"))
    check("grid", torch.equal(g["plain"], grid(torch, g["x"])))
    check("grid with options", torch.equal(g["options"], grid(torch, scaled(g["x"]), 3, 1, 0.5)))
    each = torch.stack([scaled(v) for v in g["x"]])
    check("grid, each scaled", torch.equal(g["each"], grid(torch, each, 4)))
    check("grey grid", torch.equal(g["range"], grid(torch, scaled(g["x"][:, :1], -0.5, 1.0))))
    check("one image", torch.equal(g["one"], g["x"][2, :1].expand(3, -1, -1)))
    image = grid(torch, scaled(g["x"]), 4).mul(255).add_(0.5).clamp_(0, 255).to(torch.uint8)
    check("save_image", torch.equal(g["image"], image))
    return "PyTorch " + torch.__version__


read_dtypes()
read_checkpoint()
histogram, values = read_board()
read_pictures()
torch_version = read_with_torch(histogram, values)
print("interop: %d things read by safetensors, TensorBoard; %s" % (len(checked), torch_version))
