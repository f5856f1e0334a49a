/* test_data.c - datasets and loaders: PyTorch's order, batches that do not depend on the thread, errors that
 * arrive, nothing that is left. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <tapegrad/debug.h>
#include "oracle/rng_golden.h"
#include "mnist_images.h"
#include "scratch.h"

static void nap(int milliseconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = milliseconds * 1000000L }, NULL);
}

/* x [n, 2]: 10 i, 10 i + 1;  y [n]: i */
static Dataset *counted(int64_t n)
{
    TensorScope scope = tensor_scope_open();
    Tensor *y = tensor_arange(0, (double)n, 1, TENSOR_I64), *x = tensor_empty(SHAPE(n, 2), TENSOR_F32);
    for (int64_t i = 0; i < 2 * n; i++) ((float *)x->data)[i] = (float)(i / 2 * 10 + i % 2);
    Dataset *d = data_tensors(x, y);
    tensor_scope_close(scope);
    if (!d) FAILS("%s", tensor_error());
    return d;
}

/* The next batch holds these samples of counted(). */
static void assert_batch_(DataLoader *l, const int64_t *want, int64_t n, int64_t index, int64_t epoch,
                          int line)
{
    Batch *b = data_next(l);
    if (!b) FAILS("line %d: no batch: %s", line, tensor_error() ? tensor_error() : "the epoch is over");
    assert_int_equal(b->size, n);
    assert_int_equal(b->index, index);
    assert_int_equal(b->epoch, epoch);
    assert_sane(b->x), assert_sane(b->y);
    assert_true(shape_equal(shape_of(b->x), SHAPE(n, 2)));
    assert_true(shape_equal(shape_of(b->y), SHAPE(n)));
    for (int64_t i = 0; i < n; i++) {
        int64_t found = ((int64_t *)b->y->data)[i];
        if (found != want[i])
            FAILS("line %d: sample %d of the batch is %d, not %d", line, (int)i, (int)found, (int)want[i]);
        assert_true(((float *)b->x->data)[2 * i] == (float)(10 * found) &&
                    ((float *)b->x->data)[2 * i + 1] == (float)(10 * found + 1));
    }
}
#define assert_batch(l, index, epoch, ...) \
    assert_batch_(l, (int64_t[]){ __VA_ARGS__ }, COUNT_OF(__VA_ARGS__), index, epoch, __LINE__)

static void assert_end(DataLoader *l)
{
    assert_null(data_next(l));
    if (tensor_error()) FAILS("%s", tensor_error());
}

/* ---- order ----------------------------------------------------------------------------------- */

static const int prefetches[] = { 0, 1, 2, 8 };
#define EACH_PREFETCH(p) for (int p##_ = 0, p = 0; p##_ < 4 && (p = prefetches[p##_], 1); p##_++)

static void test_in_order(void **state)
{
    (void)state;
    EACH_PREFETCH(p)
    {
        tensor_manual_seed(13);
        DataLoader *l = data_loader(counted(10), .batch_size = 5, .prefetch = p);
        assert_int_equal(data_batches(l), 2);
        assert_int_equal(data_samples(l), 10);
        assert_batch(l, 0, 0, 0, 1, 2, 3, 4);
        assert_batch(l, 1, 0, 5, 6, 7, 8, 9);
        assert_end(l);
        assert_near(tensor_item(tensor_rand(SHAPE(), TENSOR_F32)), golden_loader_plain_after[0], 1e-9);
        assert_batch(l, 0, 1, 0, 1, 2, 3, 4);
        data_loader_free(l);
    }
}

/* torch.utils.data.DataLoader(TensorDataset(torch.arange(n)), batch_size=3, shuffle=True) */
static void test_shuffled(void **state)
{
    (void)state;
    EACH_PREFETCH(p)
    {
        tensor_manual_seed(13);
        DataLoader *l = data_loader(counted(10), .batch_size = 3, .shuffle = true, .prefetch = p);
        assert_int_equal(data_batches(l), 4);
        const int64_t *g = golden_loader_order;
        assert_batch(l, 0, 0, g[0], g[1], g[2]);
        assert_batch(l, 1, 0, g[3], g[4], g[5]);
        assert_batch(l, 2, 0, g[6], g[7], g[8]);
        assert_batch(l, 3, 0, g[9]);
        assert_end(l);
        assert_batch(l, 0, 1, 0, 3, 1), assert_batch(l, 1, 1, 8, 2, 4), assert_batch(l, 2, 1, 9, 6, 7),
            assert_batch(l, 3, 1, 5);
        assert_end(l);
        assert_batch(l, 0, 2, 9, 2, 3), assert_batch(l, 1, 2, 4, 6, 7), assert_batch(l, 2, 2, 8, 5, 1),
            assert_batch(l, 3, 2, 0);
        assert_end(l);
        assert_near(tensor_item(tensor_rand(SHAPE(), TENSOR_F32)), 0x1.d469e8p-1, 0);
        data_loader_free(l);
    }
}

