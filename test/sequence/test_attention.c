/* test_attention.c - where attention goes wrong elsewhere, one test for each such place, and what samples are
 * too small to show: many blocks of rows, threads, memory.  Numbers with many digits are PyTorch's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tapegrad.h>

static TensorScope scope;
static int setup(void **state)
{
    (void)state;
    return tensor_error_clear(), tensor_manual_seed(3), scope = tensor_scope_open(), 0;
}
static int teardown(void **state)
{
    (void)state;
    return tensor_scope_close(scope), 0;
}

/* ---- helpers --------------------------------------------------------------------------------- */

#define F64(shape, ...) tensor_from_data((double[]){ __VA_ARGS__ }, shape, TENSOR_F64)
#define BOOL(shape, ...) \
    tensor_to(tensor_from_data((int64_t[]){ __VA_ARGS__ }, shape, TENSOR_I64), TENSOR_BOOL)
#define attend tensor_scaled_dot_product_attention
static Tensor *leaf(Tensor *x) { return tensor_requires_grad_(tensor_detach(x), true); }
static Tensor *noise(TensorShape shape) { return tensor_randn(shape, TENSOR_F64); }

static Tensor *ramp(double from, double to, TensorShape shape)
{
    return tensor_reshape(tensor_arange(from, to, 1, TENSOR_F64), shape);
}
static Tensor *q24(void) { return tensor_sin(ramp(0, 8, SHAPE(2, 4))); }
static Tensor *k34(void) { return tensor_cos(ramp(0, 12, SHAPE(3, 4))); }
static Tensor *v32(void) { return ramp(0, 6, SHAPE(3, 2)); }

static double value(Tensor *x, int64_t i) { return tensor_item(tensor_select(tensor_flatten(x), 0, i)); }

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12 * (1 + fabs(b)))) fail_msg("%.17g, wanted %.17g", a, b);
}

static double largest(Tensor *x) { return tensor_numel(x) ? tensor_item(tensor_amax(tensor_abs(x))) : 0; }

static void assert_close(Tensor *a, Tensor *b)
{
    if (!a || !b) fail_msg("NULL: %s", tensor_error());
    assert_int_equal(tensor_numel(a), tensor_numel(b));
    if (!(largest(tensor_sub(tensor_flatten(a), tensor_flatten(b))) <= 1e-11))
        fail_msg("off by %g", largest(tensor_sub(a, b)));
}

static void assert_values(Tensor *x, const double *want, int64_t n)
{
    if (!x) fail_msg("NULL: %s", tensor_error());
    for (int64_t i = 0; i < n; i++) assert_near(value(x, i), want[i]);
}
#define ASSERT_VALUES(x, ...) \
    assert_values(x, (double[]){ __VA_ARGS__ }, sizeof(double[]){ __VA_ARGS__ } / sizeof(double))

static void assert_refused(Tensor *y, TensorStatus code)
{
    assert_null(y);
    assert_int_equal(tensor_error_code(), code);
    tensor_error_clear();
}

/* Attention as its definition has it, by ops; mask true: takes part. */
static Tensor *by_definition(Tensor *q, Tensor *k, Tensor *v, Tensor *mask)
{
    Tensor *s =
        tensor_div_scalar(tensor_matmul(q, tensor_transpose(k, -2, -1)), sqrt((double)tensor_size(q, -1)));
    if (mask) s = tensor_masked_fill(s, tensor_logical_not(mask), -INFINITY);
    return tensor_matmul(tensor_softmax(s, -1), v);
}

/* ---- scaled_dot_product_attention ------------------------------------------------------------ */

static void test_attention_scale_is_1_by_the_root_of_the_width(void **state)
{
    (void)state;
    ASSERT_VALUES(attend(q24(), k34(), v32()), 1.6925159759425128, 2.692515975942513, 2.821398177434051,
                  3.821398177434051);
    assert_close(attend(q24(), k34(), v32(), .scale = .5), attend(q24(), k34(), v32()));
}

