/* test_hooks.c - hooks on results and leaves, retained gradients: their order, and what they may do. */
#include "sane.h"

/* ---- a log of what ran ----------------------------------------------------------------------- */

static char log_text[256];

static void note(char what)
{
    size_t n = strlen(log_text);
    assert_true(n + 1 < sizeof log_text);
    log_text[n] = what, log_text[n + 1] = 0;
}

#define AS(letter) ((char[]){ letter }) /* lives as long as the block around */
#define assert_log(text) assert_string_equal(log_text, text)

static int begin(void **state)
{
    log_text[0] = 0;
    return sane_begin(state);
}
#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, sane_end)

static Tensor *noting(Tensor *g, void *ctx)
{
    (void)g;
    note(*(const char *)ctx);
    return NULL;
}

static Tensor *doubling(Tensor *g, void *ctx)
{
    if (ctx) note(*(const char *)ctx);
    return tensor_mul_scalar(g, 2);
}

static void after(Tensor *x, void *ctx)
{
    assert_non_null(tensor_grad(x));
    note(*(const char *)ctx);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void test_hooks_run_from_the_loss_to_the_leaves(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul(x, x), *y = tensor_mul(h, h);
    DONE(tensor_register_hook(x, noting, AS("x")));
    DONE(tensor_register_hook(h, noting, AS("h")));
    DONE(tensor_register_hook(y, noting, AS("y")));
    DONE(tensor_register_post_accumulate_grad_hook(x, after, AS("a")));
    DONE(tensor_backward(y));
    assert_log("yhxa");
}

static void test_hooks_of_a_kind_run_as_registered(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x);
    DONE(tensor_register_post_accumulate_grad_hook(x, after, AS("a")));
    char digits[] = "123";
    for (int i = 0; i < 3; i++) DONE(tensor_register_hook(x, noting, &digits[i]));
    DONE(tensor_register_post_accumulate_grad_hook(x, after, AS("b")));
    DONE(tensor_backward(y));
    assert_log("123ab");
}

static void test_hook_runs_once_when_the_gradient_is_complete(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul_scalar(x, 3);
    Tensor *y = tensor_add(tensor_mul(h, h), tensor_exp(h));
    DONE(tensor_register_hook(h, doubling, AS("h")));
    DONE(tensor_backward(y));
    assert_log("h");
    assert_values(tensor_grad(x), 2 * 3 * (12 + exp(6)));
}

/* ---- replacing ------------------------------------------------------------------------------- */

static void test_hook_replaces_the_gradient(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul(x, x), *y = tensor_mul_scalar(h, 5);
    DONE(tensor_retain_grad(h));
    DONE(tensor_register_hook(h, doubling, NULL));
    DONE(tensor_register_hook(h, doubling, NULL)); /* sees what the first returned */
    DONE(tensor_register_hook(x, doubling, NULL));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(h), 20); /* retained after the hooks */
    assert_values(tensor_grad(x), 2 * 20 * 4);
}

static Tensor *wrong_shape(Tensor *g, void *ctx)
{
    (void)g, (void)ctx;
    return VEC(1, 2, 3);
}
static Tensor *failing(Tensor *g, void *ctx)
{
    (void)g, (void)ctx;
    return tensor_fail(TENSOR_EUSER, "my hook", "no"), NULL;
}

static void test_hook_that_fails_fails_the_sweep(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *w = LEAF(3), *y = tensor_mul(x, w);
    int id = tensor_register_hook(x, wrong_shape, NULL);
    DONE(tensor_set_grad(w, VEC(7)));
    assert_int_equal(tensor_backward(y, .retain_graph = true), -1);
    assert_says(TENSOR_ESHAPE, "[3]");
    DONE(tensor_remove_hook(x, id));
    id = tensor_register_hook(x, failing, NULL);
    assert_int_equal(tensor_backward(y, .retain_graph = true), -1);
    assert_says(TENSOR_EUSER, "my hook: no");
    assert_null(tensor_grad(x));
    assert_values(tensor_grad(w), 7); /* all gradients arrive or none */
    DONE(tensor_remove_hook(x, id));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(w), 9);
}

static void test_earlier_error_does_not_stop_hooks(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x);
    DONE(tensor_register_hook(x, noting, AS("x")));
    tensor_fail(TENSOR_EUSER, "elsewhere", "before");
    assert_int_equal(tensor_backward(y), 0);
    assert_log("x");
    assert_says(TENSOR_EUSER, "before");
}

