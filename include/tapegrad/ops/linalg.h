/* ops/linalg.h - factorisations, linear systems, determinants, distances.  Included by ops.h.
 *
 *     Tensor *x = tensor_solve(a, b);                            // a x = b
 *     Tensor *l = tensor_cholesky(covariance);                   // l l^T = covariance
 *     TensorQr f = tensor_qr(a);                                 // a = f.q f.r
 *     TensorSvd s = tensor_svd(a, .full_matrices = false);       // a = s.u diag(s.s) s.vh
 *     TensorEigh e = tensor_eigh(symmetric);                     // a = e.vectors diag(e.values) e.vectors^T
 *
 * Here tensor_foo is torch.linalg.foo, even where an older torch.foo has other defaults (svd, qr, solve).
 * Matrices are the last two dims [m, n]; dims before them are batches.  Sizes may be 0.
 *
 * Singular values, eigenvalues and what uses them need LAPACK; linear systems, LU, QR and Cholesky factors,
 * determinants and pseudo-inverses of full rank do not.  The library is not linked to it: the first call
 * searches liblapack.so.3, OpenBLAS, MKL, or, if the environment variable TAPEGRAD_LAPACK names a library,
 * that alone (ignored in a setuid program).  Without LAPACK these functions fail (EDEVICE) and say what to
 * install.  They run on the CPU and, except for products, in the calling thread.
 *
 * f32 computes in f32, as PyTorch does (tensor_cdist and distances in f64, and so cond where a gradient is
 * recorded: its value may differ from that of a call without one); f16 and bf16 compute in f64, forward and
 * backward, and round once (PyTorch takes neither here).
 * Gradients are PyTorch's, and have gradients of any order.  Unless stated otherwise:
 *   ESHAPE  not a matrix, not square where required, or sizes do not fit
 *   EDTYPE  not floating, or operands differ in dtype
 *   EVALUE  a matrix is singular, or not positive-definite; for cholesky, svd, eigh and the functions that
 *           use them also: not finite (others give NaN, as PyTorch); the error names its place in the
 *           batch */
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
    bool left; /* a x = b; false: x a = b */
    TensorFromDefaults from_defaults;
} TensorSolveArgs;
#define TENSOR_SOLVE_DEFAULTS .left = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSolveArgs tensor_solve_defaults;

/* tensor_solve - x with a x = b for square a [..., n, n] and b [..., n, k]; batches broadcast.  b [n], or of
 * a's shape without its last dim, is one vector for each matrix.
 * tensor_inv, tensor_inverse - the inverse of a.  To multiply by it, use solve. */