static void test_drop_last(void **state)
{
    (void)state;
    EACH_PREFETCH(p)
    {
        tensor_manual_seed(5);
        DataLoader *l =
            data_loader(counted(7), .batch_size = 3, .shuffle = true, .drop_last = true, .prefetch = p);
        assert_int_equal(data_batches(l), 2);
        assert_batch(l, 0, 0, 0, 3, 6), assert_batch(l, 1, 0, 2, 1, 4);
        assert_end(l);
        assert_batch(l, 0, 1, 1, 2, 5), assert_batch(l, 1, 1, 3, 6, 4);
        assert_end(l);
        assert_batch(l, 0, 2, 0, 5, 3), assert_batch(l, 1, 2, 6, 4, 1);
        assert_end(l);
        assert_near(tensor_item(tensor_rand(SHAPE(), TENSOR_F32)), 0x1.2899bp-4, 0);
        data_loader_free(l);
    }
}

/* The thread's generator draws, whichever it is; the default device plays no part. */
static void test_own_generator(void **state)
{
    (void)state;
    TensorGenerator *g = tensor_generator(13), *before = tensor_set_generator(g);
    DataLoader *l = data_loader(counted(10), .batch_size = 10, .shuffle = true);
    tensor_manual_seed(1);
    Batch *b = data_next(l);
    tensor_set_generator(before);
    assert_non_null(b);
    for (int i = 0; i < 10; i++) assert_int_equal(((int64_t *)b->y->data)[i], golden_loader_order[i]);
    data_loader_free(l);
    tensor_generator_free(g);
}

static void test_sizes(void **state)
{
    (void)state;
    EACH_PREFETCH(p)
    {
        DataLoader *l = data_loader(counted(3), .batch_size = INT64_MAX, .prefetch = p);
        assert_int_equal(data_batches(l), 1);
        assert_batch(l, 0, 0, 0, 1, 2);
        assert_end(l);
        data_loader_free(l);
        l = data_loader(counted(3), .batch_size = 4, .drop_last = true, .shuffle = true, .prefetch = p);
        assert_int_equal(data_batches(l), 0);
        assert_end(l), assert_end(l);
        data_loader_free(l);
        l = data_loader(counted(0), .shuffle = true, .prefetch = p);
        assert_int_equal(data_batches(l), 0);
        assert_end(l), assert_end(l);
        data_loader_free(l);
        l = data_loader(counted(2), .prefetch = p);
        assert_batch(l, 0, 0, 0), assert_batch(l, 1, 0, 1);
        assert_end(l);
        data_loader_free(l);
    }
}

