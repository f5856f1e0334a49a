"""cases_product.py - products of tensors: einsum and its kin, and random ones of matmul and its kin
(those by hand: cases_nn.py)."""

import torch
import torch.nn.functional as F

from golden import booleans, chance, choice, floats, integers, narrower, number, scalar, shape, uniform

OPS, RANDOM = {}, {}


def op(name):
    def add(f):
        OPS[name] = f
        return f

    return add


def random(name):
    def add(f):
        RANDOM[name] = f
        return f

    return add


def table(name, f, *rows):
    """rows: (shapes, parameters); f(*tensors, **parameters).  A shape None is an absent input."""

    def draw():
        for shapes, p in rows:
            yield (lambda *x: f(*x, **p)), [None if s is None else uniform(*s) for s in shapes], p

    OPS[name] = draw


def size(most=6):
    return 0 if chance(0.05) else 1 if chance(0.15) else number(2, most)


def wide():
    """Sizes of matrices: small ones, now and then larger."""
    return number(7, 40) if chance(0.05) else size()


# ---- matmul and its kin, at random
def factors(*shapes, special=0.0):
    """Floats; now and then integers of one dtype, whose products wrap."""
    if chance(0.15):
        dtype = choice((torch.int64, torch.int32, torch.uint8))
        return [integers(*s, lo=0 if dtype == torch.uint8 else -90, hi=90, dtype=dtype) for s in shapes]
    return [floats(*s, special=special) for s in shapes]


@random("matmul")
def matmul():
    m, k, n, batch = wide(), wide(), wide(), shape(0, 2, most=3)
    a, b = (*narrower(batch), m, k), (*narrower(batch), k, n)
    if chance(0.25):
        a = (k,)
    if chance(0.25):
        b = (k,)
    return torch.matmul, factors(a, b, special=0.05), {}


@random("mm")
def mm():
    m, k, n = wide(), wide(), wide()
    return torch.mm, factors((m, k), (k, n)), {}


@random("bmm")
def bmm():
    b, m, k, n = size(4), wide(), wide(), wide()
    return torch.bmm, factors((b, m, k), (b, k, n)), {}


@random("mv")
def mv():
    m, k = wide(), wide()
    return torch.mv, factors((m, k), (k,)), {}


@random("dot")
def dot():
    k = number(50, 500) if chance(0.1) else size()
    return torch.dot, factors((k,), (k,)), {}


RANDOM["outer"] = lambda: (torch.outer, [floats(size(9)), floats(size(9))], {})


def scales():
    return {"beta": choice([0.0, 1.0, scalar(-2, 2)]), "alpha": choice([0.0, 1.0, scalar(-2, 2)])}


def random_add(name, f, shapes):
    """shapes() -> shapes of the product and of its operands."""

    def draw():
        y, a, b = shapes()
        p = scales()
        return (lambda x, u, v: f(x, u, v, **p)), [floats(*narrower(y)), floats(*a), floats(*b)], p

    RANDOM[name] = draw


def mm_shapes():
    m, k, n = wide(), wide(), wide()
    return (m, n), (m, k), (k, n)


def bmm_shapes():
    b, m, k, n = size(4), wide(), wide(), wide()
    return (b, m, n), (b, m, k), (b, k, n)


def summed_bmm_shapes():
    _, a, b = bmm_shapes()
    return (a[1], b[2]), a, b


def mv_shapes():
    """PyTorch's backward fails for sizes of 0."""
    m, k = max(wide(), 1), max(wide(), 1)
    return (m,), (m, k), (k,)


def outer_shapes():
    m, n = wide(), wide()
    return (m, n), (m,), (n,)


random_add("addmm", torch.addmm, mm_shapes)
random_add("baddbmm", torch.baddbmm, bmm_shapes)
random_add("addmv", torch.addmv, mv_shapes)
random_add("addr", torch.addr, outer_shapes)
random_add("addbmm", torch.addbmm, summed_bmm_shapes)


