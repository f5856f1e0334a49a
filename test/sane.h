/* sane.h - what the suites of the core share: the invariants of src/tensor/core.h and src/tape.h, executable;
 * every test begins and ends with nothing alive or on the tape, no scope open, grad mode on, no error. */
#ifndef SANE_H
#define SANE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail /* cmocka's; ours is a function */
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include "tensor/core.h"
#include "autograd/tape.h"
#include "tensor/scope.h"

/* ---- invariants ------------------------------------------------------------------------------ */

static inline void assert_within_storage(const Tensor *t)
{
    int64_t low = 0, high = 0, size = (int64_t)dtype_size(t->dtype), n = 1;
    for (int d = 0; d < t->ndim; d++) {
        assert_true(t->shape[d] >= 0);
        n *= t->shape[d];
        int64_t reach = (t->shape[d] - 1) * t->stride[d];
        if (reach < 0) low += reach;
        else high += reach;
    }
    assert_int_equal(t->numel, n);
    if (n == 0) return;
    const char *begin = t->storage->data, *at = t->data;
    assert_true(at + low * size >= begin);
    assert_true(at + (high + 1) * size <= begin + t->storage->bytes);
}

static inline void assert_sane(const Tensor *t)
{
    assert_non_null(t);
    assert_true(references(t) >= 1);
    assert_true(t->holds >= 1);
    assert_in_range(t->ndim, 0, TENSOR_MAX_DIMS);
    assert_in_range(t->dtype, 0, TENSOR_DTYPES - 1);
    assert_non_null(t->storage);
    assert_true(t->storage->refs >= 1);
    assert_ptr_equal(t->place, t->storage->place);
    assert_within_storage(t);
    assert_int_equal((t->flags & FLAG_CONTIGUOUS) != 0, is_dense(t->ndim, t->shape, t->stride));
    if (on_graph(t)) assert_true(dtype_is_float(t->dtype));
    if (t->entry) {
        assert_null(t->hooks);
        assert_true(t->slot < t->entry->outputs);
        assert_true(t->entry->refs >= 1);
        assert_true(t->entry->result[t->slot].tensor == t || t->entry->result[t->slot].tensor != NULL ||
                    t->entry->tape != my_tape);
    }
    if (t->base) {
        assert_null(t->base->base);
        assert_ptr_equal(t->base->storage, t->storage);
    }
    if (t->grad) {
        assert_true(shape_equal(shape_of(t->grad), shape_of(t)));
        assert_int_equal(t->grad->dtype, t->dtype);
        assert_ptr_equal(t->grad->place, t->place);
    }
}

static inline void assert_entry_sane(const Entry *e, int64_t index)
{
    assert_int_equal(e->index, index);
    assert_ptr_equal(e->tape, my_tape);
    assert_true(e->refs >= 1);
    for (int i = 0; i < e->inputs; i++) {
        assert_false(e->edge[i].from && e->edge[i].leaf);
        if (e->edge[i].from) {
            assert_true(e->edge[i].from->index < index); /* inputs were recorded before */
            assert_true(e->edge[i].slot < e->edge[i].from->outputs);
        }
        if (e->edge[i].leaf) assert_true(e->edge[i].leaf->holds >= 1);
    }
    for (int k = 0; k < e->outputs; k++) {
        assert_null(e->result[k].grad); /* interior gradients exist only in a sweep */
        if (e->result[k].tensor) assert_ptr_equal(e->result[k].tensor->entry, e);
    }
    for (int s = 0; s < e->saves && !e->freed; s++) assert_true(e->saved[s].storage->refs >= 1);
}

static inline void assert_tape_sane(void)
{
    int64_t living = 0;
    if (!my_tape) return;
    assert_int_equal(my_tape->sweeps, 0);
    if (my_tape->count) assert_non_null(my_tape->at[my_tape->count - 1]);
    for (int64_t i = 0; i < my_tape->count; i++) {
        if (!my_tape->at[i]) continue;
        living++;
        assert_entry_sane(my_tape->at[i], i);
    }
    assert_int_equal(my_tape->living, living);
}

/* ---- before and after each test -------------------------------------------------------------- */

static TensorScope test_scope_;
static int test_depth_;
static int64_t test_live_;

static inline int sane_begin(void **state)
{
    (void)state;
    tensor_error_clear();
    test_live_ = tensor_live_count();
    test_scope_ = tensor_scope_open();
    test_depth_ = scope_depth();
    return 0;
}

