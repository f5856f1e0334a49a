#include <stdio.h>
#include <stdlib.h>
#include "plugin_folder.h"
#include "samples.h"

static void (*op_check)(const TensorOp *op);

static void test_one(void **state)
{
    static OpReport report;
    TensorScope scope = tensor_scope_open();
    tensor_error_clear();
    tensor_set_grad_enabled(true);
    report_begin(&report, *state);
    op_check(*state);
    const int complaints = report_end();
    tensor_scope_close(scope);
    if (complaints) {
        print_error("%s", report.text);
        fail_msg("%d complaints", complaints);
    }
}

void on_test_device(void)
{
    const char *name = getenv("TAPEGRAD_TEST_DEVICE");
    if (!name || !*name) return;
    set_plugin_folder("");
    setenv("TAPEGRAD_CUDA_SYNC", "1", 1); /* bad indices are refused at once, as the samples want */
    if (tensor_device_available(name)) {
        sample_device = name;
        return;
    }
    tensor_set_default_device(name);
    fprintf(stderr, "TAPEGRAD_TEST_DEVICE: %s\n", tensor_error());
    exit(1);
}

/* TAPEGRAD_SHARD=k/n. */
static void read_shard(int *k, int *n)
{
    const char *shard = getenv("TAPEGRAD_SHARD");
    *k = *n = 1;
    if (shard && (sscanf(shard, "%d/%d", k, n) != 2 || *k < 1 || *k > *n)) {
        fprintf(stderr, "TAPEGRAD_SHARD=%s: want k/n, the k-th of n parts\n", shard);
        exit(2);
    }
}

int shards(void)
{
    int k, n;
    read_shard(&k, &n);
    return n;
}

/* Neighbours, which are alike, fall into different parts. */
bool in_shard(int i)
{
    int k, n;
    read_shard(&k, &n);
    return i % n == k - 1;
}

int run_registry(int argc, char **argv, const char *group, void (*check)(const TensorOp *op))
{
    int n = tensor_op_count(), taken = 0;
    struct CMUnitTest *tests = calloc((size_t)n, sizeof *tests);
    if (!tests) return 1;
    op_check = check;
    for (int i = 0; i < n; i++) {
        const TensorOp *op = tensor_op_at(i);
        if (in_shard(i))
            tests[taken++] = (struct CMUnitTest){ .name = op->name,
                                                  .test_func = test_one,
                                                  .initial_state = (void *)(uintptr_t)op };
    }
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    int failed = _cmocka_run_group_tests(group, tests, (size_t)taken, NULL, NULL);
    free(tests);
    return failed;
}