@random("linear")
def linear():
    i, o = wide(), wide()
    if chance(0.2):  # a vector as weight: PyTorch takes a bias with a vector as input only
        lead = shape(0, 3, most=4)
        return F.linear, [floats(*lead, i), floats(i), None if lead or chance(0.4) else floats()], {}
    return F.linear, [floats(*shape(0, 3, most=4), i), floats(o, i), floats(o) if chance(0.6) else None], {}


# ---- addmv, addr, addbmm
table(
    "addmv",
    torch.addmv,
    (((3,), (3, 4), (4,)), {}),
    (((1,), (3, 4), (4,)), {"alpha": 2.0}),
    (((), (3, 4), (4,)), {"beta": 0.5, "alpha": -1.0}),
    (((3,), (3, 0), (0,)), {}),
    (((3,), (3, 4), (4,)), {"beta": 0.0}),
)
table(
    "addr",
    torch.addr,
    (((3, 4), (3,), (4,)), {}),
    (((4,), (3,), (4,)), {"alpha": 2.0}),
    (((3, 1), (3,), (4,)), {"beta": 0.5, "alpha": -1.0}),
    (((), (3,), (4,)), {}),
    (((3, 4), (3,), (4,)), {"beta": 0.0}),
)
table(
    "addbmm",
    torch.addbmm,
    (((3, 5), (2, 3, 4), (2, 4, 5)), {}),
    (((5,), (2, 3, 4), (2, 4, 5)), {"alpha": 2.0}),
    (((), (2, 3, 4), (2, 4, 5)), {"beta": 0.5, "alpha": -1.0}),
    (((3, 5), (0, 3, 4), (0, 4, 5)), {}),
    (((3, 5), (2, 3, 0), (2, 0, 5)), {}),
)

