/* test_released.c - a tensor that was released is refused, by name, by every function that takes one.
 *
 * CALLS has a row for each such function of the headers below; one that is missing fails the suite. */
#include <ctype.h>
#include <stdio.h>
#include <tapegrad/data.h>
#include <tapegrad/debug.h>
#include <tapegrad/io.h>
#include <tapegrad/random.h>
#include <tapegrad/watch.h>
#include "sane.h"
#include "scratch.h"

/* A released tensor whose struct a graph still keeps: nothing here reads freed memory. */
static Tensor *released(Tensor **graph)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_retain(LEAF_MAT(2, 1, 2, 3, 4));
    *graph = tensor_scope_return(scope, tensor_square(x));
    tensor_release(x);
    assert_null(x->storage);
    return x;
}

static Tensor *unchanged(Tensor *grad, void *ctx) { return (void)grad, (void)ctx, NULL; }
static void after(Tensor *x, void *ctx) { (void)x, (void)ctx; }
static char bytes[64];
static double numbers[8];
static Tensor *result[2];

static int no_sample(void *ctx, int64_t i, Tensor **x, Tensor **y)
{
    return (void)ctx, (void)i, (void)x, (void)y, -1;
}

#define ITEM(t) ((TensorDict){ (TensorDictItem[]){ { (char *)"x", t } }, 1 })
#define CHECKED (op_named("square"))
static const TensorOp *op_named(const char *name) { return tensor_op_find(name); }

static void load_position(TensorDict dict)
{
    DataLoader *l = data_loader(data_custom(1, no_sample, NULL, NULL));
    data_loader_load_state_dict(l, dict);
    data_loader_free(l);
}

static void add_summary(const Tensor *x,
                        int (*add)(SummaryWriter *w, const char *tag, const Tensor *x, int64_t step))
{
    SummaryWriter *w = io_summary_writer(scratch_);
    add(w, "tag", x, 1);
    io_summary_free(w);
}

