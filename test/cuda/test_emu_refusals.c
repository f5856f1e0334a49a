/* test_emu_refusals.c - what is refused because tensors lie on two devices, or on another one than the CPU
 * (answers.h). */
#include <math.h>
#include <stdlib.h>
#include <tapegrad/data.h>
#include <tapegrad/device.h>
#include <tapegrad/foreach.h>
#include <tapegrad/fused.h>
#include <tapegrad/io.h>
#include <tapegrad/metrics.h>
#include <tapegrad/random.h>
#include "answers.h"
#include "test_device.h"

static Tensor *ones(TensorShape shape) { return tensor_ones(shape, TENSOR_F32); }
static Tensor *there(Tensor *x) { return tensor_to_device(x, "emu:0"); }

static void two_devices(void)
{
    Tensor *here = ones(SHAPE(2)), *far = there(here), *leaf = tensor_requires_grad_(ones(SHAPE(2)), true);
    const TensorFusedLists lists = { .params = TENSORS(here), .grads = TENSORS(far), .step = 1 };
    ANSWER(tensor_add(here, far));
    ANSWER(tensor_matmul(far, here));
    ANSWER(tensor_where(tensor_gt_scalar(here, 0), far, here));
    ANSWER(tensor_backward(tensor_exp(leaf), far));
    ANSWER(tensor_set_grad(leaf, far));
    ANSWER(tensor_normal_tensor(here, far));
    ANSWER(tensor_foreach_add_(TENSORS(here), TENSORS(far), 1));
    ANSWER(tensor_foreach_copy_(TENSORS(here), TENSORS(far)));
    ANSWER(tensor_fused_sgd_(lists, .lr = 0.1));
}

static void on_the_cpu_alone(void)
{
    Tensor *far = there(ones(SHAPE(2, 2)));
    ANSWER(io_save_png("none.png", far));
    ANSWER(data_tensors(far, NULL));
    ANSWER(data_tensors(ones(SHAPE(2)), far));
    ANSWER(tensor_pin_memory(far, "emu:0"));
    setenv("TAPEGRAD_NO_FALLBACK", "1", 1);
    ANSWER(tensor_svd(far));
    unsetenv("TAPEGRAD_NO_FALLBACK");
}

/* The i-th of n slices as often as count[i] says. */
static void repeat(int n, int64_t a, int64_t b, int64_t size)
{
    Tensor *counts = tensor_from_data((int64_t[]){ a, b }, SHAPE(2), TENSOR_I64);
    Tensor *y = tensor_repeat_interleave_tensor(
        there(ones(SHAPE(n, 2))), there(tensor_narrow(counts, 0, 0, n)), 0, .output_size = size);
    if (y) tensor_item(tensor_sum(y));
}

static void repeats(void)
{
    ANSWER(repeat(2, 1, 2, -1));
    ANSWER(repeat(2, 1, 2, 2));
    ANSWER(repeat(2, 1, 2, 3));
    ANSWER(repeat(2, 1, 2, 4));
    ANSWER(repeat(2, 1, -1, -1));
    ANSWER(repeat(2, 0, 0, 0));
    ANSWER(repeat(0, 0, 0, -1));
    ANSWER(repeat(0, 0, 0, 0));
    ANSWER(repeat(0, 0, 0, 1));
}

static void read_late(Tensor *target, TensorShape shape)
{
    Metric *m = nn_metric_f1(3);
    nn_metric_update(m, there(ones(shape)), there(target));
    nn_metric_compute(m);
    nn_metric_free(m);
}

/* Classes instead of scores. */
static void read_classes(Tensor *output, Tensor *target)
{
    Metric *m = nn_metric_f1(3);
    nn_metric_update(m, there(output), there(target));
    nn_metric_compute(m);
    nn_metric_free(m);
}

static Tensor *i64(int64_t a, int64_t b)
{
    return tensor_from_data((int64_t[]){ a, b }, SHAPE(2), TENSOR_I64);
}

static void metrics(void)
{
    ANSWER(read_classes(i64(0, 3), i64(0, 1)));
    ANSWER(read_classes(i64(-1, 3), i64(0, 1)));
    ANSWER(read_classes(i64(0, 2), i64(0, 3)));
    ANSWER(read_classes(i64(0, 3), i64(0, 3)));
    ANSWER(read_classes(i64(0, 3), i64(0, -100)));
    ANSWER(read_classes(i64(0, 1), tensor_from_data((double[]){ 0, 1.5 }, SHAPE(2), TENSOR_F64)));
    ANSWER(read_late(tensor_full(SHAPE(2), 3, TENSOR_I64), SHAPE(2, 3)));
    ANSWER(read_late(tensor_full(SHAPE(2), -1, TENSOR_I64), SHAPE(2, 3)));
    ANSWER(read_late(tensor_full(SHAPE(2), 2, TENSOR_I64), SHAPE(2, 3)));
    ANSWER(read_late(tensor_full(SHAPE(2), 0.5, TENSOR_F32), SHAPE(2, 3)));
}

int main(int argc, char **argv)
{
    setenv("TAPEGRAD_TEST_DEVICE", "emu:0", 1);
    if (!test_device_opens()) return 1;
    answers_begin(argc, argv, "test/cuda/refusals.golden");
    answers_of("two devices", two_devices);
    answers_of("on the CPU alone", on_the_cpu_alone);
    answers_of("repeats", repeats);
    answers_of("metrics", metrics);
    return answers_end();
}
