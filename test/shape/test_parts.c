/* test_parts.c - functions that put parts of a tensor into an array, where the n-th allocation fails: all
 * parts and their count, or none and the error; few parts, and more than an op has results. */
#include <tapegrad/debug.h>
#include "sane.h"

enum { MOST = 150 };

static int split(Tensor *x, Tensor **parts) { return tensor_split(x, 1, 0, parts, MOST); }
static int unbind(Tensor *x, Tensor **parts) { return tensor_unbind(x, 0, parts, MOST); }
static int chunk(Tensor *x, Tensor **parts) { return tensor_chunk(x, MOST, 0, parts, MOST); }
static int hsplit(Tensor *x, Tensor **parts)
{
    return tensor_hsplit(tensor_transpose(x, 0, 1), (int)x->shape[0], parts, MOST);
}
static int vsplit(Tensor *x, Tensor **parts) { return tensor_vsplit(x, (int)x->shape[0], parts, MOST); }
static int tensor_parts(Tensor *x, Tensor **parts)
{
    return tensor_tensor_split(x, (int)x->shape[0], 0, parts, MOST);
}
static int broadcast(Tensor *x, Tensor **parts)
{
    return tensor_broadcast_tensors(TENSORS(x, tensor_select(x, 0, 0), x), parts);
}

static const struct {
    const char *name;
    int (*fn)(Tensor *x, Tensor **parts);
} functions[] = { { "split", split },        { "unbind", unbind }, { "chunk", chunk },
                  { "hsplit", hsplit },      { "vsplit", vsplit }, { "tensor_split", tensor_parts },
                  { "broadcast", broadcast } };

/* Element 1 of each part, one after the other. */
static void same_parts(Tensor **parts, int n, Tensor *x, const char *name)
{
    for (int k = 0; k < n; k++) {
        Tensor *flat = parts[k] ? tensor_reshape(parts[k], SHAPE(-1)) : NULL;
        const double want = tensor_get(x, DIMS(strcmp(name, "broadcast") == 0 ? 0 : k, 1));
        if (!flat || tensor_get(flat, DIMS(1)) != want) FAILS("%s: part %d is another one", name, k);
    }
}

static void one_fails(int f, int64_t rows, bool graph)
{
    bool failed = true;
    for (int n = 1; failed; n++) {
        Tensor *parts[MOST];
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_reshape(tensor_arange(0, (double)(2 * rows), 1, TENSOR_F64), SHAPE(rows, 2));
        tensor_requires_grad_(x, graph);
        for (int k = 0; k < MOST; k++) parts[k] = x;
        tensor_debug_fail_allocation(n, false);
        const int count = functions[f].fn(x, parts);
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        if ((count < 0) != (tensor_error_code() != TENSOR_OK) || (!failed && count < 0))
            FAILS("%s, allocation %d: returns %d, %s", functions[f].name, n, count,
                  tensor_error() ? tensor_error() : "no error");
        if (count < 0) assert_says(TENSOR_ENOMEM, "out of memory");
        else same_parts(parts, count, x, functions[f].name);
        if (count >= 0 && strcmp(functions[f].name, "broadcast") != 0) assert_int_equal(count, rows);
        tensor_scope_close(scope);
    }
}

static void test_parts_where_memory_fails(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        for (int graph = 0; graph < 2; graph++) one_fails((int)f, 3, graph), one_fails((int)f, MOST, graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(test_parts_where_memory_fails) };
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
