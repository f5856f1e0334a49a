"""rng.py - golden random numbers from PyTorch, printed as the C header rng_golden.h.

    python rng.py > rng_golden.h

Numbers from the CPU generator.  Short draws are listed; of long ones only a digest is kept: FNV-1a over
the elements, each taken as its bits widened to 64.  f32 numbers of AVX2 machines: run it on one.
"""

import struct

import torch
from torch.utils.data import DataLoader, TensorDataset

f16, bf16, f32, f64, i64 = torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64
C_TYPE = {
    f32: "float",
    f64: "double",
    f16: "float",
    bf16: "float",
    i64: "int64_t",
    torch.bool: "uint8_t",
    torch.uint8: "uint8_t",
}


def seed(s):
    torch.manual_seed(s)


def text(value, dtype):
    if dtype in (f16, bf16, f32):
        return "%.9gf" % value if "." in "%.9g" % value or "e" in "%.9g" % value else "%.9g.0f" % value
    if dtype == f64:
        return "%.17g" % value if "." in "%.17g" % value or "e" in "%.17g" % value else "%.17g.0" % value
    return "%d" % value


def table(name, t):
    t = t.flatten()
    print("static const %s %s[%d] = {" % (C_TYPE[t.dtype], name, t.numel()))
    line = "   "
    for v in t.tolist():
        item = " " + text(v, t.dtype) + ","
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def digest(name, t):
    if t.dtype in (f16, bf16):
        t = t.float()
    if t.dtype == f32:
        words = t.flatten().view(torch.int32).tolist()
        words = [w & 0xFFFFFFFF for w in words]
    elif t.dtype == f64:
        words = [struct.unpack("<Q", struct.pack("<d", v))[0] for v in t.flatten().tolist()]
    else:
        words = [int(v) & 0xFFFFFFFFFFFFFFFF for v in t.flatten().tolist()]
    h = 0xCBF29CE484222325
    for w in words:
        h = ((h ^ w) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    print("static const uint64_t %s = UINT64_C(0x%016x);" % (name, h))


def note(s):
    print("\n/* %s */" % s)


def empty(n, dtype=f32):
    return torch.empty(n, dtype=dtype)


print(
    "/* rng_golden.h - printed by rng.py with PyTorch %s; do not edit. */" % torch.__version__.split("+")[0]
)
print("#ifndef TAPEGRAD_TEST_RNG_GOLDEN_H\n#define TAPEGRAD_TEST_RNG_GOLDEN_H\n\n#include <stdint.h>")

note("torch.Generator().initial_seed()")
print("static const uint64_t golden_default_seed = UINT64_C(%d);" % torch.Generator().initial_seed())

note("rand: seed 0; digests of 3 and then 1000 elements, and of seed 2^32 + 5")
seed(0)
table("golden_rand_f32", torch.rand(12))
seed(0)
table("golden_rand_f64", torch.rand(12, dtype=f64))
seed(0)
torch.rand(3)
digest("golden_rand_f32_digest", torch.rand(1000))
seed(0)
torch.rand(3)
digest("golden_rand_f64_digest", torch.rand(1000, dtype=f64))
seed(2**32 + 5)
digest("golden_rand_seed_digest", torch.rand(1000))

note("uniform_ on [-0.1, 0.3); on [1e6, 1e6 + 0.5), where some f32 results round up to the end; seed 1")
seed(1)
table("golden_uniform_f32", empty(12).uniform_(-0.1, 0.3))
seed(1)
digest("golden_uniform_f32_digest", empty(3000).uniform_(-0.1, 0.3))
seed(1)
table("golden_uniform_end", empty(40).uniform_(1e6, 1e6 + 0.5))
seed(1)
digest("golden_uniform_f64_digest", empty(3000, f64).uniform_(-0.1, 0.3))
seed(1)
digest("golden_uniform_f64_end", empty(100, f64).uniform_(2.0**52, 2.0**52 + 2))
seed(1)
table("golden_uniform_f64", empty(8, f64).uniform_(-0.1, 0.3))

note("half types: rand, uniform_ on [-0.3, 0.7); seed 2")
for n, d in (("f16", f16), ("bf16", bf16)):
    seed(2)
    table("golden_rand_" + n, torch.rand(12, dtype=d))
    seed(2)
    digest("golden_rand_%s_digest" % n, torch.rand(9000, dtype=d))
    seed(2)
    digest("golden_uniform_%s_digest" % n, empty(9000, d).uniform_(-0.3, 0.7))

note("half: subnormal on [-2^-13, 2^-13), and infinite ones from normal_(0, 60000); seed 2")
seed(2)
digest("golden_uniform_f16_tiny", empty(1000, f16).uniform_(-(2.0**-13), 2.0**-13))
seed(2)
digest("golden_normal_f16_huge", empty(1000, f16).normal_(0, 60000))

note("randn: seed 0, by count")
for n in (1, 5, 15, 16, 17, 31, 33, 100):
    seed(0)
    table("golden_randn_f32_%d" % n, torch.randn(n))
for n in (15, 16, 17, 33):
    seed(0)
    table("golden_randn_f64_%d" % n, torch.randn(n, dtype=f64))
seed(0)
digest("golden_randn_f32_digest", torch.randn(40009))

note("normal_(1.3, 0.37): seed 3")
for n in (5, 20):
    seed(3)
    table("golden_normal_f32_%d" % n, empty(n).normal_(1.3, 0.37))
    seed(3)
    table("golden_normal_f64_%d" % n, empty(n, f64).normal_(1.3, 0.37))
seed(3)
digest("golden_normal_f32_digest", empty(40000).normal_(1.3, 0.37))

note("half normals: 5 (16 and 33) of seed 4, and one uniform after them")
for n, d in (("f16", f16), ("bf16", bf16)):
    for k in (5, 16, 33):
        seed(4)
        table("golden_randn_%s_%d" % (n, k), torch.randn(k, dtype=d))
        table("golden_after_%s_%d" % (n, k), torch.rand(1))
    seed(4)
    digest("golden_randn_%s_digest" % n, torch.randn(8000, dtype=d))

note("the kept normal: randn 3, rand 2, randn 16, randn 2 (its first was kept), randn 17, rand 1; seed 5")
seed(5)
table(
    "golden_kept",
    torch.cat(
        [torch.randn(3), torch.rand(2), torch.randn(16), torch.randn(2), torch.randn(17), torch.rand(1)]
    ),
)

note(
    "a tensor that is not contiguous: 20 elements, each by the recipe for few; seed 6, in the order of memory"
)
seed(6)
x = torch.empty(4, 5).t()
x.normal_()
table("golden_each", x.t().contiguous())
table("golden_each_after", torch.rand(3))

note("randint on [-5, range - 5): seed 7")
for name, r in (
    ("10", 10),
    ("below", 2**28 - 1),
    ("at", 2**28),
    ("2_31", 2**31),
    ("2_32", 2**32),
    ("2_40", 2**40),
    ("2_62", 2**62),
):
    seed(7)
    table("golden_randint_" + name, torch.randint(-5, r - 5, (6,)))
    seed(7)
    digest("golden_randint_%s_digest" % name, torch.randint(-5, r - 5, (1000,)))

note("int64 random_(): seed 8")
seed(8)
table("golden_random_i64", empty(5, i64).random_())

note("randperm: seed 0 and 9")
seed(0)
table("golden_randperm_10", torch.randperm(10))
seed(9)
table("golden_randperm_33", torch.randperm(33))
seed(9)
digest("golden_randperm_digest", torch.randperm(70000))

note("bernoulli_(0.3), bernoulli(p) with p = k / 16, the mask of dropout(0.1); seed 10")
seed(10)
table("golden_bernoulli", empty(60, torch.bool).bernoulli_(0.3))
seed(10)
digest("golden_bernoulli_digest", empty(5000, torch.bool).bernoulli_(0.3))
seed(10)
table("golden_bernoulli_f32", torch.bernoulli(torch.arange(17.0) / 16).bool())
seed(10)
table("golden_bernoulli_f64", torch.bernoulli(torch.arange(17.0, dtype=f64) / 16).bool())
seed(10)
table("golden_dropout", torch.nn.functional.dropout(torch.ones(80), 0.1) != 0)

note("exponential_(1.5): seed 11")
seed(11)
table("golden_exponential_f32", empty(20).exponential_(1.5))
seed(11)
table("golden_exponential_f64", empty(20, f64).exponential_(1.5))

note("trunc_normal_: seed 12; (mean, std, a, b) = (0, 1, -1, 1) and (0, 1, 2, 3)")
trunc = torch.nn.init.trunc_normal_
for n, d in (("f32", f32), ("f64", f64)):
    seed(12)
    table("golden_trunc_bell_" + n, trunc(empty(20, d), 0, 1, -1, 1))
    seed(12)
    table("golden_trunc_tail_" + n, trunc(empty(20, d), 0, 1, 2, 3))
    # (mean, std, a, b): the right tail, the left one, and a slice around the mean
    for name, args in (("right", (0.5, 0.3, 1, 2)), ("left", (-2, 3, -9, -6)), ("slice", (1, 4, 0.5, 1.25))):
        seed(12)
        table(f"golden_trunc_{name}_{n}", trunc(empty(12, d), *args))
seed(12)
digest("golden_trunc_bell_digest", trunc(empty(3001), 0.1, 0.7, -1, 1))
seed(12)
digest("golden_trunc_tail_digest", trunc(empty(3001), 0, 1, 0.8, 3))

note(
    "DataLoader of 10, no workers, one epoch, then rand: seed 13; not shuffled, shuffled, shuffled by its own generator"
)
data = TensorDataset(torch.arange(10))
seed(13)
list(DataLoader(data, batch_size=5))
table("golden_loader_plain_after", torch.rand(1))
seed(13)
order = torch.cat([b[0] for b in DataLoader(data, batch_size=3, shuffle=True)])
table("golden_loader_order", order)
table("golden_loader_after", torch.rand(1))
g = torch.Generator()
g.manual_seed(13)
order = torch.cat([b[0] for b in DataLoader(data, batch_size=3, shuffle=True, generator=g)])
table("golden_loader_own_order", order)
table("golden_loader_own_after", torch.rand(1, generator=g))

note("random_() of 8 elements by dtype: seed 14")
for n, d in (
    ("i32", torch.int32),
    ("u8", torch.uint8),
    ("bool", torch.bool),
    ("f32", f32),
    ("f64", f64),
    ("f16", f16),
    ("bf16", bf16),
):
    seed(14)
    table("golden_random_" + n, empty(8, d).random_().to(i64))

note("in the order of memory: rand_like and randn_like of a transposed [6, 4], read by rows; seed 15")
like = torch.empty(6, 4).t()
seed(15)
table("golden_rand_like", torch.rand_like(like))
seed(15)
table("golden_randn_like", torch.randn_like(like))

note("exponential_(1.5) of halves: seed 11")
for n, d in (("f16", f16), ("bf16", bf16)):
    seed(11)
    table("golden_exponential_" + n, empty(20, d).exponential_(1.5))

note("multinomial of weights (k % 5 + 1) in 3 rows of 20; seed 16")
weights = (torch.arange(60) % 5 + 1).reshape(3, 20)
for n, d in (("f32", f32), ("f64", f64)):
    seed(16)
    table("golden_multinomial_" + n, torch.multinomial(weights.to(d), 8, replacement=True))
    seed(16)
    table("golden_multinomial_apart_" + n, torch.multinomial(weights.to(d), 8))
    seed(16)
    table("golden_multinomial_one_" + n, torch.multinomial(weights.to(d), 1))

note("dropout of 1 .. 24 in the shapes of each function; seed 17")
F = torch.nn.functional
counted = torch.arange(1.0, 25.0)
for n, x in (
    ("dropout", counted),
    ("dropout1d", counted.reshape(2, 3, 4)),
    ("dropout2d", counted.reshape(2, 6, 2, 1)),
    ("dropout3d", counted.reshape(1, 12, 2, 1, 1)),
    ("alpha_dropout", counted),
    ("feature_alpha_dropout", counted.reshape(2, 6, 2)),
):
    seed(17)
    table("golden_" + n + "_17", getattr(F, n)(x, 0.4, training=True))
for n, d in (("bf16", bf16), ("f64", f64)):
    seed(17)
    table("golden_dropout_" + n, F.dropout(counted.to(d), 0.4))
seed(17)
table("golden_dropout_transposed", F.dropout(counted.reshape(6, 4).t(), 0.4))
seed(17)
table("golden_dropout_all", torch.cat([F.dropout(counted, 1.0), F.dropout(counted[:0], 0.5), torch.rand(1)]))

note(
    "attention with dropout 0.5, q = k = v = 0, 1/24, ... of [2, 3, 4]; an LSTM of two layers, dropout 0.5: seed 17"
)
q = (torch.arange(24, dtype=f64) / 24).reshape(2, 3, 4)
seed(17)
table("golden_attention_dropout", F.scaled_dot_product_attention(q, q, q, dropout_p=0.5))
seed(17)
lstm = torch.nn.LSTM(3, 2, num_layers=2, dropout=0.5, batch_first=True)
table("golden_lstm_dropout", lstm(torch.ones(2, 4, 3))[0].detach())

note("rrelu in training of 1, -2, 3, -4 ... -12, 0, between 0.1 and 0.9; seed 18")
signed = torch.arange(1.0, 13.0) * torch.tensor([1.0, -1.0]).repeat(6)
signed = torch.cat([signed, torch.zeros(1)])
for n, d in (("f32", f32), ("f64", f64), ("bf16", bf16)):
    seed(18)
    table("golden_rrelu_" + n, F.rrelu(signed.to(d), 0.1, 0.9, training=True))
seed(18)
table("golden_rrelu_transposed", F.rrelu(-counted.reshape(6, 4).t(), 0.1, 0.9, training=True))

note(
    "normal with tensors: mean 0 .. 19 and std 1 .. 20, each with a number (2), mean [4, 1] with std [5]; seed 19"
)
mean, std = torch.arange(20.0), torch.arange(1.0, 21.0)
for n, a, b in (
    ("both", mean, std),
    ("mean", mean, 2.0),
    ("std", 2.0, std),
    ("broadcast", mean[:4].reshape(4, 1), std[:5]),
    ("f64", mean.double(), std.double()),
    ("few", mean[:5], std[:5]),
):
    seed(19)
    table("golden_normal_" + n, torch.normal(a, b))

note("the bytes of get_rng_state: seed 2^40 + 5, after randn(3) and rand(700); and the rand(4) that follows")
seed(2**40 + 5)
torch.randn(3)
torch.rand(700)
digest("golden_state_digest", torch.get_rng_state())
table("golden_state_next", torch.cat([torch.randn(1), torch.rand(3)]))

print("\n#endif")
