/* test_ops_threads.c - one thread and two give the same bits.  The samples of the descriptors are too small
 * for a second thread to be asked, so their sizes are multiplied; and once more, for what is cut into blocks,
 * by dim 0 alone, in which nearly every op's work is linear.  Where the parameters do not allow it, or the
 * result would be huge, the op refuses and the sample is left out. */
#include <string.h>
#include "checker.h"
#include "samples.h"

enum {
    ELEMENTS = 160000,
    MANY_ELEMENTS = UNDER_CHECKER ? 0 : 700000, /* what is looked for there shows in the shorter ones */
    TRIED = 2,
    MEMORY = 64 << 20
};

static int grown;
static bool narrow;
static int tried;

static void compare(const Sample *s, const SampleRun *one, const SampleRun *two)
{
    if (two->results != one->results) complain(s, "does not run with two threads");
    for (int k = 0; k < one->results; k++)
        if (!same_bits(one->y[k], two->y[k]))
            complain(s, "%d times larger, result %d depends on the number of threads", grown, k);
    for (int i = 0; i < s->n; i++)
        if (!same_bits(one->g[i], two->g[i]))
            complain(s, "%d times larger, the gradient of input %d depends on the number of threads", grown,
                     i);
}

/* false: the op refuses. */
static bool run_both(const Sample *s, int floats, Growth growth, int64_t elements)
{
    Tensor *x[OP_MAX_INPUTS];
    static Sample big;
    static SampleRun one, two;
    memcpy(&big, s, sizeof big);
    grown = elements ? (int)sample_grow(&big, growth, elements, MEMORY) : 0;
    if (!grown) return false;
    TensorScope scope = tensor_scope_open();
    sample_inputs(&big, floats, 3, x);
    tensor_memory_release();
    tensor_memory_set_limit(tensor_memory().in_use + MEMORY);
    tensor_set_num_threads(1);
    sample_run(&big, x, false, LAYOUT_DENSE, &one);
    bool runs = !tensor_error();
    if (runs) {
        tensor_memory_set_limit(tensor_memory().in_use + MEMORY);
        tensor_set_num_threads(2);
        sample_run(&big, x, false, LAYOUT_DENSE, &two);
        compare(s, &one, &two);
    }
    tensor_memory_set_limit(0);
    tensor_error_clear();
    tensor_scope_close(scope);
    return runs;
}

static void check_threads(const Sample *s)
{
    bool runs = false;
    for (int growth = 0; growth < GROWTHS && tried < TRIED && !runs; growth++) {
        runs = run_both(s, narrow ? TENSOR_BF16 : AS_WRITTEN, (Growth)growth, ELEMENTS);
        if (runs && tried++ == 0) run_both(s, TENSOR_F64, GROW_FIRST, MANY_ELEMENTS);
    }
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
    assert_true(ops_left_out * 20 < ops_tried);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest last[] = { cmocka_unit_test(test_most_ops_were_tried) };
    int failed = run_registry(argc, argv, "every op, one thread and two", check_op);
    if (argc == 1) failed += cmocka_run_group_tests_name("threads", last, NULL, NULL);
    return failed;
}
