"""cases_linalg.py - linear systems, determinants, factorisations.

Matrices are drawn well-conditioned, or so that PyTorch's own error in f64 stays far below the tolerance:
noise plus a diagonal. Our signs of singular and eigenvectors are fixed (ops/linalg.h): the functions here
fix PyTorch's in the same way.
"""

import torch

from golden import chance, choice, floats, narrower, number, shape, uniform, values

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


def matrix(*s, diagonal=1.5):
    """Noise, and a diagonal of distinct numbers that outweighs it."""
    x = uniform(*s)
    k = min(s[-2:])
    d = diagonal * torch.arange(1, k + 1, dtype=torch.float64)
    x[..., range(k), range(k)] += d
    return x.float().double()


def symmetric(*s):
    x = matrix(*s)
    return ((x + x.mT) / 2).float().double()


def definite(*s):
    x = uniform(*s)
    return (x @ x.mT + torch.eye(s[-1], dtype=torch.float64)).float().double()


def batch():
    return shape(0, 2, most=3)


def narrower_batch(s):
    return narrower(s) if chance(0.4) else s


def size(most=6):
    return 0 if chance(0.04) else number(1, most)


# ---- systems
def solve_call(left):
    return lambda a, b: torch.linalg.solve(a, b, left=left)


@op("solve")
def solve():
    for a, b, left in (
        ((3, 3), (3, 2), True),
        ((3, 3), (3,), True),
        ((2, 3, 3), (2, 3), True),
        ((2, 3, 3), (3,), True),
        ((2, 2, 2), (2, 2), True),
        ((2, 1, 3, 3), (4, 3, 1), True),
        ((3, 3), (2, 3), False),
        ((2, 3, 3), (4, 3), False),
        ((0, 0), (0, 2), True),
        ((3, 3), (3, 0), True),
        ((0, 3, 3), (3, 1), True),
        ((1, 1), (1, 1), True),
        ((20, 20), (20, 3), True),
    ):
        yield solve_call(left), [matrix(*a), uniform(*b)], {"left": left}
    yield solve_call(True), [values([0, 1], [2, 0]), values([1, 2], [3, 4])], {"left": True}


@random("solve")
def _():
    s, n, k = batch(), size(), size(3)
    left = chance(0.7)
    if left and chance(0.3):
        return solve_call(True), [matrix(*s, n, n), floats(*s, n, special=0.1)], {"left": True}, ()
    a, b = (s, narrower_batch(s)) if chance(0.5) else (narrower_batch(s), s)
    if left and ((len(b) == len(a) - 1 and (*b, n, k) == (*a, n)) or len(b) + 2 == 1):
        b = s
    return solve_call(left), [matrix(*a, n, n), floats(*b, *((n, k) if left else (k, n)))], {"left": left}


@op("inv")
def inv():
    for s in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3), (12, 12)):
        yield torch.linalg.inv, [matrix(*s)], {}


@random("inv")
def _():
    n = size()
    return torch.linalg.inv, [matrix(*batch(), n, n)], {}


@op("inv_ex")
def inv_ex():
    for s in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3)):
        yield torch.linalg.inv_ex, [matrix(*s)], {}
    yield (lambda a: torch.linalg.inv_ex(a, check_errors=True)), [matrix(3, 3)], {"check_errors": True}


@random("inv_ex")
def _():
    n = size()
    return torch.linalg.inv_ex, [matrix(*batch(), n, n)], {}


def solve_ex_call(left):
    return lambda a, b: torch.linalg.solve_ex(a, b, left=left)


@op("solve_ex")
def solve_ex():
    for a, b, left in (
        ((3, 3), (3, 2), True),
        ((3, 3), (3,), True),
        ((2, 3, 3), (2, 3), True),
        ((3, 3), (2, 3), False),
        ((0, 0), (0, 2), True),
        ((2, 2, 2), (2, 1), True),
    ):
        yield solve_ex_call(left), [matrix(*a), uniform(*b)], {"left": left}


@random("solve_ex")
def _():
    s, n, k = batch(), size(), size(3)
    left = chance(0.7)
    return solve_ex_call(left), [matrix(*s, n, n), floats(*s, *((n, k) if left else (k, n)))], {"left": left}


