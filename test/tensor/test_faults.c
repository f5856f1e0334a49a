/* test_faults.c - the n-th request for memory fails, for every n: a training step then fails with ENOMEM,
 * changes nothing by halves, leaves nothing behind, and succeeds when it is run again. */
#include <pthread.h>
#include <tapegrad/debug.h>
#include "checker.h"
#include "sane.h"

enum { LEAVES = 4, BYTES = 4096, TRIES = 20000 };

typedef struct Step {
    const char *name;
    int leaves;
    void (*begin)(Tensor **leaf);
    int (*forward_backward)(Tensor **leaf, double *loss);
} Step;

/* ---- steps ----------------------------------------------------------------------------------- */

static void fill(Tensor *x, double factor)
{
    for (int64_t i = 0; i < x->numel; i++) ((float *)x->data)[i] = (float)(sin(3.7 * (double)i + 1) * factor);
}

static Tensor *parameter(TensorShape shape)
{
    Tensor *x = tensor_requires_grad_(tensor_empty(shape, TENSOR_F32), true);
    fill(x, 0.5);
    return tensor_retain(x);
}

static Tensor *data(TensorShape shape)
{
    Tensor *x = tensor_empty(shape, TENSOR_F32);
    if (x) fill(x, 1);
    return x;
}

static void mlp_begin(Tensor **leaf)
{
    leaf[0] = parameter(SHAPE(8, 5)), leaf[1] = parameter(SHAPE(8));
    leaf[2] = parameter(SHAPE(3, 8)), leaf[3] = parameter(SHAPE(3));
}

/* Where there was no error before, a status tells of one, and of nothing else. */
static int told(int status)
{
    if ((status == 0) != !tensor_error())
        FAILS("status %d, and the error is %d", status, tensor_error_code());
    return status;
}
#define TOLD(call) (tensor_error() ? (call) : told(call))

static int mlp(Tensor **leaf, double *loss)
{
    Tensor *x = data(SHAPE(6, 5)),
           *target = tensor_from_data((int64_t[]){ 0, 2, 1, 1, 0, 2 }, SHAPE(6), TENSOR_I64);
    Tensor *h = tensor_relu(tensor_linear(x, leaf[0], leaf[1]));
    Tensor *l = tensor_cross_entropy(tensor_linear(h, leaf[2], leaf[3]), target);
    if (TOLD(tensor_backward(l))) return -1;
    *loss = tensor_item(l);
    return 0;
}

static void views_begin(Tensor **leaf) { leaf[0] = parameter(SHAPE(4, 3)), leaf[1] = parameter(SHAPE(3)); }

static int views(Tensor **leaf, double *loss)
{
    Tensor *y = tensor_mul_scalar(leaf[0], 2), *row = tensor_select(y, 0, 1),
           *column = tensor_select(y, 1, 2);
    tensor_copy_(row, leaf[1]);
    tensor_mul_(tensor_slice(y, 0, 0, 4, 2), leaf[1]);
    tensor_sigmoid_(column);
    tensor_add_(y, tensor_flip(y, DIMS(0)));
    Tensor *l = tensor_add(tensor_sum(tensor_square(y)), tensor_sum(tensor_exp(row)));
    if (tensor_error() || TOLD(tensor_backward(l))) return -1;
    *loss = tensor_item(l);
    return 0;
}

static void penalty_begin(Tensor **leaf)
{
    leaf[0] = parameter(SHAPE(5, 4)), leaf[1] = parameter(SHAPE(4, 1));
}

static int penalty(Tensor **leaf, double *loss)
{
    Tensor *x = tensor_requires_grad_(data(SHAPE(3, 5)), true);
    Tensor *y = tensor_sum(tensor_matmul(tensor_tanh(tensor_matmul(x, leaf[0])), leaf[1]));
    Tensor *g = tensor_gradients(y, x, .create_graph = true);
    Tensor *l =
        tensor_add(y, tensor_mean(tensor_square(tensor_sub_scalar(tensor_sum(tensor_square(g), 1), 1))));
    if (TOLD(tensor_backward(l))) return -1;
    *loss = tensor_item(l);
    return 0;
}