static void test_reset(void **state)
{
    (void)state;
    EACH_PREFETCH(p)
    {
        tensor_manual_seed(13);
        DataLoader *l = data_loader(counted(10), .batch_size = 3, .shuffle = true, .prefetch = p);
        data_reset(l); /* nothing to break off */
        assert_batch(l, 0, 0, 8, 2, 3);
        data_reset(l);
        assert_batch(l, 0, 1, 0, 3, 1);
        assert_batch(l, 1, 1, 8, 2, 4);
        data_reset(l), data_reset(l);
        assert_batch(l, 0, 2, 9, 2, 3);
        data_loader_free(l);                         /* in the middle of an epoch */
        l = data_loader(counted(10), .prefetch = p); /* never asked for a batch */
        data_loader_free(l);
    }
    data_reset(NULL), data_loader_free(NULL), data_free(NULL);
    assert_null(data_retain(NULL));
    assert_int_equal(data_size(NULL) + data_batches(NULL) + data_samples(NULL), 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_retained_batches(void **state)
{
    (void)state;
    EACH_PREFETCH(p)
    {
        Tensor *kept[5];
        DataLoader *l = data_loader(counted(10), .batch_size = 2, .prefetch = p);
        for (int i = 0; i < 5; i++) kept[i] = tensor_retain(data_next(l)->x);
        assert_end(l);
        for (int i = 0; i < 30; i++) data_next(l);
        data_loader_free(l);
        for (int i = 0; i < 5; i++) {
            assert_values(kept[i], 20 * i, 20 * i + 1, 20 * i + 10, 20 * i + 11);
            tensor_release(kept[i]);
        }
    }
}

/* After the first epoch, in which the ring was full once, no memory comes from the system. */
static void test_steady_state(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    assert_non_null(tensor_empty(SHAPE(1 << 20), TENSOR_U8));
    tensor_scope_close(scope);
    if (tensor_memory().cached == 0) return; /* under AddressSanitizer all goes straight back */
    EACH_PREFETCH(p)
    {
        DataLoader *l = data_loader(counted(500), .batch_size = 5, .shuffle = true, .prefetch = p);
        int64_t calls = 0;
        for (int epoch = 0; epoch < 30; epoch++) {
            for (Batch *b; (b = data_next(l)) != NULL;)
                if (epoch == 0 && b->index < 3) nap(2);
            if (epoch == 0) calls = tensor_memory().system_calls;
        }
        assert_int_equal(tensor_memory().system_calls, calls);
        data_loader_free(l);
    }
}

/* ---- datasets of the user's ------------------------------------------------------------------ */

typedef struct Custom {
    _Atomic int64_t calls, destroyed;
    int64_t fails_at; /* -1: nowhere */
    int how;          /* 0: with an error of its own; 1: silently; 2: without x */
    int64_t odd;      /* the sample that differs; -1: none */
    int odd_how;      /* 0: shape of x; 1: dtype of y; 2: no y; 3: a y where the first has none */
} Custom;

static int get(void *ctx, int64_t i, Tensor **x, Tensor **y)
{
    Custom *c = ctx;
    c->calls++;
    if (i == c->fails_at && c->how == 0) return tensor_fail(TENSOR_EIO, "get", "sample %d is lost", (int)i);
    if (i == c->fails_at && c->how == 1) return -1;
    if (i == c->fails_at) return 0;
    Tensor *v = tensor_full(SHAPE(i == c->odd && c->odd_how == 0 ? 3 : 2), (double)i, TENSOR_F32);
    *x = tensor_add_scalar(tensor_requires_grad_(v, true), 0.5); /* a graph, too */
    bool no_y = c->odd_how == 3 ? i != c->odd : i == c->odd && c->odd_how == 2;
    if (!no_y) *y = tensor_full(SHAPE(), (double)i, i == c->odd && c->odd_how == 1 ? TENSOR_I32 : TENSOR_I64);
    return 0;
}

static void destroy(void *ctx) { ((Custom *)ctx)->destroyed++; }

static void test_custom(void **state)
{
    (void)state;
    EACH_PREFETCH(p)
    {
        Custom c = { .fails_at = -1, .odd = -1 };
        DataLoader *l = data_loader(data_custom(5, get, destroy, &c), .batch_size = 2, .prefetch = p);
        for (int i = 0; i < 3; i++) {
            Batch *b = data_next(l);
            assert_non_null(b);
            assert_false(tensor_requires_grad(b->x));
            if (i < 2) assert_values(b->x, 2 * i + 0.5, 2 * i + 0.5, 2 * i + 1.5, 2 * i + 1.5);
            else assert_values(b->x, 4.5, 4.5);
            assert_true(shape_equal(shape_of(b->y), SHAPE(i < 2 ? 2 : 1)));
        }
        assert_end(l);
        assert_int_equal(c.calls, 5);
        assert_int_equal(c.destroyed, 0);
        data_loader_free(l);
        assert_int_equal(c.destroyed, 1);
    }
}

static void test_custom_without_y(void **state)
{
    (void)state;
    Custom c = { .fails_at = -1, .odd = 100, .odd_how = 3 };
    DataLoader *l =
        data_loader(data_custom(INT64_MAX, get, NULL, &c), .batch_size = 2); /* as good as endless */
    for (int i = 0; i < 5; i++) {
        Batch *b = data_next(l);
        assert_non_null(b);
        assert_null(b->y);
        assert_near(tensor_get(b->x, DIMS(0, 0)), 2 * i + 0.5, 0);
    }
    data_loader_free(l);
    l = data_loader(data_tensors(VEC(1, 2, 3), NULL), .batch_size = 2);
    Batch *b = data_next(l);
    assert_null(b->y);
    assert_values(b->x, 1, 2);
    data_loader_free(l);
}

/* The error of a sample comes with its batch, once; the epoch is over, the loader goes on. */
static void test_errors_arrive(void **state)
{
    (void)state;
    static const struct {
        int how;
        TensorStatus code;
        const char *words;
    } cases[] = { { 0, TENSOR_EIO, "sample 4 is lost" },
                  { 1, TENSOR_EUSER, "failed for sample 4" },
                  { 2, TENSOR_EUSER, "failed for sample 4" } };
    EACH_PREFETCH(p) for (int k = 0; k < 3; k++)
    {
        Custom c = { .fails_at = 4, .how = cases[k].how, .odd = -1 };
        DataLoader *l = data_loader(data_custom(9, get, destroy, &c), .batch_size = 3, .prefetch = p);
        assert_non_null(data_next(l));
        if (p) nap(3); /* the error has happened: it is not here yet */
        assert_null(tensor_error());
        assert_null(data_next(l));
        assert_says(cases[k].code, cases[k].words);
        Batch *b = data_next(l);
        assert_non_null(b);
        assert_int_equal(b->epoch, 1);
        assert_int_equal(b->index, 0);
        assert_null(data_next(l));
        assert_says(cases[k].code, cases[k].words);
        c.fails_at = -1;
        for (int i = 0; i < 3; i++) assert_non_null(data_next(l));
        assert_end(l);
        data_loader_free(l);
        assert_int_equal(c.destroyed, 1);
    }
}

static void test_samples_differ(void **state)
{
    (void)state;
    static const char *const words[] = { "x of sample 1 of a batch is f32 [3], that of the first f32 [2]",
                                         "y of sample 1 of a batch is i32 [], that of the first i64 []",
                                         "sample 1 of a batch has no y, the first has one",
                                         "sample 1 of a batch has a y, the first has none" };
    EACH_PREFETCH(p) for (int how = 0; how < 4; how++)
    {
        Custom c = { .fails_at = -1, .odd = 3, .odd_how = how };
        DataLoader *l = data_loader(data_custom(4, get, NULL, &c), .batch_size = 2, .prefetch = p);
        assert_non_null(data_next(l));
        assert_null(data_next(l));
        assert_says(TENSOR_ESHAPE, words[how]);
        data_loader_free(l);
    }
}

static int draw(void *ctx, int64_t i, Tensor **x, Tensor **y)
{
    (void)ctx, (void)i, (void)y;
    *x = tensor_rand(SHAPE(), TENSOR_F64);
    return 0;
}

/* What a dataset draws in the loader's thread repeats with the seed, and differs between seeds and epochs. */
static void test_draws_in_the_thread(void **state)
{
    (void)state;
    double first[3][6];
    for (int run = 0; run < 3; run++) {
        tensor_manual_seed(run < 2 ? 3 : 4);
        DataLoader *l = data_loader(data_custom(3, draw, NULL, NULL));
        for (int i = 0; i < 6; i++) {
            if (i == 3) assert_end(l);
            first[run][i] = tensor_item(data_next(l)->x);
        }
        data_loader_free(l);
    }
    assert_memory_equal(first[0], first[1], sizeof first[0]);
    assert_true(first[0][0] != first[0][3] && first[0][0] != first[2][0] && first[0][3] != first[2][3]);
}

/* ---- ownership, refusals --------------------------------------------------------------------- */

static void test_shared_dataset(void **state)
{
    (void)state;
    Custom c = { .fails_at = -1, .odd = -1 };
    Dataset *d = data_custom(40, get, destroy, &c);
    DataLoader *a = data_loader(data_retain(d), .batch_size = 4),
               *b = data_loader(d, .batch_size = 10, .shuffle = true);
    for (int i = 0; i < 4; i++) {
        Batch *x = data_next(a), *y = data_next(b);
        assert_int_equal(x->size, 4);
        assert_int_equal(y->size, 10);
    }
    data_loader_free(a);
    assert_int_equal(c.destroyed, 0);
    assert_int_equal(data_size(d), 40);
    data_loader_free(b);
    assert_int_equal(c.destroyed, 1);
}

/* The loader takes the reference over also when it fails. */
static void test_refusals(void **state)
{
    (void)state;
    Custom c = { .fails_at = -1, .odd = -1 };
    assert_null(data_loader(data_custom(4, get, destroy, &c), .batch_size = 0));
    assert_says(TENSOR_EVALUE, "batch_size 0");
    assert_null(data_loader(data_custom(4, get, destroy, &c), .prefetch = -1));
    assert_says(TENSOR_EVALUE, "prefetch -1");
    assert_null(data_loader(data_custom(4, get, destroy, &c), .device = "nowhere:0"));
    assert_says(TENSOR_EDEVICE, "nowhere:0");
    assert_null(data_loader(data_custom(INT64_MAX, get, destroy, &c), .shuffle = true));
    assert_says(TENSOR_ENOMEM, "out of memory");
    assert_int_equal(c.destroyed, 4);
    assert_null(data_loader(NULL));
    assert_says(TENSOR_ENULL, "the dataset is NULL");
    assert_null(data_next(NULL));
    assert_says(TENSOR_ENULL, "the loader is NULL");
    assert_null(data_custom(4, NULL, destroy, &c));
    assert_says(TENSOR_ENULL, "the function is NULL");
    assert_null(data_custom(-1, get, destroy, &c));
    assert_says(TENSOR_EVALUE, "-1 samples");
    assert_null(data_tensors(NULL, VEC(1)));
    assert_says(TENSOR_ENULL, "data_tensors");
    assert_null(data_tensors(VEC(1, 2), VEC(1)));
    assert_says(TENSOR_ESHAPE, "x [2] and y [1]");
    assert_null(data_tensors(tensor_zeros(SHAPE(), TENSOR_F32), NULL));
    assert_says(TENSOR_ESHAPE, "x []");
    assert_null(
        data_loader(data_tensors(tensor_matmul(VEC(1), MAT(2, 1, 2)), NULL))); /* the first error stays */
    assert_says(TENSOR_ESHAPE, "matmul");
    assert_int_equal(c.destroyed, 4);
}

static void test_rows(void **state)
{
    (void)state;
    Tensor *x = tensor_transpose(MAT(2, 1, 2, 3, 4, 5, 6), 0, 1), *y = tensor_to(VEC(0, 1, 0), TENSOR_BOOL);
    DataLoader *l = data_loader(data_tensors(x, y), .batch_size = 2);
    Batch *b = data_next(l);
    assert_values(b->x, 1, 4, 2, 5);
    assert_int_equal(tensor_dtype(b->y), TENSOR_BOOL);
    b = data_next(l);
    assert_values(b->x, 3, 6);
    data_loader_free(l);
    l = data_loader(data_tensors(tensor_zeros(SHAPE(4, 0), TENSOR_F32), NULL), .batch_size = 3);
    assert_true(shape_equal(shape_of(data_next(l)->x), SHAPE(3, 0)));
    data_loader_free(l);
}

/* ---- failing memory -------------------------------------------------------------------------- */

/* An epoch of each kind of dataset, in which the n-th request for memory fails: ENOMEM, and nothing is left.
 */
static void epochs_with(int kind, int prefetch)
{
    Custom c = { .fails_at = -1, .odd = -1 };
    Tensor *x = tensor_full(SHAPE(5, 2), 1, TENSOR_F32);
    for (int64_t n = 1;; n++) {
        int64_t live = tensor_live_count();
        TensorScope scope = tensor_scope_open();
        tensor_debug_fail_allocation(n, n & 1);
        Dataset *d = kind == 0   ? data_tensors(x, x)
                     : kind == 1 ? data_custom(5, get, destroy, &c)
                                 : data_mnist(scratch_, DATA_TEST);
        DataLoader *l = data_loader(d, .batch_size = 2, .shuffle = true, .prefetch = prefetch);
        int batches = 0;
        while (l && data_next(l)) batches++;
        bool failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        bool whole = l && batches == data_batches(l) && !tensor_error();
        data_loader_free(l);
        tensor_scope_close(scope);
        if (!failed && !whole) FAILS("request %d, which did not fail: %s", (int)n, tensor_error());
        if (failed && whole)
            FAILS("kind %d, prefetch %d: request %d failed, and nobody noticed", kind, prefetch, (int)n);
        if (failed) assert_says(TENSOR_ENOMEM, "");
        if (tensor_live_count() != live)
            FAILS("kind %d, prefetch %d, request %d: %d tensors left", kind, prefetch, (int)n,
                  (int)(tensor_live_count() - live));
        if (!failed) break;
        assert_true(n < 10000);
    }
}

static void test_failing_memory(void **state)
{
    (void)state;
    put_file("t10k-images-idx3-ubyte", IMAGES, sizeof IMAGES - 1);
    put_file("t10k-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x03\5\0\4", 11);
    for (int kind = 0; kind < 3; kind++) epochs_with(kind, 0), epochs_with(kind, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_in_order),
        TEST(test_shuffled),
        TEST(test_drop_last),
        TEST(test_own_generator),
        TEST(test_sizes),
        TEST(test_reset),
        TEST(test_retained_batches),
        TEST(test_steady_state),
        TEST(test_custom),
        TEST(test_custom_without_y),
        TEST(test_errors_arrive),
        TEST(test_samples_differ),
        TEST(test_draws_in_the_thread),
        TEST(test_shared_dataset),
        TEST(test_refusals),
        TEST(test_rows),
        TEST(test_failing_memory),
    };
    return cmocka_run_group_tests_name("data", tests, scratch_begin, scratch_end);
}
