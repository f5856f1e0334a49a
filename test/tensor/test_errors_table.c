/* test_errors_table.c - every public function of tensor.h, autograd.h, device.h and ops.h with NULL, and with
 * a rank, shape, dtype, device, dimension or index that is wrong: it returns NULL or -1, the text names the
 * function (or op) and the line of the call, and nothing has changed. */
#include <tapegrad/debug.h>
#include "sane.h"

/* ---- operands, and that they stay as they are ------------------------------------------------ */

static Tensor *m, *v, *w, *s, *i64, *far, *mask, *image, *kernel, *leaf, *empty,
    *probs; /* [2,3] [3] [4] [] ... */
static Tensor **const operands[] = {
    &m, &v, &w, &s, &i64, &far, &mask, &image, &kernel, &leaf, &empty, &probs
};
enum { OPERANDS = sizeof operands / sizeof *operands };

static uint64_t print_of(const Tensor *x)
{
    uint64_t h = 14695981039346656037u + tensor_version(x);
    for (size_t k = 0; k < x->storage->bytes; k++)
        h = (h ^ ((const unsigned char *)x->storage->data)[k]) * 1099511628211u;
    return h;
}

static int wrong;
static int64_t live_before, tape_before;
static uint64_t print[OPERANDS];

static int begin(void **state)
{
    sane_begin(state);
    m = MAT(2, 1, 2, 3, 4, 5, 6), v = VEC(1, 2, 3), w = VEC(1, 2, 3, 4), s = tensor_scalar(2, TENSOR_F64);
    i64 = tensor_ones(SHAPE(2), TENSOR_I64), far = tensor_full(SHAPE(2), 7, TENSOR_I64),
    mask = tensor_ones(SHAPE(3), TENSOR_BOOL);
    image = tensor_ones(SHAPE(1, 2, 5, 5), TENSOR_F64), kernel = tensor_ones(SHAPE(4, 2, 3, 3), TENSOR_F64);
    leaf = LEAF(1, 2), empty = tensor_zeros(SHAPE(0, 3), TENSOR_F64), probs = MAT(1, .1, 1.5, .3);
    for (int k = 0; k < OPERANDS; k++) print[k] = print_of(*operands[k]);
    wrong = 0;
    return 0;
}

/* Functions that are made of another, whose name the text may give. */
static const char *const parts[][2] = {
    { "tensor_eq_scalar", "tensor_eq" },
    { "tensor_ne_scalar", "tensor_ne" },
    { "tensor_lt_scalar", "tensor_lt" },
    { "tensor_le_scalar", "tensor_le" },
    { "tensor_gt_scalar", "tensor_gt" },
    { "tensor_ge_scalar", "tensor_ge" },
    { "tensor_lerp", "tensor_sub" },
    { "tensor_addcmul", "tensor_mul" },
    { "tensor_addcdiv", "tensor_add_scaled" },
    { "tensor_reshape_as", "reshape_as" },
    { "tensor_view_as", "view_as" },
    { "tensor_mT", "mT" },
    { "tensor_movedims", "tensor_movedim" },
    { "tensor_expand_as", "expand" },
    { "tensor_split_sizes", "tensor_split" },
    { "tensor_chunk", "chunk" },
    { "tensor_max", "tensor_amax" },
    { "tensor_min", "tensor_amin" },
    { "tensor_softmin", "tensor_neg" },
    { "tensor_backward_many", "tensor_backward" },
    { "tensor_gradients_many", "tensor_gradients" },
    { "tensor_gradcheck", "gradcheck" },
};

static void before_call(void) { live_before = tensor_live_count(), tape_before = tensor_tape_length(); }

static void complain(const char *call, int line, const char *what)
{
    print_error("line %d: %s: %s (%s)\n", line, call, what, tensor_error() ? tensor_error() : "no error");
    wrong++;
}

static void after_call(bool refused, TensorStatus code, const char *call, int line)
{
    char name[64];
    size_t n = strcspn(call, "(");
    const char *text = tensor_error() ? tensor_error() : "";
    snprintf(name, sizeof name, "%.*s", (int)(n && call[n - 1] == '_' ? n - 1 : n), call);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (strcmp(name, parts[k][0]) == 0 && strstr(text, parts[k][1]))
            snprintf(name, sizeof name, "%s", parts[k][1]);
    if (!refused) complain(call, line, "is not refused");
    else if (tensor_error_code() != code) complain(call, line, "is refused with another code");
    else if (!strstr(text, name)) complain(call, line, "does not name itself");
    else if (!strstr(text, " in test_")) complain(call, line, "does not name the call");
    if (tensor_live_count() != live_before) complain(call, line, "leaves tensors");
    if (tensor_tape_length() != tape_before) complain(call, line, "leaves tape entries");
    for (int k = 0; k < OPERANDS; k++)
        if (print_of(*operands[k]) != print[k]) complain(call, line, "changes an operand");
    tensor_error_clear();
}

