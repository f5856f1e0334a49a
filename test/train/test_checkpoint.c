/* test_checkpoint.c - files that are kept, skipped, refused; all parts or none. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <tapegrad/debug.h>
#include "run.h"
#include "scratch.h"

/* ---- help ------------------------------------------------------------------------------------ */

static void steps(Run *r, int n)
{
    for (int i = 0; i < n; i++) run_step(r);
    DONE(0);
}

static const char *nth(int i)
{
    static char name[64];
    snprintf(name, sizeof name, "checkpoint-%08d.safetensors", i);
    return scratch(name);
}

static bool there(int i) { return access(nth(i), F_OK) == 0; }

/* ---- keeping --------------------------------------------------------------------------------- */

static void test_keeps_the_last(void **state)
{
    (void)state;
    Run r = run_begin(0);
    Checkpoint *c = run_checkpoint(&r, scratch_);
    assert_null(io_checkpoint_path(c));
    assert_int_equal(io_checkpoint_resume(c), 0);
    for (int i = 1; i <= 5; i++) {
        steps(&r, 1);
        DONE(io_checkpoint_save(c));
        assert_string_equal(io_checkpoint_path(c), nth(i));
        assert_int_equal(scratch_count("checkpoint-"), i < 2 ? i : 2);
        assert_true(there(i) && (i == 1 || there(i - 1)));
    }
    put_file("checkpoint-x.safetensors", "", 0), put_file("checkpoint-00000009.safetensors.tmp", "", 0);
    assert_int_equal(io_checkpoint_resume(c), 1); /* other names do not count */
    assert_string_equal(io_checkpoint_path(c), nth(5));
    assert_string_equal(io_checkpoint_note(c), "");
    io_checkpoint_free(c), run_end(&r);
}

static void test_makes_folders(void **state)
{
    (void)state;
    const char *inner = scratch("a"), *deep = scratch("a/b");
    Run r = run_begin(0);
    Checkpoint *c = run_checkpoint(&r, deep);
    assert_int_equal(io_checkpoint_resume(c), 0);
    DONE(io_checkpoint_save(c));
    assert_int_equal(io_checkpoint_resume(c), 1);
    unlink(io_checkpoint_path(c)), rmdir(deep), rmdir(inner);
    io_checkpoint_free(c), run_end(&r);
}

static void test_numbers(void **state)
{
    (void)state;
    int64_t big = INT64_MIN + 1;
    double small = 4e-324, none = NAN;
    Checkpoint *c = io_checkpoint(scratch_);
    DONE(io_checkpoint_int(c, "big", &big));
    DONE(io_checkpoint_double(c, "small", &small) | io_checkpoint_double(c, "none", &none));
    DONE(io_checkpoint_save(c));
    big = 0, small = none = 0;
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_true(big == INT64_MIN + 1 && small == 4e-324 && isnan(none));
    io_checkpoint_free(c);
}

/* ---- files that are not whole ---------------------------------------------------------------- */

/* A run of three steps and its file, and the run two steps later, which no bad file may change. */
static void saved(Run *r, Checkpoint **c, unsigned char **file, size_t *n)
{
    *r = run_begin(2);
    *c = run_checkpoint(r, scratch_);
    steps(r, 3);
    DONE(io_checkpoint_save(*c));
    *file = get_file(nth(1), n);
    steps(r, 2);
}

static void assert_refused(Checkpoint *c, TensorStatus code, const char *words)
{
    assert_int_equal(io_checkpoint_load(c, scratch("bad")), -1);
    if (tensor_error() && strncmp(tensor_error(), "io_checkpoint_load: ", 20))
        FAILS("it says: %s", tensor_error());
    assert_says(code, words);
}

static bool says(const char *words) { return strstr(tensor_error(), words) != NULL; }

static void test_damaged(void **state)
{
    (void)state;
    Run r;
    Checkpoint *c;
    unsigned char *file;
    size_t n;
    saved(&r, &c, &file, &n);
    TensorDict want = run_state(&r);
    for (size_t i = 0; i < n; i += i < 200 ? 1 : 97) {
        file[i] ^= 1 << i % 8;
        put_file("bad", file, n);
        assert_int_equal(io_checkpoint_load(c, scratch("bad")), -1);
        if (i >= 47 && !says("bad is damaged: ")) FAILS("byte %zu: %s", i, tensor_error());
        assert_says(TENSOR_EFORMAT, "io_checkpoint_load: ");
        file[i] ^= 1 << i % 8;
    }
    assert_unchanged(&r, want, "a damaged file");
    file[n - 5] ^= 4;
    put_file("bad", file, n);
    assert_refused(c, TENSOR_EFORMAT, "bad is damaged: its checksum is");
    free(file), nn_dict_free(want);
    io_checkpoint_free(c), run_end(&r);
}