static void test_hooks_in_tensor_gradients(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul(x, x), *y = tensor_mul_scalar(h, 5);
    DONE(tensor_register_hook(h, doubling, AS("h")));
    DONE(tensor_register_hook(x, doubling, AS("x")));
    DONE(tensor_register_post_accumulate_grad_hook(x, after, AS("a")));
    assert_values(OK(tensor_gradients(y, x)), 80);
    assert_log("hx"); /* nothing is accumulated */
    assert_null(tensor_grad(x));
}

static void test_hook_under_create_graph(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, tensor_mul(x, x));
    DONE(tensor_register_hook(x, doubling, NULL));
    Tensor *g = OK(tensor_gradients(y, x, .create_graph = true));
    assert_values(g, 24); /* 2 * 3 x^2, and the hook's factor is on the graph */
    assert_values(OK(tensor_gradients(g, x)), 2 * 2 * 12);
}

/* ---- removing, adding ------------------------------------------------------------------------ */

static void test_removed_hook_does_not_run(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x);
    int a = tensor_register_hook(x, noting, AS("a")), b = tensor_register_hook(x, noting, AS("b")),
        c = tensor_register_hook(y, noting, AS("c"));
    assert_true(a > 0 && b > 0 && c > 0 && a != b && b != c);
    DONE(tensor_remove_hook(x, a));
    assert_status_error(tensor_remove_hook(x, a), TENSOR_EVALUE);
    DONE(tensor_remove_hook(y, c));
    DONE(tensor_backward(y));
    assert_log("b");
}

typedef struct Remove {
    Tensor *x;
    int id;
} Remove;

static Tensor *removing(Tensor *g, void *ctx)
{
    Remove *r = ctx;
    note('r');
    (void)g;
    if (r->id) tensor_remove_hook(r->x, r->id);
    r->id = 0;
    return NULL;
}

static void removing_after(Tensor *x, void *ctx) { removing(x, ctx); }

static void test_hook_removes_itself(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul(x, x), *y = tensor_sum(h);
    Remove leaf = { x, 0 }, result = { h, 0 }, last = { x, 0 };
    leaf.id = tensor_register_hook(x, removing, &leaf);
    DONE(tensor_register_hook(x, noting, AS("x")));
    result.id = tensor_register_hook(h, removing, &result);
    DONE(tensor_register_hook(h, noting, AS("h")));
    last.id = tensor_register_post_accumulate_grad_hook(x, removing_after, &last);
    DONE(tensor_register_post_accumulate_grad_hook(x, after, AS("a")));
    DONE(tensor_backward(y, .retain_graph = true));
    assert_log("rhrxra");
    log_text[0] = 0;
    DONE(tensor_backward(y));
    assert_log("hxa");
}

static void test_hook_removes_the_next(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x);
    Remove next = { x, 0 };
    DONE(tensor_register_hook(x, removing, &next));
    next.id = tensor_register_hook(x, noting, AS("x"));
    DONE(tensor_backward(y));
    assert_log("r");
}

static Tensor *adding(Tensor *g, void *ctx)
{
    (void)g;
    note('+');
    static char letter = 'n';
    DONE(tensor_register_hook(ctx, noting, &letter));
    return NULL;
}

static void test_hook_adds_one_for_the_next_sweep(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x);
    DONE(tensor_register_hook(x, adding, x));
    DONE(tensor_backward(y, .retain_graph = true));
    assert_log("+");
    DONE(tensor_backward(y));
    assert_log("++n");
}

static Tensor *releasing(Tensor *g, void *ctx)
{
    Tensor **held = ctx;
    (void)g;
    tensor_release(*held);
    *held = NULL;
    return NULL;
}

static void test_hook_releases_the_last_handle(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y, *h;
    TensorScope scope = tensor_scope_open();
    h = tensor_retain(tensor_mul(x, x));
    DONE(tensor_register_hook(h, releasing, &h));
    y = tensor_scope_return(scope, tensor_mul_scalar(h, 3));
    DONE(tensor_backward(y));
    assert_null(h);
    assert_values(tensor_grad(x), 12);
}

/* ---- keeping, sharing ------------------------------------------------------------------------ */

static Tensor *keeping(Tensor *g, void *ctx)
{
    tensor_release(*(Tensor **)ctx);
    *(Tensor **)ctx = tensor_retain(g);
    return NULL;
}

