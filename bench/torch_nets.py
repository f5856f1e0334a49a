"""torch_nets.py - the networks of bench/nets.c in PyTorch."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp_net():
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def mnist_net():
    convs = [
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
    ]
    return nn.Sequential(
        *convs, nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)
    )


def conv_norm(i, o, size, stride):
    return nn.Sequential(nn.Conv2d(i, o, size, stride, size // 2, bias=False), nn.BatchNorm2d(o))


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.Sequential(conv_norm(i, o, 3, stride), nn.ReLU(), conv_norm(o, o, 3, 1))
        self.shortcut = nn.Identity() if i == o and stride == 1 else conv_norm(i, o, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet18_net():
    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    sizes += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    blocks = [BasicBlock(*s) for s in sizes]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    return nn.Sequential(conv_norm(3, 64, 3, 1), nn.ReLU(), *blocks, *tail)


class Bottleneck(BasicBlock):
    def __init__(self, i, width, stride):
        nn.Module.__init__(self)
        o = 4 * width
        self.body = nn.Sequential(
            conv_norm(i, width, 1, 1),
            nn.ReLU(),
            conv_norm(width, width, 3, stride),
            nn.ReLU(),
            conv_norm(width, o, 1, 1),
        )
        self.shortcut = nn.Identity() if i == o and stride == 1 else conv_norm(i, o, 1, stride)


def resnet50_net(width):
    stages, i = [], width
    for s, blocks in enumerate((3, 4, 6, 3)):
        for k in range(blocks):
            stages.append(Bottleneck(i, width << s, 2 if s and not k else 1))
            i = 4 * width << s
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000)]
    return nn.Sequential(conv_norm(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *stages, *tail)


class CharLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(256, 256, 2), nn.Linear(256, 64)

    def forward(self, x):
        return self.head(self.lstm(x)[0].flatten(0, 1))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 400), nn.ReLU())
        self.mean, self.logvar = nn.Linear(400, 20), nn.Linear(400, 20)
        self.decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid())

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mean(h), self.logvar(h)
        std = torch.exp(0.5 * logvar)
        return self.decoder(torch.addcmul(mu, torch.randn_like(std), std)), mu, logvar


def generator_net():
    def up(i, o, stride, padding):
        return nn.ConvTranspose2d(i, o, 4, stride, padding, bias=False)

    layers = [
        up(64, 256, 1, 0),
        nn.BatchNorm2d(256),
        nn.ReLU(),
        up(256, 128, 2, 1),
        nn.BatchNorm2d(128),
        nn.ReLU(),
    ]
    return nn.Sequential(
        *layers, up(128, 64, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), up(64, 1, 2, 1), nn.Tanh()
    )


def discriminator_net():
    def down(i, o, stride, padding):
        return nn.Conv2d(i, o, 4, stride, padding, bias=False)

    layers = [
        down(1, 64, 2, 1),
        nn.LeakyReLU(0.2),
        down(64, 128, 2, 1),
        nn.BatchNorm2d(128),
        nn.LeakyReLU(0.2),
    ]
    layers += [
        down(128, 256, 2, 1),
        nn.BatchNorm2d(256),
        nn.LeakyReLU(0.2),
        down(256, 1, 1, 0),
        nn.Flatten(0),
    ]
    return nn.Sequential(*layers)


class GptBlock(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width, bias),
            nn.GELU("tanh" if bias else "none"),
            nn.Linear(4 * width, width, bias),
        )

    def forward(self, x):
        n, t, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, 2)
        q, k, v = (p.view(n, t, self.heads, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, width, heads, layers, bias):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[GptBlock(width, heads, bias) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.tokens.weight = self.head.weight
        self.register_buffer("places", torch.arange(context), persistent=False)

    def forward(self, tokens, targets=None):
        logits = self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(self.places))))
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(0, 1))
