"""Writes losses_golden.h: the dtype of every loss, for every choice of dtypes of its operands.

    python3 losses.py > losses_golden.h

Needs PyTorch (written with 2.15).  One letter a choice, the last operand running fastest through f32 f64 f16
bf16 i64: s d h b l, - where PyTorch refuses the operands.  Two of its accidents are left out: losses without
a kernel for halves on its CPU are asked in f32, and ctc_loss, which reads floating targets as integers, for
integers only.
"""

import itertools

import torch
import torch.nn.functional as F

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64)
LETTER = dict(zip(DTYPES, "sdhbl"))


def pos(f, *names, first=2):
    """f of operands, those behind the first ones by name."""
    return lambda *t, **k: f(*t[:first], **dict(zip(names, t[first:])), **k)


def linear(*names):
    return pos(F.linear_cross_entropy, *names, first=3)


INDEX = "2x3,2,3"
HALVES = (torch.float16, torch.bfloat16)
WITHOUT_HALVES = ("multi_margin_loss", "multilabel_margin_loss", "ctc_loss")

# (op, shapes, options as the library writes them, function)
CALLS = (
    ("mse_loss", "2x3,2x3,-", "", F.mse_loss),
    ("mse_loss", "2x3,2x3,2x3", "", pos(F.mse_loss, "weight")),
    ("l1_loss", "2x3,2x3,-", "", F.l1_loss),
    ("l1_loss", "2x3,2x3,2x3", "", pos(F.l1_loss, "weight")),
    ("smooth_l1_loss", "2x3,2x3", "", F.smooth_l1_loss),
    ("smooth_l1_loss", "2x3,2x3", "beta=0", lambda *t, **k: F.smooth_l1_loss(*t, beta=0, **k)),
    ("huber_loss", "2x3,2x3,-", "", F.huber_loss),
    ("huber_loss", "2x3,2x3,2x3", "", pos(F.huber_loss, "weight")),
    ("kl_div", "2x3,2x3", "", F.kl_div),
    ("kl_div", "2x3,2x3", "log_target=1", lambda *t, **k: F.kl_div(*t, log_target=True, **k)),
    ("binary_cross_entropy", "2x3,2x3,-", "", F.binary_cross_entropy),
    ("binary_cross_entropy", "2x3,2x3,3", "", pos(F.binary_cross_entropy, "weight")),
    ("binary_cross_entropy_with_logits", "2x3,2x3,-,-", "", F.binary_cross_entropy_with_logits),
    (
        "binary_cross_entropy_with_logits",
        "2x3,2x3,3,-",
        "",
        pos(F.binary_cross_entropy_with_logits, "weight"),
    ),
    (
        "binary_cross_entropy_with_logits",
        "2x3,2x3,-,3",
        "",
        pos(F.binary_cross_entropy_with_logits, "pos_weight"),
    ),
    (
        "binary_cross_entropy_with_logits",
        "2x3,2x3,3,3",
        "",
        pos(F.binary_cross_entropy_with_logits, "weight", "pos_weight"),
    ),
    ("nll_loss", "2x3,2,-", "", F.nll_loss),
    ("nll_loss", INDEX, "", pos(F.nll_loss, "weight")),
    ("cross_entropy", "2x3,2,-", "", F.cross_entropy),
    ("cross_entropy", INDEX, "", pos(F.cross_entropy, "weight")),
    (
        "cross_entropy",
        INDEX,
        "label_smoothing=0.1",
        lambda *t, **k: F.cross_entropy(*t[:2], weight=t[2], label_smoothing=0.1, **k),
    ),
    ("cross_entropy_probabilities", "2x3,2x3,-", "", F.cross_entropy),
    ("cross_entropy_probabilities", "2x3,2x3,3", "", pos(F.cross_entropy, "weight")),
    ("linear_cross_entropy", "2x3,4x3,2,4,-", "", linear("linear_bias")),
    ("linear_cross_entropy", "2x3,4x3,2,-,4", "", linear("weight")),
    ("linear_cross_entropy", "2x3,4x3,2x4,-,4", "", linear("weight")),
    ("gaussian_nll_loss", "2x3,2x3,2x3", "", F.gaussian_nll_loss),
    ("gaussian_nll_loss", "2x3,2x3,2x3", "full=1", lambda *t, **k: F.gaussian_nll_loss(*t, full=True, **k)),
    ("poisson_nll_loss", "2x3,2x3", "", F.poisson_nll_loss),
    (
        "poisson_nll_loss",
        "2x3,2x3",
        "log_input=0",
        lambda *t, **k: F.poisson_nll_loss(*t, log_input=False, **k),
    ),
    ("poisson_nll_loss", "2x3,2x3", "full=1", lambda *t, **k: F.poisson_nll_loss(*t, full=True, **k)),
    ("hinge_embedding_loss", "2x3,2x3", "", F.hinge_embedding_loss),
    ("margin_ranking_loss", "2x3,2x3,2x3", "", F.margin_ranking_loss),
    ("cosine_embedding_loss", "2x3,2x3,2", "", F.cosine_embedding_loss),
    ("triplet_margin_loss", "2x3,2x3,2x3", "", F.triplet_margin_loss),
    ("soft_margin_loss", "2x3,2x3", "", F.soft_margin_loss),
    ("multilabel_soft_margin_loss", "2x3,2x3,-", "", F.multilabel_soft_margin_loss),
    ("multilabel_soft_margin_loss", "2x3,2x3,3", "", pos(F.multilabel_soft_margin_loss, "weight")),
    ("multi_margin_loss", "2x3,2,-", "", F.multi_margin_loss),
    ("multi_margin_loss", INDEX, "", pos(F.multi_margin_loss, "weight")),
    ("multilabel_margin_loss", "2x3,2x3", "", F.multilabel_margin_loss),
    ("ctc_loss", "2x1x3,1x1,1,1", "", F.ctc_loss),
)