/* x is the released one, y another of its shape with a graph, s a scalar with one. */
#define CALLS(C)                                                                                            \
    C(tensor_empty_like, tensor_empty_like(x))                                                              \
    C(tensor_zeros_like, tensor_zeros_like(x))                                                              \
    C(tensor_ones_like, tensor_ones_like(x))                                                                \
    C(tensor_full_like, tensor_full_like(x, 1))                                                             \
    C(tensor_new_empty, tensor_new_empty(x, SHAPE(2)))                                                      \
    C(tensor_new_zeros, tensor_new_zeros(x, SHAPE(2)))                                                      \
    C(tensor_new_ones, tensor_new_ones(x, SHAPE(2)))                                                        \
    C(tensor_new_full, tensor_new_full(x, SHAPE(2), 1))                                                     \
    C(tensor_new_tensor, tensor_new_tensor(x, numbers, SHAPE(2)))                                           \
    C(tensor_ndim, tensor_ndim(x))                                                                          \
    C(tensor_size, tensor_size(x, 0))                                                                       \
    C(tensor_stride, tensor_stride(x, 0))                                                                   \
    C(tensor_shape, tensor_shape(x))                                                                        \
    C(tensor_numel, tensor_numel(x))                                                                        \
    C(tensor_dtype, tensor_dtype(x))                                                                        \
    C(tensor_device, tensor_device(x))                                                                      \
    C(tensor_is_contiguous, tensor_is_contiguous(x))                                                        \
    C(tensor_shares_storage, tensor_shares_storage(x, y))                                                   \
    C(tensor_shares_storage, tensor_shares_storage(y, x))                                                   \
    C(tensor_data, tensor_data(x))                                                                          \
    C(tensor_version, tensor_version(x))                                                                    \
    C(tensor_bump_version, tensor_bump_version(x))                                                          \
    C(tensor_item, tensor_item(x))                                                                          \
    C(tensor_item_i64, tensor_item_i64(x))                                                                  \
    C(tensor_get, tensor_get(x, DIMS(0, 0)))                                                                \
    C(tensor_set, tensor_set(x, DIMS(0, 0), 1))                                                             \
    C(tensor_copy_to, tensor_copy_to(x, numbers, 32))                                                       \
    C(tensor_copy_from, tensor_copy_from(x, numbers, 32))                                                   \
    C(tensor_equal, tensor_equal(x, y))                                                                     \
    C(tensor_equal, tensor_equal(y, x))                                                                     \
    C(tensor_allclose_args, tensor_allclose(x, y, 0, 0, false))                                             \
    C(tensor_allclose_args, tensor_allclose(y, x, 0, 0, false))                                             \
    C(tensor_pin_memory, tensor_pin_memory(x, "cpu"))                                                       \
    C(tensor_is_pinned, tensor_is_pinned(x))                                                                \
    C(tensor_print, tensor_print(x))                                                                        \
    C(tensor_fprint, tensor_fprint(stdout, x))                                                              \
    C(tensor_snprint, tensor_snprint(bytes, sizeof bytes, x))                                               \
    C(tensor_scope_return, tensor_scope_return(tensor_scope_open(), x))                                     \
    C(tensor_retain, tensor_retain(x))                                                                      \
    C(tensor_release, tensor_release(x))                                                                    \
    C(tensor_assign, tensor_assign(&result[0], x))                                                          \
    C(tensor_requires_grad_, tensor_requires_grad_(x, true))                                                \
    C(tensor_requires_grad, tensor_requires_grad(x))                                                        \
    C(tensor_is_leaf, tensor_is_leaf(x))                                                                    \
    C(tensor_grad, tensor_grad(x))                                                                          \
    C(tensor_set_grad, tensor_set_grad(x, y))                                                               \
    C(tensor_set_grad, tensor_set_grad(y, x))                                                               \
    C(tensor_set_data, tensor_set_data(x, y))                                                               \
    C(tensor_set_data, tensor_set_data(y, x))                                                               \
    C(tensor_retain_grad, tensor_retain_grad(x))                                                            \
    C(tensor_detach, tensor_detach(x))                                                                      \
    C(tensor_detach_, tensor_detach_(x))                                                                    \
    C(tensor_backward_args, tensor_backward(x))                                                             \
    C(tensor_backward_args, tensor_backward(y, x))                                                          \
    C(tensor_backward_many_args, tensor_backward_many(TENSORS(s, x)))                                       \
    C(tensor_gradients_args, tensor_gradients(x, y))                                                        \
    C(tensor_gradients_args, tensor_gradients(s, x))                                                        \
    C(tensor_gradients_args, tensor_gradients(y, y, .grad_output = x))                                      \
    C(tensor_gradients_many_args, tensor_gradients_many(TENSORS(s), TENSORS(x), result))                    \
    C(tensor_register_hook, tensor_register_hook(x, unchanged, NULL))                                       \
    C(tensor_register_post_accumulate_grad_hook, tensor_register_post_accumulate_grad_hook(x, after, NULL)) \
    C(tensor_remove_hook, tensor_remove_hook(x, 1))                                                         \
    C(tensor_apply, tensor_apply(CHECKED, &x, 1, NULL))                                                     \
    C(tensor_apply_all, tensor_apply_all(CHECKED, &x, 1, NULL, result, 1))                                  \
    C(tensor_apply_, tensor_apply_(CHECKED, &x, 1, NULL))                                                   \
    C(tensor_apply_text, tensor_apply_text("square", &x, 1, NULL))                                          \
    C(tensor_apply_text_all, tensor_apply_text_all("square", &x, 1, NULL, result, 1))                       \
    C(tensor_index, tensor_index(y, "1:, rows", x))                                                         \
    C(tensor_index_set, tensor_index_set(y, y, "rows", x))                                                  \
    C(tensor_index_set_, tensor_index_set_(y, y, "rows", x))                                                \
    C(tensor_index_set_scalar_, tensor_index_set_scalar_(y, 1, "rows", x))                                  \
    C(tensor_index_accumulate_, tensor_index_accumulate_(y, y, "None, rows", x))                            \
    C(tensor_gradcheck_args, tensor_gradcheck(CHECKED, x))                                                  \
    C(tensor_generator_set_state, tensor_generator_set_state(tensor_default_generator(), x))                \
    C(tensor_set_rng_state, tensor_set_rng_state(x))                                                        \
    C(tensor_rand_like, tensor_rand_like(x))                                                                \
    C(tensor_randn_like, tensor_randn_like(x))                                                              \
    C(tensor_randint_like, tensor_randint_like(x, 0, 3))                                                    \
    C(tensor_bernoulli, tensor_bernoulli(x))                                                                \
    C(tensor_normal_tensor, tensor_normal_tensor(x, y))                                                     \
    C(tensor_normal_tensor, tensor_normal_tensor(y, x))                                                     \
    C(tensor_normal_tensor_scalar, tensor_normal_tensor_scalar(x, 1))                                       \
    C(tensor_normal_scalar_tensor, tensor_normal_scalar_tensor(0, x))                                       \
    C(tensor_multinomial_args, tensor_multinomial(x, 1, true))                                              \
    C(tensor_uniform_, tensor_uniform_(x, 0, 1))                                                            \
    C(tensor_normal_, tensor_normal_(x, 0, 1))                                                              \
    C(tensor_random_, tensor_random_(x))                                                                    \
    C(tensor_bernoulli_, tensor_bernoulli_(x, .5))                                                          \
    C(tensor_exponential_, tensor_exponential_(x, 1))                                                       \
    C(tensor_trunc_normal_, tensor_trunc_normal_(x, 0, 1, -1, 1))                                           \
    C(tensor_first_nan, tensor_first_nan(x))                                                                \
    C(io_save_png, io_save_png(scratch("released.png"), x))                                                 \
    C(io_save_safetensors_args, io_save_safetensors(scratch("released"), ITEM(x)))                          \
    C(io_make_grid_args, io_make_grid(x))                                                                   \
    C(io_save_image_args, io_save_image(x, scratch("released.png")))                                        \
    C(io_draw_dot, io_draw_dot(x, 0, 0, 1, 0))                                                              \
    C(io_draw_line, io_draw_line(x, 0, 0, 1, 1, 0))                                                         \
    C(io_draw_text, io_draw_text(x, 0, 0, 1, 0, "a"))                                                       \
    C(io_summary_add_histogram, add_summary(x, io_summary_add_histogram))                                   \
    C(io_summary_add_image, add_summary(x, io_summary_add_image))                                           \
    C(data_loader_load_state_dict, load_position(ITEM(x)))                                                  \
    C(data_tensors, data_free(data_tensors(x, y)))                                                          \
    C(data_tensors, data_free(data_tensors(y, x)))                                                          \
    C(tensor_copy_, tensor_copy_(x, y))                                                                     \
    C(tensor_copy_, tensor_copy_(y, x))                                                                     \
    C(tensor_fill_, tensor_fill_(x, 1))                                                                     \
    C(tensor_zero_, tensor_zero_(x))                                                                        \
    C(tensor_to, tensor_to(x, TENSOR_F64))                                                                  \
    C(tensor_clone, tensor_clone(x))                                                                        \
    C(tensor_add, tensor_add(y, x))                                                                         \
    C(tensor_add_, tensor_add_(x, y))                                                                       \
    C(tensor_matmul, tensor_matmul(y, x))                                                                   \
    C(tensor_sum, tensor_sum(x))

