/* test_alloc.c - the caching allocator: a steady step asks the system for nothing; limit, peak, release;
 * other threads' frees. */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tapegrad/debug.h>
#include "sane.h"

enum { MB = 1 << 20 };

/* Checkers that must see every block switch the cache off. */
static bool caches(void)
{
    void *block = tg_alloc(3 * MB);
    int64_t before = tensor_memory().cached;
    tg_free(block, 3 * MB);
    return tensor_memory().cached > before;
}

static void assert_consistent(void)
{
    TensorMemory m = tensor_memory();
    assert_true(m.in_use >= 0 && m.cached >= 0 && m.peak >= m.in_use && m.system_calls >= 0);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void test_blocks_are_aligned_and_large_enough(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0,    1,    63,   64,    65,    1000, 1024,      1025,
                                    1280, 1281, 4095, 65536, 65537, MB,   5 * MB + 1 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *a = tg_alloc(sizes[i]), *b = tg_alloc(sizes[i]);
        assert_true(a && b && a != b);
        assert_int_equal((uintptr_t)a % 64, 0);
        memset(a, 1, sizes[i]), memset(b, 2, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k += 61) assert_int_equal(a[k], 1);
        tg_free(a, sizes[i]), tg_free(b, sizes[i]);
    }
    assert_consistent();
}

static void test_grow_keeps_the_bytes(void **state)
{
    (void)state;
    int64_t before = tensor_memory().in_use;
    char *block = tg_calloc(100);
    for (int i = 0; i < 100; i++) assert_int_equal(block[i], 0);
    memset(block, 7, 100);
    block = tg_grow(block, 100, 5000);
    for (int i = 0; i < 100; i++) assert_int_equal(block[i], 7);
    tensor_debug_fail_allocation(1, false);
    assert_null(tg_grow(block, 5000, 50000)); /* block is as it was */
    tensor_debug_fail_allocation(0, false);
    assert_int_equal(block[99], 7);
    tg_free(block, 5000);
    assert_int_equal(tensor_memory().in_use, before);
}

static void test_sizes_beyond_reason(void **state)
{
    (void)state;
    assert_null(tg_alloc(SIZE_MAX));
    assert_null(tg_alloc((size_t)1 << 60));
    assert_tensor_error(tensor_empty(SHAPE((int64_t)1 << 45), TENSOR_F64), TENSOR_ENOMEM);
    assert_tensor_error(tensor_empty(SHAPE((int64_t)1 << 40, (int64_t)1 << 40), TENSOR_F64), TENSOR_ESHAPE);
    assert_consistent();
}

/* ---- the steady state ------------------------------------------------------------------------ */

static Tensor *weights(TensorShape shape)
{
    return tensor_requires_grad_(tensor_mul_scalar(tensor_randn(shape, TENSOR_F32), 0.1), true);
}

static Tensor *mlp_loss(Tensor **w)
{
    Tensor *x = tensor_full(SHAPE(32, 784), 0.5, TENSOR_F32), *target = tensor_zeros(SHAPE(32), TENSOR_I64);
    return tensor_cross_entropy(tensor_linear(tensor_relu(tensor_linear(x, w[0], w[1])), w[2], w[3]), target);
}

static Tensor *cnn_loss(Tensor **w)
{
    Tensor *x = tensor_full(SHAPE(8, 1, 28, 28), 0.5, TENSOR_F32),
           *target = tensor_zeros(SHAPE(8), TENSOR_I64);
    Tensor *h = tensor_max_pool2d(tensor_relu(tensor_conv2d(x, w[0], w[1], .padding = 1)), 2);
    return tensor_cross_entropy(tensor_linear(tensor_flatten(h, 1), w[2], w[3]), target);
}

