/* test_packed.c - sequences of different lengths: padded, packed, run by recurrent layers, and back. */
#include <math.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "oracle/packed_golden.h"

static Tensor *ramp(TensorShape shape)
{
    double v[200];
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) n *= shape.dim[d];
    assert_true(n <= 200);
    for (int64_t i = 0; i < n; i++) v[i] = ((double)(7 * i % 13) - 6) / 8;
    return tensor_from_data(v, shape, TENSOR_F64);
}

#define INTS(n, ...) tensor_from_data((int64_t[]){ __VA_ARGS__ }, SHAPE(n), TENSOR_I64)

static void assert_ints(Tensor *t, int n, const int64_t *want)
{
    assert_int_equal(tensor_numel(t), n);
    for (int i = 0; i < n; i++) assert_true(tensor_get(t, DIMS(i)) == (double)want[i]);
}

/* ---- padding and packing --------------------------------------------------------------------- */

static void there_and_back(void **state)
{
    (void)state;
    Tensor *x = ramp(SHAPE(4, 3, 2)), *lengths = INTS(3, 2, 4, 3), *found;
    for (int first = 0; first < 2; first++) {
        Tensor *in = first ? tensor_transpose(x, 0, 1) : x;
        PackedSequence p =
            nn_pack_padded_sequence(in, lengths, .batch_first = first, .enforce_sorted = false);
        assert_ints(p.batch_sizes, 4, (int64_t[]){ 3, 3, 2, 1 });
        assert_ints(p.sorted_indices, 3, (int64_t[]){ 1, 2, 0 });
        assert_ints(p.unsorted_indices, 3, (int64_t[]){ 2, 0, 1 });
        assert_true(tensor_size(p.data, 0) == 9 && tensor_size(p.data, 1) == 2);
        assert_true(tensor_equal(tensor_select(p.data, 0, 3), tensor_select(tensor_select(x, 0, 1), 0, 1)));
        Tensor *y = nn_pad_packed_sequence(p, .batch_first = first, .padding_value = 7, .lengths = &found);
        assert_true(tensor_equal(found, lengths));
        if (first) y = tensor_transpose(y, 0, 1);
        for (int t = 0; t < 4; t++)
            for (int i = 0; i < 3; i++)
                for (int k = 0; k < 2; k++)
                    assert_true(tensor_get(y, DIMS(t, i, k)) ==
                                (t < (int)tensor_get(lengths, DIMS(i)) ? tensor_get(x, DIMS(t, i, k)) : 7));
        Tensor *longer = nn_pad_packed_sequence(p, .batch_first = first, .total_length = 6);
        assert_true(tensor_size(longer, first ? 1 : 0) == 6);
    }
    PackedSequence sorted = nn_pack_padded_sequence(x, INTS(3, 4, 4, 1));
    assert_true(sorted.data && !sorted.sorted_indices && !sorted.unsorted_indices);
    assert_ints(sorted.batch_sizes, 4, (int64_t[]){ 3, 2, 2, 2 });
}

static void padded_side_by_side(void **state)
{
    (void)state;
    Tensor *a = ramp(SHAPE(3, 2)), *b = ramp(SHAPE(1, 2)), *c = ramp(SHAPE(2, 2)), *back[3];
    Tensor *x = nn_pad_sequence(TENSORS(a, b, c), .batch_first = true, .padding_value = -1);
    assert_true(tensor_size(x, 0) == 3 && tensor_size(x, 1) == 3);
    assert_true(tensor_equal(tensor_select(x, 0, 0), a) && tensor_get(x, DIMS(1, 1, 0)) == -1);
    assert_int_equal(nn_unpad_sequence(x, INTS(3, 3, 1, 2), true, back), 0);
    assert_true(tensor_equal(back[0], a) && tensor_equal(back[1], b) && tensor_equal(back[2], c));
    Tensor *left = nn_pad_sequence(TENSORS(a, b), .padding_side = NN_PADDING_LEFT);
    assert_true(tensor_get(left, DIMS(0, 1, 0)) == 0 &&
                tensor_get(left, DIMS(2, 1, 1)) == tensor_get(b, DIMS(0, 1)));
    PackedSequence p = nn_pack_sequence(TENSORS(a, b, c), false);
    assert_true(tensor_equal(nn_pad_packed_sequence(p), nn_pad_sequence(TENSORS(a, b, c))));
    /* more than an op's operands at once */
    Tensor *many[150];
    for (int i = 0; i < 150; i++) many[i] = tensor_full(SHAPE(1 + i % 3), i, TENSOR_F32);
    Tensor *wide = nn_pad_sequence(TENSOR_LIST(many, 150));
    assert_true(tensor_get(wide, DIMS(2, 149)) == 149 && tensor_get(wide, DIMS(1, 147)) == 0);
}

