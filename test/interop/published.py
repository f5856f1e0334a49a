"""published.py write|read FOLDER - files in the layouts of published checkpoints, small and of random values:
names and axes as in gpt2, torchvision's resnet18, bert-base-uncased and LLaMA's shards.  read compares what
published.c has made of them."""

import json
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

action, folder = sys.argv[1:]
draw = np.random.default_rng(1)


def path(name):
    return folder + "/" + name


class Layout:
    """theirs: what is published; ours: what the net is to hold."""

    def __init__(self, dtype=np.float32):
        self.theirs, self.ours, self.dtype = {}, {}, dtype

    def add(self, theirs, ours, *shape, conv1d=False):
        x = draw.standard_normal(shape).astype(self.dtype)
        self.theirs[theirs] = x
        if ours:
            self.ours[ours] = x.T if conv1d else x

    def affine(self, theirs, ours, *shape, names=("weight", "bias"), conv1d=False):
        self.add(theirs + "." + names[0], ours + ".weight", *shape, conv1d=conv1d)
        self.add(theirs + "." + names[1], ours + ".bias", shape[-1 if conv1d else 0])


def gpt2():
    net = Layout()
    net.add("wte.weight", "wte.weight", 11, 8)
    net.ours["lm_head.weight"] = net.ours["wte.weight"]
    net.add("wpe.weight", "wpe.weight", 6, 8)
    for h in ("h.0", "h.1"):
        net.affine(h + ".ln_1", h + ".ln_1", 8)
        net.add(h + ".attn.bias", None, 1, 1, 6, 6)
        net.add(h + ".attn.c_attn.weight", h + ".attn.in_proj_weight", 8, 24, conv1d=True)
        net.add(h + ".attn.c_attn.bias", h + ".attn.in_proj_bias", 24)
        net.affine(h + ".attn.c_proj", h + ".attn.out_proj", 8, 8, conv1d=True)
        net.affine(h + ".ln_2", h + ".ln_2", 8)
        net.affine(h + ".mlp.c_fc", h + ".c_fc", 8, 32, conv1d=True)
        net.affine(h + ".mlp.c_proj", h + ".c_proj", 32, 8, conv1d=True)
    net.affine("ln_f", "ln_f", 8)
    return net


def resnet():
    net = Layout()

    def conv(name, *shape):
        net.add(name + ".weight", name + ".weight", *shape)

    def norm(name, n):
        net.affine(name, name, n)
        for what in ("running_mean", "running_var"):
            net.add(name + "." + what, name + "." + what, n)
        net.ours[name + ".num_batches_tracked"] = np.zeros((), np.int64)

    def block(name, channels_in, channels):
        conv(name + ".conv1", channels, channels_in, 3, 3)
        norm(name + ".bn1", channels)
        conv(name + ".conv2", channels, channels, 3, 3)
        norm(name + ".bn2", channels)

    conv("conv1", 4, 3, 7, 7)
    norm("bn1", 4)
    block("layer1.0", 4, 4)
    block("layer2.0", 4, 8)
    conv("layer2.0.downsample.0", 8, 4, 1, 1)
    norm("layer2.0.downsample.1", 8)
    block("layer2.1", 8, 8)
    net.affine("fc", "fc", 5, 8)
    return net


def bert():
    net, old = Layout(), ("gamma", "beta")
    for theirs, ours, n in (("word", "words", 12), ("position", "positions", 7), ("token_type", "types", 2)):
        net.add("bert.embeddings." + theirs + "_embeddings.weight", ours + ".weight", n, 8)
    net.affine("bert.embeddings.LayerNorm", "norm", 8, names=old)
    for i in range(2):
        theirs, ours = "bert.encoder.layer.%d." % i, "layer.%d." % i
        for name in ("query", "key", "value"):
            net.affine(theirs + "attention.self." + name, ours + name, 8, 8)
        net.affine(theirs + "attention.output.dense", ours + "out", 8, 8)
        net.affine(theirs + "attention.output.LayerNorm", ours + "norm1", 8, names=old)
        net.affine(theirs + "intermediate.dense", ours + "linear1", 16, 8)
        net.affine(theirs + "output.dense", ours + "linear2", 8, 16)
        net.affine(theirs + "output.LayerNorm", ours + "norm2", 8, names=old)
    net.affine("bert.pooler.dense", "pooler", 8, 8)
    net.add("cls.predictions.bias", None, 12)
    net.add("cls.predictions.transform.LayerNorm.gamma", None, 8)
    net.add("cls.seq_relationship.weight", None, 2, 8)
    return net


def llama():
    net = Layout(np.float16)
    net.add("model.embed_tokens.weight", "tokens.weight", 10, 8)
    for i in range(2):
        theirs, ours = "model.layers.%d." % i, "layers.%d." % i
        for name, n in (("q", 8), ("k", 4), ("v", 4), ("o", 8)):
            net.add(theirs + "self_attn." + name + "_proj.weight", ours + name + "_proj.weight", n, 8)
        net.add(theirs + "self_attn.rotary_emb.inv_freq", None, 2)
        net.add(theirs + "mlp.gate_proj.weight", ours + "gate.weight", 12, 8)
        net.add(theirs + "mlp.up_proj.weight", ours + "up.weight", 12, 8)
        net.add(theirs + "mlp.down_proj.weight", ours + "down.weight", 8, 12)
        net.add(theirs + "input_layernorm.weight", ours + "norm1.weight", 8)
        net.add(theirs + "post_attention_layernorm.weight", ours + "norm2.weight", 8)
    net.add("model.norm.weight", "norm.weight", 8)
    net.add("lm_head.weight", "lm_head.weight", 10, 8)
    return net


def write_shards(tensors):
    names, where = list(tensors), {}
    for i, part in enumerate((names[:13], names[13:])):
        file = "model-%05d-of-00002.safetensors" % (i + 1)
        save_file({n: tensors[n] for n in part}, path(file), metadata={"format": "pt"})
        where.update({n: file for n in part})
    total = {"total_size": sum(x.nbytes for x in tensors.values())}
    with open(path("model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": total, "weight_map": where}, f)


nets = {"gpt2": gpt2(), "resnet": resnet(), "bert": bert(), "llama": llama()}
if action == "write":
    write_shards(nets.pop("llama").theirs)
    for name, net in nets.items():
        save_file(net.theirs, path(name + ".safetensors"), metadata={"format": "pt"})
else:
    for name, net in nets.items():
        found = load_file(path("ours-" + name + ".safetensors"))
        if set(found) != set(net.ours):
            sys.exit("interop: %s has other names: %s" % (name, sorted(set(found) ^ set(net.ours))))
        for n, x in net.ours.items():
            if found[n].shape != x.shape or not np.array_equal(found[n], x):
                sys.exit("interop: %s of %s is wrong" % (n, name))
    count = sum(len(net.ours) for net in nets.values())
    print("interop: %d tensors taken from files of published layouts" % count)