/* A call that returns NULL, a negative number, or anything. */
#define REFUSED(code, ...) (before_call(), after_call((__VA_ARGS__) == NULL, code, #__VA_ARGS__, __LINE__))
#define FAILED(code, ...) (before_call(), after_call((__VA_ARGS__) < 0, code, #__VA_ARGS__, __LINE__))
#define RECORDED(code, ...) \
    (before_call(), after_call(((void)(__VA_ARGS__), true), code, #__VA_ARGS__, __LINE__))

#define NUL ((Tensor *)NULL)

/* ---- rows of ops.def ------------------------------------------------------------------------- */

static void test_rows(void **state)
{
    (void)state;
    TensorStatus for_bool;
#define BOOL_CODE(types) for_bool = (types) == ROW_NUMBERS || (types) == ROW_REALS ? TENSOR_EDTYPE : TENSOR_OK
#define UNARY(name, types, ...)                    \
    REFUSED(TENSOR_ENULL, tensor_##name(NULL));    \
    REFUSED(TENSOR_ENULL, tensor_##name##_(NULL)); \
    REFUSED(TENSOR_EGRAD, tensor_##name##_(leaf)); \
    BOOL_CODE(types);                              \
    if (for_bool) REFUSED(for_bool, tensor_##name(mask));
#define UNARY1(name, ...)                             \
    REFUSED(TENSOR_ENULL, tensor_##name(NULL, 1));    \
    REFUSED(TENSOR_ENULL, tensor_##name##_(NULL, 1)); \
    REFUSED(TENSOR_EGRAD, tensor_##name##_(leaf, 1));
#define UNARY2(name, ...)                                \
    REFUSED(TENSOR_ENULL, tensor_##name(NULL, 0, 1));    \
    REFUSED(TENSOR_ENULL, tensor_##name##_(NULL, 0, 1)); \
    REFUSED(TENSOR_EGRAD, tensor_##name##_(leaf, 0, 1));
#define BINARY(name, types, ...)                         \
    REFUSED(TENSOR_ENULL, tensor_##name(NULL, m));       \
    REFUSED(TENSOR_ENULL, tensor_##name(m, NULL));       \
    REFUSED(TENSOR_ENULL, tensor_##name##_(m, NULL));    \
    REFUSED(TENSOR_ESHAPE, tensor_##name(m, w));         \
    REFUSED(TENSOR_ESHAPE, tensor_##name##_(v, m));      \
    REFUSED(TENSOR_EGRAD, tensor_##name##_(leaf, leaf)); \
    BOOL_CODE(types);                                    \
    if (for_bool) REFUSED(for_bool, tensor_##name(mask, mask));
#define BINARY1(name, ...)                            \
    REFUSED(TENSOR_ENULL, tensor_##name(NULL, m, 1)); \
    REFUSED(TENSOR_ENULL, tensor_##name(m, NULL, 1)); \
    REFUSED(TENSOR_ESHAPE, tensor_##name(m, w, 1));   \
    REFUSED(TENSOR_EGRAD, tensor_##name##_(leaf, leaf, 1));
#define COMPARE(name, ...)                         \
    REFUSED(TENSOR_ENULL, tensor_##name(NULL, m)); \
    REFUSED(TENSOR_ENULL, tensor_##name(m, NULL)); \
    REFUSED(TENSOR_ESHAPE, tensor_##name(m, w));
#define PREDICATE(name, ...) REFUSED(TENSOR_ENULL, tensor_##name(NULL));
#define BITS1(name, ...)                        \
    REFUSED(TENSOR_ENULL, tensor_##name(NULL)); \
    REFUSED(TENSOR_EDTYPE, tensor_##name(m));   \
    REFUSED(TENSOR_EDTYPE, tensor_##name##_(v));
#define BITS2(name, ...)                              \
    REFUSED(TENSOR_ENULL, tensor_##name(NULL, mask)); \
    REFUSED(TENSOR_ENULL, tensor_##name(mask, NULL)); \
    REFUSED(TENSOR_EDTYPE, tensor_##name(m, mask));   \
    REFUSED(TENSOR_EDTYPE, tensor_##name##_(v, v));
#include <tapegrad/ops.def>
    assert_int_equal(wrong, 0);
}

static void test_ops_h(void **state)
{
    (void)state;
    REFUSED(TENSOR_ENULL, tensor_eq_scalar(NULL, 1)), REFUSED(TENSOR_ENULL, tensor_ne_scalar(NULL, 1));
    REFUSED(TENSOR_ENULL, tensor_lt_scalar(NULL, 1)), REFUSED(TENSOR_ENULL, tensor_le_scalar(NULL, 1));
    REFUSED(TENSOR_ENULL, tensor_gt_scalar(NULL, 1)), REFUSED(TENSOR_ENULL, tensor_ge_scalar(NULL, 1));
    REFUSED(TENSOR_ENULL, tensor_lerp(NULL, m, .5)), REFUSED(TENSOR_ENULL, tensor_lerp(m, NULL, .5));
    REFUSED(TENSOR_ESHAPE, tensor_lerp(m, w, .5)), REFUSED(TENSOR_EGRAD, tensor_lerp_(leaf, leaf, .5));
    REFUSED(TENSOR_ENULL, tensor_lerp_tensor(m, m, NULL)),
        REFUSED(TENSOR_ESHAPE, tensor_lerp_tensor(m, w, m));
    REFUSED(TENSOR_EGRAD, tensor_lerp_tensor_(leaf, leaf, leaf)), REFUSED(TENSOR_ENULL, tensor_selu(NULL));
    REFUSED(TENSOR_EGRAD, tensor_selu_(leaf)), REFUSED(TENSOR_ENULL, tensor_tanhshrink(NULL)),
        REFUSED(TENSOR_ENULL, tensor_prelu(m, NULL));
    REFUSED(TENSOR_ENULL, tensor_rrelu(NULL)), REFUSED(TENSOR_EVALUE, tensor_rrelu(m, 1, 0)),
        REFUSED(TENSOR_EGRAD, tensor_rrelu_(leaf, 0, 1, true));
    REFUSED(TENSOR_ENULL, tensor_clamp_tensor(NULL, m)), REFUSED(TENSOR_EVALUE, tensor_clamp_tensor(m)),
        REFUSED(TENSOR_ESHAPE, tensor_clamp_tensor(m, w));
    REFUSED(TENSOR_EGRAD, tensor_clamp_tensor_(leaf, leaf, NULL)),
        REFUSED(TENSOR_ENULL, tensor_nan_to_num(NULL));
    REFUSED(TENSOR_EGRAD, tensor_nan_to_num_(leaf, 0, 0, 0));
    REFUSED(TENSOR_ENULL, tensor_float_power(m, NULL)), REFUSED(TENSOR_ENULL, tensor_positive(NULL)),
        REFUSED(TENSOR_ENULL, tensor_isclose(NULL, m));
    REFUSED(TENSOR_EVALUE, tensor_isclose(m, m, .rtol = -1)), REFUSED(TENSOR_EVALUE, tensor_polygamma(m, -1)),
        REFUSED(TENSOR_EVALUE, tensor_celu(m, 0));
    REFUSED(TENSOR_ENULL, tensor_addcmul(m, m, NULL, 1)), REFUSED(TENSOR_ESHAPE, tensor_addcmul(m, m, w, 1));
    REFUSED(TENSOR_ENULL, tensor_addcdiv(NULL, m, m, 1)), REFUSED(TENSOR_ESHAPE, tensor_addcdiv(w, m, v, 1));
    REFUSED(TENSOR_EGRAD, tensor_addcmul_(leaf, leaf, leaf, 1)),
        REFUSED(TENSOR_ESHAPE, tensor_addcdiv_(v, m, m, 1));
    REFUSED(TENSOR_ENULL, tensor_zero_(NULL)), REFUSED(TENSOR_EGRAD, tensor_zero_(leaf));
    REFUSED(TENSOR_ENULL, tensor_fill_(NULL, 1)), REFUSED(TENSOR_EGRAD, tensor_fill_(leaf, 1));
    REFUSED(TENSOR_ENULL, tensor_copy_(NULL, m)), REFUSED(TENSOR_ENULL, tensor_copy_(m, NULL));
    REFUSED(TENSOR_ESHAPE, tensor_copy_(m, w)), REFUSED(TENSOR_ESHAPE, tensor_copy_(v, m)),
        REFUSED(TENSOR_EGRAD, tensor_copy_(leaf, leaf));
    REFUSED(TENSOR_ENULL, tensor_to(NULL, TENSOR_F32)), REFUSED(TENSOR_EDTYPE, tensor_to(m, (TensorDtype)99));
    REFUSED(TENSOR_ENULL, tensor_to_device(NULL, "cpu")),
        REFUSED(TENSOR_EDEVICE, tensor_to_device(m, "quantum"));
    REFUSED(TENSOR_EDEVICE, tensor_to_device(m, "cuda:99"));
    assert_int_equal(wrong, 0);
}

/* ---- ops/shape.h ----------------------------------------------------------------------------- */

static void test_shapes(void **state)
{
    (void)state;
    Tensor *part[8];
    REFUSED(TENSOR_ENULL, tensor_reshape(NULL, SHAPE(6))),
        REFUSED(TENSOR_ESHAPE, tensor_reshape(m, SHAPE(4)));
    REFUSED(TENSOR_ESHAPE, tensor_reshape(m, SHAPE(-1, -1))),
        REFUSED(TENSOR_ESHAPE, tensor_reshape(m, SHAPE(-1, 4)));
    REFUSED(TENSOR_ENULL, tensor_view(NULL, SHAPE(6))), REFUSED(TENSOR_ESHAPE, tensor_view(m, SHAPE(5)));
    REFUSED(TENSOR_ENULL, tensor_reshape_as(m, NULL)), REFUSED(TENSOR_ENULL, tensor_view_as(m, NULL));
    REFUSED(TENSOR_ENULL, tensor_flatten(NUL)), REFUSED(TENSOR_EINDEX, tensor_flatten(m, 2));
    REFUSED(TENSOR_ENULL, tensor_unflatten(NULL, 0, DIMS(2))),
        REFUSED(TENSOR_ESHAPE, tensor_unflatten(m, 1, DIMS(2, 2)));
    REFUSED(TENSOR_EINDEX, tensor_unflatten(m, 5, DIMS(3))), REFUSED(TENSOR_ENULL, tensor_squeeze(NUL));
    REFUSED(TENSOR_EINDEX, tensor_squeeze(m, 2)), REFUSED(TENSOR_ENULL, tensor_unsqueeze(NULL, 0));
    REFUSED(TENSOR_EINDEX, tensor_unsqueeze(m, 4));
    REFUSED(TENSOR_ENULL, tensor_transpose(NULL, 0, 1)), REFUSED(TENSOR_EINDEX, tensor_transpose(m, 0, 2));
    REFUSED(TENSOR_ENULL, tensor_t(NULL)), REFUSED(TENSOR_ESHAPE, tensor_t(image)),
        REFUSED(TENSOR_ESHAPE, tensor_mT(v));
    REFUSED(TENSOR_ENULL, tensor_mT(NULL));
    REFUSED(TENSOR_ENULL, tensor_permute(NULL, DIMS(0))),
        REFUSED(TENSOR_EINDEX, tensor_permute(m, DIMS(0, 0)));
    REFUSED(TENSOR_EINDEX, tensor_permute(m, DIMS(0, 2))), REFUSED(TENSOR_ENULL, tensor_movedim(NULL, 0, 1));
    REFUSED(TENSOR_EINDEX, tensor_movedim(m, 0, 3));
    REFUSED(TENSOR_ENULL, tensor_movedims(NULL, DIMS(0), DIMS(1))),
        REFUSED(TENSOR_ENULL, tensor_expand(NULL, SHAPE(2)));
    REFUSED(TENSOR_ESHAPE, tensor_expand(m, SHAPE(3, 3))), REFUSED(TENSOR_ENULL, tensor_expand_as(m, NULL));
    REFUSED(TENSOR_ESHAPE, tensor_expand_as(m, v));
    REFUSED(TENSOR_ENULL, tensor_repeat(NULL, DIMS(2))), REFUSED(TENSOR_ESHAPE, tensor_repeat(m, DIMS(2)));
    REFUSED(TENSOR_ENULL, tensor_tile(NULL, DIMS(2)));
    REFUSED(TENSOR_ENULL, tensor_repeat_interleave(NUL, 2)),
        REFUSED(TENSOR_EINDEX, tensor_repeat_interleave(m, 2, .dim = 2));
    REFUSED(TENSOR_ENULL, tensor_slice(NUL)), REFUSED(TENSOR_EINDEX, tensor_slice(m, 2));
    REFUSED(TENSOR_EVALUE, tensor_slice(m, 0, 0, 2, 0));
    REFUSED(TENSOR_ENULL, tensor_narrow(NULL, 0, 0, 1)), REFUSED(TENSOR_EINDEX, tensor_narrow(m, 0, 1, 2));
    REFUSED(TENSOR_EINDEX, tensor_narrow(m, 2, 0, 1));
    REFUSED(TENSOR_ENULL, tensor_select(NULL, 0, 0)), REFUSED(TENSOR_EINDEX, tensor_select(m, 0, 2));
    REFUSED(TENSOR_EINDEX, tensor_select(m, 2, 0));
    FAILED(TENSOR_ENULL, tensor_split(NULL, 1, 0, part, 8)),
        FAILED(TENSOR_EINDEX, tensor_split(m, 1, 2, part, 8));
    FAILED(TENSOR_ESHAPE, tensor_split_sizes(m, DIMS(1, 2), 0, part)),
        FAILED(TENSOR_ENULL, tensor_chunk(NULL, 2, 0, part, 8));
    FAILED(TENSOR_EVALUE, tensor_chunk(m, 0, 0, part, 8)),
        FAILED(TENSOR_ENULL, tensor_unbind(NULL, 0, part, 8));
    FAILED(TENSOR_EINDEX, tensor_unbind(m, 3, part, 8));
    REFUSED(TENSOR_ENULL, tensor_diagonal(NUL)), REFUSED(TENSOR_EINDEX, tensor_diagonal(v)),
        REFUSED(TENSOR_ENULL, tensor_diag(NUL));
    REFUSED(TENSOR_ESHAPE, tensor_diag(image));
    REFUSED(TENSOR_ENULL, tensor_tril(NUL)), REFUSED(TENSOR_ESHAPE, tensor_triu(v)),
        REFUSED(TENSOR_EGRAD, tensor_tril_(leaf, 0));
    REFUSED(TENSOR_ENULL, tensor_triu_(NULL, 0));
    REFUSED(TENSOR_ENULL, tensor_clone(NULL)), REFUSED(TENSOR_ENULL, tensor_contiguous(NULL));
    REFUSED(TENSOR_ENULL, tensor_flip(NULL, DIMS(0)));
    REFUSED(TENSOR_EINDEX, tensor_flip(m, DIMS(2))),
        REFUSED(TENSOR_ENULL, tensor_roll(NULL, DIMS(1), DIMS(0)));
    REFUSED(TENSOR_EINDEX, tensor_roll(m, DIMS(1), DIMS(2)));
    REFUSED(TENSOR_ENULL, tensor_rot90(NULL, 1, DIMS(0, 1))),
        REFUSED(TENSOR_ENULL, tensor_cat(TENSORS(m, NULL)));
    REFUSED(TENSOR_ESHAPE, tensor_cat(TENSORS(m, v)));
    REFUSED(TENSOR_EINDEX, tensor_cat(TENSORS(m, m), 2)),
        REFUSED(TENSOR_ENULL, tensor_stack(TENSORS(NULL, m)));
    REFUSED(TENSOR_ESHAPE, tensor_stack(TENSORS(m, v)));
    assert_int_equal(wrong, 0);
}

static void test_indexing(void **state)
{
    (void)state;
    Tensor *square = tensor_ones(SHAPE(2, 3), TENSOR_I64);
    REFUSED(TENSOR_ENULL, tensor_gather(NULL, 0, square)), REFUSED(TENSOR_ENULL, tensor_gather(m, 0, NULL));
    REFUSED(TENSOR_EINDEX, tensor_gather(m, 2, square));
    REFUSED(TENSOR_EDTYPE, tensor_gather(m, 0, m)), REFUSED(TENSOR_ESHAPE, tensor_gather(m, 0, i64));
    REFUSED(TENSOR_EINDEX, tensor_gather(v, 0, far));
    REFUSED(TENSOR_ENULL, tensor_take_along_dim(NUL, square)),
        REFUSED(TENSOR_ENULL, tensor_scatter_add(m, 0, square, NULL));
    REFUSED(TENSOR_EINDEX, tensor_scatter_add(v, 0, far, w)),
        REFUSED(TENSOR_EINDEX, tensor_scatter(v, 0, far, w));
    REFUSED(TENSOR_EINDEX, tensor_scatter_(v, 0, far, w));
    REFUSED(TENSOR_EINDEX, tensor_scatter_add_(v, 0, far, w)),
        REFUSED(TENSOR_EINDEX, tensor_scatter_value(v, 0, far, 1));
    REFUSED(TENSOR_EINDEX, tensor_scatter_value_(v, 0, far, 1));
    REFUSED(TENSOR_EGRAD, tensor_scatter_add_(leaf, 0, i64, leaf)),
        REFUSED(TENSOR_ENULL, tensor_index_select(NULL, 0, i64));
    REFUSED(TENSOR_ENULL, tensor_index_select(m, 0, NULL));
    REFUSED(TENSOR_EINDEX, tensor_index_select(m, 0, far)),
        REFUSED(TENSOR_EINDEX, tensor_index_select(m, 2, i64));
    REFUSED(TENSOR_EDTYPE, tensor_index_select(m, 0, v));
    REFUSED(TENSOR_EINDEX, tensor_index_add(m, 0, far, m)),
        REFUSED(TENSOR_EINDEX, tensor_index_add_(m, 0, far, m, 1));
    REFUSED(TENSOR_ENULL, tensor_index_add(m, 0, NULL, m));
    REFUSED(TENSOR_ENULL, tensor_embedding(NUL, m)), REFUSED(TENSOR_ENULL, tensor_embedding(i64, NULL));
    REFUSED(TENSOR_EINDEX, tensor_embedding(far, m));
    REFUSED(TENSOR_EDTYPE, tensor_embedding(v, m)), REFUSED(TENSOR_ESHAPE, tensor_embedding(i64, v));
    REFUSED(TENSOR_ENULL, tensor_one_hot(NUL)), REFUSED(TENSOR_EINDEX, tensor_one_hot(far, 3));
    REFUSED(TENSOR_ENULL, tensor_where(NULL, m, m)), REFUSED(TENSOR_ENULL, tensor_where(mask, m, NULL));
    REFUSED(TENSOR_EDTYPE, tensor_where(m, m, m)), REFUSED(TENSOR_ESHAPE, tensor_where(mask, w, m));
    REFUSED(TENSOR_ENULL, tensor_masked_fill(m, NULL, 0)),
        REFUSED(TENSOR_EDTYPE, tensor_masked_fill(m, m, 0));
    REFUSED(TENSOR_ESHAPE, tensor_masked_fill(w, mask, 0));
    REFUSED(TENSOR_ENULL, tensor_masked_fill_(NULL, mask, 0)),
        REFUSED(TENSOR_ENULL, tensor_masked_fill_tensor(m, mask, NULL));
    REFUSED(TENSOR_ENULL, tensor_masked_fill_tensor_(NULL, mask, s));
    REFUSED(TENSOR_ENULL, tensor_masked_select(NULL, mask)),
        REFUSED(TENSOR_EDTYPE, tensor_masked_select(m, m));
    REFUSED(TENSOR_ENULL, tensor_nonzero(NULL)), REFUSED(TENSOR_ENULL, tensor_nonzero_static(NUL, 1));
    REFUSED(TENSOR_ENULL, tensor_sum_to_size(NULL, SHAPE(1))),
        REFUSED(TENSOR_ESHAPE, tensor_sum_to_size(m, SHAPE(7)));
    assert_int_equal(wrong, 0);
}

/* ---- ops/reduce.h, ops/product.h ------------------------------------------------------------- */

#define REDUCTION(f)                                                \
    REFUSED(TENSOR_ENULL, f(NUL)), REFUSED(TENSOR_EINDEX, f(m, 2)), \
        REFUSED(TENSOR_EINDEX, f(m, .dims = DIMS(0, -3)))

static void test_reductions(void **state)
{
    (void)state;
    REFUSED(TENSOR_ENULL, tensor_prod(NUL)), REFUSED(TENSOR_EINDEX, tensor_prod(m, 2));
    REDUCTION(tensor_sum), REDUCTION(tensor_mean), REDUCTION(tensor_any), REDUCTION(tensor_all);
    REDUCTION(tensor_count_nonzero), REDUCTION(tensor_logsumexp), REDUCTION(tensor_var),
        REDUCTION(tensor_std);
    REDUCTION(tensor_amax), REDUCTION(tensor_amin);
    REFUSED(TENSOR_ENULL, tensor_norm(NUL)), REFUSED(TENSOR_EINDEX, tensor_norm(m, 2, 2)),
        REFUSED(TENSOR_EDTYPE, tensor_mean(i64));
    REFUSED(TENSOR_ENULL, tensor_max(NULL)), REFUSED(TENSOR_ESHAPE, tensor_max(empty)),
        REFUSED(TENSOR_ESHAPE, tensor_min(empty));
    REFUSED(TENSOR_ENULL, tensor_min(NULL));
    REFUSED(TENSOR_ENULL, tensor_argmax(NUL)), REFUSED(TENSOR_EINDEX, tensor_argmax(m, 2)),
        REFUSED(TENSOR_ENULL, tensor_argmin(NUL));
    REFUSED(TENSOR_ESHAPE, tensor_amax(empty, 0));
    REFUSED(TENSOR_ENULL, tensor_max_dim(NUL, 0)), REFUSED(TENSOR_EINDEX, tensor_max_dim(m, 2));
    REFUSED(TENSOR_EINDEX, tensor_min_dim(m, -3));
    REFUSED(TENSOR_ENULL, tensor_sort(NUL)), REFUSED(TENSOR_EINDEX, tensor_sort(m, 2)),
        REFUSED(TENSOR_ENULL, tensor_argsort(NUL));
    REFUSED(TENSOR_ENULL, tensor_topk(NUL, 1)), REFUSED(TENSOR_EINDEX, tensor_topk(m, 4)),
        REFUSED(TENSOR_EINDEX, tensor_kthvalue(m, 0));
    REFUSED(TENSOR_ENULL, tensor_kthvalue(NUL, 1));
    REFUSED(TENSOR_ENULL, tensor_median(NULL)), REFUSED(TENSOR_EINDEX, tensor_median_dim(m, 2)),
        REFUSED(TENSOR_ENULL, tensor_mode(NUL));
    REFUSED(TENSOR_ENULL, tensor_softmax(NULL, 0)), REFUSED(TENSOR_EINDEX, tensor_softmax(m, 2));
    REFUSED(TENSOR_EINDEX, tensor_log_softmax(m, -3)), REFUSED(TENSOR_ENULL, tensor_softmin(NULL, 0));
    REFUSED(TENSOR_EINDEX, tensor_cumsum(m, 2)), REFUSED(TENSOR_ENULL, tensor_cumsum(NULL, 0));
    REFUSED(TENSOR_EINDEX, tensor_cumprod(m, 2));
    assert_int_equal(wrong, 0);
}

#define LOSS(f) \
    REFUSED(TENSOR_ENULL, f(NUL, m)), REFUSED(TENSOR_ENULL, f(m, NULL)), REFUSED(TENSOR_ESHAPE, f(m, v))

static void test_losses(void **state)
{
    (void)state;
    LOSS(tensor_mse_loss), LOSS(tensor_l1_loss), LOSS(tensor_smooth_l1_loss), LOSS(tensor_huber_loss),
        LOSS(tensor_kl_div);
    LOSS(tensor_binary_cross_entropy_with_logits);
    REFUSED(TENSOR_EVALUE, tensor_binary_cross_entropy(probs, probs)),
        REFUSED(TENSOR_ENULL, tensor_binary_cross_entropy(NUL, probs));
    REFUSED(TENSOR_EINDEX, tensor_nll_loss(m, far)), REFUSED(TENSOR_EINDEX, tensor_cross_entropy(m, far));
    REFUSED(TENSOR_ENULL, tensor_cross_entropy(m, NULL));
    REFUSED(TENSOR_ENULL, tensor_cross_entropy(NUL, i64)), REFUSED(TENSOR_ESHAPE, tensor_cross_entropy(m, v));
    REFUSED(TENSOR_ENULL, tensor_nll_loss(NUL, i64));
    assert_int_equal(wrong, 0);
}

static void test_nn(void **state)
{
    (void)state;
    REFUSED(TENSOR_ENULL, tensor_matmul(NULL, m)), REFUSED(TENSOR_ENULL, tensor_matmul(m, NULL));
    REFUSED(TENSOR_ESHAPE, tensor_matmul(m, m)), REFUSED(TENSOR_ESHAPE, tensor_matmul(s, m));
    REFUSED(TENSOR_EDTYPE, tensor_matmul(m, i64)), REFUSED(TENSOR_ESHAPE, tensor_mm(m, v)),
        REFUSED(TENSOR_ESHAPE, tensor_bmm(m, m));
    REFUSED(TENSOR_ESHAPE, tensor_mv(m, w));
    REFUSED(TENSOR_ESHAPE, tensor_dot(v, w)), REFUSED(TENSOR_ESHAPE, tensor_outer(m, v)),
        REFUSED(TENSOR_ENULL, tensor_dot(NULL, w));
    REFUSED(TENSOR_ENULL, tensor_mm(NULL, m));
    REFUSED(TENSOR_ESHAPE, tensor_addmm(m, m, m)), REFUSED(TENSOR_ENULL, tensor_addmm(NUL, m, m));
    REFUSED(TENSOR_ESHAPE, tensor_baddbmm(m, m, m));
    REFUSED(TENSOR_ENULL, tensor_linear(NULL, m, NULL)), REFUSED(TENSOR_ENULL, tensor_linear(m, NULL, NULL));
    REFUSED(TENSOR_ESHAPE, tensor_linear(w, m, NULL)), REFUSED(TENSOR_ESHAPE, tensor_linear(v, m, v));
    REFUSED(TENSOR_ENULL, tensor_conv2d(NUL, kernel)), REFUSED(TENSOR_ENULL, tensor_conv2d(image, NULL));
    REFUSED(TENSOR_ESHAPE, tensor_conv2d(m, kernel)), REFUSED(TENSOR_ESHAPE, tensor_conv2d(image, m));
    REFUSED(TENSOR_EVALUE, tensor_conv2d(image, kernel, .stride = 0)),
        REFUSED(TENSOR_ESHAPE, tensor_conv2d(image, kernel, .groups = 3));
    REFUSED(TENSOR_ESHAPE, tensor_conv2d(image, kernel, v));
    assert_int_equal(wrong, 0);
}

/* ---- tensor.h, autograd.h, device.h, debug.h ------------------------------------------------- */

static void test_tensor_h(void **state)
{
    (void)state;
    double at[6] = { 0 };
    REFUSED(TENSOR_ENULL, tensor_from_blob(NULL, SHAPE(2), TENSOR_F32, NULL, NULL));
    REFUSED(TENSOR_ENULL, tensor_from_data(NULL, SHAPE(2), TENSOR_F32));
    REFUSED(TENSOR_ENULL, tensor_empty_like(NULL)), REFUSED(TENSOR_ENULL, tensor_zeros_like(NULL));
    REFUSED(TENSOR_ENULL, tensor_ones_like(NULL)), REFUSED(TENSOR_ENULL, tensor_full_like(NULL, 1));
    REFUSED(TENSOR_EVALUE, tensor_arange(0, 1, 0, TENSOR_F32)),
        REFUSED(TENSOR_EVALUE, tensor_arange(0, 1, -1, TENSOR_F32));
    REFUSED(TENSOR_EVALUE, tensor_linspace(0, 1, -1, TENSOR_F32));
    RECORDED(TENSOR_ENULL, tensor_ndim(NULL)), FAILED(TENSOR_ENULL, tensor_size(NULL, 0)),
        FAILED(TENSOR_EINDEX, tensor_size(m, 2));
    RECORDED(TENSOR_EINDEX, tensor_stride(m, -3));
    RECORDED(TENSOR_ENULL, tensor_shape(NULL).ndim), RECORDED(TENSOR_ENULL, tensor_numel(NULL)),
        RECORDED(TENSOR_ENULL, tensor_dtype(NULL));
    REFUSED(TENSOR_ENULL, tensor_device(NULL));
    RECORDED(TENSOR_ENULL, tensor_is_contiguous(NULL)),
        RECORDED(TENSOR_ENULL, tensor_shares_storage(m, NULL));
    REFUSED(TENSOR_ENULL, tensor_data(NULL)), RECORDED(TENSOR_ENULL, tensor_version(NULL));
    RECORDED(TENSOR_ENULL, tensor_item(NULL)), RECORDED(TENSOR_ESHAPE, tensor_item(m)),
        RECORDED(TENSOR_ESHAPE, tensor_item_i64(i64));
    RECORDED(TENSOR_ENULL, tensor_get(NULL, DIMS(0)));
    RECORDED(TENSOR_ESHAPE, tensor_get(m, DIMS(0))), RECORDED(TENSOR_EINDEX, tensor_get(m, DIMS(0, 3)));
    FAILED(TENSOR_EINDEX, tensor_set(m, DIMS(2, 0), 1)), FAILED(TENSOR_ENULL, tensor_set(NULL, DIMS(0), 1));
    FAILED(TENSOR_EGRAD, tensor_set(leaf, DIMS(0), 1)), FAILED(TENSOR_ENULL, tensor_copy_to(NULL, at, 0));
    FAILED(TENSOR_ESHAPE, tensor_copy_to(m, at, 8)), FAILED(TENSOR_ENULL, tensor_copy_to(m, NULL, 48));
    FAILED(TENSOR_ESHAPE, tensor_copy_from(m, at, 8)), FAILED(TENSOR_ENULL, tensor_copy_from(m, NULL, 48));
    FAILED(TENSOR_EGRAD, tensor_copy_from(leaf, at, 16));
    RECORDED(TENSOR_ENULL, tensor_equal(m, NULL)),
        RECORDED(TENSOR_ENULL, tensor_allclose(NULL, m, 0, 0, false));
    RECORDED(TENSOR_ESHAPE, tensor_allclose(m, w, 0, 0, false));
    RECORDED(TENSOR_ENULL, tensor_first_nan(NULL));
    assert_int_equal(wrong, 0);
}

static void test_autograd_h(void **state)
{
    (void)state;
    REFUSED(TENSOR_ENULL, tensor_requires_grad_(NULL, true)),
        REFUSED(TENSOR_EDTYPE, tensor_requires_grad_(i64, true));
    RECORDED(TENSOR_ENULL, tensor_requires_grad(NULL));
    RECORDED(TENSOR_ENULL, tensor_is_leaf(NULL)), REFUSED(TENSOR_ENULL, tensor_grad(NULL)),
        FAILED(TENSOR_ENULL, tensor_set_grad(NULL, m));
    FAILED(TENSOR_ESHAPE, tensor_set_grad(leaf, m));
    FAILED(TENSOR_EDTYPE, tensor_set_grad(leaf, i64)), FAILED(TENSOR_ENULL, tensor_retain_grad(NULL));
    FAILED(TENSOR_EGRAD, tensor_retain_grad(m)), REFUSED(TENSOR_ENULL, tensor_detach(NULL));
    FAILED(TENSOR_ENULL, tensor_backward(NUL)), FAILED(TENSOR_EGRAD, tensor_backward(m)),
        FAILED(TENSOR_EGRAD, tensor_backward(leaf));
    FAILED(TENSOR_ESHAPE, tensor_backward(leaf, m));
    FAILED(TENSOR_EVALUE, tensor_backward_many((TensorList){ 0 }));
    FAILED(TENSOR_ENULL, tensor_backward_many(TENSORS(NULL)));
    REFUSED(TENSOR_ENULL, tensor_gradients(NUL, leaf)), REFUSED(TENSOR_ENULL, tensor_gradients(leaf, NULL));
    REFUSED(TENSOR_EGRAD, tensor_gradients(leaf, m));
    FAILED(TENSOR_EVALUE, tensor_gradients_many(TENSOR_LIST(NULL, 0), TENSOR_LIST(NULL, 0), NULL));
    REFUSED(TENSOR_ENULL, tensor_apply(NULL, &m, 1, NULL));
    FAILED(TENSOR_ENULL, tensor_register_hook(NULL, NULL, NULL));
    FAILED(TENSOR_ENULL, tensor_register_post_accumulate_grad_hook(NULL, NULL, NULL)),
        FAILED(TENSOR_ENULL, tensor_remove_hook(NULL, 1));
    FAILED(TENSOR_ENULL, tensor_apply_all(NULL, &m, 1, NULL, NULL, 0)),
        FAILED(TENSOR_EDEVICE, tensor_set_default_device("quantum"));
    FAILED(TENSOR_EDEVICE, tensor_synchronize("cuda:99"));
    FAILED(TENSOR_EVALUE, tensor_set_num_threads(0)),
        FAILED(TENSOR_EDTYPE, tensor_gradcheck(tensor_op_find("exp"), i64));
    assert_string_equal(tensor_default_device(), "cpu");
    assert_int_equal(wrong, 0);
}

/* Made apart: these would leave nothing to compare but say which sizes are wrong. */
static void test_making(void **state)
{
    (void)state;
    assert_tensor_error(tensor_zeros(SHAPE(2, -1), TENSOR_F32), TENSOR_ESHAPE);
    assert_tensor_error(tensor_zeros(SHAPE(2), (TensorDtype)42), TENSOR_EDTYPE);
    assert_tensor_error(tensor_empty((TensorShape){ 17, (int64_t[17]){ 1 } }, TENSOR_F32), TENSOR_ESHAPE);
    assert_tensor_error(tensor_eye(-1, 2, TENSOR_F32), TENSOR_ESHAPE);
    assert_tensor_error(tensor_full(SHAPE(INT64_MAX, 2), 1, TENSOR_F32), TENSOR_ESHAPE);
    assert_tensor_error(tensor_from_blob(&wrong, SHAPE(-1), TENSOR_I32, NULL, NULL), TENSOR_ESHAPE);
}

#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, sane_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rows),       TEST(test_ops_h),  TEST(test_shapes), TEST(test_indexing),
        TEST(test_reductions), TEST(test_losses), TEST(test_nn),     TEST(test_tensor_h),
        TEST(test_autograd_h), TEST(test_making),
    };
    return cmocka_run_group_tests_name("bad input", tests, NULL, NULL);
}
