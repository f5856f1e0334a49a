/* test_profile.c - the profiler: what it counts, its tables and its trace, and that nothing else changes. */
#include <ctype.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tapegrad.h>

#define OK assert_string_equal(tensor_error() ? tensor_error() : "", "")

static TensorProfile row[200];
static int rows;

static const TensorProfile *find(const char *name, bool backward)
{
    for (int i = 0; i < rows; i++)
        if (strcmp(row[i].name, name) == 0 && row[i].backward == backward) return &row[i];
    return NULL;
}

static void read_rows(void)
{
    rows = tensor_profile_rows(row, 200);
    assert_in_range(rows, 0, 200);
}

static int64_t calls(const char *name, bool backward)
{
    const TensorProfile *r = find(name, backward);
    return r ? r->calls : 0;
}

static char *read_file(FILE *file)
{
    static char text[1 << 20];
    rewind(file);
    const size_t n = fread(text, 1, sizeof text - 1, file);
    assert_true(n < sizeof text - 1);
    text[n] = 0;
    fclose(file);
    return text;
}

static char *printed(void)
{
    FILE *file = tmpfile();
    assert_int_equal(tensor_profile_print(file), 0);
    return read_file(file);
}

static Module *two_layers(void)
{
    Module *net = nn_sequential();
    nn_append(net, nn_linear(4, 8));
    nn_append(net, nn_tanh());
    nn_append(net, nn_linear(8, 2));
    return net;
}

static void step(Module *net)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_ones(SHAPE(3, 4), TENSOR_F32);
    tensor_backward(tensor_mean(tensor_square(nn_forward(net, x))));
    tensor_scope_close(scope);
}

/* ---- what is counted ------------------------------------------------------------------------- */

static void test_calls_in_both_directions(void **unused)
{
    (void)unused;
    Module *net = two_layers();
    step(net); /* not measured */
    tensor_profile_begin();
    assert_true(tensor_profiling());
    for (int i = 0; i < 5; i++) step(net);
    tensor_profile_end();
    assert_false(tensor_profiling());
    step(net);
    OK;
    read_rows();
    assert_int_equal(calls("linear", false), 10);
    assert_int_equal(calls("linear", true), 10);
    assert_int_equal(calls("tanh", false), 5);
    assert_int_equal(calls("tanh", true), 5);
    assert_int_equal(calls("mean", true), 5);
    assert_true(find("linear", false)->allocations >= 20); /* a result and an entry, at least */
    assert_true(find("linear", false)->bytes > 0);
    for (int i = 0; i < rows; i++) {
        assert_true(row[i].self_seconds >= 0 && row[i].self_seconds <= row[i].seconds);
        if (i) assert_true(row[i].self_seconds <= row[i - 1].self_seconds);
    }
    tensor_profile_begin(); /* forgets */
    tensor_profile_end();
    assert_int_equal(tensor_profile_rows(NULL, 0), 0);
    nn_free(net);
}

/* What an op is made of is its time, and not its own. */
static void test_ops_made_of_others(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_randn(SHAPE(300, 300), TENSOR_F32);
    tensor_profile_begin();
    tensor_matrix_power(x, 5);
    tensor_mul_scalar_(x, 2);
    tensor_profile_end();
    OK;
    read_rows();
    const TensorProfile *power = find("matrix_power", false), *product = find("matmul", false);
    if (!product) product = find("mm", false);
    assert_int_equal(power->calls, 1);
    assert_true(product && product->calls >= 2);
    assert_true(power->seconds >= product->seconds);
    assert_true(power->self_seconds <= power->seconds - product->seconds + 1e-9);
    assert_int_equal(calls("mul_scalar", false), 1);
    tensor_scope_close(scope);
}

static void *work(void *unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    TENSOR_PROFILE("worker") tensor_exp(tensor_ones(SHAPE(3), TENSOR_F32));
    tensor_scope_close(scope);
    return NULL;
}