# ---- einsum
EINSUM = (
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("ba", (2, 3)),
    ("ij->", (3, 4)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("i,j->ij", (3,), (4,)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("bn,anm,bm->ba", (2, 5), (3, 5, 4), (2, 4)),
    ("...ij->...ji", (2, 3, 4)),
    ("Aa,aB", (2, 3), (3, 4)),
    ("iij->ij", (3, 3, 2)),
    ("ijij->ji", (2, 3, 2, 3)),
    ("...ii->...i", (2, 3, 3)),
    ("i...,i->...", (3, 2), (3,)),
    ("ij,ij->i", (1, 4), (3, 4)),
    ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    ("abc,bad,cad->", (2, 3, 4), (3, 2, 5), (4, 2, 5)),
    ("ij,k->k", (3, 4), (5,)),
    ("...,...->...", (2, 3), (3,)),
    (",", (), ()),
    ("ij,jk", (3, 0), (0, 2)),
    ("i,ij->j", (0,), (0, 3)),
    ("a...a->...", (3, 2, 3)),
    ("...->", (2, 3)),
    ("ijk,ijl,ijm->klm", (2, 1, 3), (2, 4, 2), (1, 4, 3)),
)


@op("einsum")
def einsum():
    for equation, *shapes in EINSUM:
        yield (lambda *x: torch.einsum(equation, *x)), [uniform(*s) for s in shapes], {"equation": equation}


@random("einsum")
def random_einsum():
    """Up to three operands over a few letters; sizes of 1 broadcast; the result named or not."""
    letters = "abcdEF"
    sizes = {c: size(3) for c in letters}
    more = shape(0, 2, least=1, most=3) if chance(0.4) else ()
    terms, shapes = [], []
    for _ in range(choice([1, 1, 2, 2, 2, 2, 3])):
        names = [choice(letters) for _ in range(number(0, 4))]
        dims = [sizes[c] if sizes[c] < 2 or names.count(c) > 1 or chance(0.9) else 1 for c in names]
        if more and chance(0.7):
            at, part = number(0, len(names)), narrower(more)
            names.insert(at, "...")
            dims[at:at] = part
        terms.append("".join(names))
        shapes.append(dims)
    equation = ",".join(terms)
    if chance(0.7):
        used = sorted(set("".join(terms)) - {"."})
        result = [c for c in used if chance(0.5)]
        for i in range(len(result)):
            j = number(0, i)
            result[i], result[j] = result[j], result[i]
        if "..." in equation and chance(0.8):
            result.insert(number(0, len(result)), "...")
        equation += "->" + "".join(result)
    return (
        (lambda *x: torch.einsum(equation, *x)),
        einsum_operands(terms, equation, shapes),
        {"equation": equation},
    )


def einsum_operands(terms, equation, shapes):
    """Floats; of two terms without sums over one of them also integers, which PyTorch refuses otherwise."""
    alone = [c for c in "abcdEF" if sum(c in t for t in terms) == 1 and c not in equation.partition("->")[2]]
    plain = all(t.count(c) < 2 for t in terms for c in t if c != ".") and not any(1 in s for s in shapes)
    return factors(*shapes) if plain and "->" in equation and not alone else [floats(*s) for s in shapes]


# ---- tensordot and others
def dims_of(p):
    return (p["dims_a"], p["dims_b"]) if "dims_a" in p else p.get("dims", 2)


@op("tensordot")
def tensordot():
    for a, b, p in (
        ((2, 3, 4), (3, 4, 5), {}),
        ((3, 4), (4, 5), {"dims": 1}),
        ((3,), (4,), {"dims": 0}),
        ((2, 3, 4), (4, 3, 5), {"dims_a": [1, 2], "dims_b": [1, 0]}),
        ((2, 3), (5, 3), {"dims_a": [-1], "dims_b": [-1]}),
        ((3, 0), (0, 2), {"dims": 1}),
        ((3, 4), (3, 4), {}),
        ((2, 1), (3, 4), {"dims_a": [1], "dims_b": [0]}),
    ):
        yield (lambda x, y: torch.tensordot(x, y, dims_of(p))), [uniform(*a), uniform(*b)], p


@random("tensordot")
def random_tensordot():
    """At least one pair: without any, PyTorch takes the lists for none given."""
    joint = [size(4) for _ in range(number(1, 3))]
    a = [("a", i, n) for i, n in enumerate(joint)] + [("", 0, size(4)) for _ in range(number(0, 2))]
    b = [("b", i, n) for i, n in enumerate(joint)] + [("", 0, size(4)) for _ in range(number(0, 2))]
    for x in (a, b):
        for i in range(len(x)):
            j = number(0, i)
            x[i], x[j] = x[j], x[i]
    at = lambda x, i: next(d - (len(x) if chance(0.3) else 0) for d, e in enumerate(x) if e[0] and e[1] == i)
    p = {"dims_a": [at(a, i) for i in range(len(joint))], "dims_b": [at(b, i) for i in range(len(joint))]}
    return (
        (lambda x, y: torch.tensordot(x, y, dims_of(p))),
        factors([e[2] for e in a], [e[2] for e in b]),
        p,
    )


table(
    "inner",
    torch.inner,
    *[
        (s, {})
        for s in (
            ((5,), (5,)),
            ((3, 4), (4,)),
            ((3, 4), (2, 4)),
            ((2, 3, 4), (5, 4)),
            ((), (3, 4)),
            ((), ()),
            ((3, 0), (2, 0)),
        )
    ]
)
table(
    "kron",
    torch.kron,
    *[
        (s, {})
        for s in (
            ((2, 3), (4, 2)),
            ((3,), (2, 2)),
            ((2, 1, 2), (3,)),
            ((), (2, 2)),
            ((), ()),
            ((0, 2), (3, 1)),
        )
    ]
)


@random("inner")
def inner():
    if chance(0.1):
        return torch.inner, [floats(*shape()), floats()], {}
    k = size()
    return torch.inner, factors((*shape(0, 2), k), (*shape(0, 2), k)), {}


@op("vecdot")
def vecdot():
    for a, b, p in (
        ((5,), (5,), {}),
        ((3, 4), (4,), {}),
        ((3, 1), (3, 4), {"dim": 0}),
        ((2, 3, 4), (3, 1), {"dim": -2}),
        ((0, 3), (3,), {}),
        ((3, 0), (3, 0), {}),
    ):
        yield (lambda x, y: torch.linalg.vecdot(x, y, **p)), [uniform(*a), uniform(*b)], p


@random("vecdot")
def random_vecdot():
    s = shape(1, 3)
    p = {"dim": number(-len(s), len(s) - 1)}
    other = narrower(s) if len(s) > 1 else s  # two vectors PyTorch does not broadcast
    a, b = (s, other) if chance(0.5) else (other, s)
    return (lambda x, y: torch.linalg.vecdot(x, y, **p)), [floats(*a), floats(*b)], p


def factor():
    s = shape(0, 3, most=4)
    return integers(*s, lo=-3) if chance(0.2) else floats(*s)


RANDOM["kron"] = lambda: (torch.kron, [factor(), factor()], {})


@op("cross")
def cross():
    for a, b, dim in (
        ((3,), (3,), 0),
        ((4, 3), (4, 3), 1),
        ((3, 4), (3, 4), 0),
        ((2, 3, 3), (1, 3, 3), -1),
        ((0, 3), (0, 3), 1),
    ):
        yield (lambda x, y: torch.linalg.cross(x, y, dim=dim)), [uniform(*a), uniform(*b)], {"dim": dim}
    yield torch.cross, [uniform(2, 3, 3), uniform(2, 3, 3)], {}
    yield torch.cross, [integers(4, 3), integers(4, 3)], {}


@random("cross")
def random_cross():
    s = list(shape(1, 3, most=4))
    dim = number(-len(s), len(s) - 1)
    s[dim] = 3
    other = [n if chance(0.7) or i == dim % len(s) else 1 for i, n in enumerate(s)]
    return (lambda x, y: torch.linalg.cross(x, y, dim=dim)), [floats(*s), floats(*other)], {"dim": dim}


table(
    "bilinear",
    F.bilinear,
    (((3, 4), (3, 2), (5, 4, 2), (5,)), {}),
    (((4,), (2,), (3, 4, 2), None), {}),
    (((2, 3, 4), (2, 3, 2), (2, 4, 2), (2,)), {}),
    (((0, 4), (0, 2), (3, 4, 2), (3,)), {}),
)


@random("bilinear")
def bilinear():
    """PyTorch wants some elements in every operand."""
    lead, i, j, o = shape(0, 2, least=1, most=4), number(1, 6), number(1, 6), number(1, 6)
    x1, x2, weight, bias = factors((*lead, i), (*lead, j), (o, i, j), (o,))
    return F.bilinear, [x1, x2, weight, bias if chance(0.6) else None], {}


def multi_dot(*x):
    return torch.linalg.multi_dot(x)


table(
    "multi_dot",
    multi_dot,
    *[
        (s, {})
        for s in (
            ((3, 4), (4, 5)),
            ((3, 4), (4, 2), (2, 5)),
            ((2, 5), (5, 1), (1, 4), (4, 3)),
            ((4,), (4, 3), (3,)),
            ((4,), (4, 5)),
            ((3, 4), (4,)),
            ((3, 0), (0, 2), (2, 4)),
        )
    ]
)


@random("multi_dot")
def random_multi_dot():
    n = number(2, 6)
    sizes = [number(1, 9) for _ in range(n + 1)]
    shapes = [(sizes[i], sizes[i + 1]) for i in range(n)]
    if chance(0.2):
        shapes[0] = (sizes[1],)
    if chance(0.2):
        shapes[-1] = (sizes[n - 1],)
    return (
        multi_dot,
        [floats(*s, lo=-0.5, hi=1.5) for s in shapes],
        {},
    )  # more would cancel than the result's size tells


@op("matrix_power")
def matrix_power():
    for s, n in (
        ((3, 3), 2),
        ((2, 3, 3), 3),
        ((3, 3), 1),
        ((3, 3), 0),
        ((2, 2), 7),
        ((0, 0), 2),
        ((0, 2, 2), 5),
    ):
        yield (lambda x: torch.linalg.matrix_power(x, n)), [uniform(*s)], {"n": n}, () if n else (0,)


@random("matrix_power")
def random_matrix_power():
    m, n = number(1, 6), number(-3, 9)
    if n < 0:  # well-conditioned: noise, and a diagonal that outweighs it
        x = floats(*shape(0, 2, most=3), m, m, lo=-0.5, hi=0.5) + 3 * torch.eye(m, dtype=torch.float64)
        return (lambda x: torch.linalg.matrix_power(x, n)), [x.float().double()], {"n": n}
    n = max(n, 1)
    return (
        (lambda x: torch.linalg.matrix_power(x, n)),
        [floats(*shape(0, 2, most=3), m, m, lo=-1.0, hi=1.0)],
        {"n": n},
    )


table(
    "matrix_exp",
    torch.linalg.matrix_exp,
    *[((s,), {}) for s in ((3, 3), (2, 3, 3), (1, 1), (0, 0), (0, 2, 2))]
)


@random("matrix_exp")
def random_matrix_exp():
    m = number(0, 6)
    x = uniform(*shape(0, 2, most=3), m, m, lo=-1.0, hi=1.0) * choice([1e-3, 0.5, 1.0, 2.0])
    return torch.linalg.matrix_exp, [x.float().double()], {}


OPS["trace"] = lambda: iter(
    [
        (torch.trace, [x], {})
        for x in (uniform(3, 3), uniform(3, 4), uniform(4, 2), uniform(0, 3), integers(3, 3))
    ]
)
RANDOM["trace"] = lambda: (torch.trace, [floats(size(), size(), special=0.15)], {})

# PyTorch gives the operands after one of shape [0] the gradients of the row above, and vander no gradient at
# all.
table(
    "block_diag",
    torch.block_diag,
    *[(s, {}) for s in (((2, 3), (1, 2)), ((3,),), ((),), ((2, 2), (), (3,), (1, 1)), ((0, 2), (2, 1)))]
)
RANDOM["block_diag"] = lambda: (
    torch.block_diag,
    [floats(*shape(0, 2, most=4, least=1), special=0.15) for _ in range(number(1, 5))],
    {},
)


@op("vander")
def vander():
    for n, p in (
        (3, {}),
        (3, {"n": 5}),
        (4, {"n": 2, "increasing": True}),
        (3, {"n": 1}),
        (3, {"n": 0}),
        (0, {"n": 3}),
    ):
        yield (lambda x: torch.vander(x, p.get("n"), p.get("increasing", False))), [uniform(n)], p, (0,)
    yield torch.vander, [integers(4)], {}
    for s, n in (((2, 3), 3), ((2, 1, 4), 2), ((2, 0), 4), ((3,), 5)):
        p = {"n": n, "increasing": True}
        yield (lambda x: torch.linalg.vander(x, N=n)), [uniform(*s)], p
    yield (lambda x: torch.linalg.vander(x, N=3)), [integers(2, 3)], {"n": 3, "increasing": True}


@random("vander")
def random_vander():
    if chance(0.4):
        n = number(2, 6)
        p = {"n": n, "increasing": True}
        return (lambda x: torch.linalg.vander(x, N=n)), [floats(*shape(1, 3, most=4))], p
    p = {"n": number(0, 6), "increasing": chance(0.5)}
    return (lambda x: torch.vander(x, p["n"], p["increasing"])), [floats(size())], p, (0,)