static void refused(void **state)
{
    (void)state;
    Tensor *x = ramp(SHAPE(4, 3, 2)), *to[3];
    assert_tensor_error(nn_pack_padded_sequence(x, INTS(3, 2, 4, 3)).data, TENSOR_EVALUE);
    assert_tensor_error(nn_pack_padded_sequence(x, INTS(3, 5, 4, 3)).data, TENSOR_EVALUE);
    assert_tensor_error(nn_pack_padded_sequence(x, INTS(3, 4, 3, 0)).data, TENSOR_EVALUE);
    assert_tensor_error(nn_pack_padded_sequence(x, INTS(2, 4, 3)).data, TENSOR_ESHAPE);
    assert_tensor_error(nn_pack_padded_sequence(x, ramp(SHAPE(3))).data, TENSOR_EDTYPE);
    assert_tensor_error(nn_pack_padded_sequence(ramp(SHAPE(3)), INTS(1, 3)).data, TENSOR_ESHAPE);
    assert_tensor_error(nn_pack_padded_sequence(NULL, INTS(1, 3)).data, TENSOR_ENULL);
    assert_tensor_error(nn_pad_sequence(TENSOR_LIST(NULL, 0)), TENSOR_EVALUE);
    assert_tensor_error(nn_pad_sequence(TENSORS(x, ramp(SHAPE(2, 2)))), TENSOR_ESHAPE);
    assert_tensor_error(nn_pack_sequence(TENSORS(ramp(SHAPE(1)), ramp(SHAPE(2))), true).data, TENSOR_EVALUE);
    assert_status_error(nn_unpad_sequence(x, INTS(3, 4, 4, 5), false, to), TENSOR_EVALUE);
    PackedSequence p = nn_pack_padded_sequence(x, INTS(3, 4, 3, 2)), odd = p;
    assert_tensor_error(nn_pad_packed_sequence(p, .total_length = 3), TENSOR_EVALUE);
    odd.batch_sizes = INTS(3, 3, 3, 2);
    assert_tensor_error(nn_pad_packed_sequence(odd), TENSOR_EVALUE);
    odd.batch_sizes = INTS(3, 2, 3, 4);
    Module *gru = nn_gru(2, 3, .dtype = TENSOR_F64), *lstm = nn_lstm(2, 3, .dtype = TENSOR_F64);
    assert_tensor_error(nn_rnn_forward_packed(gru, odd, NULL, NULL).data, TENSOR_EVALUE);
    odd.batch_sizes = NULL;
    assert_tensor_error(nn_rnn_forward_packed(gru, odd, NULL, NULL).data, TENSOR_ENULL);
    assert_tensor_error(nn_rnn_forward_packed(lstm, p, NULL, NULL).data, TENSOR_EVALUE);
    assert_tensor_error(nn_lstm_forward_packed(gru, p, NULL, NULL, NULL, NULL).data, TENSOR_EVALUE);
    assert_tensor_error(nn_rnn_forward_packed(gru, p, ramp(SHAPE(1, 2, 3)), NULL).data, TENSOR_ESHAPE);
    assert_tensor_error(nn_rnn_forward_packed(NULL, p, NULL, NULL).data, TENSOR_ENULL);
    nn_free(gru), nn_free(lstm);
}

/* ---- recurrent layers ------------------------------------------------------------------------ */