static void recurrent_begin(Tensor **leaf)
{
    leaf[0] = parameter(SHAPE(8, 3)), leaf[1] = parameter(SHAPE(8, 2));
    leaf[2] = parameter(SHAPE(8)), leaf[3] = parameter(SHAPE(8));
}

static int recurrent(Tensor **leaf, double *loss)
{
    Tensor *x = tensor_requires_grad_(data(SHAPE(3, 2, 3)), true), *c_n = NULL;
    Tensor *y = tensor_lstm(x, NULL, NULL, TENSOR_LIST(leaf, 4), .c_n = &c_n);
    Tensor *g = tensor_gradients(tensor_sum(y), x, .create_graph = true);
    Tensor *l = tensor_add(tensor_sum(tensor_square(g)), tensor_sum(c_n));
    if (TOLD(tensor_backward(l))) return -1;
    *loss = tensor_item(l);
    return 0;
}

static Tensor *halve(Tensor *g, void *ctx)
{
    (void)ctx;
    return tensor_mul_scalar(g, 0.5);
}

static int hooked(Tensor **leaf, double *loss)
{
    Tensor *h = tensor_exp(leaf[0]), *y = tensor_matmul(h, tensor_reshape(leaf[1], SHAPE(3, 1)));
    if (!y || tensor_retain_grad(h) || tensor_register_hook(h, halve, NULL) < 0) return -1;
    int id = tensor_register_hook(leaf[1], halve, NULL);
    int status = id < 0 ? -1 : TOLD(tensor_backward(y, data(SHAPE(4, 1))));
    Tensor *kept = tensor_grad(h);
    *loss = status ? 0 : tensor_item(tensor_sum(kept));
    if (id >= 0) tensor_remove_hook(leaf[1], id);
    return status;
}

static void attention_begin(Tensor **leaf)
{
    leaf[0] = parameter(SHAPE(12, 4)), leaf[1] = parameter(SHAPE(4, 4)), leaf[2] = parameter(SHAPE(4)),
    leaf[3] = parameter(SHAPE(3, 3));
}

static int attention(Tensor **leaf, double *loss)
{
    Tensor *x = tensor_rms_norm(data(SHAPE(3, 2, 4)), SHAPE(4), leaf[2]), *weights;
    Tensor *y = tensor_multi_head_attention_forward(x, x, x, 4, 2, leaf[0], .out_proj_weight = leaf[1],
                                                    .attn_mask = leaf[3]);
    Tensor *z = tensor_multi_head_attention_forward(x, x, x, 4, 1, leaf[0], .out_proj_weight = leaf[1],
                                                    .is_causal = true, .weights = &weights);
    Tensor *l =
        tensor_sum(tensor_square(tensor_group_norm(tensor_add(y, tensor_instance_norm(z)), 1, .eps = 1)));
    if (TOLD(tensor_backward(l))) return -1;
    *loss = tensor_item(l);
    return 0;
}

static const Step steps[] = {
    { "mlp", 4, mlp_begin, mlp },
    { "views", 2, views_begin, views },
    { "penalty", 2, penalty_begin, penalty },
    { "hooks", 2, views_begin, hooked },
    { "attention", 4, attention_begin, attention },
    { "recurrent", 4, recurrent_begin, recurrent },
};

/* ---- one step, and the bytes that it works on ------------------------------------------------ */

typedef struct Bytes {
    bool has_grad[LEAVES];
    float value[LEAVES][64], grad[LEAVES][64];
} Bytes;

static void read_bytes(const Step *s, Tensor **leaf, Bytes *b)
{
    memset(b, 0, sizeof *b);
    for (int i = 0; i < s->leaves; i++) {
        size_t bytes = (size_t)leaf[i]->numel * sizeof(float);
        memcpy(b->value[i], leaf[i]->data, bytes);
        b->has_grad[i] = leaf[i]->grad != NULL;
        if (leaf[i]->grad) memcpy(b->grad[i], leaf[i]->grad->data, bytes);
    }
}

