/* ops_alias.h - PyTorch's other names for ops of ops.h.  Included by it, last.
 *
 *     Tensor *y = tensor_clip(tensor_multiply(a, b), -1, 1);         // tensor_clamp(tensor_mul(a, b), -1, 1)
 *
 * Each is the op of the other name, options included; an error names that. */
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

/* Comparisons. */
#define tensor_greater tensor_gt
#define tensor_greater_equal tensor_ge
#define tensor_less tensor_lt
#define tensor_less_equal tensor_le
#define tensor_not_equal tensor_ne

/* Shapes. */
#define tensor_adjoint tensor_mT
#define tensor_argwhere tensor_nonzero
#define tensor_concat tensor_cat
#define tensor_concatenate tensor_cat
#define tensor_moveaxis tensor_movedim
#define tensor_row_stack tensor_vstack
#define tensor_fliplr(x) tensor_flip(x, DIMS(1))
#define tensor_flipud(x) tensor_flip(x, DIMS(0))
#define tensor_split_with_sizes tensor_split_sizes

/* Products. */
#define tensor_ger tensor_outer
#define tensor_pinverse tensor_pinv
#define tensor_trapz tensor_trapezoid

/* Casts: x.float() and its kin. */
#define tensor_float(x) tensor_to(x, TENSOR_F32)
#define tensor_double(x) tensor_to(x, TENSOR_F64)
#define tensor_half(x) tensor_to(x, TENSOR_F16)
#define tensor_bfloat16(x) tensor_to(x, TENSOR_BF16)
#define tensor_long(x) tensor_to(x, TENSOR_I64)
#define tensor_int(x) tensor_to(x, TENSOR_I32)
#define tensor_byte(x) tensor_to(x, TENSOR_U8)
#define tensor_bool(x) tensor_to(x, TENSOR_BOOL)
#define tensor_dim tensor_ndim
#define tensor_nelement tensor_numel
#define tensor_element_size(x) tensor_dtype_size(tensor_dtype(x))
#define tensor_type_as(x, other) tensor_to(x, tensor_dtype(other))

#endif
