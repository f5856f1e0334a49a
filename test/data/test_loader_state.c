/* test_loader_state.c - a loader that goes on where another one was, at each of its batches; states that are
 * refused. */
#include <tapegrad/debug.h>
#include "sane.h"

enum { SAMPLES = 11, BATCH = 3, EPOCHS = 3 };

/* Draws, so that it matters how far the thread's generator has come. */
static int noisy(void *ctx, int64_t i, Tensor **x, Tensor **y)
{
    (void)ctx;
    *x = tensor_randn(SHAPE(3), TENSOR_F64);
    if (i % 3 == 0) *x = tensor_add(*x, tensor_rand(SHAPE(3), TENSOR_F64));
    *y = tensor_from_data(&i, SHAPE(), TENSOR_I64);
    return *x && *y ? 0 : -1;
}

static DataLoader *make(int prefetch, bool shuffle, bool drop_last)
{
    DataLoader *l = data_loader(data_custom(SAMPLES, noisy, NULL, NULL), .batch_size = BATCH,
                                .shuffle = shuffle, .drop_last = drop_last, .prefetch = prefetch);
    if (!l) FAILS("%s", tensor_error());
    return l;
}

typedef struct Seen {
    Tensor *x, *y;
    int64_t index, epoch;
} Seen;

/* What the calls number first to last - 1 of data_next give; no batch at the end of an epoch. */
static int follow(DataLoader *l, Seen *seen, int first)
{
    int last = (int)(data_batches(l) + 1) * EPOCHS;
    for (int i = first; i < last; i++) {
        Batch *b = data_next(l);
        DONE(0);
        seen[i] = b ? (Seen){ tensor_clone(b->x), tensor_clone(b->y), b->index, b->epoch } : (Seen){ 0 };
    }
    return last;
}

static void assert_same_rest(const Seen *want, const Seen *found, int from, int n)
{
    for (int i = from; i < n; i++) {
        assert_int_equal(want[i].x != NULL, found[i].x != NULL);
        if (!want[i].x) continue;
        assert_int_equal(want[i].index, found[i].index);
        assert_int_equal(want[i].epoch, found[i].epoch);
        if (!tensor_equal(want[i].x, found[i].x) || !tensor_equal(want[i].y, found[i].y))
            FAILS("after %d calls call %d gives another batch", from, i);
    }
}

static void goes_on(int prefetch, bool shuffle, bool drop_last)
{
    Seen want[40], found[40];
    tensor_manual_seed(3);
    DataLoader *l = make(prefetch, shuffle, drop_last);
    int n = follow(l, want, 0);
    data_loader_free(l);
    for (int from = 0; from < n; from++) {
        tensor_manual_seed(3);
        l = make(prefetch, shuffle, drop_last);
        for (int i = 0; i < from; i++) data_next(l);
        TensorDict dict = nn_dict_clone(data_loader_state_dict(l));
        Tensor *rng = tensor_get_rng_state();
        data_loader_free(l);
        tensor_manual_seed(99);
        l = make(prefetch, shuffle, drop_last);
        for (int i = 0; i < from % 4; i++) data_next(l); /* whatever it did before */
        DONE(tensor_set_rng_state(rng));
        DONE(data_loader_load_state_dict(l, dict));
        assert_int_equal(follow(l, found, from), n);
        assert_same_rest(want, found, from, n);
        data_loader_free(l), nn_dict_free(dict);
    }
}

static void test_goes_on(void **state)
{
    (void)state;
    static const int prefetches[] = { 0, 1, 3 };
    for (int p = 0; p < 3; p++)
        for (int kind = 0; kind < 4; kind++) goes_on(prefetches[p], kind & 1, kind & 2);
}

