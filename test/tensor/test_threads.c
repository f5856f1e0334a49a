/* test_threads.c - a tape for each thread, leaves for all: sums are exact, foreign graphs are refused,
 * tensors die anywhere. Run it under -fsanitize=thread. */
#include <pthread.h>
#include "sane.h"

enum { THREADS = 4, SWEEPS = 200 };

static void start(pthread_t *thread, void *(*f)(void *), void *ctx)
{
    assert_int_equal(pthread_create(thread, NULL, f, ctx), 0);
}

static void join(pthread_t thread) { assert_int_equal(pthread_join(thread, NULL), 0); }

/* ---- shared leaves --------------------------------------------------------------------------- */

typedef struct Work {
    Tensor *w, *b;
    int factor, failures;
    bool clears;
    const TensorScope *scope;
} Work;

static void *sweeps(void *ctx)
{
    Work *work = ctx;
    for (int i = 0; i < SWEEPS; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *x = tensor_full(SHAPE(3), work->factor, TENSOR_F64);
        Tensor *y = tensor_sum(tensor_add(tensor_mul(work->w, x), work->b));
        if (tensor_backward(y)) work->failures++;
        if (work->clears && i % 10 == 0 && tensor_set_grad(work->b, NULL)) work->failures++;
        if (work->clears) tensor_grad(work->b);
        tensor_scope_close(scope);
    }
    if (tensor_error() || tensor_tape_length()) work->failures++;
    return NULL;
}

static void test_shared_leaves_sum_exactly(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2, 3), *b = LEAF(0.5, 0.5, 0.5);
    pthread_t thread[THREADS];
    Work work[THREADS];
    double sum = 0;
    for (int i = 0; i < THREADS; i++) {
        work[i] = (Work){ .w = w, .b = b, .factor = i + 1 };
        start(&thread[i], sweeps, &work[i]);
        sum += (i + 1) * SWEEPS;
    }
    for (int i = 0; i < THREADS; i++) join(thread[i]), assert_int_equal(work[i].failures, 0);
    assert_values(tensor_grad(w), sum, sum, sum);
    assert_values(tensor_grad(b), THREADS * SWEEPS, THREADS * SWEEPS, THREADS * SWEEPS);
    assert_int_equal(w->holds, 1);
}

static void test_gradients_cleared_while_others_sweep(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2, 3), *b = LEAF(0.5, 0.5, 0.5);
    pthread_t thread[THREADS];
    Work work[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (Work){ .w = w, .b = b, .factor = 1, .clears = true };
        start(&thread[i], sweeps, &work[i]);
    }
    for (int i = 0; i < THREADS; i++) join(thread[i]), assert_int_equal(work[i].failures, 0);
    assert_values(tensor_grad(w), THREADS * SWEEPS, THREADS * SWEEPS, THREADS * SWEEPS);
}

/* ---- references ------------------------------------------------------------------------------ */

/* A thread that retains and releases, while others borrow the same tensor into scopes. */
static void *retains_and_releases(void *ctx)
{
    Work *work = ctx;
    for (int i = 0; i < 20 * SWEEPS; i++) tensor_release(tensor_retain(work->w));
    if (tensor_error()) work->failures++;
    return NULL;
}

static void *borrows(void *ctx)
{
    Work *work = ctx;
    for (int i = 0; i < 20 * SWEEPS; i++) {
        TensorScope outer = tensor_scope_open(), inner = tensor_scope_open();
        tensor_scope_return(inner, work->w);
        tensor_scope_close(outer);
    }
    if (tensor_error()) work->failures++;
    return NULL;
}

static void test_retain_and_release_while_others_borrow(void **state)
{
    (void)state;
    Tensor *w = tensor_retain(VEC(1, 2));
    pthread_t thread[THREADS];
    Work work[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (Work){ .w = w };
        start(&thread[i], i % 2 ? borrows : retains_and_releases, &work[i]);
    }
    for (int i = 0; i < THREADS; i++) join(thread[i]), assert_int_equal(work[i].failures, 0);
    assert_int_equal(references(w), 2);
    tensor_release(w);
    assert_int_equal(references(w), 1);
}