static void near(Tensor *const *found, int n, const double *want, int count)
{
    for (int k = 0, at = 0; k < n || (assert_int_equal(at, count), 0); k++) {
        if (!found[k]) fail_msg("result %d: %s", k, tensor_error());
        Tensor *flat = tensor_flatten(tensor_detach(found[k]));
        for (int64_t i = 0; i < tensor_numel(flat); i++, at++)
            if (!(at < count && fabs(tensor_get(flat, DIMS(i)) - want[at]) < 1e-12))
                fail_msg("result %d [%d]: %.17g", k, (int)i, tensor_get(flat, DIMS(i)));
    }
}
#define NEAR(name, ...)                                                                            \
    near((Tensor *[]){ __VA_ARGS__ }, (int)(sizeof(Tensor *[]){ __VA_ARGS__ } / sizeof(Tensor *)), \
         golden_packed_##name, (int)(sizeof golden_packed_##name / sizeof(double)))

static Module *seeded(Module *m)
{
    assert_int_equal(nn_to(m, TENSOR_F64), 0);
    nn_eval(m);
    return m;
}

static PackedSequence packed(bool first)
{
    Tensor *x = ramp(SHAPE(4, 3, 2));
    return nn_pack_padded_sequence(first ? tensor_transpose(x, 0, 1) : x, INTS(3, 2, 4, 3),
                                   .batch_first = first, .enforce_sorted = false);
}

static void results_of_torch(void **state)
{
    (void)state;
    Tensor *h, *c;
    tensor_manual_seed(0);
    Module *m = seeded(nn_lstm(2, 3, 2, .bidirectional = true));
    PackedSequence y = nn_lstm_forward_packed(m, packed(false), ramp(SHAPE(4, 3, 3)),
                                              tensor_mul_scalar(ramp(SHAPE(4, 3, 3)), .5), &h, &c);
    NEAR(lstm, nn_pad_packed_sequence(y, .padding_value = 7), h, c);
    nn_free(m);
    tensor_manual_seed(0);
    m = seeded(nn_lstm(2, 3, .proj_size = 2, .bias = false));
    y = nn_lstm_forward_packed(m, packed(false), NULL, NULL, &h, &c);
    NEAR(lstm_proj, nn_pad_packed_sequence(y, .padding_value = 7), h, c);
    nn_free(m);
    tensor_manual_seed(0);
    m = seeded(nn_gru(2, 3, .bidirectional = true, .batch_first = true));
    y = nn_rnn_forward_packed(m, packed(true), ramp(SHAPE(2, 3, 3)), &h);
    NEAR(gru, nn_pad_packed_sequence(y, .padding_value = 7, .batch_first = true), h);
    nn_free(m);
    tensor_manual_seed(0);
    m = seeded(nn_rnn(2, 3, 2, .nonlinearity = NN_RECURRENCE_RELU));
    y = nn_rnn_forward_packed(m, packed(false), NULL, &h);
    NEAR(rnn, nn_pad_packed_sequence(y, .padding_value = 7), h);
    nn_free(m);
    tensor_manual_seed(0);
    m = seeded(nn_lstm(2, 4, 2, .dropout = 0.5));
    nn_train(m, true);
    tensor_manual_seed(1);
    y = nn_lstm_forward_packed(m, packed(false), NULL, NULL, &h, &c);
    NEAR(dropout, nn_pad_packed_sequence(y, .padding_value = 7), h, c);
    nn_free(m);
}

static Tensor *as_function(Tensor **in, int n, void *ctx)
{
    (void)n;
    Tensor *h;
    PackedSequence p = nn_pack_padded_sequence(in[0], INTS(3, 2, 4, 3), .enforce_sorted = false);
    Tensor *y = nn_pad_packed_sequence(nn_rnn_forward_packed(ctx, p, in[1], &h));
    return y && h ? tensor_cat(TENSORS(tensor_flatten(y), tensor_flatten(h))) : NULL;
}

static void gradients(void **state)
{
    (void)state;
    Module *m = seeded(nn_gru(2, 3, .bidirectional = true));
    Tensor *in[] = { tensor_requires_grad_(ramp(SHAPE(4, 3, 2)), true),
                     tensor_requires_grad_(ramp(SHAPE(2, 3, 3)), true) };
    if (tensor_gradcheck_with(.fn = as_function, .ctx = m, .inputs = TENSOR_LIST(in, 2)))
        fail_msg("%s", tensor_error());
    nn_free(m);
}

static int run_all(void)
{
    TensorScope inner = tensor_scope_open();
    Tensor *h, *c, *to[3] = { NULL };
    Module *m = nn_lstm(2, 3, 2, .bidirectional = true, .dtype = TENSOR_F64);
    PackedSequence p = packed(true);
    if (m && p.data) {
        PackedSequence y = nn_lstm_forward_packed(m, p, NULL, NULL, &h, &c);
        Tensor *back = y.data ? nn_pad_packed_sequence(y) : NULL;
        if (back) nn_unpad_sequence(back, INTS(3, 2, 4, 3), false, to);
        if (to[0] && to[2]) nn_pack_sequence(TENSORS(to[0], to[2]), false);
    }
    nn_free(m);
    tensor_scope_close(inner);
    return tensor_error() ? -1 : 0;
}

static void failing_memory(void **state)
{
    (void)state;
    assert_int_equal(run_all(), 0);
    for (int n = 1, failed = 1; failed; n++) {
        const int64_t before = tensor_live_count();
        tensor_debug_fail_allocation(n, false);
        const int status = run_all();
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        if (status) assert_status_error(status, TENSOR_ENOMEM);
        assert_int_equal(tensor_live_count(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(there_and_back),   SCOPED(padded_side_by_side), SCOPED(refused),
        SCOPED(results_of_torch), SCOPED(gradients),           SCOPED(failing_memory),
    };
    return cmocka_run_group_tests_name("packed sequences", tests, NULL, NULL);
}