static void write_bytes(const Step *s, Tensor **leaf, const Bytes *b)
{
    for (int i = 0; i < s->leaves; i++) {
        size_t bytes = (size_t)leaf[i]->numel * sizeof(float);
        memcpy(leaf[i]->data, b->value[i], bytes);
        if (!b->has_grad[i]) DONE(tensor_set_grad(leaf[i], NULL));
        else memcpy(leaf[i]->grad->data, b->grad[i], bytes);
    }
}

typedef struct Run {
    const Step *step;
    Tensor **leaf;
    int64_t n;                     /* which request fails; 0: none */
    bool all_after, failed, swept; /* swept: backward succeeded */
    int status;
    double loss;
    TensorStatus code;
    char text[512];
    int64_t tape;
    bool grad_mode;
} Run;

static void *run(void *ctx)
{
    Run *r = ctx;
    tensor_debug_fail_allocation(r->n, r->all_after);
    TensorScope scope = tensor_scope_open();
    r->status = r->step->forward_backward(r->leaf, &r->loss);
    r->swept = r->status == 0;
    TENSOR_NO_GRAD {
        for (int i = 0; i < r->step->leaves && r->swept && !tensor_error(); i++)
            tensor_add_scaled_(r->leaf[i], tensor_grad(r->leaf[i]), -0.1);
    }
    tensor_scope_close(scope);
    r->failed = r->n && tensor_debug_allocation_failed();
    tensor_debug_fail_allocation(0, false);
    r->code = tensor_error_code();
    const char *memory = "out of memory"; /* the text would look up the line of each */
    if (r->code) snprintf(r->text, sizeof r->text, "%s", r->code == TENSOR_ENOMEM ? memory : tensor_error());
    tensor_error_clear();
    r->tape =
        scope_failed(scope) ? 0 : tensor_tape_length(); /* without a scope all stays until the thread ends */
    r->grad_mode = tensor_grad_enabled();
    return NULL;
}