static void test_cut_short(void **state)
{
    (void)state;
    Run r;
    Checkpoint *c;
    unsigned char *file;
    size_t n;
    saved(&r, &c, &file, &n);
    TensorDict want = run_state(&r);
    for (size_t i = 0; i < n; i += i < 20 ? 1 : 211) {
        put_file("bad", file, i);
        assert_refused(c, TENSOR_EFORMAT, i < 8 ? "bad: shorter than 8 bytes" : "cut short: ");
    }
    put_file("bad", file, n - 1);
    assert_refused(c, TENSOR_EFORMAT, "bad is cut short: ");
    assert_unchanged(&r, want, "a file that is cut short");
    free(file), nn_dict_free(want);
    io_checkpoint_free(c), run_end(&r);
}

static void test_foreign(void **state)
{
    (void)state;
    Run r = run_begin(0);
    Checkpoint *c = run_checkpoint(&r, scratch_);
    IoMetadata texts = { 0 };
    DONE(io_save_safetensors(scratch("bad"), nn_state_dict(r.net)));
    assert_refused(c, TENSOR_EFORMAT, "bad is no checkpoint");
    put_file("bad", "a text about something else", 27);
    assert_refused(c, TENSOR_EFORMAT, "bad");
    DONE(io_metadata_set(&texts, "format", "tapegrad checkpoint"));
    DONE(io_metadata_set(&texts, "version", "2"));
    DONE(io_save_safetensors(scratch("bad"), nn_state_dict(r.net), .metadata = texts, .checksum = true));
    assert_refused(c, TENSOR_EFORMAT, "of version 2: a newer one than this library's, 1");
    DONE(io_save_safetensors(scratch("bad"), nn_state_dict(r.net), .metadata = texts));
    assert_refused(c, TENSOR_EFORMAT, "it has lost its checksum");
    static const char *const versions[] = { "", "0", "-1", "1.5", "new" };
    for (int i = 0; i < 5; i++) {
        DONE(io_metadata_set(&texts, "version", versions[i]));
        DONE(io_save_safetensors(scratch("bad"), nn_state_dict(r.net), .metadata = texts, .checksum = true));
        assert_refused(c, TENSOR_EFORMAT, "\" is no version");
    }
    texts.count = 1;
    DONE(io_save_safetensors(scratch("bad"), nn_state_dict(r.net), .metadata = texts, .checksum = true));
    assert_refused(c, TENSOR_EFORMAT, "bad is damaged: it names no version");
    DONE(io_save_safetensors(scratch("bad"), (TensorDict){ 0 }));
    assert_refused(c, TENSOR_EFORMAT, "bad is no checkpoint");
    texts.count = 2;
    assert_int_equal(io_checkpoint_load(c, scratch("nothing")), -1);
    assert_says(TENSOR_EIO, "nothing");
    io_metadata_free(texts);
    io_checkpoint_free(c), run_end(&r);
}

static void test_skips_to_the_newest_whole(void **state)
{
    (void)state;
    Run r;
    Checkpoint *c;
    unsigned char *file;
    size_t n;
    saved(&r, &c, &file, &n);
    put_file("checkpoint-00000002.safetensors", file, n / 2);
    file[n - 1] ^= 1;
    put_file("checkpoint-00000003.safetensors", file, n);
    put_file("checkpoint-00000004.safetensors", "", 0);
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_int_equal(r.step, 3);
    assert_string_equal(io_checkpoint_path(c), nth(1));
    const char *note = io_checkpoint_note(c);
    assert_non_null(strstr(note, "skipped "));
    assert_non_null(strstr(note, "00000004.safetensors: shorter than 8 bytes\n"));
    assert_non_null(strstr(note, "00000003.safetensors is damaged"));
    assert_non_null(strstr(note, "00000002.safetensors"));
    DONE(io_checkpoint_save(c)); /* newer than those that were skipped, which do not count */
    assert_true(there(5) && there(4) && there(3) && there(2) && there(1));
    DONE(io_checkpoint_save(c));
    assert_true(there(6) && there(5) && there(4) && !there(3) && !there(2) && !there(1)); /* 4 is not ours */
    unlink(nth(5)), unlink(nth(6));
    assert_int_equal(io_checkpoint_resume(c), -1); /* it does not begin anew without a word */
    assert_says(TENSOR_EFORMAT, "none of 1 files");
    free(file);
    io_checkpoint_free(c), run_end(&r);
}

