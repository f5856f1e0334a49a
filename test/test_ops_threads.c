/* test_ops_threads.c - one thread and two give the same bits.  The samples of the descriptors are too small for a second thread to
 * be asked, so their sizes are multiplied; where the parameters do not allow it, or the result would be huge, the op refuses and
 * the sample is left out. */
#include <math.h>
#include <string.h>
#include "samples.h"

enum { ELEMENTS = 100000, TRIED = 3, MEMORY = 64 << 20 };

static int grown;
static bool narrow;
static int tried;

static int64_t elements_of(const SampleInput *in)
{
    int64_t n = 1;
    for (int d = 0; d < in->ndim; d++) n *= in->shape[d];
    return in->absent ? 0 : n;
}

/* Every size above 1 times the same factor; 0 if there is none, or too much would come of it. */
static int64_t grow(Sample *s)
{
    int64_t most = 0, factor;
    int dims = 0;
    for (int i = 0; i < s->n; i++)
        if (elements_of(&s->input[i]) > most) {
            most = elements_of(&s->input[i]);
            dims = 0;
            for (int d = 0; d < s->input[i].ndim; d++) dims += s->input[i].shape[d] > 1;
        }
    if (dims == 0) return 0;
    factor = (int64_t)pow((double)ELEMENTS / (double)most, 1. / dims);
    int64_t all = 0;
    for (int i = 0; i < s->n; i++) {
        for (int d = 0; d < s->input[i].ndim; d++)
            if (s->input[i].shape[d] > 1) s->input[i].shape[d] *= factor;
        all += elements_of(&s->input[i]);
    }
    return factor > 1 && all < MEMORY / (int64_t)sizeof(double) ? factor : 0;
}

static void compare(const Sample *s, const SampleRun *one, const SampleRun *two)
{
    if (two->results != one->results) complain(s, "does not run with two threads");
    for (int k = 0; k < one->results; k++)
        if (!same_bits(one->y[k], two->y[k])) complain(s, "%d times larger, result %d depends on the number of threads", grown, k);
    for (int i = 0; i < s->n; i++)
        if (!same_bits(one->g[i], two->g[i])) complain(s, "%d times larger, the gradient of input %d depends on the number of threads", grown, i);
}

static void check_threads(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    static Sample big;
    static SampleRun one, two;
    memcpy(&big, s, sizeof big);
    grown = (int)grow(&big);
    if (!grown || tried == TRIED) return;
    sample_inputs(&big, narrow ? TENSOR_BF16 : AS_WRITTEN, 3, x);
    tensor_memory_release();
    tensor_memory_set_limit(tensor_memory().in_use + MEMORY);
    tensor_set_num_threads(1);
    sample_run(&big, x, false, LAYOUT_DENSE, &one);
    if (!tensor_error()) {
        tensor_set_num_threads(2);
        sample_run(&big, x, false, LAYOUT_DENSE, &two);
        compare(s, &one, &two);
        tried++;
    }
    tensor_memory_set_limit(0);
    tensor_error_clear();
}

static int ops_tried, ops_left_out;

static void check_op(const TensorOp *op)
{
    int threads = tensor_num_threads();
    tried = 0, narrow = false;
    each_sample(op, check_threads);
    ops_tried += tried > 0;
    ops_left_out += tried == 0;
    narrow = true, tried = TRIED - 1;
    each_sample(op, check_threads);
    tensor_set_num_threads(threads);
}

static void test_most_ops_were_tried(void **state)
{
    (void)state;
    print_message("%d ops tried, %d do not grow\n", ops_tried, ops_left_out);
    assert_true(ops_left_out * 4 < ops_tried);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest last[] = { cmocka_unit_test(test_most_ops_were_tried) };
    int failed = run_registry(argc, argv, "every op, one thread and two", check_op);
    if (argc == 1) failed += cmocka_run_group_tests_name("threads", last, NULL, NULL);
    return failed;
}