static void test_attention_is_causal_from_the_top_left(void **state)
{
    (void)state;
    ASSERT_VALUES(attend(q24(), k34(), v32(), .is_causal = true), 0, 1, 1.511443608789403, 2.511443608789403);
    Tensor *q = noise(SHAPE(5, 3)), *k = noise(SHAPE(2, 3)),
           *v = noise(SHAPE(2, 3)); /* more rows than columns */
    assert_close(tensor_narrow(attend(q, k, v, .is_causal = true), 0, 1, 4),
                 tensor_narrow(attend(q, k, v), 0, 1, 4));
    assert_refused(attend(q, k, v, BOOL(SHAPE(1, 2), 1, 1), .is_causal = true), TENSOR_EVALUE);
}

static void test_attention_mask_true_takes_part(void **state)
{
    (void)state;
    Tensor *mask = BOOL(SHAPE(2, 3), 1, 0, 1, 0, 0, 1);
    ASSERT_VALUES(attend(q24(), k34(), v32(), mask), 1.2983353189077305, 2.2983353189077307, 4, 5);
}

static void test_attention_floating_mask_adds(void **state)
{
    (void)state;
    Tensor *mask = F64(SHAPE(2, 3), 1, -2, .5, 0, 0, 3);
    ASSERT_VALUES(attend(q24(), k34(), v32(), mask), 0.9775867817493183, 1.9775867817493182,
                  3.893305036263457, 4.893305036263457);
    assert_close(attend(q24(), k34(), v32(), tensor_to(mask, TENSOR_F32)), attend(q24(), k34(), v32(), mask));
}

/* Row 1 sees nothing. */
static void check_dead_row(Tensor *mask, double dropout, bool create_graph)
{
    Tensor *x[] = { leaf(noise(SHAPE(2, 3, 4))), leaf(noise(SHAPE(2, 5, 4))), leaf(noise(SHAPE(2, 5, 2))) },
           *g[3];
    Tensor *y = attend(x[0], x[1], x[2], mask, .dropout_p = dropout), *cotangent = noise(SHAPE(2, 3, 2));
    assert_non_null(y);
    assert_true(largest(tensor_select(y, 1, 1)) == 0 && largest(tensor_select(y, 1, 0)) > 0);
    assert_int_equal(tensor_gradients_many(TENSORS(y), TENSOR_LIST(x, 3), g,
                                           .grad_outputs = TENSORS(cotangent), .create_graph = create_graph),
                     0);
    assert_true(largest(tensor_select(g[0], 1, 1)) == 0 && largest(tensor_select(g[0], 1, 0)) > 0);
    assert_int_equal(tensor_item(tensor_all(tensor_isfinite(g[1]))), 1);
    assert_int_equal(tensor_item(tensor_all(tensor_isfinite(g[2]))), 1);
}

static void test_attention_row_that_sees_nothing_is_0_in_every_path(void **state)
{
    (void)state;
    Tensor *bits = BOOL(SHAPE(3, 5), 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0);
    Tensor *added =
        tensor_masked_fill(tensor_zeros(SHAPE(3, 5), TENSOR_F64), tensor_logical_not(bits), -INFINITY);
    for (int i = 0; i < 8; i++)
        check_dead_row(i & 1 ? bits : i & 4 ? leaf(added) : added, i & 2 ? .2 : 0, i & 4);
}

static void test_attention_dropout_is_on_the_probabilities(void **state)
{
    (void)state;
    Tensor *q = noise(SHAPE(4, 6, 3)), *k = noise(SHAPE(4, 9, 3)),
           *eye = tensor_zeros(SHAPE(9, 9), TENSOR_F64);
    assert_non_null(tensor_fill_(tensor_diagonal(eye), 1));
    Tensor *p = attend(q, k, eye),
           *dropped = attend(q, k, eye, .dropout_p = .4); /* v = 1: the result is the probabilities */
    int64_t zeros = 0;
    for (int64_t i = 0; i < tensor_numel(p); i++) {
        if (value(dropped, i) == 0) zeros++;
        else assert_near(value(dropped, i), value(p, i) / .6);
    }
    assert_true(zeros > 50 && zeros < 130); /* 86 of 216 expected */
    assert_true(largest(attend(q, k, eye, .dropout_p = 1)) == 0);
}

