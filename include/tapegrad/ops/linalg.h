/* ops/linalg.h - factorisations, linear systems, determinants, distances.  Included by ops.h.
 *
 *     Tensor *x = tensor_solve(a, b);                            // a x = b
 *     Tensor *l = tensor_cholesky(covariance);                   // l l^T = covariance
 *     TensorQr f = tensor_qr(a);                                 // a = f.q f.r
 *     TensorSvd s = tensor_svd(a, .full_matrices = false);       // a = s.u diag(s.s) s.vh
 *     TensorEigh e = tensor_eigh(symmetric);                     // a = e.vectors diag(e.values) e.vectors^T
 *
 * Here tensor_foo is torch.linalg.foo, also where an older torch.foo of other defaults exists (svd, qr,
 * solve).  Matrices are the last two dims [m, n]; dims before them are batches.  Sizes may be 0.
 *
 * LAPACK does the work; systems, determinants and Cholesky factors of at most 64 rows need none.  It is no
 * dependency of the library: it is looked for at the first call: liblapack.so.3, OpenBLAS, MKL, or the
 * library that the environment variable TAPEGRAD_LAPACK names, and that alone.  Without one these functions
 * fail (EDEVICE) and say what to install.  They run on the CPU, in the calling thread.
 *
 * f32, f16 and bf16 compute in f64, forward and backward, and are rounded once (PyTorch has no halves here).
 * Gradients are PyTorch's and have gradients of any order.  Unless said otherwise: ESHAPE: no matrix, not
 * square where it must be, or sizes that do not fit.  EDTYPE: not floating.  EVALUE: a matrix that is
 * singular, or not positive-definite, or, for cholesky, svd and eigh and what is made of them, not finite
 * (the others give NaN, as PyTorch does); the text says which one of the batch. */
#ifndef TAPEGRAD_OPS_LINALG_H
#define TAPEGRAD_OPS_LINALG_H

#include <tapegrad/ops/reduce.h>
#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- linear systems -------------------------------------------------------------------------- */

typedef struct TensorSolveArgs {
    Tensor *a, *b;
    bool left; /* default true; false: x a = b */
} TensorSolveArgs;

/* tensor_solve - x with a x = b for square a [..., n, n] and b [..., n, k]; batches broadcast.  b [n], or of
 * a's shape without its last dim, is one vector for each matrix. tensor_inv, tensor_inverse - the inverse.
 * Prefer solve where the inverse is only multiplied. */
#define tensor_solve(...) tensor_solve_args((TensorSolveArgs){ .left = true, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_solve_args(TensorSolveArgs args);
TAPEGRAD_API Tensor *tensor_inv(Tensor *a);
TAPEGRAD_API Tensor *tensor_inverse(Tensor *a);

typedef struct TensorSolveTriangularArgs {
    Tensor *a, *b;
    bool upper, left, unitriangular; /* false, true, false */
} TensorSolveTriangularArgs;

/* tensor_solve_triangular - the same for a triangular a, lower unless .upper; the other triangle is not read,
 * nor the diagonal with .unitriangular (it counts as 1).  b is a matrix, batches broadcast.  A zero on the
 * diagonal gives infinities or NaN. tensor_triangular_solve - torch.triangular_solve: b first, .upper = true,
 * and .transpose for a^T x = b. */