/* What only gives tensors. */
static const char *const others[] = { "io_load_safetensors_args" };

/* The text of the error begins with the name that the user wrote: tensor_backward, not _args or _many. */
static void check_call(const char *name, int *wrong)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, " "), name);
    for (int k = 0; k < 2; k++) {
        char *end = strstr(word, k ? "_many" : "_args");
        if (end) *end = 0;
    }
    if (strncmp(word, "tensor_apply", 12) == 0) strcpy(word, "tensor_square"); /* the op that was applied */
    const char *text = tensor_error() ? tensor_error() : "no error";
    if (tensor_error_code() != TENSOR_EVALUE || !strstr(text, "released") ||
        strncmp(text, word, strlen(word)))
        print_error("%s: %s\n", name, text), *wrong += 1;
    tensor_error_clear();
}

static void every_function_refuses_a_released_tensor(void **state)
{
    (void)state;
    int wrong = 0;
    Tensor *y, *x = released(&y), *s = tensor_sum(y);
#define C(name, ...)     \
    (void)(__VA_ARGS__); \
    check_call(#name, &wrong);
    CALLS(C)
#undef C
    assert_int_equal(wrong, 0);
    assert_int_equal(references(x), 0);
    assert_values(y, 1, 4, 9, 16);
}

/* ---- is every function there? ---------------------------------------------------------------- */

static const char *const headers[] = { "tensor.h", "autograd.h", "random.h", "device.h",
                                       "io.h",     "debug.h",    "data.h",   "watch.h" };

static char *read_header(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "include/tapegrad/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file) FAILS("%s cannot be read: run the suites from the root of the tree", path);
    char *text = calloc(1, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, file);
    assert_true(n > 0 && n < (1 << 16) - 1);
    fclose(file);
    for (char *open = text; (open = strstr(open, "/*")) != NULL;) {
        char *close = strstr(open, "*/");
        memset(open, ' ', (size_t)(close + 2 - open));
    }
    return text;
}

static bool is_listed(const char *name)
{
    static const char *const rows[] = {
#define C(name, ...) #name,
        CALLS(C)
#undef C
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i], name) == 0) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], name) == 0) return true;
    return false;
}

/* A prototype: its name, and whether an argument is a tensor or a struct that holds some. */
static bool takes_tensor(char *prototype, char *name, size_t size)
{
    char *open = strchr(prototype, '('), *start = open;
    if (!open || strstr(open, "OpCall *")) return false; /* within a call its operands are there */
    while (start > prototype && (isalnum((unsigned char)start[-1]) || start[-1] == '_')) start--;
    snprintf(name, size, "%.*s", (int)(open - start), start);
    for (char *at = open; (at = strstr(at, "Tensor *")) != NULL; at++)
        if (at[-1] == '(' || at[-1] == ' ') { /* not of a callback's own arguments */
            int depth = 0;
            for (char *p = open; p < at; p++) depth += (*p == '(') - (*p == ')');
            if (depth == 1) return true;
        }
    return strstr(open, "TensorDict ") || (strstr(open, "Args ") && strncmp(name, "tensor_", 7) == 0);
}

static void no_function_is_forgotten(void **state)
{
    (void)state;
    int found = 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char *text = read_header(headers[i]), name[96];
        char *at = strstr(text, "extern \"C\"");
        for (char *end; at && (at = strstr(at, "TAPEGRAD_API")) != NULL; at = end + 1) {
            end = strchr(at, ';');
            assert_non_null(end);
            *end = 0;
            if (!takes_tensor(at + 12, name, sizeof name)) continue;
            found++;
            if (!is_listed(name)) FAILS("%s: %s takes a tensor: add a row to CALLS", headers[i], name);
        }
        free(text);
    }
    assert_true(found > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_function_refuses_a_released_tensor),
        TEST(no_function_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
