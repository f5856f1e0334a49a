/* test_tensor_refusals.c - what making, reading and releasing tensors, devices, events and reports refuse
 * (answers.h). */
#include <math.h>
#include <stdint.h>
#include <tapegrad.h>
#include <tapegrad/device.h>
#include <tapegrad/op_row.h>
#include <tapegrad/profiler.h>
#include "answers.h"

static void ranges(void)
{
    ANSWER(tensor_arange(0, 3, 0, TENSOR_F32));
    ANSWER(tensor_arange(0, 3, -1, TENSOR_F32));
    ANSWER(tensor_arange(0, -3, -1, TENSOR_F32));
    ANSWER(tensor_arange(3, 3, -1, TENSOR_F32));
    ANSWER(tensor_arange(0, INFINITY, 1, TENSOR_F32));
    ANSWER(tensor_arange(NAN, 1, 1, TENSOR_F32));
    ANSWER(tensor_arange(0, 1, INFINITY, TENSOR_F32));
    ANSWER(tensor_arange(0, 0x1p61, 1, TENSOR_F32));
    ANSWER(tensor_arange(0, 0x1p63, 0x1p61, TENSOR_I64));
    ANSWER(tensor_arange(0, 0x1p64, 0x1p61, TENSOR_I64));
    ANSWER(tensor_arange(-1, -0x1p63, -0x1p61, TENSOR_I64));
    ANSWER(tensor_arange(-1, -0x1p64, -0x1p61, TENSOR_I64));
    ANSWER(tensor_arange(0, 1, 1, TENSOR_DTYPES));
    ANSWER(tensor_linspace(0, 1, -1, TENSOR_F32));
    ANSWER(tensor_linspace(0, 1, 0, TENSOR_F32));
    ANSWER(tensor_linspace(0, INFINITY, 2, TENSOR_I64));
    ANSWER(tensor_linspace(-INFINITY, 0, 2, TENSOR_I64));
    ANSWER(tensor_linspace(0, INFINITY, 2, TENSOR_F64));
    ANSWER(tensor_linspace(0, 1, 2, TENSOR_DTYPES));
    ANSWER(tensor_logspace(0, 1, -1, 10, TENSOR_F32));
    ANSWER(tensor_logspace(0, 1, 0, 10, TENSOR_F32));
    ANSWER(tensor_logspace(0, 1, 2, 10, TENSOR_DTYPES));
    ANSWER(tensor_tril_indices(-1, 2, 0));
    ANSWER(tensor_triu_indices(2, -1, 0));
    ANSWER(tensor_tril_indices(0, 0, 0));
    ANSWER(tensor_tril_indices(INT64_MAX, INT64_MAX, INT64_MAX));
    ANSWER(tensor_triu_indices(INT64_MAX, INT64_MAX, INT64_MIN));
}

static void making(void)
{
    static const int64_t ones[17] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const int32_t two[] = { 1, 2 };
    ANSWER(tensor_zeros((TensorShape){ 16, ones }, TENSOR_F32));
    ANSWER(tensor_zeros((TensorShape){ 17, ones }, TENSOR_F32));
    ANSWER(tensor_zeros((TensorShape){ -1, ones }, TENSOR_F32));
    ANSWER(tensor_zeros((TensorShape){ 2, NULL }, TENSOR_F32));
    ANSWER(tensor_zeros(SHAPE(2, -1), TENSOR_F32));
    ANSWER(tensor_zeros(SHAPE(INT64_MAX, 0), TENSOR_F32));
    ANSWER(tensor_zeros(SHAPE(INT64_MAX / 16, 2), TENSOR_U8));
    ANSWER(tensor_zeros(SHAPE(2), TENSOR_DTYPES));
    ANSWER(tensor_zeros(SHAPE(2), (TensorDtype)-1));
    ANSWER(tensor_from_data(two, SHAPE(2), TENSOR_I32));
    ANSWER(tensor_from_data_sized(two, sizeof two, SHAPE(3), TENSOR_I32));
    ANSWER(tensor_from_data_sized(two, sizeof two, SHAPE(2), TENSOR_I64));
    ANSWER(tensor_from_data(two, SHAPE(8), TENSOR_U8));
    ANSWER(tensor_eye(2, -1, TENSOR_F32));
}