static void test_attention_shares_heads(void **state)
{
    (void)state;
    Tensor *q = noise(SHAPE(2, 6, 3, 4)), *k = noise(SHAPE(2, 2, 5, 4)), *v = noise(SHAPE(2, 3, 5, 4));
    Tensor *y = attend(tensor_contiguous(q), k, v, .enable_gqa = true);
    assert_close(y, attend(q, tensor_repeat_interleave(k, 3, 1), tensor_repeat_interleave(v, 2, 1)));
    assert_refused(attend(q, k, v), TENSOR_ESHAPE);
    assert_refused(attend(q, noise(SHAPE(2, 4, 5, 4)), v, .enable_gqa = true), TENSOR_ESHAPE);
}

/* ---- beyond samples -------------------------------------------------------------------------- */

/* Values and gradients of the kernel are those of ops, over several blocks of rows. */
static void check_long(int64_t rows, int64_t cols, int kind)
{
    Tensor *x[] = { leaf(noise(SHAPE(2, rows, 5))), leaf(noise(SHAPE(2, cols, 5))),
                    leaf(noise(SHAPE(1, cols, 3))) },
           *g[3], *want[3];
    Tensor *lower = tensor_tril(tensor_ones(SHAPE(rows, cols), TENSOR_BOOL));
    Tensor *y = attend(x[0], x[1], x[2], kind == 2 ? lower : NULL, .is_causal = kind == 1),
           *cotangent = noise(SHAPE(2, rows, 3));
    Tensor *z = by_definition(x[0], x[1], x[2], kind ? lower : NULL);
    assert_close(y, z);
    assert_int_equal(
        tensor_gradients_many(TENSORS(y), TENSOR_LIST(x, 3), g, .grad_outputs = TENSORS(cotangent)), 0);
    assert_int_equal(
        tensor_gradients_many(TENSORS(z), TENSOR_LIST(x, 3), want, .grad_outputs = TENSORS(cotangent)), 0);
    for (int i = 0; i < 3; i++) assert_close(g[i], want[i]);
}

static void test_attention_over_many_blocks(void **state)
{
    (void)state;
    const int64_t sizes[][2] = {
        { 200, 170 }, { 130, 300 }, { 300, 70 }, { 64, 64 }, { 1, 500 }, { 70, 9000 }
    };
    for (int i = 0; i < 6; i++)
        for (int kind = 0; kind < 3; kind++) {
            TensorScope own = tensor_scope_open();
            check_long(sizes[i][0], sizes[i][1], kind);
            tensor_scope_close(own);
        }
}

static void test_attention_is_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    Tensor *x[] = { leaf(tensor_randn(SHAPE(3, 150, 16), TENSOR_F32)),
                    leaf(tensor_randn(SHAPE(3, 150, 16), TENSOR_F32)),
                    leaf(tensor_randn(SHAPE(3, 150, 16), TENSOR_F32)) },
           *first[4] = { NULL };
    Tensor *cotangent = tensor_randn(SHAPE(3, 150, 16), TENSOR_F32);
    const int threads = tensor_num_threads();
    for (int n = 1; n <= 3; n++) {
        Tensor *now[4];
        tensor_set_num_threads(n);
        now[3] = attend(x[0], x[1], x[2], .is_causal = true);
        assert_int_equal(tensor_gradients_many(TENSORS(now[3]), TENSOR_LIST(x, 3), now,
                                               .grad_outputs = TENSORS(cotangent)),
                         0);
        for (int i = 0; i < 4; i++) {
            if (n == 1) first[i] = now[i];
            assert_memory_equal(tensor_data(now[i]), tensor_data(first[i]),
                                (size_t)tensor_numel(now[i]) * sizeof(float));
        }
    }
    tensor_set_num_threads(threads);
}

static void test_attention_keeps_no_scores(void **state)
{
    (void)state;
    enum { LENGTH = 2000, WIDTH = 8 };
    Tensor *q = leaf(tensor_randn(SHAPE(LENGTH, WIDTH), TENSOR_F32)),
           *k = leaf(tensor_randn(SHAPE(LENGTH, WIDTH), TENSOR_F32));
    const int64_t before = tensor_tape_bytes();
    assert_non_null(attend(q, k, k));
    assert_true(tensor_tape_bytes() - before < 4 * LENGTH * WIDTH * (int64_t)sizeof(float));
}