static void test_modules_names_and_threads(void **unused)
{
    (void)unused;
    Module *net = two_layers();
    Optimizer *opt = optim_adamw(nn_parameters(net), 1e-3);
    pthread_t thread;
    tensor_profile_push("before"); /* off: nothing */
    tensor_profile_begin();
    tensor_profile_pop(); /* without a push: nothing */
    for (int i = 0; i < 3; i++) TENSOR_PROFILE("step")
        {
            TENSOR_PROFILE("data") tensor_release(tensor_retain(tensor_ones(SHAPE(2), TENSOR_F32)));
            step(net);
            assert_int_equal(optim_step(opt), 0);
            if (i == 2) break;
        }
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 200; i++) tensor_profile_push("deep");
    tensor_cos(tensor_ones(SHAPE(1), TENSOR_F32));
    for (int i = 0; i < 200; i++) tensor_profile_pop();
    tensor_profile_end();
    OK;
    const char *text = printed();
    static const char *const lines[] = { "linear ",
                                         "linear backward ",
                                         "\nstep  ",
                                         "\nstep.data ",
                                         "\nstep.Sequential ",
                                         "\nstep.Sequential.0 ",
                                         "\nstep.Sequential.2 ",
                                         "\nstep.AdamW ",
                                         "\nworker ",
                                         "\ndeep.deep.deep" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(text, lines[i])) fail_msg("no \"%s\" in\n%s", lines[i], text);
    double forward = 0, backward = 0;
    long long n = 0;
    assert_int_equal(sscanf(strstr(text, "\nstep.Sequential.0 "), "\nstep.Sequential.0 %lld %lf %lf", &n,
                            &forward, &backward),
                     3);
    assert_int_equal(n, 3);
    assert_true(forward > 0 && backward > 0);
    assert_null(strstr(text, "before"));
    optim_free(opt);
    nn_free(net);
}

/* ---- the trace ------------------------------------------------------------------------------- */

static const char *json_value(const char *at);

static const char *json_text(const char *at)
{
    assert_int_equal(*at, '"');
    for (at++; *at != '"'; at++) {
        assert_true((unsigned char)*at >= 0x20);
        if (*at != '\\') continue;
        assert_non_null(memchr("\"\\/bfnrtu", *++at, 9));
        for (int i = 0; *at == 'u' && i < 4; i++) assert_true(isxdigit((unsigned char)at[i + 1]));
    }
    return at + 1;
}

static const char *json_list(const char *at, char end, bool pairs)
{
    for (at++; *at != end;) {
        while (isspace((unsigned char)*at)) at++;
        if (pairs) {
            at = json_text(at);
            assert_int_equal(*at++, ':');
        }
        at = json_value(at);
        while (isspace((unsigned char)*at)) at++;
        if (*at == end) break;
        assert_int_equal(*at++, ',');
        while (isspace((unsigned char)*at)) at++;
        assert_int_not_equal(*at, end);
    }
    return at + 1;
}

static const char *json_digits(const char *at)
{
    assert_true(isdigit((unsigned char)*at));
    while (isdigit((unsigned char)*at)) at++;
    return at;
}

static const char *json_value(const char *at)
{
    if (*at == '{') return json_list(at, '}', true);
    if (*at == '[') return json_list(at, ']', false);
    if (*at == '"') return json_text(at);
    if (*at == '-') at++;
    assert_false(*at == '0' && isdigit((unsigned char)at[1]));
    at = json_digits(at);
    return *at == '.' ? json_digits(at + 1) : at;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++) n++;
    return n;
}

/* What Chrome's and Perfetto's readers ask for: the fields of the Trace Event Format, each once and of its
 * type, and events of a thread that lie within each other. */
typedef struct Event {
    long pid, tid;
    int64_t begin, end; /* ns */
} Event;

typedef struct Trace {
    long pid;
    int events, threads, deepest;
} Trace;

static int by_begin(const void *a, const void *b)
{
    const Event *x = a, *y = b;
    if (x->tid != y->tid) return x->tid < y->tid ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end == y->end ? 0 : x->end > y->end ? -1 : 1; /* the outer one first */
}

static int64_t nanoseconds(const char *text)
{
    long long micro;
    char digits[4];
    assert_int_equal(sscanf(text, "%lld.%3[0-9]", &micro, digits), 2);
    assert_true(micro >= 0 && strlen(digits) == 3);
    return micro * 1000 + atoi(digits);
}

static bool is_one_of(const char *value, const char *end, const char *const *wanted)
{
    while (*wanted && (strlen(*wanted) != (size_t)(end - value) || memcmp(*wanted, value, strlen(*wanted))))
        wanted++;
    return *wanted;
}

/* One event, an object; what follows it. */
static const char *read_event(const char *at, Event *e)
{
    static const char *const keys[] = { "\"ph\"",  "\"cat\"", "\"name\"", "\"args\"",
                                        "\"pid\"", "\"tid\"", "\"ts\"",   "\"dur\"" };
    static const char *const phases[] = { "\"X\"", NULL };
    static const char *const kinds[] = { "\"forward\"", "\"backward\"", "\"module\"", NULL };
    enum { PH, CAT, NAME, ARGS, PID, TID, TS, DUR, KEYS };
    const char *value[KEYS] = { NULL }, *end[KEYS];
    assert_int_equal(*at, '{');
    do {
        const char *key = ++at;
        int k = 0;
        at = json_text(key);
        while (k < KEYS && strncmp(keys[k], key, (size_t)(at - key)) != 0) k++;
        assert_true(k < KEYS);
        assert_null(value[k]); /* once */
        assert_int_equal(*at, ':');
        value[k] = at + 1;
        at = end[k] = json_value(value[k]);
    } while (*at == ',');
    assert_int_equal(*at, '}');
    for (int k = 0; k < KEYS; k++) assert_non_null(value[k]);
    assert_true(is_one_of(value[PH], end[PH], phases) && is_one_of(value[CAT], end[CAT], kinds));
    assert_true(*value[NAME] == '"' && end[NAME] > value[NAME] + 2 && *value[ARGS] == '{');
    assert_ptr_equal(json_digits(value[PID]), end[PID]);
    assert_ptr_equal(json_digits(value[TID]), end[TID]);
    e->pid = strtol(value[PID], NULL, 10);
    e->tid = strtol(value[TID], NULL, 10);
    e->begin = nanoseconds(value[TS]);
    e->end = e->begin + nanoseconds(value[DUR]);
    return at + 1;
}

