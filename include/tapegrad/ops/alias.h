/* ops/alias.h - PyTorch's other names for ops of ops.h.  Included by it, last.
 *
 *     Tensor *y = tensor_clip(tensor_multiply(a, b), -1, 1);         // tensor_clamp(tensor_mul(a, b), -1, 1)
 *
 * Each is the op of the other name, with its options; errors use that name.  They are spellings for C and
 * C++: the library has the symbol of the other name alone, which other languages call. */
#ifndef TAPEGRAD_OPS_ALIAS_H
#define TAPEGRAD_OPS_ALIAS_H

/* Elementwise. */
#define tensor_absolute tensor_abs
#define tensor_arccos tensor_acos
#define tensor_arccosh tensor_acosh
#define tensor_arcsin tensor_asin
#define tensor_arcsinh tensor_asinh
#define tensor_arctan tensor_atan
#define tensor_arctan2 tensor_atan2
#define tensor_arctanh tensor_atanh
#define tensor_clip tensor_clamp
#define tensor_clip_ tensor_clamp_
#define tensor_divide tensor_div
#define tensor_true_divide tensor_div
#define tensor_expit tensor_sigmoid
#define tensor_fix tensor_trunc
#define tensor_gammaln tensor_lgamma
#define tensor_log_sigmoid tensor_logsigmoid
#define tensor_multiply tensor_mul
#define tensor_negative tensor_neg
#define tensor_psi tensor_digamma
#define tensor_rsub(a, b) tensor_sub(b, a)
#define tensor_subtract tensor_sub
#define tensor_clip_tensor tensor_clamp_tensor
#define tensor_divide_scalar tensor_div_scalar
#define tensor_multiply_scalar tensor_mul_scalar
#define tensor_subtract_scalar tensor_sub_scalar
#define tensor_true_divide_scalar tensor_div_scalar

/* Comparisons. */
#define tensor_greater tensor_gt
#define tensor_greater_equal tensor_ge
#define tensor_less tensor_lt
#define tensor_less_equal tensor_le
#define tensor_not_equal tensor_ne
#define tensor_greater_scalar tensor_gt_scalar
#define tensor_greater_equal_scalar tensor_ge_scalar
#define tensor_less_scalar tensor_lt_scalar
#define tensor_less_equal_scalar tensor_le_scalar
#define tensor_not_equal_scalar tensor_ne_scalar

/* The same in place. */
#define tensor_absolute_ tensor_abs_
#define tensor_arccos_ tensor_acos_
#define tensor_arccosh_ tensor_acosh_
#define tensor_arcsin_ tensor_asin_
#define tensor_arcsinh_ tensor_asinh_
#define tensor_arctan_ tensor_atan_
#define tensor_arctan2_ tensor_atan2_
#define tensor_arctanh_ tensor_atanh_
#define tensor_clip_tensor_ tensor_clamp_tensor_
#define tensor_divide_ tensor_div_
#define tensor_divide_scalar_ tensor_div_scalar_
#define tensor_true_divide_ tensor_div_
#define tensor_true_divide_scalar_ tensor_div_scalar_
#define tensor_fix_ tensor_trunc_
#define tensor_multiply_ tensor_mul_
#define tensor_multiply_scalar_ tensor_mul_scalar_
#define tensor_negative_ tensor_neg_
#define tensor_subtract_ tensor_sub_
#define tensor_subtract_scalar_ tensor_sub_scalar_
#define tensor_greater_ tensor_gt_
#define tensor_greater_equal_ tensor_ge_
#define tensor_less_ tensor_lt_
#define tensor_less_equal_ tensor_le_
#define tensor_not_equal_ tensor_ne_
#define tensor_greater_scalar_ tensor_gt_scalar_
#define tensor_greater_equal_scalar_ tensor_ge_scalar_
#define tensor_less_scalar_ tensor_lt_scalar_
#define tensor_less_equal_scalar_ tensor_le_scalar_
#define tensor_not_equal_scalar_ tensor_ne_scalar_

/* Shapes. */
#define tensor_adjoint tensor_mT
#define tensor_argwhere tensor_nonzero
#define tensor_concat tensor_cat
#define tensor_concatenate tensor_cat
#define tensor_moveaxis tensor_movedim
#define tensor_row_stack tensor_vstack
#define tensor_split_with_sizes tensor_split_sizes

/* Products. */
#define tensor_ger tensor_outer
#define tensor_trapz tensor_trapezoid

/* torch.linalg's own names; tensor_linalg_norm, _vector_norm and _matrix_norm are functions. */
#define tensor_linalg_cholesky tensor_cholesky
#define tensor_linalg_cond tensor_cond
#define TENSOR_LINALG_CROSS_DEFAULTS .dim = -1, TENSOR_FROM_DEFAULTS
#define tensor_linalg_cross(...) \
    TENSOR_CALL_(tensor_cross_args, TensorCrossArgs, TENSOR_LINALG_CROSS_DEFAULTS, .a = __VA_ARGS__)