static void test_newer_version_is_not_skipped(void **state)
{
    (void)state;
    Run r = run_begin(0);
    Checkpoint *c = run_checkpoint(&r, scratch_);
    IoMetadata texts = { 0 };
    DONE(io_checkpoint_save(c));
    DONE(io_metadata_set(&texts, "format", "tapegrad checkpoint") | io_metadata_set(&texts, "version", "7"));
    DONE(io_save_safetensors(nth(2), nn_state_dict(r.net), .metadata = texts, .checksum = true));
    assert_int_equal(io_checkpoint_resume(c), -1);
    assert_says(TENSOR_EFORMAT, "version 7");
    io_metadata_free(texts);
    io_checkpoint_free(c), run_end(&r);
}

/* ---- all or nothing -------------------------------------------------------------------------- */

typedef struct Own {
    TensorDict dict;
    bool save_fails, load_fails, silent;
} Own;

static TensorDict save_own(void *ctx)
{
    static const TensorDict none = { .count = -1 };
    const Own *own = ctx;
    return own->save_fails ? none : own->dict;
}

static int load_own(void *ctx, TensorDict dict)
{
    const Own *own = ctx;
    if (!own->load_fails) return dict.count == own->dict.count ? 0 : -1;
    return own->silent ? -1 : tensor_fail(TENSOR_EUSER, "load_own", "as it should");
}

static void assert_same_position(DataLoader *l, TensorDict want)
{
    TensorDict found = data_loader_state_dict(l);
    assert_int_equal(found.count, want.count);
    for (int i = 0; i < want.count; i++)
        if (!tensor_equal(found.item[i].tensor, nn_dict_get(want, found.item[i].name)))
            FAILS("%s has changed", found.item[i].name);
}

static void test_a_part_that_fails(void **state)
{
    (void)state;
    Run r = run_begin(2);
    Own own = { .save_fails = false };
    Checkpoint *c = run_checkpoint(&r, scratch_);
    DONE(nn_dict_set(&own.dict, "a", VEC(1, 2)));
    DONE(io_checkpoint_part(c, "mine", save_own, load_own, &own));
    steps(&r, 4);
    DONE(io_checkpoint_save(c));
    steps(&r, 6);
    TensorDict want = run_state(&r);
    TensorDict position = nn_dict_clone(data_loader_state_dict(r.loader));
    own.save_fails = true;
    assert_int_equal(io_checkpoint_save(c), -1);
    assert_says(TENSOR_EUSER, "the part \"mine\" gave no state");
    assert_int_equal(scratch_count("checkpoint-"), 1);
    own.save_fails = false, own.load_fails = true;
    for (int silent = 0; silent < 2; silent++) {
        own.silent = silent;
        assert_int_equal(io_checkpoint_resume(c), -1);
        assert_says(TENSOR_EUSER, silent ? "part \"mine\": its load function failed without"
                                         : "part \"mine\": load_own: as it should");
        assert_unchanged(&r, want, "a part that fails");
        assert_same_position(r.loader, position);
        assert_int_equal(r.step, 10);
    }
    own.load_fails = false;
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_int_equal(r.step, 4);
    nn_dict_free(want), nn_dict_free(position), nn_dict_free(own.dict);
    io_checkpoint_free(c), run_end(&r);
}