static void test_attention_reads_operands_where_they_lie(void **state)
{
    (void)state;
    Tensor *qkv = noise(SHAPE(2, 7, 3, 4, 5)), *part[3]; /* [batch, position, q k v, head, width] */
    for (int i = 0; i < 3; i++) part[i] = tensor_transpose(tensor_select(qkv, 2, i), 1, 2);
    assert_close(attend(part[0], part[1], part[2]), by_definition(part[0], part[1], part[2], NULL));
    Tensor *one = tensor_expand(noise(SHAPE(1, 1, 7, 5)), SHAPE(2, 4, 7, 5));
    assert_close(attend(part[0], one, one), by_definition(part[0], one, one, NULL));
}

static void test_attention_of_halves_rounds_once(void **state)
{
    (void)state;
    const TensorDtype dtypes[] = { TENSOR_F16, TENSOR_BF16 };
    for (int i = 0; i < 2; i++) {
        Tensor *x[3];
        for (int j = 0; j < 3; j++) x[j] = tensor_to(noise(SHAPE(2, 20, 8)), dtypes[i]);
        Tensor *y = attend(x[0], x[1], x[2]),
               *wide = attend(tensor_to(x[0], TENSOR_F32), tensor_to(x[1], TENSOR_F32),
                              tensor_to(x[2], TENSOR_F32));
        assert_int_equal(tensor_dtype(y), dtypes[i]);
        assert_true(largest(tensor_sub(tensor_to(y, TENSOR_F32),
                                       tensor_to(tensor_to(wide, dtypes[i]), TENSOR_F32))) == 0);
    }
}

/* ---- multi-head attention -------------------------------------------------------------------- */

enum { L = 4, S = 5, N = 2, H = 2, E = 6 };

typedef struct Heads {
    Tensor *q, *kv, *w, *b, *ow, *ob;
} Heads;

static Heads heads(void)
{
    return (Heads){ noise(SHAPE(L, N, E)), noise(SHAPE(S, N, E)), noise(SHAPE(3 * E, E)),
                    noise(SHAPE(3 * E)),   noise(SHAPE(E, E)),    noise(SHAPE(E)) };
}

#define multi_head(h, ...)                                                         \
    tensor_multi_head_attention_forward((h).q, (h).kv, (h).kv, E, H, (h).w, (h).b, \
                                        .out_proj_weight = (h).ow, .out_proj_bias = (h).ob, __VA_ARGS__)

/* [length, N, E] by part i of the packed projection, as [N, H, length, E / H]. */
static Tensor *projected(const Heads *h, Tensor *x, int i)
{
    Tensor *y = tensor_linear(x, tensor_narrow(h->w, 0, i * E, E), tensor_narrow(h->b, 0, i * E, E));
    return tensor_permute(tensor_reshape(y, SHAPE(tensor_size(x, 0), N, H, E / H)), DIMS(1, 2, 0, 3));
}

static Tensor *joined(const Heads *h, Tensor *y)
{
    return tensor_linear(tensor_reshape(tensor_permute(y, DIMS(2, 0, 1, 3)), SHAPE(L, N, E)), h->ow, h->ob);
}

static void test_multi_head_attention_packs_query_key_value(void **state)
{
    (void)state;
    const Heads h = heads();
    Tensor *want = joined(
        &h, by_definition(projected(&h, h.q, 0), projected(&h, h.kv, 1), projected(&h, h.kv, 2), NULL));
    Tensor *weights;
    assert_close(multi_head(h, .training = false), want);
    assert_close(multi_head(h, .weights = &weights), want);
    Heads self = h;
    self.kv = self.q;
    Heads apart = self;
    apart.kv = tensor_clone(self.q); /* the same values: one product, and three */
    assert_close(multi_head(self, .training = true), multi_head(apart, .training = true));
}

static void test_multi_head_attention_masks_true_is_ignored(void **state)
{
    (void)state;
    const Heads h = heads();
    Tensor *padding = BOOL(SHAPE(N, S), 0, 0, 1, 0, 1, 0, 1, 0, 0, 0),
           *mask = tensor_triu(tensor_ones(SHAPE(L, S), TENSOR_BOOL), 2), *weights;
    Tensor *seen = tensor_logical_not(tensor_logical_or(tensor_reshape(padding, SHAPE(N, 1, 1, S)), mask));
    Tensor *want = joined(
        &h, by_definition(projected(&h, h.q, 0), projected(&h, h.kv, 1), projected(&h, h.kv, 2), seen));
    assert_close(multi_head(h, .key_padding_mask = padding, .attn_mask = mask), want);
    assert_close(multi_head(h, .key_padding_mask = padding, .attn_mask = mask, .weights = &weights), want);
    assert_true(largest(tensor_mul(weights,
                                   tensor_to(tensor_logical_not(tensor_squeeze(seen, 1)), TENSOR_F64))) == 0);
    Tensor *added = tensor_masked_fill(tensor_zeros(SHAPE(L, S), TENSOR_F64), mask, -INFINITY);
    assert_close(multi_head(h, .key_padding_mask = padding, .attn_mask = added), want);
}