static inline int sane_end(void **state)
{
    (void)state;
    bool failed = tensor_error() != NULL, grad = tensor_set_grad_enabled(true);
    if (failed) print_error("an error is left: %s\n", tensor_error());
    tensor_error_clear();
    const int depth = scope_depth();
    tensor_scope_close(test_scope_); /* first: a test that failed shall not fail the next ones */
    assert_false(failed);
    assert_int_equal(depth, test_depth_);
    assert_true(grad);
    assert_tape_sane();
    assert_int_equal(tensor_live_count(), test_live_);
    assert_int_equal(tensor_tape_length(), 0);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, sane_begin, sane_end)

/* ---- values ---------------------------------------------------------------------------------- */

#define COUNT_OF(...) ((int64_t)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double)))
#define VEC(...) tensor_from_data((double[]){ __VA_ARGS__ }, SHAPE(COUNT_OF(__VA_ARGS__)), TENSOR_F64)
#define MAT(rows, ...) \
    tensor_from_data((double[]){ __VA_ARGS__ }, SHAPE(rows, COUNT_OF(__VA_ARGS__) / (rows)), TENSOR_F64)
#define LEAF(...) tensor_requires_grad_(VEC(__VA_ARGS__), true)
#define LEAF_MAT(rows, ...) tensor_requires_grad_(MAT(rows, __VA_ARGS__), true)

static inline void assert_values_(Tensor *t, const double *want, int64_t n, const char *file, int line)
{
    if (!t) print_error("%s\n", tensor_error() ? tensor_error() : "no tensor");
    if (!t || tensor_error()) _fail(file, line);
    _assert_int_equal((uintmax_t)t->numel, (uintmax_t)n, file, line);
    Tensor *flat = new_tensor(SHAPE(n), TENSOR_F64, &cpu_place), *dense = raw_contiguous(t);
    int64_t stride = 1;
    Tensor *row = new_view(dense, 1, &n, &stride, 0);
    if (raw_copy(flat, row)) _fail(file, line);
    const double *found = flat->data;
    bool same = true;
    for (int64_t i = 0; i < n; i++) {
        bool close = (isnan(found[i]) && isnan(want[i])) || found[i] == want[i] ||
                     fabs(found[i] - want[i]) <= 1e-9 * (1 + fabs(want[i]));
        if (!close)
            print_error("    element %lld is %.12g, expected %.12g\n", (long long)i, found[i], want[i]);
        same &= close;
    }
    tensor_release(row), tensor_release(dense), tensor_release(flat);
    if (!same) _fail(file, line);
}

/* The elements in row-major order. */
#define assert_values(t, ...) \
    assert_values_(t, (double[]){ __VA_ARGS__ }, COUNT_OF(__VA_ARGS__), __FILE__, __LINE__)

static inline void assert_near_(double found, double want, double bound, const char *file, int line)
{
    if (fabs(found - want) <= bound) return;
    print_error("%.15g, expected %.15g\n", found, want);
    _fail(file, line);
}
/* Prints, and fails the test. */
#define FAILS(...) (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

#define assert_near(found, want, bound) assert_near_(found, want, bound, __FILE__, __LINE__)

static inline Tensor *assert_ok_(Tensor *t, const char *file, int line)
{
    if (t && !tensor_error()) return t;
    print_error("%s\n", tensor_error() ? tensor_error() : "no tensor");
    _fail(file, line);
    return t;
}
#define OK(t) assert_ok_(t, __FILE__, __LINE__)

static inline void assert_done_(int status, const char *file, int line)
{
    if (status >= 0 && !tensor_error()) return;
    print_error("%s\n", tensor_error() ? tensor_error() : "failed without an error");
    _fail(file, line);
}
#define DONE(call) assert_done_(call, __FILE__, __LINE__)

/* The call failed with this code and a text that has the words; the error is cleared. */
static inline void assert_says_(TensorStatus code, const char *words, const char *file, int line)
{
    if (tensor_error_code() != code || !strstr(tensor_error() ? tensor_error() : "", words)) {
        print_error("wanted \"%s\" with \"%s\", found %s\n", tensor_status_text(code), words,
                    tensor_error() ? tensor_error() : "no error");
        _fail(file, line);
    }
    tensor_error_clear();
}
#define assert_says(code, words) assert_says_(code, words, __FILE__, __LINE__)

#endif