static void *closes_a_foreign_scope(void *ctx)
{
    Work *work = ctx;
    TensorScope own_scope = tensor_scope_open();
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64);
    tensor_scope_close(*work->scope);
    if (tensor_error_code() != TENSOR_EVALUE || !strstr(tensor_error(), "another thread")) work->failures++;
    tensor_error_clear();
    if (!x->storage || tensor_item(tensor_sum(x)) != 2) work->failures++;
    tensor_retain(x);
    const uint32_t before = references(x);
    tensor_scope_close(own_scope);
    if (references(x) != before - 1) work->failures++; /* its own scope was still open, and is closed now */
    tensor_release(x);
    return NULL;
}

static void test_scope_of_another_thread_is_refused(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Tensor *kept = VEC(1, 2);
    pthread_t thread;
    Work work = { .scope = &scope };
    start(&thread, closes_a_foreign_scope, &work);
    join(thread);
    assert_int_equal(work.failures, 0);
    assert_values(kept, 1, 2);
    tensor_scope_close(scope);
    tensor_scope_close(scope); /* closed before: nothing */
}

/* ---- graphs of others ------------------------------------------------------------------------ */

typedef struct Foreign {
    Tensor *y, *leaf, *detached;
    TensorStatus code[11];
    bool said;
    double value;
} Foreign;

static TensorStatus code_and_clear(void)
{
    TensorStatus code = tensor_error_code();
    tensor_error_clear();
    return code;
}

static Tensor *unused_hook(Tensor *gradient, void *ctx) { return (void)ctx, gradient; }

static void *tries_foreign(void *ctx)
{
    Foreign *f = ctx;
    tensor_exp(f->y);
    f->said = tensor_error() && strstr(tensor_error(), "another thread");
    f->code[0] = code_and_clear();
    tensor_matmul(f->y, f->y), f->code[1] = code_and_clear();
    tensor_backward(f->y), f->code[2] = code_and_clear();
    tensor_mul_(f->y, f->y), f->code[3] = code_and_clear();
    tensor_zero_(f->y), f->code[4] = code_and_clear();
    tensor_copy_(f->y, f->leaf), f->code[5] = code_and_clear();
    tensor_register_hook(f->y, unused_hook, NULL), f->code[7] = code_and_clear();
    tensor_detach_(f->y), f->code[8] = code_and_clear();
    tensor_retain_grad(f->y), f->code[9] = code_and_clear();
    tensor_gradients(tensor_square(f->leaf), f->y), f->code[6] = code_and_clear();
    f->value = tensor_item(tensor_sum(tensor_mul(f->detached, f->leaf)));
    f->code[10] = code_and_clear();
    return NULL;
}

static void test_foreign_graph_is_refused(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x);
    pthread_t thread;
    Foreign f = { .y = y, .leaf = x, .detached = tensor_detach(y) };
    start(&thread, tries_foreign, &f);
    join(thread);
    for (int i = 0; i < 10; i++) assert_int_equal(f.code[i], TENSOR_EGRAD);
    assert_true(f.said);
    assert_int_equal(f.code[10], TENSOR_OK);
    assert_true(f.value == 8);
    assert_values(y, 4);
    DONE(tensor_backward(y));
    assert_values(tensor_grad(x), 4);
}

/* ---- tensors that die elsewhere -------------------------------------------------------------- */

enum { HANDED = 300 };

typedef struct Handed {
    pthread_mutex_t lock;
    Tensor *at[HANDED];
    int put, taken;
} Handed;

static void *releases(void *ctx)
{
    Handed *h = ctx;
    for (int n = 0; n < HANDED;) {
        pthread_mutex_lock(&h->lock);
        Tensor *x = h->taken < h->put ? h->at[h->taken++] : NULL;
        pthread_mutex_unlock(&h->lock);
        if (x) tensor_release(x), n++;
    }
    return NULL;
}

static void test_results_released_in_another_thread(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2);
    Handed h = { .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t thread;
    start(&thread, releases, &h);
    for (int i = 0; i < HANDED; i++) {
        TensorScope scope = tensor_scope_open();
        Tensor *y = tensor_retain(tensor_exp(tensor_mul(x, x)));
        tensor_scope_close(scope);
        pthread_mutex_lock(&h.lock);
        h.at[h.put++] = y;
        pthread_mutex_unlock(&h.lock);
    }
    join(thread);
    assert_int_equal(tensor_tape_length(), 0);
    assert_tape_sane();
    assert_int_equal(x->holds, 1);
}