static void test_multi_head_attention_row_that_sees_nothing_is_0_with_weights_too(void **state)
{
    (void)state;
    Heads h = heads();
    Tensor *padding = BOOL(SHAPE(N, S), 1, 1, 1, 1, 1, 0, 0, 0, 0, 0), *weights;
    for (int wanted = 0; wanted < 2; wanted++) {
        h.q = leaf(h.q);
        Tensor *y = multi_head(h, .key_padding_mask = padding, .weights = wanted ? &weights : NULL);
        assert_close(tensor_select(y, 1, 0), tensor_expand(h.ob, SHAPE(L, E)));
        if (wanted) assert_true(largest(tensor_select(weights, 0, 0)) == 0);
        Tensor *g = tensor_gradients(y, h.q, .grad_output = noise(SHAPE(L, N, E)));
        assert_true(largest(tensor_select(g, 1, 0)) == 0 && largest(tensor_select(g, 1, 1)) > 0);
    }
}

static void test_multi_head_attention_averages_weights(void **state)
{
    (void)state;
    const Heads h = heads();
    Tensor *mean, *each;
    multi_head(h, .weights = &mean);
    multi_head(h, .weights = &each, .average_attn_weights = false);
    assert_int_equal(tensor_ndim(mean), 3);
    assert_int_equal(tensor_ndim(each), 4);
    assert_close(mean, tensor_mean(each, 1));
    assert_close(tensor_sum(mean, -1), tensor_ones(SHAPE(N, L), TENSOR_F64));
}

static void test_multi_head_attention_adds_a_position_of_zeros(void **state)
{
    (void)state;
    const Heads h = heads();
    Tensor *weights, *padding = BOOL(SHAPE(N, S), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    Tensor *y = multi_head(h, .add_zero_attn = true, .key_padding_mask = padding, .weights = &weights);
    assert_int_equal(tensor_size(weights, 2), S + 1); /* only the zeros are seen */
    assert_close(tensor_select(weights, 2, S), tensor_ones(SHAPE(N, L), TENSOR_F64));
    assert_close(y, tensor_expand(h.ob, SHAPE(L, N, E)));
}

static void test_multi_head_attention_is_causal_without_a_mask(void **state)
{
    (void)state;
    Heads h = heads();
    Tensor *mask = tensor_triu(tensor_ones(SHAPE(L, S), TENSOR_BOOL), 1);
    Tensor *padding = BOOL(SHAPE(N, S), 0, 0, 1, 0, 1, 0, 1, 0, 0, 0), *weights;
    assert_close(multi_head(h, .is_causal = true), multi_head(h, .attn_mask = mask));
    assert_close(multi_head(h, .is_causal = true, .weights = &weights), multi_head(h, .attn_mask = mask));
    assert_close(multi_head(h, .is_causal = true, .key_padding_mask = padding),
                 multi_head(h, .attn_mask = mask, .key_padding_mask = padding));
    assert_close(multi_head(h, .is_causal = true, .add_zero_attn = true),
                 multi_head(h, .attn_mask = mask, .add_zero_attn = true));
    assert_refused(
        tensor_multi_head_attention_forward(h.q, h.kv, h.kv, E + 1, H, h.w, h.b, .out_proj_weight = h.ow),
        TENSOR_ESHAPE);
}

static void test_attention_layer_batch_first(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        Module *m = nn_multihead_attention(E, H, .causal = true, .batch_first = first, .dtype = TENSOR_F64);
        Heads h = { noise(SHAPE(L, N, E)),        NULL,
                    nn_get(m, "in_proj_weight"),  nn_get(m, "in_proj_bias"),
                    nn_get(m, "out_proj.weight"), nn_get(m, "out_proj.bias") };
        h.kv = h.q;
        Tensor *y = nn_forward(m, first ? tensor_transpose(h.q, 0, 1) : h.q);
        assert_close(first ? tensor_contiguous(tensor_transpose(y, 0, 1)) : y,
                     multi_head(h, .is_causal = true));
        nn_free(m);
    }
}