def operand(shape, dtype):
    return torch.ones([int(n) for n in shape.split("x")], dtype=dtype)


def asked(op, dtypes):
    """What is asked in the place of these dtypes, and the half that f32 stands for; None: refused here."""
    if op == "ctc_loss" and any(d.is_floating_point for d in dtypes[1:]):
        return None, None
    half = dtypes[0] if op in WITHOUT_HALVES and dtypes[0] in HALVES else None
    if half and torch.float32 in dtypes:
        return None, None
    return [torch.float32 if d == half else d for d in dtypes], half


def letter(op, f, shapes, dtypes, reduction):
    dtypes, half = asked(op, dtypes)
    if dtypes is None:
        return "-"
    try:
        found = f(*(operand(*p) for p in zip(shapes, dtypes)), reduction=reduction).dtype
    except (RuntimeError, ValueError, IndexError, TypeError):
        return "-"
    return LETTER[half if half and found == torch.float32 else found]


def table(op, f, shapes, reduction):
    present = [s for s in shapes.split(",") if s != "-"]
    choices = itertools.product(DTYPES, repeat=len(present))
    return "".join(letter(op, f, present, c, reduction) for c in choices)


def main():
    print("/* Written by losses.py with PyTorch %s. */" % torch.__version__)
    print("static const LossCase loss_golden[] = {")
    for op, shapes, options, f in CALLS:
        for reduction in ("mean", "none"):
            text = ("reduction=%s %s" % (reduction, options)).strip()
            print('    { "%s", "%s", "%s",' % (op, shapes, text))
            letters = table(op, f, shapes, reduction)
            for i in range(0, len(letters), 100):
                print('      "%s"%s' % (letters[i : i + 100], " }," if i + 100 >= len(letters) else ""))
    print("};")


if __name__ == "__main__":
    main()