static void train(Tensor *(*loss)(Tensor **), Tensor **w, int n)
{
    for (int step = 0; step < n; step++) {
        TensorScope scope = tensor_scope_open();
        DONE(tensor_backward(loss(w)));
        TENSOR_NO_GRAD {
            for (int i = 0; i < 4; i++) {
                OK(tensor_add_scaled_(w[i], tensor_grad(w[i]), -0.01));
                DONE(tensor_set_grad(w[i], NULL));
            }
        }
        tensor_scope_close(scope);
    }
}

static void assert_steady(Tensor *(*loss)(Tensor **), Tensor **w)
{
    train(loss, w, 3);
    tensor_memory_reset_peak();
    TensorMemory before = tensor_memory();
    int64_t live = tensor_live_count();
    train(loss, w, 100);
    TensorMemory after = tensor_memory();
    assert_int_equal(after.in_use, before.in_use);
    assert_int_equal(tensor_live_count(), live);
    if (!caches()) return;
    assert_int_equal(after.system_calls, before.system_calls);
    assert_int_equal(after.cached, before.cached);
}

static void test_steady_mlp(void **state)
{
    (void)state;
    Tensor *w[] = { weights(SHAPE(64, 784)), weights(SHAPE(64)), weights(SHAPE(10, 64)), weights(SHAPE(10)) };
    assert_steady(mlp_loss, w);
}

static void test_steady_cnn(void **state)
{
    (void)state;
    Tensor *w[] = { weights(SHAPE(4, 1, 3, 3)), weights(SHAPE(4)), weights(SHAPE(10, 4 * 14 * 14)),
                    weights(SHAPE(10)) };
    assert_steady(cnn_loss, w);
}

/* ---- limit, peak, release -------------------------------------------------------------------- */

static void test_limit(void **state)
{
    (void)state;
    tensor_memory_release();
    TensorMemory m = tensor_memory();
    tensor_memory_set_limit(m.in_use + m.cached + 8 * MB);
    assert_int_equal(tensor_memory().limit, m.in_use + m.cached + 8 * MB);
    TensorScope scope = tensor_scope_open();
    OK(tensor_zeros(SHAPE(4 * MB), TENSOR_U8));
    assert_tensor_error(tensor_zeros(SHAPE(16 * MB), TENSOR_U8), TENSOR_ENOMEM);
    assert_tensor_error(tensor_zeros(SHAPE(6 * MB), TENSOR_U8), TENSOR_ENOMEM);
    tensor_scope_close(scope);
    OK(tensor_zeros(SHAPE(7 * MB), TENSOR_U8)); /* what was cached made room */
    tensor_memory_set_limit(0);
    OK(tensor_zeros(SHAPE(16 * MB), TENSOR_U8));
    assert_consistent();
}

static void test_limit_takes_back_small_blocks(void **state)
{
    (void)state;
    tensor_memory_release();
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < 1000; i++) tensor_zeros(SHAPE(10000), TENSOR_U8);
    tensor_scope_close(scope); /* 10 MB in the thread's own lists, and in the shared one */
    TensorMemory m = tensor_memory();
    tensor_memory_set_limit(m.in_use + 10 * MB + MB / 4); /* 9 MB take a block of 10 */
    OK(tensor_zeros(SHAPE(9 * MB), TENSOR_U8));
    tensor_memory_set_limit(0);
}

static void test_peak(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    tensor_memory_reset_peak();
    int64_t before = tensor_memory().in_use;
    assert_int_equal(tensor_memory().peak, before);
    tensor_zeros(SHAPE(4 * MB), TENSOR_U8);
    tensor_scope_close(scope);
    assert_in_range(tensor_memory().peak, before + 4 * MB, before + 6 * MB);
    assert_int_equal(tensor_memory().in_use, before);
    tensor_memory_reset_peak();
    assert_int_equal(tensor_memory().peak, before);
}