#define tensor_linalg_det tensor_det
#define TENSOR_LINALG_DIAGONAL_DEFAULTS .dim1 = -2, .dim2 = -1, TENSOR_FROM_DEFAULTS
#define tensor_linalg_diagonal(...)                                                         \
    TENSOR_CALL_(tensor_diagonal_args, TensorDiagonalArgs, TENSOR_LINALG_DIAGONAL_DEFAULTS, \
                 .input = __VA_ARGS__)
#define tensor_linalg_eigh tensor_eigh
#define tensor_linalg_eigvalsh tensor_eigvalsh
#define tensor_linalg_inv tensor_inv
#define tensor_linalg_inv_ex tensor_inv_ex
#define tensor_linalg_lstsq tensor_lstsq
#define tensor_linalg_lu tensor_lu
#define tensor_linalg_lu_factor tensor_lu_factor
#define tensor_linalg_lu_solve tensor_lu_solve
#define tensor_linalg_matmul tensor_matmul
#define tensor_linalg_matrix_power tensor_matrix_power
#define tensor_linalg_matrix_rank tensor_matrix_rank
#define tensor_linalg_multi_dot tensor_multi_dot
#define tensor_linalg_pinv tensor_pinv
#define tensor_linalg_qr tensor_qr
#define tensor_linalg_slogdet tensor_slogdet
#define tensor_linalg_solve tensor_solve
#define tensor_linalg_solve_ex tensor_solve_ex
#define tensor_linalg_solve_triangular tensor_solve_triangular
#define tensor_linalg_svd tensor_svd
#define tensor_linalg_svdvals tensor_svdvals
#define tensor_linalg_vecdot tensor_vecdot
#define tensor_linalg_vander(...)                                                                  \
    TENSOR_CALL_(tensor_vander_args, TensorVanderArgs, TENSOR_VANDER_DEFAULTS, .increasing = true, \
                 .input = __VA_ARGS__)

/* Losses. */
#define tensor_triplet_margin_with_distance_loss tensor_triplet_margin_loss

/* torch.special's. */
#define tensor_special_digamma tensor_digamma
#define tensor_special_entr tensor_entr
#define tensor_special_erf tensor_erf
#define tensor_special_erfc tensor_erfc
#define tensor_special_erfcx tensor_erfcx
#define tensor_special_erfinv tensor_erfinv
#define tensor_special_exp2 tensor_exp2
#define tensor_special_expit tensor_sigmoid
#define tensor_special_expm1 tensor_expm1
#define tensor_special_gammaln tensor_lgamma
#define tensor_special_gammainc tensor_igamma
#define tensor_special_gammaincc tensor_igammac
#define tensor_special_i0 tensor_i0
#define tensor_special_i1 tensor_i1
#define tensor_special_log1p tensor_log1p
#define tensor_special_log_ndtr tensor_log_ndtr
#define tensor_special_log_softmax tensor_log_softmax
#define tensor_special_logit tensor_logit
#define tensor_special_logsumexp tensor_logsumexp
#define tensor_special_ndtr tensor_ndtr
#define tensor_special_ndtri tensor_ndtri
#define tensor_special_polygamma(n, x) tensor_polygamma(x, n)
#define tensor_special_psi tensor_digamma
#define tensor_special_round tensor_round
#define tensor_special_sinc tensor_sinc
#define tensor_special_softmax tensor_softmax
#define tensor_special_xlog1py tensor_xlog1py
#define tensor_special_xlogy tensor_xlogy
#define tensor_special_zeta tensor_zeta

/* Casts: x.float() and its kin. */
#define tensor_float(x) tensor_to(x, TENSOR_F32)
#define tensor_double(x) tensor_to(x, TENSOR_F64)
#define tensor_half(x) tensor_to(x, TENSOR_F16)
#define tensor_bfloat16(x) tensor_to(x, TENSOR_BF16)
#define tensor_long(x) tensor_to(x, TENSOR_I64)
#define tensor_int(x) tensor_to(x, TENSOR_I32)
#define tensor_byte(x) tensor_to(x, TENSOR_U8)
#define tensor_bool(x) tensor_to(x, TENSOR_BOOL)
#define tensor_cpu(x) tensor_to_device(x, "cpu")
#define tensor_cuda(x) tensor_to_device(x, "cuda")
#define tensor_data_ptr tensor_data
#define tensor_dim tensor_ndim
#define tensor_ndimension tensor_ndim
#define tensor_is_floating_point(x) tensor_dtype_is_float(tensor_dtype(x))
#define tensor_scalar_tensor tensor_scalar
#define tensor_nelement tensor_numel
#define tensor_element_size(x) tensor_dtype_size(tensor_dtype(x))
#define tensor_type_as(x, other) tensor_to(x, tensor_dtype(other))

#endif