/* Another net, another optimizer, another loader, other numbers: nothing of the file is taken. */
static void test_of_another_run(void **state)
{
    (void)state;
    static const char *const words[] = {
        "part \"model\": nn_load_state_dict: Linear; missing: weight, bias",
        "part \"optimizer\": optim_load_state_dict: SGD",
        "part \"loader\": data_loader_load_state_dict: \"batch_size\" is 8 there, 5 here",
        "scalars: \"smooth\" is missing",
        "has other parts than this run; unexpected: \"ema\"",
        "scalars: \"smoothed\" is unexpected"
    };
    Run r = run_begin(0);
    Checkpoint *c = run_checkpoint(&r, scratch_);
    Own ema = { .save_fails = false };
    DONE(nn_dict_set(&ema.dict, "a", VEC(1)));
    DONE(io_checkpoint_save(c));
    for (int kind = 0; kind < 6; kind++) {
        Run other = run_begin(0);
        double smoothed = 0.5;
        int64_t step = 77;
        if (kind == 0) optim_averaged_free(other.averaged), optim_free(other.opt), nn_free(other.net);
        if (kind == 0) other.net = nn_linear(6, 3), other.averaged = optim_averaged_model(other.net);
        if (kind < 2) optim_scheduler_free(other.schedule), other.schedule = NULL;
        if (kind == 1) optim_free(other.opt);
        if (kind < 2) other.opt = optim_sgd(nn_parameters(other.net), .lr = 1, .momentum = 0.9);
        if (kind < 2) other.schedule = optim_cosine_annealing_lr(other.opt, RUN_STEPS);
        if (kind == 2) {
            data_loader_free(other.loader);
            other.loader = data_loader(data_custom(50, run_sample, NULL, NULL), .batch_size = 5);
        }
        Checkpoint *d =
            io_checkpoint(scratch_, .module = other.net, .optimizer = other.opt, .scheduler = other.schedule,
                          .loader = other.loader, .scaler = other.scaler, .averaged = other.averaged);
        DONE(io_checkpoint_generator(d, "own", other.own) | io_checkpoint_int(d, "step", &step));
        DONE(io_checkpoint_metric(d, "accuracy", other.metric));
        if (kind != 5) DONE(io_checkpoint_double(d, kind == 3 ? "smooth" : "smoothed", &smoothed));
        if (kind == 4) {
            DONE(io_checkpoint_part(c, "ema", save_own, load_own, &ema));
            DONE(io_checkpoint_save(c));
        }
        TensorDict want = run_state(&other);
        if (kind == 5) unlink(nth(2));
        assert_int_equal(io_checkpoint_resume(d), -1);
        if (!strstr(tensor_error(), words[kind])) FAILS("kind %d: %s", kind, tensor_error());
        tensor_error_clear();
        assert_unchanged(&other, want, words[kind]);
        assert_true(step == 77 && smoothed == 0.5);
        nn_dict_free(want), io_checkpoint_free(d), run_end(&other);
    }
    nn_dict_free(ema.dict);
    io_checkpoint_free(c), run_end(&r);
}

/* ---- a disk that is full --------------------------------------------------------------------- */

static void test_full_disk(void **state)
{
    (void)state;
    size_t n, old;
    Run r;
    Checkpoint *c;
    unsigned char *file;
    saved(&r, &c, &file, &old);
    struct rlimit was, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    for (size_t most = 0; most < old; most += 4000) {
        small = (struct rlimit){ most, was.rlim_max };
        setrlimit(RLIMIT_FSIZE, &small);
        int status = io_checkpoint_save(c);
        setrlimit(RLIMIT_FSIZE, &was);
        assert_int_equal(status, -1);
        assert_says(TENSOR_EIO, "cannot be written: ");
        assert_int_equal(scratch_count(""), 1);
    }
    signal(SIGXFSZ, handler);
    unsigned char *after = get_file(nth(1), &n);
    assert_int_equal(n, old);
    assert_memory_equal(file, after, n);
    assert_int_equal(io_checkpoint_resume(c), 1);
    free(file), free(after);
    io_checkpoint_free(c), run_end(&r);
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    double d = 0;
    Checkpoint *c = io_checkpoint(scratch_);
    assert_null(io_checkpoint(NULL));
    assert_says(TENSOR_ENULL, "io_checkpoint: the folder is NULL");
    assert_null(io_checkpoint(scratch_, .keep = 0));
    assert_says(TENSOR_EVALUE, "keep 0");
    static const char *const bad[] = { "", "a.b", "rng", "scalars" };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(io_checkpoint_generator(c, bad[i], tensor_default_generator()), -1);
        assert_says(TENSOR_EVALUE, i < 2 ? "names are not empty and have no dot" : "already");
    }
    assert_int_equal(io_checkpoint_module(c, "net", NULL), -1);
    assert_says(TENSOR_ENULL, "io_checkpoint_module: ");
    assert_int_equal(io_checkpoint_part(c, "p", NULL, NULL, NULL), -1);
    assert_says(TENSOR_ENULL, "io_checkpoint_part: ");
    DONE(io_checkpoint_double(c, "d", &d));
    assert_int_equal(io_checkpoint_double(c, "d", &d), -1);
    assert_says(TENSOR_EVALUE, "there is a \"d\" already");
    assert_int_equal(io_checkpoint_int(c, NULL, (int64_t[]){ 0 }), -1);
    assert_says(TENSOR_ENULL, "the name is NULL");
    assert_int_equal(io_checkpoint_save(NULL), -1);
    assert_says(TENSOR_ENULL, "io_checkpoint_save: ");
    assert_int_equal(io_checkpoint_load(c, NULL), -1);
    assert_says(TENSOR_ENULL, "the path is NULL");
    tensor_fail(TENSOR_EUSER, "test", "of before");
    assert_int_equal(io_checkpoint_save(c), -1); /* what an error left is not saved */
    assert_says(TENSOR_EUSER, "of before");
    assert_int_equal(scratch_count("checkpoint-"), 0);
    put_file("file", "", 0);
    Checkpoint *on_file = io_checkpoint(scratch("file"));
    assert_int_equal(io_checkpoint_save(on_file), -1);
    assert_says(TENSOR_EIO, "file");
    assert_int_equal(io_checkpoint_resume(on_file), -1);
    assert_says(TENSOR_EIO, "file");
    io_checkpoint_free(on_file), io_checkpoint_free(c);
}