static void check_nesting(Event *event, Trace *t)
{
    int64_t open[100];
    int depth = 0;
    qsort(event, (size_t)t->events, sizeof *event, by_begin);
    for (int i = 0; i < t->events; i++) {
        if (i == 0 || event[i].tid != event[i - 1].tid) depth = 0, t->threads++;
        while (depth && open[depth - 1] <= event[i].begin) depth--;
        assert_true(!depth || event[i].end <= open[depth - 1]);
        assert_true(depth < 100);
        open[depth++] = event[i].end;
        if (depth > t->deepest) t->deepest = depth;
        assert_int_equal(event[i].pid, event[0].pid);
    }
}

static Trace read_trace(const char *text)
{
    static Event event[4000];
    Trace t = { 0 };
    assert_string_equal(json_value(text), "\n");
    const char *at = strstr(text, "\"traceEvents\":[\n");
    assert_non_null(at);
    for (at = strchr(at, '\n'); *at != ']';) {
        assert_true(t.events < 4000);
        at = read_event(at + 1, &event[t.events++]);
        if (*at == ',') at++;
        assert_int_equal(*at, '\n');
        if (at[1] == ']') at++;
    }
    assert_string_equal(at, "]}\n");
    check_nesting(event, &t);
    t.pid = event[0].pid;
    return t;
}

static void test_the_trace_is_json(void **unused)
{
    (void)unused;
    char path[] = "build/trace-XXXXXX";
    const int fd = mkstemp(path);
    Module *net = two_layers();
    tensor_profile_begin();
    TENSOR_PROFILE("a \"quoted\\ name\n") step(net);
    tensor_profile_end();
    assert_int_equal(tensor_profile_save(path), 0);
    const char *text = read_file(fdopen(fd, "r"));
    const Trace trace = read_trace(text);
    assert_true(trace.threads == 1 && trace.pid == getpid());
    read_rows();
    int64_t all = 0;
    for (int i = 0; i < rows; i++) all += row[i].calls;
    assert_int_equal(trace.events, all + 5); /* modules, and the name */
    assert_int_equal(count(text, "\"cat\":\"backward\",\"name\":\"linear\""), 2);
    assert_int_equal(count(text, "\"cat\":\"module\",\"name\":\"Sequential\""), 1);
    assert_true(count(text, "Sequential.2\"}") >= 2); /* its product forward and backward */
    OK;
    unlink(path);
    nn_free(net);
}

static bool is_utf8(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        const int more = *c < 0x80                 ? 0
                         : *c >= 0xc2 && *c < 0xe0 ? 1
                         : *c >> 4 == 0xe          ? 2
                         : *c >> 3 == 0x1e         ? 3
                                                   : -1;
        if (more < 0) return false;
        for (int i = 1; i <= more; i++)
            if (c[i] >> 6 != 2 || (i == 1 && *c == 0xed && c[1] >= 0xa0)) return false;
        c += 1 + more;
    }
    return true;
}