# ---- LU
def shuffled(x):
    rows = list(range(x.shape[-2]))
    for i in range(len(rows)):
        j = number(0, i)
        rows[i], rows[j] = rows[j], rows[i]
    return x[..., rows, :].contiguous()


LU_SHAPES = ((3, 3), (2, 2, 2), (3, 2), (2, 4), (1, 1), (0, 3), (3, 0), (0, 2, 2), (6, 6), (2, 1, 4, 3))


def random_rectangle():
    return shuffled(matrix(*batch(), size(), size()))


OPS["lu"] = lambda: ((torch.linalg.lu, [shuffled(matrix(*s))], {}) for s in LU_SHAPES)
OPS["lu_factor"] = lambda: ((torch.linalg.lu_factor, [shuffled(matrix(*s))], {}) for s in LU_SHAPES)
RANDOM["lu"] = lambda: (torch.linalg.lu, [random_rectangle()], {})
RANDOM["lu_factor"] = lambda: (torch.linalg.lu_factor, [random_rectangle()], {})


def lu_solve_case(a, b, p):
    lu, pivots = torch.linalg.lu_factor(shuffled(matrix(*a)))
    return (lambda f, i, b: torch.linalg.lu_solve(f, i, b, **p)), [lu.float().double(), pivots, b], p


@op("lu_solve")
def lu_solve():
    for a, b in (
        ((3, 3), (3, 2)),
        ((2, 2, 2), (2, 2, 1)),
        ((3, 3), (4, 3, 2)),
        ((2, 3, 3), (3, 1)),
        ((0, 0), (0, 2)),
    ):
        for left in (True, False):
            for adjoint in (False, True):
                other = b if left else (*b[:-2], b[-1], b[-2])
                yield lu_solve_case(a, uniform(*other), {"left": left, "adjoint": adjoint})


@random("lu_solve")
def _():
    s, n, k = batch(), size(), size(3)
    p = {"left": chance(0.6), "adjoint": chance(0.4)}
    a, b = (s, narrower_batch(s)) if chance(0.5) else (narrower_batch(s), s)
    return lu_solve_case((*a, n, n), floats(*b, *((n, k) if p["left"] else (k, n))), p)


# ---- the condition number
ORDS = {
    2: None,
    -2: -2,
    101: "fro",
    102: "nuc",
    1: 1,
    -1: -1,
    float("inf"): float("inf"),
    -float("inf"): -float("inf"),
}


def cond_case(p, s):
    """PyTorch's backward fails where it takes the inverse: it fills that in place."""
    x, ord = shuffled(matrix(*s)), ORDS[p]
    if p in (2, -2, 102) or not x.numel():
        return (lambda x: torch.linalg.cond(x, ord)), [x], {"p": float(p)}
    norm = torch.linalg.matrix_norm
    assert torch.allclose(torch.linalg.cond(x, ord), norm(x, ord) * norm(torch.linalg.inv(x), ord))
    return (lambda x: norm(x, ord) * norm(torch.linalg.inv(x), ord)), [x], {"p": float(p)}


@op("cond")
def cond():
    for p in ORDS:
        for s in ((3, 3), (2, 4, 4), (0, 0), (1, 1)):
            yield cond_case(p, s)
    yield cond_case(2, (3, 2))


@random("cond")
def _():
    p, n = choice(list(ORDS)), size()
    return cond_case(p, (*batch(), n, n))


def triangular(p):
    return lambda a, b: torch.linalg.solve_triangular(
        a, b, upper=p["upper"], left=p["left"], unitriangular=p["unitriangular"]
    )


@op("solve_triangular")
def solve_triangular():
    for bits in range(8):
        p = {"upper": bool(bits & 1), "left": bool(bits & 2), "unitriangular": bool(bits & 4)}
        yield triangular(p), [matrix(2, 3, 3), uniform(2, *((3, 2) if p["left"] else (2, 3)))], p
    p = {"upper": False, "left": True, "unitriangular": False}
    hole = matrix(3, 3)
    hole[0, 1] = hole[0, 2] = hole[1, 2] = float("nan")  # the other triangle is not read
    yield triangular(p), [hole, uniform(3, 2)], p
    for a, b in (
        ((0, 0), (0, 2)),
        ((3, 3), (3, 0)),
        ((0, 3, 3), (3, 1)),
        ((2, 1, 2, 2), (3, 2, 2)),
        ((30, 30), (30, 4)),
    ):
        yield triangular(p), [matrix(*a), uniform(*b)], p