static void run_somewhere(Run *r, bool fresh_thread)
{
    pthread_t thread;
    if (!fresh_thread) {
        TensorScope scope = tensor_scope_open();
        run(r);
        tensor_scope_close(scope);
        return;
    }
    assert_int_equal(pthread_create(&thread, NULL, run, r), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- every n --------------------------------------------------------------------------------- */

static void check_halves(const Run *r, const Bytes *before, const Bytes *after, const Bytes *now)
{
    for (int i = 0; i < r->step->leaves; i++) {
        const Bytes *grads = r->swept ? after : before; /* all gradients arrive or none */
        if (now->has_grad[i] != grads->has_grad[i] ||
            memcmp(now->grad[i], grads->grad[i], sizeof now->grad[i]))
            FAILS("%s, request %d: gradient %d changed by halves (%s)", r->step->name, (int)r->n, i, r->text);
        bool old = memcmp(now->value[i], before->value[i], sizeof now->value[i]) == 0;
        bool new = r->swept &&memcmp(now->value[i], after->value[i], sizeof now->value[i]) == 0;
        if (!old && !new)
            FAILS("%s, request %d: parameter %d changed by halves (%s)", r->step->name, (int)r->n, i,
                  r->text);
    }
}

static void check_step(const Step *s, bool all_after, bool fresh_thread, bool with_grads)
{
    Tensor *leaf[LEAVES];
    Bytes before, after, now;
    TensorScope scope = tensor_scope_open();
    s->begin(leaf);
    Run whole = { .step = s, .leaf = leaf }, r;
    if (with_grads) {
        run_somewhere(&whole, fresh_thread);
        assert_int_equal(whole.status, 0);
    }
    read_bytes(s, leaf, &before);
    run_somewhere(&whole, fresh_thread);
    assert_string_equal(whole.text, "");
    read_bytes(s, leaf, &after);
    int64_t n = 1;
    for (; n < TRIES; n++) {
        write_bytes(s, leaf, &before);
        int64_t live = tensor_live_count(), in_use = tensor_memory().in_use;
        r = (Run){ .step = s, .leaf = leaf, .n = n, .all_after = all_after };
        run_somewhere(&r, fresh_thread);
        if (!r.failed) break;
        read_bytes(s, leaf, &now);
        if (r.code != TENSOR_ENOMEM) FAILS("%s, request %d: code %d, %s", s->name, (int)n, r.code, r.text);
        check_halves(&r, &before, &after, &now);
        int64_t grads = 0;
        for (int i = 0; i < s->leaves; i++) grads += now.has_grad[i] && !before.has_grad[i];
        if (tensor_live_count() != live + grads)
            FAILS("%s, request %d: %d tensors left (%s)", s->name, (int)n,
                  (int)(tensor_live_count() - live - grads), r.text);
        if (r.tape)
            FAILS("%s, request %d: %d entries left on the tape (%s)", s->name, (int)n, (int)r.tape, r.text);
        assert_true(r.grad_mode);
        write_bytes(s, leaf, &before);
        if (fresh_thread && tensor_memory().in_use != in_use)
            FAILS("%s, request %d: %d bytes left (%s)", s->name, (int)n,
                  (int)(tensor_memory().in_use - in_use), r.text);
        Run again = { .step = s, .leaf = leaf };
        run_somewhere(&again, fresh_thread);
        read_bytes(s, leaf, &now);
        if (again.status || *again.text || again.loss != whole.loss || memcmp(&now, &after, sizeof now))
            FAILS("%s, request %d: the step after it is another one (%s)", s->name, (int)n, again.text);
    }
    assert_in_range(n, 10, TRIES - 1);
    assert_int_equal(r.status, 0);
    assert_string_equal(r.text, "");
    for (int i = 0; i < s->leaves; i++) tensor_release(leaf[i]);
    tensor_scope_close(scope);
}

/* Under AddressSanitizer four ways, which have each pair of two settings. */
static void each_way(const Step *s)
{
    const int ways = UNDER_ASAN ? 1 << 0 | 1 << 3 | 1 << 5 | 1 << 6 : 0xff;
    for (int way = 0; way < 8; way++)
        if (ways >> way & 1) check_step(s, way & 1, way & 2, way & 4);
}

static void test_mlp_step(void **state)
{
    (void)state;
    each_way(&steps[0]);
}
static void test_views_in_place(void **state)
{
    (void)state;
    each_way(&steps[1]);
}
static void test_create_graph_step(void **state)
{
    (void)state;
    each_way(&steps[2]);
}
static void test_hooks_and_retained_gradients(void **state)
{
    (void)state;
    each_way(&steps[3]);
}
static void test_recurrent_step(void **state)
{
    (void)state;
    each_way(&steps[5]);
}
static void test_attention_and_norms(void **state)
{
    (void)state;
    each_way(&steps[4]);
}

/* ---- the switch itself, and a limit ---------------------------------------------------------- */

static void test_switch(void **state)
{
    (void)state;
    tensor_debug_fail_allocation(1, false);
    assert_false(tensor_debug_allocation_failed());
    assert_null(VEC(1));
    assert_true(tensor_debug_allocation_failed());
    assert_says(TENSOR_ENOMEM, "out of memory");
    assert_values(VEC(1), 1);
    tensor_debug_fail_allocation(1, true);
    for (int i = 0; i < 3; i++) assert_tensor_error(VEC(1), TENSOR_ENOMEM);
    tensor_debug_fail_allocation(0, false);
    assert_values(VEC(1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_switch),
        TEST(test_mlp_step),
        TEST(test_views_in_place),
        TEST(test_create_graph_step),
        TEST(test_hooks_and_retained_gradients),
        TEST(test_attention_and_norms),
        TEST(test_recurrent_step),
    };
    return cmocka_run_group_tests_name("failing memory", tests, NULL, NULL);
}