static void test_the_trace_is_one_that_readers_take(void **unused)
{
    (void)unused;
    char path[] = "build/trace-XXXXXX", name[100];
    const int fd = mkstemp(path);
    Module *net = two_layers();
    pthread_t thread;
    tensor_profile_begin();
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    for (int length = 0; length < 60; length++) { /* cut in the middle of a letter, too */
        memset(name, 'x', 100);
        strcpy(name + length, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
        TENSOR_PROFILE(name) step(net);
    }
    TENSOR_PROFILE("bad \xff\xc3\x28\xed\xa0\x80\xc0\xaf end") step(net);
    assert_int_equal(pthread_join(thread, NULL), 0);
    tensor_profile_end();
    assert_int_equal(tensor_profile_save(path), 0);
    const char *text = read_file(fdopen(fd, "r"));
    assert_true(is_utf8(text));
    assert_non_null(strstr(text, "\"bad \\ufffd\\ufffd("));
    assert_non_null(strstr(text, " end\""));
    assert_non_null(strstr(text, "\"xx\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""));
    const Trace trace = read_trace(text);
    assert_true(trace.events > 61 * 10 && trace.pid == getpid());
    assert_int_equal(trace.threads, 2);
    assert_true(trace.deepest >= 4); /* the name, the net, a layer, an op */
    OK;
    unlink(path);
    nn_free(net);
}

static void test_bad_input(void **unused)
{
    (void)unused;
    assert_int_equal(tensor_profile_save("no/such/folder/trace.json"), -1);
    assert_int_equal(tensor_error_code(), TENSOR_EIO);
    tensor_error_clear();
    assert_int_equal(tensor_profile_save(NULL), -1);
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
    assert_int_equal(tensor_profile_print(NULL), -1);
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
    assert_int_equal(tensor_profile_rows(NULL, 3), -1);
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
    tensor_profile_push(NULL);
    tensor_profile_pop();
    assert_int_equal(tensor_profile_save("/dev/full"), -1); /* a full disk */
    assert_int_equal(tensor_error_code(), TENSOR_EIO);
    tensor_error_clear();
    tensor_profile_begin();
    tensor_profile_begin();
    tensor_profile_end();
    tensor_profile_end();
    assert_false(tensor_profiling());
}

/* ---- nothing else changes -------------------------------------------------------------------- */

static Tensor *gradient(Tensor *x)
{
    return tensor_gradients(tensor_sum(tensor_square(tensor_softmax(tensor_matmul(x, x), 1))), x);
}

/* Failing calls are measured as others; bits and errors are the same. */
static void test_values_and_failures(void **unused)
{
    (void)unused;
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_requires_grad_(tensor_randn(SHAPE(4, 4), TENSOR_F32), true), *want = gradient(x);
    const int64_t live = tensor_live_count();
    tensor_profile_begin();
    bool failed = true;
    for (int n = 1; failed; n++) {
        TensorScope inner = tensor_scope_open();
        tensor_debug_fail_allocation(n, false);
        Tensor *g = gradient(x);
        failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_int_equal(!g, tensor_error_code() == TENSOR_ENOMEM);
        tensor_error_clear();
        if (g) assert_true(tensor_equal(g, want));
        tensor_scope_close(inner);
        assert_int_equal(tensor_live_count(), live);
    }
    assert_null(tensor_matmul(x, tensor_ones(SHAPE(77), TENSOR_F32)));
    assert_int_equal(tensor_error_code(), TENSOR_ESHAPE);
    tensor_error_clear();
    tensor_profile_end();
    read_rows();
    assert_true(calls("matmul", false) > 3);
    tensor_scope_close(scope);
}

/* ---- the whole of a program ------------------------------------------------------------------ */

/* What the child does: the suite by itself, with an argument. */
static int work_of_child(void)
{
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < 3; i++) tensor_exp(tensor_ones(SHAPE(4), TENSOR_F32));
    const bool on = tensor_profiling();
    tensor_scope_close(scope);
    return on;
}

/* Runs the child in a folder, with that value in the environment: its exit status; *text: its stderr. */
static int run_child(const char *folder, const char *value, char **text)
{
    FILE *err = tmpfile();
    assert_non_null(err);
    const pid_t pid = fork();
    if (pid == 0) {
        if (chdir(folder) || dup2(fileno(err), STDERR_FILENO) < 0 || setenv("TAPEGRAD_PROFILE", value, 1))
            _exit(126);
        execl("/proc/self/exe", "test_profile", "--child", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    *text = read_file(err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The trace of that name holds the child's calls; it is removed. */
static void assert_trace(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const char *trace = read_file(file);
    assert_true(read_trace(trace).events > 0);
    assert_non_null(strstr(trace, "\"exp\""));
    assert_int_equal(unlink(path), 0);
}

static void test_of_a_whole_program(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/tapegrad-profile-XXXXXX", *text;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(run_child(folder, "1", &text), 1);
    assert_non_null(strstr(text, "exp"));
    assert_non_null(strstr(text, "calls"));
    assert_trace(folder, "tapegrad_trace.json");
    assert_int_equal(run_child(folder, "own.json", &text), 1);
    assert_non_null(strstr(text, "exp"));
    assert_trace(folder, "own.json");
    assert_int_equal(run_child(folder, "0", &text), 0);
    assert_string_equal(text, "");
    assert_int_equal(rmdir(folder), 0); /* which is empty */
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--child") == 0) return work_of_child();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_a_whole_program), cmocka_unit_test(test_calls_in_both_directions),
        cmocka_unit_test(test_ops_made_of_others), cmocka_unit_test(test_modules_names_and_threads),
        cmocka_unit_test(test_the_trace_is_json),  cmocka_unit_test(test_the_trace_is_one_that_readers_take),
        cmocka_unit_test(test_bad_input),          cmocka_unit_test(test_values_and_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