static void test_failing_memory(void **state)
{
    (void)state;
    Run r = run_begin(0);
    Checkpoint *c = run_checkpoint(&r, scratch_);
    steps(&r, 3);
    DONE(io_checkpoint_save(c));
    steps(&r, 3);
    TensorDict want = run_state(&r);
    for (int load = 0; load < 2; load++) {
        if (!load) DONE(io_checkpoint_save(c)), unlink(nth(2)); /* what is made once */
        int64_t live = tensor_live_count();
        for (int k = 1;; k++) {
            tensor_debug_fail_allocation(k, false);
            int status = load ? io_checkpoint_resume(c) : io_checkpoint_save(c);
            bool failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            if (!failed) {
                assert_int_equal(status, load);
                assert_int_equal(r.step, load ? 3 : 6);
                break;
            }
            assert_int_equal(status, -1);
            assert_says(TENSOR_ENOMEM, "");
            assert_int_equal(scratch_count("checkpoint-"), 1);
            if (load) assert_unchanged(&r, want, "memory that fails");
        }
        unlink(nth(2));
        assert_int_equal(tensor_live_count(), live - (load ? 2 : 0)); /* the batch at hand ends */
    }
    nn_dict_free(want);
    io_checkpoint_free(c), run_end(&r);
}

/* Saved and resumed while the net has the averages: neither takes the other's place. */
static void test_averages_in_the_net(void **state)
{
    (void)state;
    TensorScope scope = tensor_scope_open();
    Module *net = nn_linear(1, 1, .bias = false);
    Tensor *w = nn_get(net, "weight");
    TENSOR_NO_GRAD { tensor_fill_(w, 1); }
    AveragedModel *ema = optim_averaged_model(net, .ema_decay = 0.5);
    optim_averaged_update(ema);
    TENSOR_NO_GRAD { tensor_fill_(w, 5); }
    optim_averaged_update(ema);
    assert_int_equal(optim_averaged_swap(ema), 0);
    Checkpoint *run = io_checkpoint(scratch_, .module = net, .averaged = ema);
    assert_int_equal(io_checkpoint_save(run), 0);
    assert_true(optim_averaged_is_swapped(ema) && tensor_item(w) == 3);
    for (int swapped = 0; swapped < 2; swapped++) {
        if (optim_averaged_is_swapped(ema) != swapped) optim_averaged_swap(ema);
        TENSOR_NO_GRAD { tensor_fill_(w, 9); }
        assert_int_equal(io_checkpoint_resume(run), 1);
        assert_int_equal(optim_averaged_is_swapped(ema), swapped);
        assert_true(tensor_item(w) == (swapped ? 3 : 5));
        optim_averaged_swap(ema);
        assert_true(tensor_item(w) == (swapped ? 5 : 3));
    }
    io_checkpoint_free(run), optim_averaged_free(ema), nn_free(net);
    tensor_scope_close(scope);
}

#define CLEAN(f) cmocka_unit_test_setup_teardown(f, scratch_empty, sane_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_keeps_the_last),
        CLEAN(test_makes_folders),
        CLEAN(test_numbers),
        CLEAN(test_damaged),
        CLEAN(test_cut_short),
        CLEAN(test_foreign),
        CLEAN(test_skips_to_the_newest_whole),
        CLEAN(test_newer_version_is_not_skipped),
        CLEAN(test_a_part_that_fails),
        CLEAN(test_of_another_run),
        CLEAN(test_full_disk),
        CLEAN(test_averages_in_the_net),
        CLEAN(test_refusals),
        CLEAN(test_failing_memory),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, scratch_begin, scratch_end);
}
