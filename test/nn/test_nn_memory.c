/* test_nn_memory.c - the n-th malloc of modules, optimizers and files fails, for every n: all of it is
 * survived, nothing leaks.
 *
 * Modules live in malloc's memory, which glibc lets a program stand in for; under checkers that do so
 * themselves, and with other C libraries, this suite has nothing to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tapegrad.h>
#include <tapegrad/cmocka.h>
#include "checker.h"
#include "kinds.h"
#include "scratch.h"

#if defined(__GLIBC__) && !UNDER_CHECKER

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t n, size_t size),
    *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size), __libc_free(void *block);

static _Thread_local long fail_in; /* 1: the next request; 0: none */
static _Thread_local bool has_failed;
static _Thread_local long blocks; /* that this thread holds */

static bool must_fail(void)
{
    if (fail_in == 0 || --fail_in > 0) return false;
    return has_failed = true;
}

static void *counted(void *block)
{
    blocks += block != NULL;
    return block;
}

/* Seen from libc, too: strdup calls them. */
#pragma GCC visibility push(default)
void *malloc(size_t size) { return must_fail() ? NULL : counted(__libc_malloc(size)); }
void *calloc(size_t n, size_t size) { return must_fail() ? NULL : counted(__libc_calloc(n, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

void *realloc(void *old, size_t size)
{
    void *block = must_fail() ? NULL : __libc_realloc(old, size);
    blocks += block && !old;
    return block;
}

void free(void *block)
{
    blocks -= block != NULL;
    __libc_free(block);
}
#pragma GCC visibility pop

/* The first call that fails leaves an error, and one that leaves an error says that it failed. */
static bool sick; /* an earlier call left one */

static bool told(bool failed, const char *call)
{
    const bool error = tensor_error_code() != TENSOR_OK;
    if (!sick && failed != error) {
        fail_in = 0;
        FAILS("%s %s, %s", call, failed ? "failed" : "succeeded",
              error ? tensor_error() : "without an error");
    }
    sick = error;
    return !failed;
}
#define MADE(call) told((call) == NULL, #call)
#define WENT(call) told((call) < 0, #call)

typedef struct {
    Module base;
    Module *inner;
} Outer;

static Tensor *outer_forward(Module *self, Tensor *x) { return nn_forward(((Outer *)self)->inner, x); }

static Module *outer(void)
{
    Outer *o = nn_new(Outer, "Outer", outer_forward);
    o->inner = nn_child(o, "inner",
                        nn_sequential(nn_linear(3, 4), nn_batch_norm1d(4),
                                      nn_sequential(nn_relu(), nn_linear(4, 2, .bias = false))));
    nn_register_buffer(o, "extra", tensor_ones(SHAPE(1), TENSOR_F32));
    return nn_done(o);
}

static int everything(FILE *nowhere)
{
    sick = false;
    TensorScope scope = tensor_scope_open();
    Module *m;
    Optimizer *opt;
    MADE(m = outer());
    MADE(opt = optim_adam(nn_parameters(m), .lr = 0.1));
    WENT(optim_add_group(opt, TENSORS(tensor_ones(SHAPE(1), TENSOR_F32))));
    WENT(tensor_backward(tensor_sum(nn_forward(m, tensor_ones(SHAPE(2, 3), TENSOR_F32)))));
    WENT(optim_step(opt));
    TensorDict copy = nn_dict_clone(nn_state_dict(m));
    WENT(copy.count);
    WENT(nn_load_state_dict(m, copy, .names = NN_NAMES({ "inner.*.weight", "inner.*.weight" })));
    WENT(nn_named_parameters(m).count);
    WENT(nn_summary(m, SHAPE(2, 3), nowhere));
    WENT(nn_to(m, TENSOR_F64));
    nn_dict_free(copy);
    optim_free(opt), nn_free(m);
    tensor_scope_close(scope);
    return tensor_error() ? -1 : 0;
}

static void failing_malloc(void **state)
{
    (void)state;
    FILE *nowhere = fopen("/dev/null", "w");
    setvbuf(nowhere, NULL, _IONBF, 0);
    assert_int_equal(everything(nowhere), 0); /* the tensors' memory is cached from here on */
    int64_t before = tensor_live_count();
    long held = blocks;
    int failures = 0;
    for (long n = 1;; n++) {
        has_failed = false, fail_in = n;
        int status = everything(nowhere);
        fail_in = 0;
        if (status) {
            assert_true(has_failed);
            assert_status_error(status, TENSOR_ENOMEM);
            failures++;
        }
        assert_int_equal(tensor_live_count(), before);
        assert_int_equal(blocks, held);
        if (!has_failed) break;
    }
    assert_true(failures > 40);
    fclose(nowhere);
}

/* ---- every kind of module and optimizer ------------------------------------------------------ */

/* fn(ctx) with its n-th malloc failing, for every n. */
static void each_malloc_fails(const char *name, void (*fn)(const void *ctx), const void *ctx)
{
    sick = false;
    fn(ctx);
    if (tensor_error()) FAILS("%s: %s", name, tensor_error());
    const int64_t before = tensor_live_count();
    const long held = blocks;
    has_failed = true;
    for (long n = 1; has_failed; n++) {
        has_failed = false, sick = false, fail_in = n;
        fn(ctx);
        fail_in = 0;
        if (tensor_error() && !has_failed) FAILS("%s: %s", name, tensor_error());
        if (has_failed && tensor_error()) assert_status_error(-1, TENSOR_ENOMEM);
        if (tensor_live_count() != before || blocks != held)
            FAILS("%s leaks where malloc %ld fails", name, n);
    }
}

typedef struct Made {
    const NNKind *kind;
    char args[1024];
} Made;

static void make_module(const void *ctx)
{
    const Made *made = ctx;
    TensorScope scope = tensor_scope_open();
    Module *m;
    if (MADE(m = nn_make(made->kind, made->kind->args ? made->args : NULL)))
        WENT(nn_state_dict(m).count), WENT(nn_to(m, TENSOR_F64));
    nn_free(m);
    tensor_scope_close(scope);
}

static void every_module(void **state)
{
    (void)state;
    static KindRoom room;
    static Made made;
    int cases = 0;
    KindFile f = kind_open("test/oracle/kinds/nn.golden");
    const char *rest;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        char text[400], *options;
        if (strcmp(word, "module") != 0) continue;
        snprintf(text, sizeof text, "%s", rest);
        options = strchr(text, '|');
        assert_non_null(options);
        *options++ = 0;
        *strchr(options, '|') = 0;
        made.kind = nn_kind_find(text);
        assert_non_null(made.kind);
        if (made.kind->args)
            kind_options(made.kind->fields, made.kind->defaults, made.kind->args, options, made.args, &room);
        each_malloc_fails(text, make_module, &made);
        cases++;
    }
    kind_close(&f);
    assert_true(cases >= nn_kind_count() - 5); /* but containers */
}

static void run_optimizer(const void *ctx)
{
    const OptimKind *kind = ctx;
    _Alignas(16) char args[OPTIM_OPTIONS];
    TensorScope scope = tensor_scope_open();
    Tensor *p = tensor_ones(SHAPE(3, 1), TENSOR_F32), *q = tensor_ones(SHAPE(2, 1), TENSOR_F32);
    memcpy(args, kind->defaults, kind->args);
    *(TensorList *)(void *)args = TENSORS(p);
    Optimizer *opt;
    if (MADE(opt = optim_new(kind, args))) {
        if (!kind->step_closure) WENT(optim_add_group(opt, TENSORS(q)));
        WENT(tensor_set_grad(p, tensor_ones(SHAPE(3, 1), TENSOR_F32)));
        if (kind->step || kind->step_all) WENT(optim_step(opt));
        TensorDict saved = nn_dict_clone(optim_state_dict(opt));
        WENT(saved.count);
        WENT(optim_load_state_dict(opt, saved));
        nn_dict_free(saved);
    }
    optim_free(opt);
    tensor_scope_close(scope);
}

static void every_optimizer(void **state)
{
    (void)state;
    assert_true(optim_kind_count() >= 3);
    for (int i = 0; i < optim_kind_count(); i++)
        each_malloc_fails(optim_kind_at(i)->name, run_optimizer, optim_kind_at(i));
}

/* Schedules in each other, with lists of their own. */
static void run_schedules(const void *ctx)
{
    (void)ctx;
    TensorScope scope = tensor_scope_open();
    Tensor *p = tensor_ones(SHAPE(3), TENSOR_F32);
    Optimizer *opt;
    Scheduler *s;
    if (MADE(opt = optim_sgd(TENSORS(p), .momentum = 0.9))) {
        Scheduler *both[] = { optim_multi_step_lr(opt, DIMS(1, 3)),
                              optim_one_cycle_lr(opt, .max_lrs = PER_GROUP(.5), .total_steps = 5) };
        Scheduler *all[] = { optim_chained_scheduler(both, 2), optim_exponential_lr(opt, .9) };
        if (MADE(s = optim_sequential_lr(opt, all, 2, DIMS(2)))) {
            WENT(optim_scheduler_step(s));
            TensorDict saved = nn_dict_clone(optim_scheduler_state_dict(s));
            WENT(saved.count);
            WENT(optim_scheduler_load_state_dict(s, saved));
            nn_dict_free(saved);
        }
        optim_scheduler_free(s);
    }
    optim_free(opt);
    tensor_scope_close(scope);
}

static Module *small_net(void) { return nn_sequential(nn_linear(3, 4), nn_batch_norm1d(4), nn_linear(4, 2)); }

/* An average of parameters, and the scale of a loss. */
static void run_helpers(const void *ctx)
{
    (void)ctx;
    TensorScope scope = tensor_scope_open();
    Module *net;
    Optimizer *opt = NULL;
    AveragedModel *average;
    GradScaler *scaler;
    if (MADE(net = small_net()) && MADE(average = optim_averaged_model(net))) {
        WENT(optim_averaged_update(average));
        WENT(optim_averaged_swap(average));
        TensorDict saved = nn_dict_clone(optim_averaged_state_dict(average));
        WENT(saved.count);
        WENT(optim_averaged_load_state_dict(average, saved));
        nn_dict_free(saved);
        optim_averaged_free(average);
    }
    if (net && MADE(opt = optim_sgd(nn_parameters(net), 0.1)) && MADE(scaler = optim_grad_scaler())) {
        Tensor *loss = tensor_sum(nn_forward(net, tensor_ones(SHAPE(2, 3), TENSOR_F32)));
        WENT(tensor_backward(optim_scaler_scale(scaler, loss)));
        WENT(optim_scaler_step(scaler, opt));
        WENT(optim_scaler_update(scaler));
        WENT(optim_scaler_load_state_dict(scaler, optim_scaler_state_dict(scaler)));
        optim_scaler_free(scaler);
    }
    optim_free(opt), nn_free(net);
    tensor_scope_close(scope);
}

static void beside_optimizers(void **state)
{
    (void)state;
    each_malloc_fails("schedules", run_schedules, NULL);
    each_malloc_fails("averages and scales", run_helpers, NULL);
}

static void vector_and_back(const void *ctx)
{
    TensorScope scope = tensor_scope_open();
    Tensor *w = tensor_zeros(SHAPE(3, 2), TENSOR_F32);
    Tensor *vec = w ? nn_parameters_to_vector(TENSORS(w)) : NULL;
    if (!vec || nn_vector_to_parameters(vec, TENSORS(w))) assert_true(tensor_error_code() == TENSOR_ENOMEM);
    tensor_scope_close(scope);
    (void)ctx;
}

static void orthogonal(const void *ctx)
{
    TensorScope scope = tensor_scope_open();
    Tensor *w = tensor_zeros(SHAPE(3, 2), TENSOR_F32);
    if (!nn_init_orthogonal_(w)) assert_true(tensor_error_code() == TENSOR_ENOMEM);
    tensor_scope_close(scope);
    (void)ctx;
}

static int pass_by(Module *m, NNCall *call, void *ctx) { return (void)m, (void)call, (void)ctx, 0; }

/* Names, hooks, parametrizations, sizes that the first input tells, copies. */
static void whole_net(const void *ctx)
{
    (void)ctx;
    TensorScope scope = tensor_scope_open();
    Module *net, *copy;
    net = nn_sequential(nn_weight_norm(nn_lazy_linear(4)), nn_lazy_batch_norm1d());
    nn_free(net);
    tensor_error_clear(); /* a parameter that is not there yet */
    sick = false;
    if (MADE(net = nn_sequential(nn_lazy_linear(4), nn_weight_norm(nn_linear(4, 3)),
                                 nn_spectral_norm(nn_linear(3, 3)),
                                 nn_max_pool1d(1, .return_indices = true)))) {
        WENT(nn_register_forward_hook(net, pass_by, NULL));
        WENT(nn_register_full_backward_hook(net->children[1].module, pass_by, NULL));
        Tensor *y;
        if (MADE(y = nn_forward(net, tensor_ones(SHAPE(2, 3), TENSOR_F32))))
            WENT(tensor_backward(tensor_sum(y)));
        MADE(copy = nn_clone(net));
        nn_free(copy);
        WENT(nn_register_parametrization(net->children[1].module, "bias", nn_softplus()));
        if (nn_is_parametrized(net->children[1].module, "weight"))
            WENT(nn_remove_parametrizations(net->children[1].module, "weight"));
    }
    nn_free(net);
    tensor_scope_close(scope);
}

static void nets(void **state)
{
    (void)state;
    each_malloc_fails("a net", whole_net, NULL);
}

/* ---- training -------------------------------------------------------------------------------- */

static void empty_folder(void)
{
    const long left = fail_in;
    fail_in = 0;
    DIR *d = opendir(scratch_);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') unlink(scratch(e->d_name));
    if (d) closedir(d);
    fail_in = left;
}

/* The memory of fopen and of libpng: an error of the file. */
static void of_other_libraries(void)
{
    if (!has_failed || (tensor_error_code() != TENSOR_EIO && tensor_error_code() != TENSOR_EFORMAT)) return;
    tensor_error_clear();
    tensor_fail(TENSOR_ENOMEM, "another library", "out of memory");
}

/* Trains with all that writes files, and goes on with a second epoch. */
static void train(const void *ctx)
{
    (void)ctx;
    empty_folder();
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_ones(SHAPE(6, 3), TENSOR_F32), *y = tensor_zeros(SHAPE(6), TENSOR_I64);
    DataLoader *loader = data_loader(data_tensors(x, y), .batch_size = 2, .prefetch = 0);
    for (int64_t epochs = 1; epochs <= 2; epochs++) {
        Module *net = small_net();
        Optimizer *opt = optim_adam(nn_parameters(net));
        Metric *f1 = nn_metric_f1(2), *accuracy = nn_metric_accuracy();
        nn_fit(net, loader, nn_cross_entropy_loss(), opt, .epochs = epochs, .validate = loader,
               .metrics = NN_METRICS(f1, accuracy), .restore_best = true, .checkpoint = scratch_, .keep = 1,
               .csv = scratch("log.csv"), .log_dir = scratch_, .verbose = 0);
        nn_predict(net, loader);
        nn_metric_tensor(f1);
        nn_metric_free(f1), nn_metric_free(accuracy), optim_free(opt), nn_free(net);
    }
    io_progress_free(io_progress(3));
    data_loader_free(loader);
    tensor_scope_close(scope);
    of_other_libraries();
}

static void training(void **state)
{
    (void)state;
    each_malloc_fails("nn_fit", train, NULL);
    empty_folder();
}

/* ---- files ----------------------------------------------------------------------------------- */

static void save_and_load(const void *ctx)
{
    (void)ctx;
    empty_folder();
    TensorScope scope = tensor_scope_open();
    TensorDict dict = { 0 };
    IoMetadata metadata = { 0 }, found = { 0 };
    WENT(nn_dict_set(&dict, "a", tensor_ones(SHAPE(2, 3), TENSOR_F32)));
    WENT(nn_dict_set(&dict, "b", tensor_transpose(tensor_ones(SHAPE(2, 3), TENSOR_I64), 0, 1)));
    WENT(io_metadata_set(&metadata, "format", "pt"));
    WENT(io_metadata_set(&metadata, "format", "another"));
    WENT(io_save_safetensors(scratch("a.safetensors"), dict, .metadata = metadata, .checksum = true));
    TensorDict back = io_load_safetensors(scratch("a.safetensors"), .metadata = &found);
    WENT(back.count);
    if (!tensor_error()) assert_int_equal(back.count, 2);
    nn_dict_free(dict), nn_dict_free(back);
    io_metadata_free(metadata), io_metadata_free(found);
    tensor_scope_close(scope);
    of_other_libraries();
}

static void pictures(const void *ctx)
{
    (void)ctx;
    empty_folder();
    TensorScope scope = tensor_scope_open();
    const double y[] = { 1, 3, 2 };
    WENT(io_save_image(tensor_ones(SHAPE(3, 1, 4, 5), TENSOR_F32), scratch("a.png"), .normalize = true));
    MADE(io_load_png(scratch("a.png")));
    WENT(
        io_save_curves(scratch("b.png"), &(IoCurve){ y, 3, .name = "loss" }, 1, .width = 160, .height = 120));
    tensor_scope_close(scope);
    of_other_libraries();
}

static void logs(const void *ctx)
{
    (void)ctx;
    empty_folder();
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_ones(SHAPE(1, 4, 5), TENSOR_F32);
    CsvLog *log;
    SummaryWriter *writer;
    for (int resume = 0; resume < 2; resume++) {
        if (MADE(log = io_csv_log(scratch("log.csv"), "step,loss", .resume = resume, .before = 1)))
            WENT(io_csv_log_row(log, 0, 0.5)), WENT(io_csv_log_row(log, 1, 0.25));
        io_csv_log_free(log);
    }
    if (MADE(writer = io_summary_writer(scratch_))) {
        WENT(io_summary_add_scalar(writer, "loss", 1, 0));
        WENT(io_summary_add_histogram(writer, "weights", x, 0));
        WENT(io_summary_add_image(writer, "sample", x, 0));
        WENT(io_summary_add_text(writer, "note", "text", 0));
        WENT(io_summary_flush(writer));
    }
    io_summary_free(writer);
    tensor_scope_close(scope);
    of_other_libraries();
}

static void files(void **state)
{
    (void)state;
    each_malloc_fails("safetensors", save_and_load, NULL);
    each_malloc_fails("pictures", pictures, NULL);
    each_malloc_fails("logs", logs, NULL);
    empty_folder();
}

static void initial_values(void **state)
{
    (void)state;
    each_malloc_fails("nn_init_orthogonal_", orthogonal, NULL);
    each_malloc_fails("nn_vector_to_parameters", vector_and_back, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_malloc),  cmocka_unit_test(every_module),
        cmocka_unit_test(every_optimizer), cmocka_unit_test(beside_optimizers),
        cmocka_unit_test(initial_values),  cmocka_unit_test(nets),
        cmocka_unit_test(training),        cmocka_unit_test(files),
    };
    for (int i = 0; i < 64; i++) nn_free(nn_relu()); /* so many stay: from here on as many go as come */
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}

#else

int main(void) { return 0; }

#endif
