/* test_checkpoint_parts.c - a file in which one entry, one part or one number is wrong: the error names the
 * file, the part and the entry, and nothing of the run has changed. */
#include "run.h"
#include "scratch.h"

/* ---- help ------------------------------------------------------------------------------------ */

typedef struct File {
    Run run;
    Checkpoint *c;
    TensorDict file, now; /* of step 3; what the run is at step 10 */
    IoMetadata texts;
} File;

static File file_begin(void)
{
    static File s;
    IoMetadata all = { 0 };
    s = (File){ .run = run_begin(2) };
    s.c = run_checkpoint(&s.run, scratch_);
    while (s.run.step < 3) run_step(&s.run);
    DONE(io_checkpoint_save(s.c));
    s.file = io_load_safetensors(io_checkpoint_path(s.c), .metadata = &all);
    for (int i = 0; i < all.count; i++)
        if (strcmp(all.item[i].name, "crc32c") != 0)
            DONE(io_metadata_set(&s.texts, all.item[i].name, all.item[i].text));
    while (s.run.step < 10) run_step(&s.run);
    DONE(0);
    s.now = run_state(&s.run);
    io_metadata_free(all);
    return s;
}

static void file_end(File *s)
{
    nn_dict_free(s->file), nn_dict_free(s->now), io_metadata_free(s->texts);
    io_checkpoint_free(s->c), run_end(&s->run);
}

typedef enum Change { DROPPED, RESHAPED, BESIDE, CHANGES } Change;

/* The file with a change of entry `at`. */
static void write_changed(const File *s, int at, Change how)
{
    TensorDict dict = { 0 };
    char name[160];
    for (int i = 0; i < s->file.count; i++) {
        Tensor *t = s->file.item[i].tensor;
        if (i == at && how == RESHAPED) t = tensor_zeros(SHAPE(3, 2, 1), tensor_dtype(t));
        if (i != at || how != DROPPED) nn_dict_set(&dict, s->file.item[i].name, t);
        snprintf(name, sizeof name, "%s_x", s->file.item[i].name);
        if (i == at && how == BESIDE) nn_dict_set(&dict, name, t);
    }
    DONE(io_save_safetensors(scratch("bad"), dict, .metadata = s->texts, .checksum = true));
    nn_dict_free(dict);
}

static void assert_refused(File *s, const char *part, const char *entry, const char *after)
{
    char words[200];
    TensorStatus code = tensor_error_code();
    snprintf(words, sizeof words, "io_checkpoint_load: %s", scratch("bad"));
    assert_non_null(tensor_error());
    if (strncmp(tensor_error(), words, strlen(words)) != 0) FAILS("%s: %s", after, tensor_error());
    snprintf(words, sizeof words, strcmp(part, "scalars") ? "bad, part \"%s\": " : "bad, %s: ", part);
    if (!strstr(tensor_error(), words) || !strstr(tensor_error(), entry))
        FAILS("%s %s: %s", after, entry, tensor_error());
    assert_true(code == TENSOR_EVALUE || code == TENSOR_ESHAPE);
    tensor_error_clear();
    assert_unchanged(&s->run, s->now, after);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* What states of before it was kept lack. */
static bool may_be_missing(const char *word)
{
    static const char *const words[] = { "_step_count", "_last_lr", "initial_lr", "decoupled_weight_decay",
                                         "num_batches_tracked" };
    bool may = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) may |= strcmp(word, words[i]) == 0;
    return may;
}