#define tensor_solve(...) \
    TENSOR_CALL_(tensor_solve_args, TensorSolveArgs, TENSOR_SOLVE_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_solve_args(TensorSolveArgs args);
TAPEGRAD_API Tensor *tensor_inv(Tensor *a);
TAPEGRAD_API Tensor *tensor_inverse(Tensor *a);

typedef struct TensorSolveExArgs {
    Tensor *a, *b;
    bool left;
    bool check_errors; /* a singular matrix is an error */
    TensorFromDefaults from_defaults;
} TensorSolveExArgs;
#define TENSOR_SOLVE_EX_DEFAULTS .left = true, .check_errors = false, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSolveExArgs tensor_solve_ex_defaults;
typedef struct TensorSolveEx {
    Tensor *result, *info;
} TensorSolveEx;

typedef struct TensorInvExArgs {
    Tensor *a;
    bool check_errors;
} TensorInvExArgs;
#define TENSOR_INV_EX_DEFAULTS .check_errors = false
TAPEGRAD_API extern const TensorInvExArgs tensor_inv_ex_defaults;
typedef struct TensorInvEx {
    Tensor *inverse, *info;
} TensorInvEx;

/* tensor_solve_ex, tensor_inv_ex - the same without an error for a singular matrix: info, i32 of a's batch
 * shape, is 0, or the number (from 1) of the zero pivot; the result is NaN there (in PyTorch: unspecified
 * numbers). */
#define tensor_solve_ex(...) \
    TENSOR_CALL_(tensor_solve_ex_args, TensorSolveExArgs, TENSOR_SOLVE_EX_DEFAULTS, .a = __VA_ARGS__)
#define tensor_inv_ex(...) \
    TENSOR_CALL_(tensor_inv_ex_args, TensorInvExArgs, TENSOR_INV_EX_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API TensorSolveEx tensor_solve_ex_args(TensorSolveExArgs args);
TAPEGRAD_API TensorInvEx tensor_inv_ex_args(TensorInvExArgs args);

typedef struct TensorSolveTriangularArgs {
    Tensor *a, *b;
    bool upper, left, unitriangular;
    TensorFromDefaults from_defaults;
} TensorSolveTriangularArgs;
#define TENSOR_SOLVE_TRIANGULAR_DEFAULTS \
    .upper = false, .left = true, .unitriangular = false, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSolveTriangularArgs tensor_solve_triangular_defaults;

typedef struct TensorTriangularSolveArgs {
    Tensor *b, *a;
    bool upper, transpose, unitriangular;
    TensorFromDefaults from_defaults;
} TensorTriangularSolveArgs;
#define TENSOR_TRIANGULAR_SOLVE_DEFAULTS \
    .upper = true, .transpose = false, .unitriangular = false, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorTriangularSolveArgs tensor_triangular_solve_defaults;

/* tensor_solve_triangular - tensor_solve for a triangular a, lower unless .upper.  Does not read the other
 * triangle, nor, with .unitriangular, the diagonal, which counts as 1.  b [..., n, k]; batches broadcast. A
 * zero on the diagonal gives infinities or NaN.
 * tensor_triangular_solve - torch.triangular_solve: b first, upper by default, .transpose for a^T x = b. */
#define tensor_solve_triangular(...)                                                                        \
    TENSOR_CALL_(tensor_solve_triangular_args, TensorSolveTriangularArgs, TENSOR_SOLVE_TRIANGULAR_DEFAULTS, \
                 .a = __VA_ARGS__)
#define tensor_triangular_solve(...)                                                                        \
    TENSOR_CALL_(tensor_triangular_solve_args, TensorTriangularSolveArgs, TENSOR_TRIANGULAR_SOLVE_DEFAULTS, \
                 .b = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_solve_triangular_args(TensorSolveTriangularArgs args);
TAPEGRAD_API Tensor *tensor_triangular_solve_args(TensorTriangularSolveArgs args);

typedef struct TensorPinvArgs {
    Tensor *a;
    double atol, rtol; /* singular values <= max(atol, rtol s_0) count as 0.  Negative, as by default: 0, and
                        * eps max(m, n) of a's dtype (0 if atol is above 0) */
    TensorFromDefaults from_defaults;
} TensorPinvArgs;
#define TENSOR_PINV_DEFAULTS .atol = -1, .rtol = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorPinvArgs tensor_pinv_defaults;

typedef struct TensorPinverseArgs {
    Tensor *a;
    double rcond;
    TensorFromDefaults from_defaults;
} TensorPinverseArgs;
#define TENSOR_PINVERSE_DEFAULTS .rcond = 1e-15, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorPinverseArgs tensor_pinverse_defaults;

/* tensor_pinv        - the Moore-Penrose inverse [..., n, m] of a [..., m, n]
 * tensor_pinverse    - torch.pinverse: tensor_pinv with .rtol = rcond
 * tensor_matrix_rank - i64 [...]: the number of singular values above that bound
 * tensor_lstsq       - pinv(a) b: of all x that minimize |a x - b|, the one of least |x|; b as in solve */
#define tensor_pinv(...) \
    TENSOR_CALL_(tensor_pinv_args, TensorPinvArgs, TENSOR_PINV_DEFAULTS, .a = __VA_ARGS__)
#define tensor_matrix_rank(...) \
    TENSOR_CALL_(tensor_matrix_rank_args, TensorPinvArgs, TENSOR_PINV_DEFAULTS, .a = __VA_ARGS__)
#define tensor_pinverse(...) \
    TENSOR_CALL_(tensor_pinverse_args, TensorPinverseArgs, TENSOR_PINVERSE_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_pinv_args(TensorPinvArgs args);
TAPEGRAD_API Tensor *tensor_pinverse_args(TensorPinverseArgs args);
TAPEGRAD_API Tensor *tensor_matrix_rank_args(TensorPinvArgs args);
TAPEGRAD_API Tensor *tensor_lstsq(Tensor *a, Tensor *b);

/* ---- determinants ---------------------------------------------------------------------------- */

typedef struct TensorSlogdet {
    Tensor *sign, *logabsdet;
} TensorSlogdet;

/* tensor_det     - the determinant [...], 1 for 0x0.  Its gradient is the matrix of cofactors, for a
 *                  singular matrix too (in PyTorch 0 there, unless under create_graph).
 * tensor_slogdet - sign [...] (no gradient) and log |det| [...]; for a singular matrix 0 and -inf, with a NaN
 *                  gradient.
 * tensor_logdet  - log det [...]; for a negative determinant NaN, with gradient 0. */
TAPEGRAD_API Tensor *tensor_det(Tensor *a);
TAPEGRAD_API TensorSlogdet tensor_slogdet(Tensor *a);
TAPEGRAD_API Tensor *tensor_logdet(Tensor *a);

/* ---- factorisations -------------------------------------------------------------------------- */

typedef struct TensorLu {
    Tensor *p, *l, *u;
} TensorLu;
typedef struct TensorLuFactor {
    Tensor *lu, *pivots;
} TensorLuFactor;

/* tensor_lu        - a = p l u for a [m, n], k = min(m, n): p [m, m] of 0 and 1 (no gradient), l [m, k] with
 *                    1 on the diagonal, u [k, n].
 * tensor_lu_factor - l without its diagonal and u in one matrix [m, n], and pivots, i32 [k]: row i was
 *                    exchanged with row pivots[i], counted from 1.  EVALUE: a zero on u's diagonal.
 * Gradients need the first k rows and columns of p^T a to be invertible. */
TAPEGRAD_API TensorLu tensor_lu(Tensor *a);
TAPEGRAD_API TensorLuFactor tensor_lu_factor(Tensor *a);

typedef struct TensorLuSolveArgs {
    Tensor *lu, *pivots, *b;
    bool left, adjoint; /* left false: x a = b; adjoint: a^T instead of a */
    TensorFromDefaults from_defaults;
} TensorLuSolveArgs;
#define TENSOR_LU_SOLVE_DEFAULTS .left = true, .adjoint = false, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorLuSolveArgs tensor_lu_solve_defaults;

/* tensor_lu_solve - x with a x = b from lu_factor of a square a; b [..., n, k]; batches broadcast.  EDTYPE:
 * pivots are not i32.  EVALUE: a pivot outside 1 .. n. */
#define tensor_lu_solve(...) \
    TENSOR_CALL_(tensor_lu_solve_args, TensorLuSolveArgs, TENSOR_LU_SOLVE_DEFAULTS, .lu = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_lu_solve_args(TensorLuSolveArgs args);

typedef struct TensorCholeskyArgs {
    Tensor *a;
    bool upper;
} TensorCholeskyArgs;
#define TENSOR_CHOLESKY_DEFAULTS .upper = false
TAPEGRAD_API extern const TensorCholeskyArgs tensor_cholesky_defaults;

typedef struct TensorCholeskySolveArgs {
    Tensor *b, *l;
    bool upper;
} TensorCholeskySolveArgs;
#define TENSOR_CHOLESKY_SOLVE_DEFAULTS .upper = false
TAPEGRAD_API extern const TensorCholeskySolveArgs tensor_cholesky_solve_defaults;

/* tensor_cholesky             - lower triangular l with l l^T = a, or, .upper, u with u^T u = a; reads only
 *                               that triangle of a, assumed symmetric; so is the gradient
 * tensor_cholesky_solve(b, l) - x with l l^T x = b (.upper: l^T l x = b); the other triangle of l is not
 *                               read, and gets the gradient 0
 * tensor_cholesky_inverse(l)  - the inverse of l l^T (.upper: of l^T l) */
#define tensor_cholesky(...) \
    TENSOR_CALL_(tensor_cholesky_args, TensorCholeskyArgs, TENSOR_CHOLESKY_DEFAULTS, .a = __VA_ARGS__)
#define tensor_cholesky_solve(...)                                                                    \
    TENSOR_CALL_(tensor_cholesky_solve_args, TensorCholeskySolveArgs, TENSOR_CHOLESKY_SOLVE_DEFAULTS, \
                 .b = __VA_ARGS__)
#define tensor_cholesky_inverse(...) \
    TENSOR_CALL_(tensor_cholesky_inverse_args, TensorCholeskyArgs, TENSOR_CHOLESKY_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_cholesky_args(TensorCholeskyArgs args);
TAPEGRAD_API Tensor *tensor_cholesky_solve_args(TensorCholeskySolveArgs args);
TAPEGRAD_API Tensor *tensor_cholesky_inverse_args(TensorCholeskyArgs args);

typedef enum TensorQrMode {
    TENSOR_QR_REDUCED,  /* q [m, k], r [k, n], k = min(m, n) */
    TENSOR_QR_COMPLETE, /* q [m, m], r [m, n] */
    TENSOR_QR_R         /* r of reduced; q is NULL */
} TensorQrMode;
typedef struct TensorQrArgs {
    Tensor *a;
    TensorByName by_name;
    TensorQrMode mode;
} TensorQrArgs;
#define TENSOR_QR_DEFAULTS .mode = TENSOR_QR_REDUCED
TAPEGRAD_API extern const TensorQrArgs tensor_qr_defaults;
typedef struct TensorQr {
    Tensor *q, *r;
} TensorQr;

/* tensor_qr - a = q r, q with orthonormal columns, r upper triangular, with LAPACK's signs.  The gradient
 * needs the first k columns of a to be independent.  EGRAD in backward: complete with m > n, where a does not
 * determine q. */
#define tensor_qr(...) TENSOR_CALL_(tensor_qr_args, TensorQrArgs, TENSOR_QR_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API TensorQr tensor_qr_args(TensorQrArgs args);

typedef struct TensorSvdArgs {
    Tensor *a;
    bool full_matrices;
    TensorFromDefaults from_defaults;
} TensorSvdArgs;
#define TENSOR_SVD_DEFAULTS .full_matrices = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorSvdArgs tensor_svd_defaults;
typedef struct TensorSvd {
    Tensor *u, *s, *vh;
} TensorSvd;

/* tensor_svd - a = u diag(s) vh: s [k] descending, k = min(m, n), u [m, m], vh [n, n], or [m, k], [k, n]
 * without full_matrices.  Unlike in PyTorch, signs are fixed: in every column of u (and row of vh beyond k)
 * the first entry of at least 0.6 times the largest magnitude is positive.  Gradients of u and vh need
 * distinct singular values, nonzero unless a is square (else infinite or NaN); columns beyond k have none.
 * tensor_svdvals - s alone; its gradient always exists. */
#define tensor_svd(...) TENSOR_CALL_(tensor_svd_args, TensorSvdArgs, TENSOR_SVD_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API TensorSvd tensor_svd_args(TensorSvdArgs args);
TAPEGRAD_API Tensor *tensor_svdvals(Tensor *a);

typedef struct TensorEighArgs {
    Tensor *a;
    bool upper; /* read the upper triangle, not the lower */
} TensorEighArgs;
#define TENSOR_EIGH_DEFAULTS .upper = false
TAPEGRAD_API extern const TensorEighArgs tensor_eigh_defaults;
typedef struct TensorEigh {
    Tensor *values, *vectors;
} TensorEigh;

/* tensor_eigh - eigenvalues [n], ascending, and eigenvectors, the columns of vectors [n, n], of a symmetric
 * matrix; reads one triangle.  Signs are fixed as in tensor_svd.  Gradients of vectors need distinct values.
 * tensor_eigvalsh - values alone. */
#define tensor_eigh(...) \
    TENSOR_CALL_(tensor_eigh_args, TensorEighArgs, TENSOR_EIGH_DEFAULTS, .a = __VA_ARGS__)
#define tensor_eigvalsh(...) \
    TENSOR_CALL_(tensor_eigvalsh_args, TensorEighArgs, TENSOR_EIGH_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API TensorEigh tensor_eigh_args(TensorEighArgs args);
TAPEGRAD_API Tensor *tensor_eigvalsh_args(TensorEighArgs args);

/* ---- norms of matrices ----------------------------------------------------------------------- */

/* The ord of a matrix norm: one of these, or a number. */
enum { TENSOR_FRO = 101, TENSOR_NUC = 102 };
typedef struct TensorMatrixNormArgs {
    Tensor *input;
    double ord;
    int dim1, dim2; /* rows and columns */
    bool keepdim;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} TensorMatrixNormArgs;
#define TENSOR_MATRIX_NORM_DEFAULTS \
    .ord = TENSOR_FRO, .dim1 = -2, .dim2 = -1, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorMatrixNormArgs tensor_matrix_norm_defaults;

/* tensor_linalg_matrix_norm - a norm of the matrices in two dims; only singular values need LAPACK.
 *   TENSOR_FRO           sqrt(sum |x|^2)
 *   TENSOR_NUC           sum of the singular values
 *   2, -2                the largest, the smallest singular value
 *   1, -1                the largest, the smallest column sum of |x|
 *   INFINITY, -INFINITY  the largest, the smallest row sum of |x|
 * .dtype: x is cast to it first.  Ties share the gradient evenly.  EVALUE: another ord; dim1 = dim2.
 * ESHAPE: a smallest of no elements (the largest is 0). */
#define tensor_linalg_matrix_norm(...)                                                              \
    TENSOR_CALL_(tensor_linalg_matrix_norm_args, TensorMatrixNormArgs, TENSOR_MATRIX_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_linalg_matrix_norm_args(TensorMatrixNormArgs args);

typedef struct TensorLinalgNormArgs {
    Tensor *input;
    double ord; /* NaN (the default): sqrt(sum |x|^2) over any dims */
    int dim;
    bool keepdim;
    TensorShape dims;
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} TensorLinalgNormArgs;
#define TENSOR_LINALG_NORM_DEFAULTS \
    .ord = (double)NAN, .dim = TENSOR_ALL, .dtype = TENSOR_DTYPES, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorLinalgNormArgs tensor_linalg_norm_defaults;

/* tensor_linalg_norm(x), tensor_linalg_norm(x, 1, .dims = DIMS(0, 1)) - with an ord:
 * tensor_linalg_vector_norm over one dim, tensor_linalg_matrix_norm over two; dim and dims left out: all of
 * x, which is a vector or a matrix (ESHAPE).  .dtype: x is cast to it first. */
#define tensor_linalg_norm(...)                                                              \
    TENSOR_CALL_(tensor_linalg_norm_args, TensorLinalgNormArgs, TENSOR_LINALG_NORM_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_linalg_norm_args(TensorLinalgNormArgs args);

typedef struct TensorCondArgs {
    Tensor *input;
    double p; /* an ord of tensor_linalg_matrix_norm */
    TensorFromDefaults from_defaults;
} TensorCondArgs;
#define TENSOR_COND_DEFAULTS .p = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCondArgs tensor_cond_defaults;

/* tensor_cond - the condition number of matrices, [...].
 *   2, -2       s_max / s_min, s_min / s_max, s the singular values; [m, n] too
 *   TENSOR_NUC  sum s sum 1 / s, square
 *   others      |x| |x^-1| in that norm, square
 * Infinity for a singular matrix; NaN for a zero matrix with 2, -2 and TENSOR_NUC; 0 for an empty one. */
#define tensor_cond(...) \
    TENSOR_CALL_(tensor_cond_args, TensorCondArgs, TENSOR_COND_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_cond_args(TensorCondArgs args);

/* ---- distances ----------------------------------------------------------------------------------
 * |x|_p is tensor_norm along a dim, with its gradients: 0 where the norm is 0.  ESHAPE: operands do not
 * broadcast.  EINDEX: no such dim.  EVALUE: p < 0.  dist, pairwise_distance and cosine_similarity promote
 * dtypes, even an integer to a float. */

typedef struct TensorNormalizeArgs {
    Tensor *input;
    double p;
    int dim;
    double eps;
    TensorFromDefaults from_defaults;
} TensorNormalizeArgs;
#define TENSOR_NORMALIZE_DEFAULTS .p = 2, .dim = 1, .eps = 1e-12, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorNormalizeArgs tensor_normalize_defaults;

/* tensor_normalize - x / max(|x|_p, eps) along dim.  A zero vector gives zeros and the gradient g / eps,
 * which is huge, as in PyTorch.
 * tensor_renorm - multiplies each slice of dim (all of x with one index there) with |slice|_p > maxnorm by
 * maxnorm / (|slice|_p + 1e-7).  ESHAPE: rank below 2.  EVALUE: p <= 0, maxnorm < 0. */
#define tensor_normalize(...) \
    TENSOR_CALL_(tensor_normalize_args, TensorNormalizeArgs, TENSOR_NORMALIZE_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_normalize_args(TensorNormalizeArgs args);
TAPEGRAD_API Tensor *tensor_renorm(Tensor *x, double p, int dim, double maxnorm);
TAPEGRAD_API Tensor *tensor_renorm_(Tensor *x, double p, int dim, double maxnorm);

typedef struct TensorDistArgs {
    Tensor *a, *b;
    double p;
    TensorFromDefaults from_defaults;
} TensorDistArgs;
#define TENSOR_DIST_DEFAULTS .p = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorDistArgs tensor_dist_defaults;

typedef struct TensorPairwiseDistanceArgs {
    Tensor *a, *b;
    double p, eps; /* eps is added to each difference */
    bool keepdim;
    TensorFromDefaults from_defaults;
} TensorPairwiseDistanceArgs;
#define TENSOR_PAIRWISE_DISTANCE_DEFAULTS .p = 2, .eps = 1e-6, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorPairwiseDistanceArgs tensor_pairwise_distance_defaults;

typedef struct TensorCdistArgs {
    Tensor *a, *b;
    double p;
    TensorFromDefaults from_defaults;
} TensorCdistArgs;
#define TENSOR_CDIST_DEFAULTS .p = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCdistArgs tensor_cdist_defaults;

typedef struct TensorPdistArgs {
    Tensor *input;
    double p;
    TensorFromDefaults from_defaults;
} TensorPdistArgs;
#define TENSOR_PDIST_DEFAULTS .p = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorPdistArgs tensor_pdist_defaults;

/* tensor_dist              - |a - b|_p of all elements, which broadcast: rank 0
 * tensor_pairwise_distance - |a - b + eps|_p along the last dim of operands that broadcast
 * tensor_cdist             - |a_i - b_j|_p of all pairs: a [..., P, M], b [..., R, M] -> [..., P, R]; batches
 *                            broadcast
 * tensor_pdist             - |x_i - x_j|_p of all pairs i < j of one set, [N, M] -> [N (N - 1) / 2]
 * cdist and pdist compute differences directly, in double, not from squared norms, so small distances are
 * accurate.  With p = INFINITY each of several tied differences gets the whole gradient. */
#define tensor_dist(...) \
    TENSOR_CALL_(tensor_dist_args, TensorDistArgs, TENSOR_DIST_DEFAULTS, .a = __VA_ARGS__)
#define tensor_pairwise_distance(...)                                       \
    TENSOR_CALL_(tensor_pairwise_distance_args, TensorPairwiseDistanceArgs, \
                 TENSOR_PAIRWISE_DISTANCE_DEFAULTS, .a = __VA_ARGS__)
#define tensor_cdist(...) \
    TENSOR_CALL_(tensor_cdist_args, TensorCdistArgs, TENSOR_CDIST_DEFAULTS, .a = __VA_ARGS__)
#define tensor_pdist(...) \
    TENSOR_CALL_(tensor_pdist_args, TensorPdistArgs, TENSOR_PDIST_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_dist_args(TensorDistArgs args);
TAPEGRAD_API Tensor *tensor_pairwise_distance_args(TensorPairwiseDistanceArgs args);
TAPEGRAD_API Tensor *tensor_cdist_args(TensorCdistArgs args);
TAPEGRAD_API Tensor *tensor_pdist_args(TensorPdistArgs args);

typedef struct TensorCosineArgs {
    Tensor *a, *b;
    int dim;
    double eps;
    TensorFromDefaults from_defaults;
} TensorCosineArgs;
#define TENSOR_COSINE_DEFAULTS .dim = 1, .eps = 1e-8, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const TensorCosineArgs tensor_cosine_defaults;

/* tensor_cosine_similarity - a . b / (max(|a|, eps) max(|b|, eps)) along dim of operands that broadcast. */
#define tensor_cosine_similarity(...) \
    TENSOR_CALL_(tensor_cosine_similarity_args, TensorCosineArgs, TENSOR_COSINE_DEFAULTS, .a = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_cosine_similarity_args(TensorCosineArgs args);

#ifdef __cplusplus
}
#endif
#endif