#define tensor_solve_triangular(...) \
    tensor_solve_triangular_args((TensorSolveTriangularArgs){ .left = true, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_solve_triangular_args(TensorSolveTriangularArgs args);

typedef struct TensorTriangularSolveArgs {
    Tensor *b, *a;
    bool upper, transpose, unitriangular; /* true, false, false */
} TensorTriangularSolveArgs;
#define tensor_triangular_solve(...) \
    tensor_triangular_solve_args((TensorTriangularSolveArgs){ .upper = true, .b = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_triangular_solve_args(TensorTriangularSolveArgs args);

typedef struct TensorPinvArgs {
    Tensor *a;
    double atol, rtol; /* singular values <= max(atol, rtol s_0) count as 0.  Left out: 0, and eps max(m, n)
                        * of a's dtype (0 if atol is given and above 0) */
} TensorPinvArgs;

/* tensor_pinv - the Moore-Penrose inverse [..., n, m] of a [..., m, n].   tensor_matrix_rank - i64 [...]: the
 * count of singular values above that bound.   tensor_lstsq - pinv(a) b, the x of least |a x - b| and least
 * |x|; b as in tensor_solve. */
#define tensor_pinv(...) tensor_pinv_args((TensorPinvArgs){ .atol = -1, .rtol = -1, .a = __VA_ARGS__ })
#define tensor_matrix_rank(...) \
    tensor_matrix_rank_args((TensorPinvArgs){ .atol = -1, .rtol = -1, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_pinv_args(TensorPinvArgs args);

typedef struct TensorPinverseArgs {
    Tensor *a;
    double rcond; /* 1e-15 */
} TensorPinverseArgs;

/* tensor_pinverse(a, rcond) - torch.pinverse: tensor_pinv with .rtol = rcond. */
#define tensor_pinverse(...) tensor_pinverse_args((TensorPinverseArgs){ .rcond = 1e-15, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_pinverse_args(TensorPinverseArgs args);
TAPEGRAD_API Tensor *tensor_matrix_rank_args(TensorPinvArgs args);
TAPEGRAD_API Tensor *tensor_lstsq(Tensor *a, Tensor *b);

/* ---- determinants -------------------------------------------------------------------------------
 * tensor_det - [...], 1 for 0x0.  The gradient is that of the cofactors, also for a singular matrix (PyTorch
 * gives 0 there, unless it records). tensor_slogdet - the determinant's sign (no gradient) and the logarithm
 * of its magnitude; 0 and -inf, with a gradient that is NaN, for a singular matrix.   tensor_logdet - that
 * logarithm; NaN, with gradient 0, for a negative determinant. */
typedef struct TensorSlogdet {
    Tensor *sign, *logabsdet;
} TensorSlogdet;
TAPEGRAD_API Tensor *tensor_det(Tensor *a);
TAPEGRAD_API TensorSlogdet tensor_slogdet(Tensor *a);
TAPEGRAD_API Tensor *tensor_logdet(Tensor *a);

/* ---- factorisations -------------------------------------------------------------------------- */

typedef struct TensorCholeskyArgs {
    Tensor *a;
    bool upper;
} TensorCholeskyArgs;

/* tensor_cholesky - lower triangular l with l l^T = a, or u with u^T u = a; only that triangle of a is read,
 * and a taken as symmetric: so is its gradient. tensor_cholesky_solve(b, l) - x with l l^T x = b (.upper: l^T
 * l x = b); the gradient of what is not read of l is 0. tensor_cholesky_inverse(l) - the inverse of l l^T
 * (.upper: of l^T l). */
#define tensor_cholesky(...) tensor_cholesky_args((TensorCholeskyArgs){ .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cholesky_args(TensorCholeskyArgs args);

typedef struct TensorCholeskySolveArgs {
    Tensor *b, *l;
    bool upper;
} TensorCholeskySolveArgs;
#define tensor_cholesky_solve(...) tensor_cholesky_solve_args((TensorCholeskySolveArgs){ .b = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cholesky_solve_args(TensorCholeskySolveArgs args);
#define tensor_cholesky_inverse(...) tensor_cholesky_inverse_args((TensorCholeskyArgs){ .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cholesky_inverse_args(TensorCholeskyArgs args);

typedef enum TensorQrMode {
    TENSOR_QR_REDUCED,  /* q [m, k], r [k, n], k = min(m, n) */
    TENSOR_QR_COMPLETE, /* q [m, m], r [m, n] */
    TENSOR_QR_R         /* r of reduced; q is NULL */
} TensorQrMode;
typedef struct TensorQrArgs {
    Tensor *a;
    TensorQrMode mode;
} TensorQrArgs;
typedef struct TensorQr {
    Tensor *q, *r;
} TensorQr;

/* tensor_qr - a = q r, q of orthonormal columns, r upper triangular, signs as LAPACK gives them.  The
 * gradient needs the first k columns of a to be independent.  Backward, EGRAD: complete with m > n, where q
 * is not determined by a. */
#define tensor_qr(...) tensor_qr_args((TensorQrArgs){ .a = __VA_ARGS__ })
TAPEGRAD_API TensorQr tensor_qr_args(TensorQrArgs args);

typedef struct TensorSvdArgs {
    Tensor *a;
    bool full_matrices; /* default true */
} TensorSvdArgs;
typedef struct TensorSvd {
    Tensor *u, *s, *vh;
} TensorSvd;

/* tensor_svd - a = u diag(s) vh: s [k] descending, k = min(m, n), u [m, m], vh [n, n], or [m, k], [k, n]
 * without full_matrices. Unlike PyTorch's, signs are fixed: in every column of u (and row of vh beyond k) the
 * first entry of at least 0.6 of the largest magnitude is positive. Gradients of u and vh need distinct
 * singular values, not 0 unless a is square (infinite or NaN otherwise); columns beyond k have none.
 * tensor_svdvals - s alone, whose gradient needs nothing. */
#define tensor_svd(...) tensor_svd_args((TensorSvdArgs){ .full_matrices = true, .a = __VA_ARGS__ })
TAPEGRAD_API TensorSvd tensor_svd_args(TensorSvdArgs args);
TAPEGRAD_API Tensor *tensor_svdvals(Tensor *a);

/* The ord of a matrix norm: one of these, or a number. */
enum { TENSOR_FRO = 101, TENSOR_NUC = 102 };
typedef struct TensorMatrixNormArgs {
    Tensor *input;
    double ord;     /* TENSOR_FRO */
    int dim1, dim2; /* rows and columns: -2, -1 */
    bool keepdim;
} TensorMatrixNormArgs;

/* tensor_linalg_matrix_norm - of the matrices in two dims, also without LAPACK unless singular values are
 * named: TENSOR_FRO  sqrt(sum |x|^2)      1, -1                the largest, the least sum of |x| in a column
 *   TENSOR_NUC  sum of the singular values   INFINITY, -INFINITY  the same in a row
 *   2, -2       the largest, the least singular value
 * Ties share the gradient evenly.  EVALUE: another ord; dim1 and dim2 the same.  ESHAPE: the least of nothing
 * (the largest is 0). */
#define tensor_linalg_matrix_norm(...) \
    tensor_linalg_matrix_norm_args(    \
        (TensorMatrixNormArgs){ .ord = TENSOR_FRO, .dim1 = -2, .dim2 = -1, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_linalg_matrix_norm_args(TensorMatrixNormArgs args);

typedef struct TensorLinalgNormArgs {
    Tensor *input;
    double ord; /* left out: sqrt(sum |x|^2) of any dims */
    int dim;
    bool keepdim;
    TensorShape dims;
} TensorLinalgNormArgs;

/* tensor_linalg_norm(x), tensor_linalg_norm(x, 1, .dims = DIMS(0, 1)) - with an ord:
 * tensor_linalg_vector_norm over one dim, tensor_linalg_matrix_norm over two; dim and dims left out: all of
 * x, which is a vector or a matrix (ESHAPE). */
#define tensor_linalg_norm(...) \
    tensor_linalg_norm_args(    \
        (TensorLinalgNormArgs){ .ord = (double)NAN, .dim = TENSOR_ALL, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_linalg_norm_args(TensorLinalgNormArgs args);

typedef struct TensorEighArgs {
    Tensor *a;
    bool upper; /* read the upper triangle, not the lower one */
} TensorEighArgs;
typedef struct TensorEigh {
    Tensor *values, *vectors;
} TensorEigh;

/* tensor_eigh - of a symmetric matrix, of which one triangle is read: values [n] ascending, eigenvectors in
 * the columns of vectors [n, n], signs fixed as in tensor_svd.  Gradients of vectors need distinct values.
 * tensor_eigvalsh - values alone. */
#define tensor_eigh(...) tensor_eigh_args((TensorEighArgs){ .a = __VA_ARGS__ })
#define tensor_eigvalsh(...) tensor_eigvalsh_args((TensorEighArgs){ .a = __VA_ARGS__ })
TAPEGRAD_API TensorEigh tensor_eigh_args(TensorEighArgs args);
TAPEGRAD_API Tensor *tensor_eigvalsh_args(TensorEighArgs args);

/* ---- distances ----------------------------------------------------------------------------------
 * |x|_p is tensor_norm along a dim, with its gradients: 0 where it is 0.  ESHAPE: operands do not broadcast.
 * EINDEX: no such dim. */

typedef struct TensorNormalizeArgs {
    Tensor *input;
    double p;   /* 2 */
    int dim;    /* 1 */
    double eps; /* 1e-12 */
} TensorNormalizeArgs;

/* tensor_normalize - x / max(|x|_p, eps) along dim.  A vector of zeros stays one; its gradient is g / eps, as
 * in PyTorch: huge. tensor_renorm - each slice of dim (all of x with one index there) that has |slice|_p >
 * maxnorm times maxnorm / (|slice|_p + 1e-7); the others as they are.  ESHAPE: rank below 2.  EVALUE: p not
 * positive, maxnorm negative. */
#define tensor_normalize(...) \
    tensor_normalize_args((TensorNormalizeArgs){ .p = 2, .dim = 1, .eps = 1e-12, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_normalize_args(TensorNormalizeArgs args);
TAPEGRAD_API Tensor *tensor_renorm(Tensor *x, double p, int dim, double maxnorm);
TAPEGRAD_API Tensor *tensor_renorm_(Tensor *x, double p, int dim, double maxnorm);

typedef struct TensorDistanceArgs {
    Tensor *a, *b;
    double p;     /* 2 */
    double eps;   /* pairwise_distance: 1e-6, added to each difference */
    bool keepdim; /* pairwise_distance */
} TensorDistanceArgs;
typedef struct TensorPdistArgs {
    Tensor *input;
    double p;
} TensorPdistArgs;

/* tensor_dist - |a - b|_p of all elements, which broadcast: rank 0.
 * tensor_pairwise_distance - |a - b + eps|_p along the last dim of operands that broadcast.
 * tensor_cdist - |a_i - b_j|_p of all pairs: a [..., P, M], b [..., R, M] -> [..., P, R]; batches broadcast.
 * Formed directly in double, never from squares of norms: near neighbours keep their digits. tensor_pdist(x,
 * 1) - the same of pairs i < j of one set, [N, M] -> [N (N - 1) / 2], in row-major order. cdist and pdist
 * with p = INFINITY give all tied differences the whole gradient.  EVALUE: p negative. */
#define tensor_dist(...) tensor_dist_args((TensorDistanceArgs){ .p = 2, .a = __VA_ARGS__ })
#define tensor_pairwise_distance(...) \
    tensor_pairwise_distance_args((TensorDistanceArgs){ .p = 2, .eps = 1e-6, .a = __VA_ARGS__ })
#define tensor_cdist(...) tensor_cdist_args((TensorDistanceArgs){ .p = 2, .a = __VA_ARGS__ })
#define tensor_pdist(...) tensor_pdist_args((TensorPdistArgs){ .p = 2, .input = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_dist_args(TensorDistanceArgs args);
TAPEGRAD_API Tensor *tensor_pairwise_distance_args(TensorDistanceArgs args);
TAPEGRAD_API Tensor *tensor_cdist_args(TensorDistanceArgs args);
TAPEGRAD_API Tensor *tensor_pdist_args(TensorPdistArgs args);

typedef struct TensorCosineArgs {
    Tensor *a, *b;
    int dim;    /* 1 */
    double eps; /* 1e-8 */
} TensorCosineArgs;

/* tensor_cosine_similarity - a . b / (max(|a|, eps) max(|b|, eps)) along dim of operands that broadcast. */
#define tensor_cosine_similarity(...) \
    tensor_cosine_similarity_args((TensorCosineArgs){ .dim = 1, .eps = 1e-8, .a = __VA_ARGS__ })
TAPEGRAD_API Tensor *tensor_cosine_similarity_args(TensorCosineArgs args);

#ifdef __cplusplus
}
#endif
#endif