static void test_each_entry(void **state)
{
    static const char *const words[CHANGES] = { "a missing", "a reshaped", "an unexpected" };
    (void)state;
    File s = file_begin();
    for (int i = 0; i < s.file.count; i++)
        for (Change how = DROPPED; how < CHANGES; how++) {
            char part[32], entry[160];
            const char *name = s.file.item[i].name, *dot = strchr(name, '.');
            if (how == DROPPED && may_be_missing(strrchr(name, '.') + 1)) continue;
            snprintf(part, sizeof part, "%.*s", (int)(dot - name), name);
            snprintf(entry, sizeof entry, "%s%s", dot + 1, how == BESIDE ? "_x" : "");
            write_changed(&s, i, how);
            assert_int_equal(io_checkpoint_load(s.c, scratch("bad")), -1);
            assert_refused(&s, part, entry, words[how]);
        }
    file_end(&s);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void write_without(const File *s, const char *part, const char *names)
{
    TensorDict dict = { 0 };
    IoMetadata texts = { 0 };
    const size_t n = strlen(part);
    for (int i = 0; i < s->file.count; i++) {
        const char *name = s->file.item[i].name;
        if (strncmp(name, part, n) != 0 || name[n] != '.') nn_dict_set(&dict, name, s->file.item[i].tensor);
    }
    for (int i = 0; i < s->texts.count; i++)
        DONE(io_metadata_set(&texts, s->texts.item[i].name, s->texts.item[i].text));
    DONE(io_metadata_set(&texts, "parts", names));
    DONE(io_save_safetensors(scratch("bad"), dict, .metadata = texts, .checksum = true));
    io_metadata_free(texts), nn_dict_free(dict);
}

static void test_each_part(void **state)
{
    static const char *const parts[] = { "model",  "optimizer", "scheduler", "scaler", "averaged",
                                         "loader", "rng",       "accuracy",  "own" };
    (void)state;
    File s = file_begin();
    assert_string_equal(io_metadata_get(s.texts, "parts"),
                        "model.optimizer.scheduler.scaler.averaged.loader.rng.accuracy.own");
    for (int i = 0; i < 9; i++) {
        char words[80], names[120] = "", *at = names;
        for (int k = 0; k < 9; k++)
            if (k != i) at += sprintf(at, "%s%s", at > names ? "." : "", parts[k]);
        write_without(&s, parts[i], names);
        assert_int_equal(io_checkpoint_load(s.c, scratch("bad")), -1);
        snprintf(words, sizeof words, "bad has other parts than this run; missing: \"%s\"", parts[i]);
        assert_says(TENSOR_EVALUE, words);
        assert_unchanged(&s.run, s.now, words);
    }
    write_without(&s, "rng", "model.optimizer.scheduler.scaler.averaged.loader.accuracy.own.other");
    assert_int_equal(io_checkpoint_load(s.c, scratch("bad")), -1);
    assert_says(TENSOR_EVALUE, "; missing: \"rng\"; unexpected: \"other\"");
    file_end(&s);
}

static TensorDict save_nothing(void *ctx) { return (void)ctx, (TensorDict){ 0 }; }

static int load_nothing(void *ctx, TensorDict dict)
{
    ++*(int *)ctx;
    return dict.count;
}

/* A part without entries is there, too. */
static void test_an_empty_part(void **state)
{
    (void)state;
    int loads = 0;
    Checkpoint *without = io_checkpoint(scratch_), *with = io_checkpoint(scratch_, .keep = 9);
    DONE(io_checkpoint_part(with, "nothing", save_nothing, load_nothing, &loads));
    DONE(io_checkpoint_save(without));
    assert_int_equal(io_checkpoint_resume(with), -1);
    assert_says(TENSOR_EVALUE, "00000001.safetensors has other parts than this run; missing: \"nothing\"");
    DONE(io_checkpoint_save(with));
    assert_int_equal(io_checkpoint_resume(with), 1);
    assert_int_equal(loads, 1);
    assert_int_equal(io_checkpoint_resume(without), -1);
    assert_says(TENSOR_EVALUE, "00000002.safetensors has other parts than this run; unexpected: \"nothing\"");
    io_checkpoint_free(with), io_checkpoint_free(without);
}

typedef struct Once {
    TensorDict dict;
    int loads;
} Once;

static TensorDict save_once(void *ctx) { return ((Once *)ctx)->dict; }

static int load_once(void *ctx, TensorDict dict)
{
    (void)dict;
    return ((Once *)ctx)->loads-- > 0 ? 0 : tensor_fail(TENSOR_EUSER, "load_once", "no more");
}

/* The part before the one that fails does not take its state back: the error says so. */
static void test_what_cannot_be_put_back(void **state)
{
    (void)state;
    Once first = { .loads = 1 }, second = { .loads = 0 };
    Checkpoint *c = io_checkpoint(scratch_);
    DONE(nn_dict_set(&first.dict, "a", VEC(1)) | nn_dict_set(&second.dict, "a", VEC(1)));
    DONE(io_checkpoint_part(c, "first", save_once, load_once, &first));
    DONE(io_checkpoint_part(c, "second", save_once, load_once, &second));
    DONE(io_checkpoint_save(c));
    assert_int_equal(io_checkpoint_resume(c), -1);
    assert_says(TENSOR_EUSER,
                "part \"second\": load_once: no more; and it failed to put back what there was of "
                "\"first\"");
    nn_dict_free(first.dict), nn_dict_free(second.dict);
    io_checkpoint_free(c);
}

#define CLEAN(f) cmocka_unit_test_setup_teardown(f, scratch_empty, sane_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_each_entry),
        CLEAN(test_each_part),
        CLEAN(test_an_empty_part),
        CLEAN(test_what_cannot_be_put_back),
    };
    return cmocka_run_group_tests_name("checkpoint_parts", tests, scratch_begin, scratch_end);
}