static void test_empty_set(void **state)
{
    (void)state;
    DataLoader *l = data_loader(data_custom(0, noisy, NULL, NULL), .shuffle = true);
    assert_null(data_next(l));
    TensorDict dict = nn_dict_clone(data_loader_state_dict(l));
    DONE(data_loader_load_state_dict(l, dict));
    assert_null(data_next(l));
    nn_dict_free(dict), data_loader_free(l);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void set_number(TensorDict *dict, const char *name, int64_t value)
{
    DONE(nn_dict_set(dict, name, tensor_from_data(&value, SHAPE(), TENSOR_I64)));
}

static void assert_refused(DataLoader *l, TensorDict dict, TensorStatus code, const char *words)
{
    TensorDict before = nn_dict_clone(data_loader_state_dict(l));
    assert_int_equal(data_loader_load_state_dict(l, dict), -1);
    assert_says(code, words);
    TensorDict after = data_loader_state_dict(l);
    assert_int_equal(after.count, before.count);
    for (int i = 0; i < after.count; i++)
        assert_true(tensor_equal(after.item[i].tensor, before.item[i].tensor));
    nn_dict_free(before);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t value;
        const char *words;
    } bad[] = { { "epoch", -1, "\"epoch\" is negative" },
                { "_num_yielded", -1, "\"_num_yielded\" is no number of batches" },
                { "_num_yielded", 5, "\"_num_yielded\" is no number of batches" },
                { "_iterator_finished", 2, "neither 0 nor 1" },
                { "samples", 12, "\"samples\" is 12 there, 11 here" },
                { "batch_size", 4, "\"batch_size\" is 4 there, 3 here" },
                { "shuffle", 0, "\"shuffle\" is 0 there, 1 here" },
                { "drop_last", 1, "\"drop_last\" is 1 there, 0 here" },
                { "surplus", 1, "\"surplus\" is unexpected" } };
    DataLoader *l = make(2, true, false);
    data_next(l), data_next(l);
    TensorDict good = nn_dict_clone(data_loader_state_dict(l)), none = { 0 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        TensorDict dict = nn_dict_clone(good);
        set_number(&dict, bad[i].name, bad[i].value);
        assert_refused(l, dict, TENSOR_EVALUE, bad[i].words);
        nn_dict_free(dict);
    }
    assert_refused(l, none, TENSOR_EVALUE, "\"epoch\" is missing");
    TensorDict dict = nn_dict_clone(good);
    DONE(nn_dict_set(&dict, "_sampler_iter_state.generator", tensor_zeros(SHAPE(5072), TENSOR_U8)));
    assert_refused(l, dict, TENSOR_EFORMAT, "state");
    DONE(nn_dict_set(&dict, "_base_seed", VEC(1)));
    assert_refused(l, dict, TENSOR_EVALUE, "\"_base_seed\" is not one i64");
    assert_int_equal(data_loader_load_state_dict(NULL, good), -1);
    assert_says(TENSOR_ENULL, "data_loader_load_state_dict");
    assert_int_equal(data_loader_state_dict(NULL).count, -1);
    assert_says(TENSOR_ENULL, "data_loader_state_dict");
    nn_dict_free(dict), nn_dict_free(good);
    data_loader_free(l);
}

static void test_failing_memory(void **state)
{
    (void)state;
    DataLoader *l = make(0, true, false);
    data_next(l);
    TensorDict good = nn_dict_clone(data_loader_state_dict(l));
    for (int load = 0; load < 2; load++)
        for (int k = 1;; k++) {
            tensor_debug_fail_allocation(k, false);
            int status = load ? data_loader_load_state_dict(l, good) : data_loader_state_dict(l).count;
            bool failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            if (!failed) {
                assert_true(status >= 0);
                break;
            }
            assert_int_equal(status, -1);
            assert_says(TENSOR_ENOMEM, "");
        }
    nn_dict_free(good), data_loader_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_goes_on),
        TEST(test_empty_set),
        TEST(test_refusals),
        TEST(test_failing_memory),
    };
    return cmocka_run_group_tests_name("loader_state", tests, NULL, NULL);
}