static void test_kept_gradient_stays_as_it_was(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *kept = NULL;
    DONE(tensor_register_hook(x, keeping, &kept));
    DONE(tensor_backward(tensor_sum(tensor_square(x))));
    Tensor *first = tensor_retain(kept);
    DONE(tensor_backward(tensor_sum(tensor_square(x))));
    assert_values(first, 2, 4);
    assert_values(kept, 2, 4);
    assert_values(tensor_grad(x), 4, 8);
    OK(tensor_zero_(tensor_grad(x)));
    assert_values(kept, 2, 4);
    tensor_release(kept), tensor_release(first);
}

static void step(Tensor *x, void *ctx) /* the optimizer's step within backward */
{
    (void)ctx;
    assert_false(tensor_grad_enabled());
    OK(tensor_add_scaled_(x, tensor_grad(x), -0.1));
    DONE(tensor_set_grad(x, NULL));
}

static void test_step_in_a_post_accumulate_hook(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2);
    DONE(tensor_register_post_accumulate_grad_hook(x, step, NULL));
    for (int i = 0; i < 2; i++) DONE(tensor_backward(tensor_sum(tensor_square(x))));
    assert_values(x, 0.64, 1.28);
    assert_null(tensor_grad(x));
}

static Tensor *sweeping(Tensor *g, void *ctx)
{
    (void)g;
    TENSOR_ENABLE_GRAD
        DONE(tensor_backward(tensor_sum(tensor_square(ctx))));
    return NULL;
}

static void test_backward_within_a_hook(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *w = LEAF(5);
    DONE(tensor_register_hook(x, sweeping, w));
    DONE(tensor_backward(tensor_mul(x, x)));
    assert_values(tensor_grad(x), 4);
    assert_values(tensor_grad(w), 10);
}

static void callback(void *ctx) { note(*(const char *)ctx); }

static Tensor *queueing(Tensor *g, void *ctx)
{
    (void)g;
    char *letters = ctx;
    for (int i = 0; i < 2; i++) DONE(tensor_queue_callback(callback, &letters[i]));
    return NULL;
}

/* What is queued runs once, in order, when its own sweep is over. */
static void test_callbacks_run_after_the_sweep(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *w = LEAF(5), *y = tensor_mul(x, x);
    char first[] = { '1', '2' }, inner[] = { '3', '4' };
    const int id = tensor_register_hook(y, queueing, first);
    DONE(tensor_register_hook(x, noting, AS("x")));
    DONE(tensor_register_post_accumulate_grad_hook(x, after, AS("a")));
    DONE(tensor_backward(y, .retain_graph = true));
    assert_log("xa12");
    DONE(tensor_register_hook(w, queueing, inner));
    DONE(tensor_register_hook(x, sweeping, w)); /* after x: a sweep inside of this one */
    DONE(tensor_backward(y, .retain_graph = true));
    assert_log("xa12x34a12");
    DONE(tensor_remove_hook(y, id));
    DONE(tensor_register_hook(x, queueing, first));
    DONE(tensor_register_hook(x, failing, NULL));
    assert_int_equal(tensor_backward(y), -1); /* after an error, too */
    assert_says(TENSOR_EUSER, "my hook: no");
    assert_log("xa12x34a12x3412");
    assert_status_error(tensor_queue_callback(callback, first), TENSOR_EGRAD);
    assert_status_error(tensor_queue_callback(NULL, first), TENSOR_ENULL);
}

/* ---- retained gradients ---------------------------------------------------------------------- */

static void test_retain_grad(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul(x, x), *other = tensor_exp(x), *y = tensor_mul(h, h);
    DONE(tensor_retain_grad(h));
    DONE(tensor_retain_grad(other));
    DONE(tensor_retain_grad(x)); /* a leaf: nothing changes */
    DONE(tensor_backward(y, .retain_graph = true));
    assert_values(tensor_grad(h), 8);
    assert_values(tensor_grad(x), 32);
    assert_null(tensor_grad(other));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(h), 16); /* accumulates like a leaf */
    assert_status_error(tensor_retain_grad(VEC(1)), TENSOR_EGRAD);
}