/* ---- rotary embedding ------------------------------------------------------------------------ */

static void test_rotary_embedding_turns_pairs(void **state)
{
    (void)state;
    Tensor *x = F64(SHAPE(1, 5), 1, 2, 3, 4, 5), *c = F64(SHAPE(1, 2), 0, -1),
           *s = F64(SHAPE(1, 2), 1, 0);                                /* by 90 and by 180 degrees */
    ASSERT_VALUES(tensor_rotary_embedding(x, c, s), -3, -2, 1, -4, 5); /* pairs (1, 3) and (2, 4) */
    ASSERT_VALUES(tensor_rotary_embedding(x, c, s, .interleaved = true), -2, 1, -3, -4,
                  5); /* pairs (1, 2) and (3, 4) */
}

static void test_rotary_embedding_gradient_turns_back(void **state)
{
    (void)state;
    Tensor *angle = noise(SHAPE(7, 3)), *c = tensor_cos(angle), *s = tensor_sin(angle);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        Tensor *x = leaf(noise(SHAPE(2, 4, 7, 6))), *g = noise(SHAPE(2, 4, 7, 6));
        Tensor *y = tensor_rotary_embedding(x, c, s, .interleaved = interleaved);
        assert_close(tensor_norm(y, .dim = -1), tensor_norm(x, .dim = -1));
        assert_close(tensor_gradients(y, x, .grad_output = g),
                     tensor_rotary_embedding(g, c, tensor_neg(s), .interleaved = interleaved));
    }
}

/* Scores depend on the distance of two positions only. */
static void test_rotary_embedding_sees_distances(void **state)
{
    (void)state;
    Tensor *position = tensor_arange(0, 9, 1, TENSOR_F64), *speed = F64(SHAPE(2), 1, .1);
    Tensor *angle = tensor_outer(position, speed);
    Tensor *q = tensor_expand(noise(SHAPE(1, 4)), SHAPE(9, 4)),
           *k = tensor_expand(noise(SHAPE(1, 4)), SHAPE(9, 4));
    Tensor *c = tensor_cos(angle), *s = tensor_sin(angle);
    Tensor *scores =
        tensor_matmul(tensor_rotary_embedding(q, c, s), tensor_t(tensor_rotary_embedding(k, c, s)));
    assert_close(tensor_contiguous(tensor_slice(tensor_slice(scores, 0, 0, 5), 1, 0, 5)),
                 tensor_contiguous(tensor_slice(tensor_slice(scores, 0, 4, 9), 1, 4, 9)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_attention_scale_is_1_by_the_root_of_the_width),
        TEST(test_attention_is_causal_from_the_top_left),
        TEST(test_attention_mask_true_takes_part),
        TEST(test_attention_floating_mask_adds),
        TEST(test_attention_row_that_sees_nothing_is_0_in_every_path),
        TEST(test_attention_dropout_is_on_the_probabilities),
        TEST(test_attention_shares_heads),
        TEST(test_attention_over_many_blocks),
        TEST(test_attention_is_the_same_on_any_number_of_threads),
        TEST(test_attention_keeps_no_scores),
        TEST(test_attention_reads_operands_where_they_lie),
        TEST(test_attention_of_halves_rounds_once),
        TEST(test_multi_head_attention_packs_query_key_value),
        TEST(test_multi_head_attention_masks_true_is_ignored),
        TEST(test_multi_head_attention_row_that_sees_nothing_is_0_with_weights_too),
        TEST(test_multi_head_attention_averages_weights),
        TEST(test_multi_head_attention_adds_a_position_of_zeros),
        TEST(test_multi_head_attention_is_causal_without_a_mask),
        TEST(test_attention_layer_batch_first),
        TEST(test_rotary_embedding_turns_pairs),
        TEST(test_rotary_embedding_gradient_turns_back),
        TEST(test_rotary_embedding_sees_distances),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