static void reading(void)
{
    Tensor *x = tensor_ones(SHAPE(2, 3), TENSOR_F64), *i64 = tensor_ones(SHAPE(0), TENSOR_I64),
           *s = tensor_scalar(1, TENSOR_F64);
    double to[6];
    ANSWER(tensor_item(x));
    ANSWER(tensor_item_i64(i64));
    ANSWER(tensor_item(tensor_reshape(s, SHAPE(1, 1, 1))));
    ANSWER(tensor_get(x, SHAPE(0)));
    ANSWER(tensor_get(x, SHAPE(0, 0, 0)));
    ANSWER(tensor_get(x, (TensorShape){ 2, NULL }));
    ANSWER(tensor_get(s, (TensorShape){ 0, NULL }));
    ANSWER(tensor_get(x, SHAPE(1, 2)));
    ANSWER(tensor_get(x, SHAPE(2, 0)));
    ANSWER(tensor_get(x, SHAPE(0, 3)));
    ANSWER(tensor_get(x, SHAPE(-2, -3)));
    ANSWER(tensor_get(x, SHAPE(-3, 0)));
    ANSWER(tensor_set(x, SHAPE(0, -4), 1));
    ANSWER(tensor_set(x, SHAPE(0, -3), 1));
    ANSWER(tensor_set(tensor_ones(SHAPE(1), TENSOR_U8), SHAPE(0), 256));
    ANSWER(tensor_set(tensor_ones(SHAPE(1), TENSOR_I64), SHAPE(0), NAN));
    ANSWER(tensor_copy_to(x, to, sizeof to - 1));
    ANSWER(tensor_copy_to(x, to, sizeof to + 1));
    ANSWER(tensor_copy_to(x, NULL, sizeof to));
    ANSWER(tensor_copy_to(x, to, sizeof to));
    ANSWER(tensor_copy_from(x, to, 0));
    ANSWER(tensor_copy_from(x, NULL, sizeof to));
    ANSWER(tensor_copy_to(i64, NULL, 0));
    ANSWER(tensor_allclose(x, s, .rtol = -1e-300));
    ANSWER(tensor_allclose(x, s, .atol = -1));
    ANSWER(tensor_allclose(x, s, .atol = NAN));
    ANSWER(tensor_allclose(x, s, .rtol = 0, .atol = 0));
    ANSWER(tensor_allclose(x, tensor_ones(SHAPE(2), TENSOR_F64)));
    ANSWER(tensor_size(x, 2));
    ANSWER(tensor_size(x, -2));
    ANSWER(tensor_stride(x, -3));
}

static void ownership(void)
{
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64), *kept = tensor_retain(tensor_ones(SHAPE(3), TENSOR_I64)),
           *leaf = tensor_requires_grad_(tensor_ones(SHAPE(2), TENSOR_F32), true);
    tensor_backward(tensor_sum(leaf));
    ANSWER(tensor_release(x));
    ANSWER(tensor_release(kept));
    ANSWER(tensor_release(kept));
    ANSWER(tensor_release(tensor_grad(leaf)));
    ANSWER(tensor_release(NULL));
    ANSWER(tensor_scope_close((TensorScope){ 0, 0 }));
}

static void lists(void)
{
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64), *norms = NULL;
    const OpListRule empty = { .function = "f" }, no_step = { .function = "f", .rule = "r", .item = &x },
                     no_list = { .function = "f", .rule = "r", .step = "s" };
    OpListRule call = { .function = "f", .rule = "r", .step = "s", .item = &x, .numbers = 13 };
    ANSWER(op_list_rule(NULL));
    ANSWER(op_list_rule(&empty));
    ANSWER(op_list_rule(&no_step));
    ANSWER(op_list_rule(&no_list));
    ANSWER(op_list_rule(&call));
    call.numbers = 12;
    ANSWER(op_list_rule(&call));
    call.row = x, call.rows = 41;
    ANSWER(op_list_rule(&call));
    call.rows = 0;
    ANSWER(op_list_rule(&call));
    ANSWER(op_list_norm("f", TENSOR_LIST(NULL, 1), 2, &norms));
    ANSWER(op_list_norm("f", TENSORS(x), 2, NULL));
    ANSWER(op_list_norm("f", TENSORS(x), 2, &norms));
}

static void devices(void)
{
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64);
    TensorEvent *e = tensor_event("cpu", false), *timed = tensor_event("cpu", true);
    ANSWER(tensor_set_default_device(NULL));
    ANSWER(tensor_to_device(x, NULL));
    ANSWER(tensor_synchronize(NULL));
    ANSWER(tensor_device_stream(NULL));
    ANSWER(tensor_device_memory(NULL));
    ANSWER(tensor_device_memory_reset_peak(NULL));
    ANSWER(tensor_device_memory_set_limit(NULL, 0));
    ANSWER(tensor_device_memory_set_limit("cpu", -1));
    ANSWER(tensor_memory_set_limit(-1));
    ANSWER(tensor_device_memory_release(NULL));
    ANSWER(tensor_set_num_threads(0));
    ANSWER(tensor_set_num_threads(tensor_num_threads()));
    ANSWER(tensor_pin_memory(NULL, "cpu"));
    ANSWER(tensor_pin_memory(x, NULL));
    ANSWER(tensor_pin_memory(x, "cpu"));
    ANSWER(tensor_event(NULL, false));
    ANSWER(tensor_event_record(NULL));
    ANSWER(tensor_event_elapsed_time(timed, timed));
    ANSWER((tensor_event_record(e), tensor_event_record(timed)));
    ANSWER(tensor_event_elapsed_time(e, timed));
    ANSWER(tensor_event_elapsed_time(timed, e));
    ANSWER(tensor_event_elapsed_time(timed, timed));
    ANSWER(tensor_event_elapsed_time(NULL, timed));
    tensor_event_free(e), tensor_event_free(timed);
}

static void reports(void)
{
    ANSWER(tensor_memory_report(NULL));
    ANSWER(tensor_profile_rows(NULL, 1));
    ANSWER(tensor_profile_rows(NULL, 0));
    ANSWER(tensor_profile_print(NULL));
    ANSWER(tensor_profile_save(NULL));
    ANSWER(tensor_leak_report(NULL));
    ANSWER(tensor_check_op(NULL, 0, NULL));
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/tensor/refusals.golden");
    answers_of("ranges", ranges);
    answers_of("making", making);
    answers_of("reading", reading);
    answers_of("ownership", ownership);
    answers_of("lists", lists);
    answers_of("devices", devices);
    answers_of("reports", reports);
    return answers_end();
}