@random("solve_triangular")
def _():
    s, n, k = batch(), size(), size(3)
    p = {"upper": chance(0.5), "left": chance(0.6), "unitriangular": chance(0.3)}
    a, b = (s, narrower_batch(s)) if chance(0.5) else (narrower_batch(s), s)
    return triangular(p), [matrix(*a, n, n), floats(*b, *((n, k) if p["left"] else (k, n)))], p


def cholesky_solve_call(upper):
    return lambda l, b: torch.cholesky_solve(b, l.triu() if upper else l.tril(), upper=upper)


@random("cholesky_solve")
def _():
    s, n, k, upper = batch(), size(), size(3), chance(0.5)
    return cholesky_solve_call(upper), [matrix(*s, n, n), floats(*s, n, k)], {"upper": upper}


# ---- determinants
@op("det")
def det():
    for s in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3), (7, 7)):
        yield torch.linalg.det, [uniform(*s)], {}
    yield torch.linalg.det, [values([0, 1], [2, 0])], {}
    yield torch.linalg.det, [values([1, float("nan")], [2, 0])], {}, (0,)


@random("det")
def _():
    n = size(5)
    return torch.linalg.det, [matrix(*batch(), n, n, diagonal=choice((0.5, -1.5, 1.5)))], {}


def slogdet_call(a):
    sign, log = torch.linalg.slogdet(a)
    return sign.detach(), log


@op("slogdet")
def slogdet():
    for s in ((3, 3), (2, 2, 2), (0, 0), (2, 0, 0), (0, 3, 3), (40, 40)):
        yield slogdet_call, [matrix(*s)], {}
    yield slogdet_call, [values([1, 2], [2, 4])], {}, (0,)  # singular: 0 and -inf


@random("slogdet")
def _():
    n = size()
    return slogdet_call, [matrix(*batch(), n, n, diagonal=choice((-1.5, 1.5)))], {}


@op("logdet")
def logdet():
    for s in ((3, 3), (2, 0, 0), (0, 3, 3)):
        yield torch.logdet, [definite(*s)], {}
    yield torch.logdet, [values([0, 1], [1, 0])], {}, (0,)  # negative: NaN
    yield torch.logdet, [values([1, 2], [2, 4])], {}, (0,)


@random("logdet")
def _():
    n = size()
    return torch.logdet, [definite(*batch(), n, n)], {}


# ---- factorisations
def cholesky_call(upper):
    return lambda a: torch.linalg.cholesky(a, upper=upper)


@op("cholesky")
def cholesky():
    for upper in (False, True):
        for s in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3), (25, 25)):
            yield cholesky_call(upper), [definite(*s)], {"upper": upper}
        a = definite(3, 3)
        yield cholesky_call(upper), [a.triu() if upper else a.tril()], {"upper": upper}


@random("cholesky")
def _():
    n, upper = size(), chance(0.5)
    return cholesky_call(upper), [definite(*batch(), n, n)], {"upper": upper}


def qr_call(p):
    return lambda a: torch.linalg.qr(a, mode=p["mode"])


@op("qr")
def qr():
    for s in (
        (4, 3),
        (3, 3),
        (3, 5),
        (2, 4, 2),
        (1, 1),
        (5, 1),
        (1, 5),
        (0, 3),
        (3, 0),
        (2, 0, 0),
        (0, 3, 3),
        (40, 12),
    ):
        yield qr_call({"mode": "reduced"}), [matrix(*s)], {"mode": "reduced"}
    for s in ((3, 3), (3, 5), (0, 3), (0, 3, 3)):
        yield qr_call({"mode": "complete"}), [matrix(*s)], {"mode": "complete"}
    for s in ((4, 3), (2, 5, 1), (3, 0)):
        yield qr_call({"mode": "complete"}), [matrix(*s)], {"mode": "complete"}, (0,)


@random("qr")
def _():
    m, n = size(), size()
    p = {"mode": "complete" if chance(0.3) else "reduced"}
    return qr_call(p), [matrix(*batch(), m, n)], p, (0,) if p["mode"] == "complete" and m > n else ()