static void test_retained_grad_of_a_failed_sweep(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul(x, x), *y = tensor_mul(h, h);
    DONE(tensor_retain_grad(h));
    int id = tensor_register_hook(x, failing, NULL);
    assert_status_error(tensor_backward(y, .retain_graph = true), TENSOR_EUSER);
    assert_null(tensor_grad(h));
    DONE(tensor_remove_hook(x, id));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(h), 8);
}

static void test_retained_grad_is_not_corrupted(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *h = tensor_mul_scalar(x, 3), *y = tensor_add(h, x);
    DONE(tensor_retain_grad(h));
    DONE(tensor_backward(y, VEC(1, 1)));
    OK(tensor_zero_(tensor_grad(h)));
    assert_values(tensor_grad(x), 4, 4);
}

/* ---- in place -------------------------------------------------------------------------------- */

static void test_hook_stays_with_the_old_value(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul_scalar(x, 3), *kept = NULL;
    DONE(tensor_register_hook(h, keeping, &kept)); /* of 3 x */
    OK(tensor_mul_scalar_(h, 10));
    DONE(tensor_register_hook(h, noting, AS("n")));
    DONE(tensor_backward(h));
    assert_values(kept, 10);
    assert_log("n");
    assert_values(tensor_grad(x), 30);
    tensor_release(kept);
}

static void test_retain_grad_goes_with_the_new_value(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *h = tensor_mul_scalar(x, 3);
    DONE(tensor_retain_grad(h));
    OK(tensor_mul_scalar_(h, 10));
    DONE(tensor_backward(tensor_mul_scalar(h, 7)));
    assert_values(tensor_grad(h), 7);
    assert_values(tensor_grad(x), 210);
}

static void test_hook_on_a_view_of_a_written_base(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2), *y = tensor_zeros(SHAPE(2), TENSOR_F64), *first = tensor_select(y, 0, 0),
           *kept = NULL;
    assert_false(tensor_requires_grad(first));
    OK(tensor_add_(y, w));
    assert_true(tensor_requires_grad(first));
    assert_false(tensor_is_leaf(first));
    DONE(tensor_register_hook(first, keeping, &kept));
    DONE(tensor_retain_grad(first));
    DONE(tensor_backward(tensor_mul_scalar(first, 4)));
    assert_values(kept, 4);
    assert_values(tensor_grad(first), 4);
    assert_values(tensor_grad(w), 4, 0);
    tensor_release(kept);
}

static void test_refusals(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x), *plain = VEC(1);
    assert_status_error(tensor_register_hook(NULL, noting, NULL), TENSOR_ENULL);
    assert_status_error(tensor_register_hook(x, NULL, NULL), TENSOR_ENULL);
    assert_status_error(tensor_register_hook(plain, noting, NULL), TENSOR_EGRAD);
    assert_status_error(tensor_register_post_accumulate_grad_hook(y, after, NULL), TENSOR_EGRAD);
    assert_status_error(tensor_register_post_accumulate_grad_hook(plain, after, NULL), TENSOR_EGRAD);
    assert_status_error(tensor_remove_hook(x, 12345), TENSOR_EVALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hooks_run_from_the_loss_to_the_leaves),
        TEST(test_hooks_of_a_kind_run_as_registered),
        TEST(test_hook_runs_once_when_the_gradient_is_complete),
        TEST(test_hook_replaces_the_gradient),
        TEST(test_hook_that_fails_fails_the_sweep),
        TEST(test_earlier_error_does_not_stop_hooks),
        TEST(test_hooks_in_tensor_gradients),
        TEST(test_hook_under_create_graph),
        TEST(test_removed_hook_does_not_run),
        TEST(test_hook_removes_itself),
        TEST(test_hook_removes_the_next),
        TEST(test_hook_adds_one_for_the_next_sweep),
        TEST(test_hook_releases_the_last_handle),
        TEST(test_kept_gradient_stays_as_it_was),
        TEST(test_step_in_a_post_accumulate_hook),
        TEST(test_backward_within_a_hook),
        TEST(test_callbacks_run_after_the_sweep),
        TEST(test_retain_grad),
        TEST(test_retained_grad_of_a_failed_sweep),
        TEST(test_retained_grad_is_not_corrupted),
        TEST(test_hook_stays_with_the_old_value),
        TEST(test_retain_grad_goes_with_the_new_value),
        TEST(test_hook_on_a_view_of_a_written_base),
        TEST(test_refusals),
    };
    return cmocka_run_group_tests_name("hooks", tests, NULL, NULL);
}