static void test_result_dies_while_its_gradient_arrives(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2);
    Handed h = { .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t thread;
    start(&thread, releases, &h);
    for (int i = 0; i < HANDED; i++) {
        TensorScope scope = tensor_scope_open(), inner = tensor_scope_open();
        Tensor *y = tensor_retain(tensor_mul(x, x));
        DONE(tensor_retain_grad(y));
        Tensor *loss = tensor_scope_return(inner, tensor_sum(tensor_exp(y)));
        pthread_mutex_lock(&h.lock);
        h.at[h.put++] = y;
        pthread_mutex_unlock(&h.lock);
        DONE(tensor_backward(loss));
        tensor_scope_close(scope);
    }
    join(thread);
    assert_values(tensor_grad(x), HANDED * 2 * exp(1), HANDED * 4 * exp(4));
    assert_int_equal(tensor_tape_length(), 0);
}

static void *leaves_graph(void *ctx)
{
    Tensor **out = ctx;
    Tensor *x = LEAF(1, 2);
    Tensor *h = tensor_exp(x);
    out[0] = tensor_retain(tensor_sum(h));
    out[1] = tensor_retain(tensor_mul(h, h));
    return NULL; /* the thread ends; its tape lives on in these */
}

static void test_thread_ends_with_a_living_graph(void **state)
{
    (void)state;
    Tensor *left[2];
    pthread_t thread;
    start(&thread, leaves_graph, left);
    join(thread);
    assert_near(tensor_item(left[0]), exp(1) + exp(2), 1e-12);
    for (int at = 0; at < 3; at++) {
        Tensor *in[] = { VEC(1), VEC(2), VEC(3) };
        char want[120];
        in[at] = left[0];
        snprintf(want, sizeof want,
                 "operand %d [] is part of another thread's graph: tensor_detach it there first", at + 1);
        assert_null(tensor_cat(TENSOR_LIST(in, 3)));
        assert_non_null(strstr(tensor_error(), want));
        assert_tensor_error((Tensor *)NULL, TENSOR_EGRAD);
    }
    assert_status_error(tensor_backward(left[0]), TENSOR_EGRAD);
    assert_values(tensor_mul_scalar(tensor_detach(left[1]), 2), 2 * exp(2), 2 * exp(4));
    tensor_release(left[0]);
    tensor_release(left[1]); /* with the last one the dead tape goes */
}

static void *frees_left(void *ctx)
{
    tensor_release(((Tensor **)ctx)[1]);
    return NULL;
}

static void test_dead_tape_freed_by_two_threads(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        Tensor *left[2];
        pthread_t thread;
        start(&thread, leaves_graph, left);
        join(thread);
        start(&thread, frees_left, left);
        tensor_release(left[0]);
        join(thread);
    }
}

/* ---- what is a thread's own ------------------------------------------------------------------ */

static void *looks_around(void *ctx)
{
    bool *ok = ctx;
    *ok = tensor_grad_enabled() && !tensor_error() && tensor_tape_length() == 0;
    tensor_set_grad_enabled(false);
    tensor_fail(TENSOR_EUSER, "there", "of another thread");
    return NULL;
}

static void test_modes_and_errors_are_per_thread(void **state)
{
    (void)state;
    Tensor *x = LEAF(1), *y = tensor_exp(x);
    bool ok = false;
    pthread_t thread;
    TENSOR_NO_GRAD {
        tensor_fail(TENSOR_EUSER, "here", "of this thread");
        start(&thread, looks_around, &ok);
        join(thread);
        assert_says(TENSOR_EUSER, "here: of this thread");
    }
    assert_true(ok);
    assert_true(tensor_grad_enabled());
    assert_values(y, exp(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_shared_leaves_sum_exactly),
        TEST(test_gradients_cleared_while_others_sweep),
        TEST(test_retain_and_release_while_others_borrow),
        TEST(test_scope_of_another_thread_is_refused),
        TEST(test_foreign_graph_is_refused),
        TEST(test_results_released_in_another_thread),
        TEST(test_result_dies_while_its_gradient_arrives),
        TEST(test_thread_ends_with_a_living_graph),
        TEST(test_dead_tape_freed_by_two_threads),
        TEST(test_modes_and_errors_are_per_thread),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