static void test_release(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    tensor_zeros(SHAPE(4 * MB), TENSOR_U8);
    for (int i = 0; i < 100; i++) tensor_zeros(SHAPE(1000), TENSOR_U8);
    tensor_scope_close(scope);
    int64_t in_use = tensor_memory().in_use;
    tensor_memory_release();
    assert_int_equal(tensor_memory().in_use, in_use);
    assert_true(tensor_memory().cached < MB);
    assert_consistent();
}

static void test_reuse(void **state)
{
    (void)state;
    if (!caches()) return;
    for (int i = 0; i < 3; i++) {
        TensorScope scope = tensor_scope_open();
        tensor_zeros(SHAPE(3 * MB), TENSOR_U8);
        tensor_scope_close(scope);
    }
    int64_t calls = tensor_memory().system_calls;
    for (int i = 0; i < 100; i++) {
        TensorScope scope = tensor_scope_open();
        tensor_zeros(SHAPE(3 * MB - 100 * i), TENSOR_U8); /* of one size class */
        tensor_scope_close(scope);
    }
    assert_int_equal(tensor_memory().system_calls, calls);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { ROUNDS = 200, EACH = 50 };

typedef struct Mail {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Tensor *box[EACH];
    bool full;
} Mail;

static void *makes(void *ctx)
{
    Mail *m = ctx;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&m->lock);
        while (m->full) pthread_cond_wait(&m->changed, &m->lock);
        TensorScope scope = tensor_scope_open();
        for (int i = 0; i < EACH; i++)
            m->box[i] = tensor_retain(tensor_zeros(SHAPE(i % 2 ? 3000 : 100), TENSOR_F64));
        tensor_scope_close(scope);
        m->full = true;
        pthread_cond_signal(&m->changed);
        pthread_mutex_unlock(&m->lock);
    }
    return NULL;
}

static void test_frees_in_another_thread_do_not_grow(void **state)
{
    (void)state;
    Mail m = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    pthread_t thread;
    TensorMemory before = tensor_memory();
    assert_int_equal(pthread_create(&thread, NULL, makes, &m), 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&m.lock);
        while (!m.full) pthread_cond_wait(&m.changed, &m.lock);
        for (int i = 0; i < EACH; i++) tensor_release(m.box[i]);
        m.full = false;
        pthread_cond_signal(&m.changed);
        pthread_mutex_unlock(&m.lock);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    TensorMemory after = tensor_memory();
    assert_int_equal(after.in_use, before.in_use);
    assert_true(after.cached - before.cached < 16 * MB); /* 120 MB went through */
    assert_consistent();
}

/* The address space of a child ends where what is cached must go first. */
static void test_cached_memory_makes_room(void **state)
{
    (void)state;
    if (!caches()) return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit room;
        long pages = 0;
        void *first = tg_alloc(256 * (size_t)MB);
        FILE *f = fopen("/proc/self/statm", "r");
        if (!f) _exit(0); /* not Linux */
        if (fscanf(f, "%ld", &pages) != 1) _exit(2);
        fclose(f);
        getrlimit(RLIMIT_AS, &room);
        room.rlim_cur = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + 128 * MB);
        tg_free(first, 256 * (size_t)MB);
        if (setrlimit(RLIMIT_AS, &room)) _exit(3);
        char *other = tg_alloc(320 * (size_t)MB); /* of another class */
        if (!other) _exit(4);
        other[0] = other[320 * (size_t)MB - 1] = 1;
        _exit(tensor_memory().cached < 256 * MB ? 0 : 5);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_blocks_are_aligned_and_large_enough),
        TEST(test_grow_keeps_the_bytes),
        TEST(test_sizes_beyond_reason),
        TEST(test_steady_mlp),
        TEST(test_steady_cnn),
        TEST(test_limit),
        TEST(test_limit_takes_back_small_blocks),
        TEST(test_peak),
        TEST(test_release),
        TEST(test_reuse),
        TEST(test_frees_in_another_thread_do_not_grow),
        TEST(test_cached_memory_makes_room),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