def signs(v):
    """Of each column: makes its first entry of at least 0.6 of the largest magnitude positive."""
    if v.shape[-2] == 0 or v.numel() == 0:
        return torch.ones_like(v[..., :1, :]) if v.shape[-2] else v.new_ones((*v.shape[:-2], 1, v.shape[-1]))
    v = v.detach()
    first = (v.abs() >= 0.6 * v.abs().amax(-2, keepdim=True)).double().argmax(-2, keepdim=True)
    return v.gather(-2, first).sign()


def svd_call(full):
    def f(a):
        u, s, vh = torch.linalg.svd(a, full_matrices=full)
        k = s.shape[-1]
        fix, own = signs(u), signs(vh.mT)
        return u * fix, s, vh * torch.cat([fix[..., :k], own[..., k:]], -1).mT

    return f


@op("svd")
def svd():
    for s in (
        (4, 3),
        (3, 3),
        (3, 5),
        (2, 4, 2),
        (1, 1),
        (5, 1),
        (1, 5),
        (0, 3),
        (3, 0),
        (2, 0, 0),
        (0, 3, 3),
        (20, 12),
    ):
        yield svd_call(False), [matrix(*s)], {"full_matrices": False}
    for s in (
        (3, 3),
        (4, 3),
        (3, 4),
        (0, 3),
        (3, 0),
        (0, 3, 3),
    ):  # one column more is unique but for its sign
        yield svd_call(True), [matrix(*s)], {"full_matrices": True}


@random("svd")
def _():
    m, n, full = size(), size(), chance(0.4)
    if full and min(m, n):
        n = m + number(-1, 1) or 1
    return svd_call(full), [matrix(*batch(), m, n)], {"full_matrices": full}


@op("svdvals")
def svdvals():
    for s in ((4, 3), (3, 5), (2, 0, 2), (0, 3, 3)):
        yield torch.linalg.svdvals, [matrix(*s)], {}
    yield torch.linalg.svdvals, [torch.eye(3, dtype=torch.float64)], {}, (0,)


@random("svdvals")
def _():
    return torch.linalg.svdvals, [matrix(*batch(), size(), size())], {}


def eigh_call(upper):
    def f(a):
        w, v = torch.linalg.eigh(a, UPLO="U" if upper else "L")
        return w, v * signs(v)

    return f


@op("eigh")
def eigh():
    for upper in (False, True):
        for s in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 3, 3), (15, 15)):
            yield eigh_call(upper), [symmetric(*s)], {"upper": upper}
        yield eigh_call(upper), [matrix(3, 3)], {"upper": upper}  # one triangle is read


@random("eigh")
def _():
    n, upper = size(), chance(0.5)
    return eigh_call(upper), [symmetric(*batch(), n, n)], {"upper": upper}


@random("eigvalsh")
def _():
    n, upper = size(), chance(0.5)
    return (
        (lambda a: torch.linalg.eigvalsh(a, UPLO="U" if upper else "L")),
        [symmetric(*batch(), n, n)],
        {"upper": upper},
    )


# ---- the pseudo-inverse
def bounds(p):
    return {k: v for k, v in p.items() if v >= 0}


def pinv_call(p):
    return lambda a: torch.linalg.pinv(a, **bounds(p))


@op("pinv")
def pinv():
    for s in ((4, 3), (3, 3), (3, 5), (2, 4, 2), (0, 3), (3, 0), (0, 3, 3)):
        yield pinv_call({}), [matrix(*s)], {}
    low = uniform(5, 2) @ uniform(2, 4)
    yield pinv_call({"rtol": 1e-4}), [low.float().double()], {"rtol": 1e-4}  # of rank 2
    yield pinv_call({}), [torch.zeros(2, 3, dtype=torch.float64)], {}, (0,)
    for p in ({"atol": 0.5}, {"rtol": 0.5}, {"atol": 0.1, "rtol": 0.5}, {"atol": 0.0}):
        yield pinv_call(p), [torch.diag(values(4, 3, 1, 0.25))], p, (0,)


@random("pinv")
def _():
    p = choice(({}, {"atol": 0.01}, {"rtol": 0.001}, {"atol": 0.01, "rtol": 0.001}))
    return pinv_call(p), [matrix(*batch(), size(), size())], p


def rank_call(p):
    return lambda a: torch.linalg.matrix_rank(a, **bounds(p))


@op("matrix_rank")
def matrix_rank():
    yield rank_call({}), [torch.ones(2, 3, 4, dtype=torch.float64)], {}
    yield rank_call({}), [torch.zeros(3, 4, dtype=torch.float64)], {}
    for p in ({"atol": 0.5}, {"rtol": 0.5}, {"atol": 0.1, "rtol": 0.5}, {"atol": 0.0}):
        yield rank_call(p), [torch.diag(values(4, 3, 1, 0.25))], p


@random("matrix_rank")
def _():
    # a product of integers is exact, and of a rank that no rounding changes; the bound is given, as that left
    # out grows with eps
    m, n, r = size(), size(), number(1, 3)
    s = batch()
    a = uniform(*s, m, r, lo=-4, hi=5).floor() @ uniform(*s, r, n, lo=-4, hi=5).floor()
    p = choice(({"atol": 0.001, "rtol": 0.00001}, {"atol": 0.001}, {"rtol": 0.0001}))
    return rank_call(p), [a], p


def lstsq_call(a, b):
    vectors = b.dim() == 1 or b.shape == a.shape[:-1]
    x = torch.linalg.pinv(a) @ (
        b.unsqueeze(-1) if vectors else b
    )  # gelsy's x, whose gradient PyTorch also takes from pinv
    return x.squeeze(-1) if vectors else x


@op("lstsq")
def lstsq():
    for a, b in (
        ((4, 3), (4, 2)),
        ((4, 3), (4,)),
        ((2, 4, 3), (2, 4)),
        ((3, 5), (3, 2)),
        ((2, 1, 4, 2), (3, 4, 1)),
        ((0, 3), (0, 2)),
        ((3, 0), (3, 2)),
    ):
        yield lstsq_call, [matrix(*a), uniform(*b)], {}
    yield (lambda a, b: torch.linalg.lstsq(a, b).solution), [matrix(5, 3), uniform(5, 2)], {}


@random("lstsq")
def _():
    s, m, n, k = batch(), size(), size(), size(3)
    if chance(0.3):
        return lstsq_call, [matrix(*s, m, n), floats(*s, m)], {}
    return lstsq_call, [matrix(*s, m, n), floats(*s, m, k)], {}


# ---- norms
def matrix_norm_call(ord, dim1, dim2, keepdim):
    name = {101: "fro", 102: "nuc"}.get(ord, ord)
    return lambda x: torch.linalg.matrix_norm(x, name, (dim1, dim2), keepdim)


def matrix_norm_case(x, ord=101, dim1=-2, dim2=-1, keepdim=False):
    return (
        matrix_norm_call(ord, dim1, dim2, keepdim),
        [x],
        {"ord": ord, "dim1": dim1, "dim2": dim2, "keepdim": keepdim},
    )


@op("linalg_matrix_norm")
def matrix_norm():
    for ord in (101, 102, 1, -1, 2, -2, float("inf"), float("-inf")):
        yield matrix_norm_case(uniform(3, 4), ord)
        yield matrix_norm_case(uniform(2, 4, 3), ord, 0, -1, True)
        yield matrix_norm_case(uniform(3, 2, 4), ord, 2, 0)
    yield matrix_norm_case(uniform(0, 3), 101)
    yield matrix_norm_case(uniform(3, 0), 1)
    yield matrix_norm_case(uniform(0, 3), float("inf"))
    yield matrix_norm_case(uniform(2, 3, 0), 2)
    yield matrix_norm_case(uniform(0, 3), 102)
    yield matrix_norm_case(uniform(0, 3), 1)
    yield matrix_norm_case(uniform(0, 3, 2), 2)
    yield matrix_norm_case(values([0, 0], [0, 0]), 101)
    yield matrix_norm_case(values([1, -2], [-1, 2]), float("inf"))
    yield (*matrix_norm_case(values([1, float("nan")], [3, 4]), 1), (0,))


# Singular values apart from each other and from 0, and no ties of sums.
@random("linalg_matrix_norm")
def _():
    s, m, n = batch(), number(1, 6), number(1, 6)
    x, dims = matrix(*s, m, n), [-2, -1]
    if s and chance(0.4):
        k = number(0, len(s))
        x, dims = x.movedim(-2, k), [k, -1]
    if chance(0.5):
        dims.reverse()
    return matrix_norm_case(
        x.contiguous(), choice([101, 102, 1, -1, 2, -2, float("inf"), float("-inf")]), *dims, chance(0.4)
    )
