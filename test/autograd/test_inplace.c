/* test_inplace.c - ops in place: what is refused, versions, the history of views and their bases, and fuzz of
 * both. */
#include "sane.h"

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_leaf_is_refused(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2);
    assert_null(tensor_mul_scalar_(x, 2));
    assert_says(TENSOR_EGRAD, "leaf");
    assert_tensor_error(tensor_zero_(x), TENSOR_EGRAD);
    assert_tensor_error(tensor_copy_(x, VEC(3, 4)), TENSOR_EGRAD);
    assert_status_error(tensor_set(x, DIMS(0), 9), TENSOR_EGRAD);
    assert_status_error(tensor_copy_from(x, (double[]){ 5, 6 }, 16), TENSOR_EGRAD);
    assert_values(x, 1, 2);
    assert_int_equal(tensor_version(x), 0);
    TENSOR_NO_GRAD
        OK(tensor_mul_scalar_(x, 2));
    assert_values(x, 2, 4);
    assert_true(tensor_is_leaf(x) && tensor_requires_grad(x));
}

static void test_view_of_a_leaf_is_refused(void **state)
{
    (void)state;
    Tensor *x = LEAF_MAT(2, 1, 2, 3, 4), *row = tensor_select(x, 0, 0), *t = tensor_transpose(x, 0, 1);
    assert_null(tensor_zero_(row));
    assert_says(TENSOR_EGRAD, "view of the leaf");
    assert_tensor_error(tensor_add_(t, VEC(1, 1)), TENSOR_EGRAD);
    assert_tensor_error(tensor_zero_(tensor_select(t, 0, 1)), TENSOR_EGRAD); /* a view of a view */
    assert_values(x, 1, 2, 3, 4);
}

static void test_expanded_is_refused(void **state)
{
    (void)state;
    Tensor *x = VEC(1), *e = tensor_expand(x, SHAPE(3));
    assert_null(tensor_add_scalar_(e, 1));
    assert_says(TENSOR_EVALUE, "share memory");
    assert_tensor_error(tensor_copy_(e, VEC(1, 2, 3)), TENSOR_EVALUE);
    assert_values(x, 1);
    OK(tensor_add_scalar_(tensor_expand(x, SHAPE(1, 1)), 1)); /* nothing is repeated */
    assert_values(x, 2);
}

static void test_result_must_fit(void **state)
{
    (void)state;
    Tensor *x = VEC(1, 2), *i = tensor_ones(SHAPE(2), TENSOR_I64), *b = tensor_ones(SHAPE(2), TENSOR_BOOL);
    assert_null(tensor_add_(x, tensor_ones(SHAPE(3, 2), TENSOR_F64)));
    assert_says(TENSOR_ESHAPE, "[3, 2]");
    assert_tensor_error(tensor_add_(i, x), TENSOR_EDTYPE);
    assert_tensor_error(tensor_exp_(i), TENSOR_EDTYPE);
    assert_tensor_error(tensor_mul_scalar_(i, 0.5), TENSOR_EDTYPE);
    assert_tensor_error(tensor_add_(b, i), TENSOR_EDTYPE);
    assert_tensor_error(tensor_copy_(x, VEC(1, 2, 3)), TENSOR_ESHAPE);
    assert_tensor_error(tensor_add_(x, NULL), TENSOR_ENULL);
    assert_values(x, 1, 2);
    OK(tensor_add_(x, i)); /* wider takes narrower */
    OK(tensor_mul_scalar_(i, 3));
    Tensor *f = tensor_ones(SHAPE(2), TENSOR_F32);
    OK(tensor_add_(f, x)); /* f64 into f32, as PyTorch */
    assert_values(x, 2, 3), assert_values(i, 3, 3), assert_values(f, 3, 4);
    assert_int_equal(tensor_dtype(f), TENSOR_F32);
}

/* ---- versions -------------------------------------------------------------------------------- */

static void test_version_error_names_what_happened(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2, 3), *h = tensor_mul_scalar(x, 2), *y = tensor_sum(tensor_square(h));
    TENSOR_NO_GRAD
        OK(tensor_add_scalar_(h, 1));
    TENSOR_NO_GRAD
        OK(tensor_add_scalar_(h, 1));
    assert_int_equal(tensor_backward(y), -1);
    assert_non_null(strstr(tensor_error(), "square"));
    assert_non_null(strstr(tensor_error(), "[3]"));
    assert_non_null(strstr(tensor_error(), "version 0"));
    assert_non_null(strstr(tensor_error(), "test_inplace.c")); /* the line of the square */
    assert_says(TENSOR_EGRAD, "at 2 now");
    assert_null(tensor_grad(x));
}

static void test_version_is_shared(void **state)
{
    (void)state;
    Tensor *x = MAT(2, 1, 2, 3, 4), *row = tensor_select(x, 0, 1), *d = tensor_detach(x),
           *c = tensor_clone(x);
    OK(tensor_zero_(row));
    OK(tensor_fill_(d, 2));
    OK(tensor_copy_(x, c));
    DONE(tensor_set(x, DIMS(0, 0), 5));
    assert_int_equal(tensor_version(x), 4);
    assert_int_equal(tensor_version(row), 4);
    assert_int_equal(tensor_version(d), 4);
    assert_int_equal(tensor_version(c), 0);
    tensor_bump_version(d);
    assert_int_equal(tensor_version(x), 5);
}

static void test_write_through_detach_is_noticed(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *h = tensor_exp(x), *y = tensor_sum(h);
    OK(tensor_zero_(tensor_detach(h)));
    assert_int_equal(tensor_backward(y), -1);
    assert_says(TENSOR_EGRAD, "exp");
}

static void test_write_to_what_nobody_saved_is_fine(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *h = tensor_mul_scalar(x, 2), *y = tensor_sum(tensor_add_scalar(h, 1));
    OK(tensor_zero_(tensor_detach(h)));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(x), 2, 2);
}

static void test_consumed_entries_do_not_complain(void **state)
{
    (void)state;
    Tensor *w = LEAF(2), *x = VEC(3);
    Tensor *first = tensor_mul(tensor_mul(w, x), w);
    DONE(tensor_backward(first));
    TENSOR_NO_GRAD
        OK(tensor_add_scaled_(w, tensor_grad(w), -0.1)); /* the optimizer's step: w = 0.8 */
    Tensor *second = tensor_mul(tensor_mul(w, x), w);
    DONE(tensor_backward(second));
    assert_values(tensor_grad(w), 12 + 2 * 0.8 * 3);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void test_chain_in_place(void **state)
{
    (void)state;
    Tensor *x = LEAF(0.5, -1), *w = LEAF(3, 4);
    Tensor *y = tensor_mul_scalar(x, 2);
    OK(tensor_mul_(y, w)), OK(tensor_relu_(y)), OK(tensor_add_scalar_(y, 1)), OK(tensor_square_(y));
    assert_values(y, 16, 1);
    DONE(tensor_backward(tensor_sum(y)));
    assert_values(tensor_grad(x), 2 * 4 * 3 * 2, 0);
    assert_values(tensor_grad(w), 2 * 4 * 1, 0);
}

static void test_result_is_what_backward_reads(void **state)
{
    (void)state;
    Tensor *x = LEAF(1), *y = tensor_mul_scalar(x, 1);
    OK(tensor_exp_(y)), OK(tensor_sqrt_(y)), OK(tensor_tanh_(y)), OK(tensor_sigmoid_(y)), OK(tensor_relu_(y));
    double e = sqrt(exp(1)), t = tanh(e), s = 1 / (1 + exp(-t));
    DONE(tensor_backward(y));
    assert_values(tensor_grad(x), s * (1 - s) * (1 - t * t) * e / 2);
}

static void test_in_place_with_broadcast(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2, 3), *y = tensor_zeros(SHAPE(2, 3), TENSOR_F64);
    OK(tensor_add_(y, w)), OK(tensor_mul_(y, w));
    DONE(tensor_backward(tensor_sum(y)));
    assert_values(tensor_grad(w), 4, 8, 12);
}

static void test_in_place_under_create_graph(void **state)
{
    (void)state;
    Tensor *x = LEAF(2), *y = tensor_mul(x, x);
    OK(tensor_mul_(y, x)); /* x^3 */
    Tensor *g = OK(tensor_gradients(y, x, .create_graph = true));
    assert_values(g, 12);
    assert_values(OK(tensor_gradients(g, x)), 12);
}

static void test_self_overlap(void **state)
{
    (void)state;
    Tensor *x = MAT(3, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    OK(tensor_add_(x, tensor_transpose(x, 0, 1)));
    assert_values(x, 2, 6, 10, 6, 10, 14, 10, 14, 18);
    Tensor *v = VEC(1, 2, 3, 4);
    OK(tensor_copy_(tensor_slice(v, 0, 1), tensor_slice(v, 0, 0, 3)));
    assert_values(v, 1, 1, 2, 3);
    OK(tensor_add_(v, tensor_flip(v, DIMS(0))));
    assert_values(v, 4, 3, 3, 4);
    Tensor *w = LEAF_MAT(2, 1, 2, 3, 4), *y = tensor_mul_scalar(w, 1);
    OK(tensor_add_(y, tensor_transpose(y, 0, 1)));
    assert_values(y, 2, 5, 5, 8);
    DONE(tensor_backward(tensor_sum(tensor_mul(y, MAT(2, 1, 10, 100, 1000)))));
    assert_values(tensor_grad(w), 2, 110, 110, 2000);
    OK(tensor_mul_(y, tensor_transpose(y, 0, 1))); /* its gradient would read what it overwrote */
    assert_values(y, 4, 25, 25, 64);
    assert_status_error(tensor_backward(tensor_sum(y)), TENSOR_EGRAD);
}

/* ---- views ----------------------------------------------------------------------------------- */

static void test_write_to_a_view_changes_the_base(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2), *y = tensor_zeros(SHAPE(2, 2), TENSOR_F64), *row = tensor_select(y, 0, 0);
    OK(tensor_copy_(row, w));
    assert_true(tensor_requires_grad(y));
    assert_values(y, 1, 2, 0, 0);
    DONE(tensor_backward(tensor_sum(tensor_mul(y, MAT(2, 10, 20, 30, 40)))));
    assert_values(tensor_grad(w), 10, 20);
    assert_sane(y), assert_sane(row);
}

static void test_write_of_a_whole_leaf(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2), *y = tensor_zeros(SHAPE(2), TENSOR_F64);
    OK(tensor_copy_(y, w));
    DONE(tensor_backward(tensor_sum(tensor_square(y))));
    assert_values(tensor_grad(w), 2, 4);
    Tensor *narrow = tensor_zeros(SHAPE(2), TENSOR_F32);
    OK(tensor_copy_(narrow, w));
    DONE(tensor_backward(tensor_sum(narrow)));
    assert_values(tensor_grad(w), 3, 5);
}

static void test_overwritten_value_gets_no_gradient(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2, 3, 4), *w = LEAF(9), *y = tensor_mul_scalar(x, 2);
    OK(tensor_copy_(tensor_slice(y, 0, 0, 4, 2), w)); /* y[0::2] = w */
    DONE(tensor_backward(tensor_sum(tensor_square(y))));
    assert_values(tensor_grad(x), 0, 16, 0, 32);
    assert_values(tensor_grad(w), 36);
}

static void test_fill_and_set_cut_the_gradient(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2, 3), *y = tensor_mul_scalar(x, 2);
    DONE(tensor_set(y, DIMS(1), 7));
    OK(tensor_zero_(tensor_narrow(y, 0, 2, 1)));
    assert_values(y, 2, 7, 0);
    DONE(tensor_backward(tensor_sum(tensor_square(y))));
    assert_values(tensor_grad(x), 8, 0, 0);
}

static void test_siblings_are_refreshed(void **state)
{
    (void)state;
    Tensor *w = LEAF(5), *y = tensor_zeros(SHAPE(2, 2), TENSOR_F64);
    Tensor *row = tensor_select(y, 0, 0), *column = tensor_select(y, 1, 0),
           *all = tensor_reshape(y, SHAPE(4));
    OK(tensor_add_(row, w));
    assert_true(tensor_requires_grad(column));
    assert_values(all, 5, 5, 0, 0);
    DONE(tensor_backward(tensor_sum(tensor_mul(column, VEC(10, 100)))));
    assert_values(tensor_grad(w), 10);
    DONE(tensor_backward(tensor_sum(all)));
    assert_values(tensor_grad(w), 12);
    assert_sane(column), assert_sane(all), assert_tape_sane();
}

static void test_view_follows_its_base(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *y = tensor_mul_scalar(x, 3), *first = tensor_select(y, 0, 0);
    OK(tensor_square_(y));
    assert_values(first, 9);
    DONE(tensor_backward(first));
    assert_values(tensor_grad(x), 18, 0);
}

static void test_view_of_a_view(void **state)
{
    (void)state;
    Tensor *w = tensor_requires_grad_(tensor_scalar(2, TENSOR_F64), true), *x = LEAF_MAT(2, 1, 2, 3, 4),
           *y = tensor_mul_scalar(x, 1);
    Tensor *t = tensor_transpose(y, 0, 1), *row = tensor_select(t, 0, 1), *cell = tensor_select(row, 0, 0);
    OK(tensor_mul_(row, w)), OK(tensor_mul_(cell, w)), OK(tensor_mul_(t, w));
    assert_values(y, 2, 16, 6, 16);
    DONE(tensor_backward(tensor_sum(y)));
    assert_values(tensor_grad(x), 2, 8, 2, 4);
    assert_values(tensor_grad(w), 1 + 2 * 3 * 4 + 3 + 4 * 2 * 2);
}

static void test_view_outlives_the_base_handle(void **state)
{
    (void)state;
    Tensor *w = LEAF(3);
    TensorScope scope = tensor_scope_open();
    Tensor *part = tensor_scope_return(scope, tensor_slice(tensor_zeros(SHAPE(4), TENSOR_F64), 0, 1, 3));
    OK(tensor_add_(part, w));
    DONE(tensor_backward(tensor_sum(tensor_square(part))));
    assert_values(tensor_grad(w), 12);
}

static void test_view_of_a_leaf_after_the_step(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2), *first = tensor_select(w, 0, 0);
    TENSOR_NO_GRAD {
        OK(tensor_mul_scalar_(w, 2));
        OK(tensor_add_(w, tensor_flip(w, DIMS(0)))); /* w = 6, 6 */
        OK(tensor_copy_(w, VEC(5, 7)));
    }
    assert_true(tensor_requires_grad(first));
    DONE(tensor_backward(tensor_square(first)));
    assert_values(tensor_grad(w), 10, 0);
}

static void test_write_to_a_view_in_no_grad(void **state)
{
    (void)state;
    Tensor *x = LEAF(1, 2), *y = tensor_mul_scalar(x, 3);
    TENSOR_NO_GRAD
        OK(tensor_fill_(tensor_select(y, 0, 0), 8));
    assert_values(y, 8, 6);
    DONE(tensor_backward(tensor_sum(y))); /* the history is as it was */
    assert_values(tensor_grad(x), 3, 3);
}

static void test_rows_written_in_a_loop(void **state)
{
    (void)state;
    Tensor *w = LEAF(0.5), *h = tensor_zeros(SHAPE(4), TENSOR_F64);
    TENSOR_NO_GRAD
        DONE(tensor_set(h, DIMS(0), 1));
    for (int t = 1; t < 4; t++) /* h[t] = w h[t - 1] */
        OK(tensor_copy_(tensor_select(h, 0, t),
                        tensor_mul(tensor_clone(tensor_select(h, 0, t - 1)), tensor_reshape(w, SHAPE()))));
    assert_values(h, 1, .5, .25, .125);
    DONE(tensor_backward(tensor_sum(h)));
    assert_values(tensor_grad(w), 1 + 2 * .5 + 3 * .25);
}

static void test_failed_write_changes_nothing(void **state)
{
    (void)state;
    Tensor *w = LEAF(1, 2), *y = tensor_zeros(SHAPE(2, 2), TENSOR_F64), *row = tensor_select(y, 0, 0);
    OK(tensor_copy_(row, w));
    Tensor *three = VEC(1, 2, 3);
    int64_t length = tensor_tape_length(), live = tensor_live_count();
    uint32_t version = tensor_version(y);
    assert_tensor_error(tensor_add_(row, three), TENSOR_ESHAPE);
    assert_tensor_error(tensor_copy_(row, three), TENSOR_ESHAPE);
    assert_tensor_error(tensor_mul_(row, NULL), TENSOR_ENULL);
    assert_int_equal(tensor_tape_length(), length);
    assert_int_equal(tensor_version(y), version);
    assert_int_equal(tensor_live_count(), live);
    DONE(tensor_backward(tensor_sum(y)));
    assert_values(tensor_grad(w), 1, 1);
}

/* ---- fuzz: something is overwritten between forward and backward ----------------------------- */

static uint64_t seed_now;
static int pick(int n)
{
    return (int)((seed_now = seed_now * 6364136223846793005u + 1442695040888963407u) >> 33) % n;
}

enum { STEPS = 8, CELLS = 6 };

static Tensor *forward_step(int kind, Tensor *a, Tensor *b)
{
    switch (kind) {
    case 0: return tensor_mul(a, b);
    case 1: return tensor_sigmoid(a);
    case 2: return tensor_add(a, b);
    case 3: return tensor_tanh(tensor_slice(a, 0));
    case 4: return tensor_div(a, tensor_add_scalar(tensor_square(b), 1));
    case 5: return tensor_flip(a, DIMS(0));
    case 6: return tensor_maximum(a, b);
    default: return tensor_softmax(a, 0);
    }
}

static void disturb(Tensor *x)
{
    bool was = tensor_set_grad_enabled(pick(2));
    Tensor *to = pick(3) == 0 ? tensor_detach(x) : pick(2) ? x : tensor_narrow(x, 0, 1, 3);
    switch (pick(5)) {
    case 0: tensor_mul_scalar_(to, 3); break;
    case 1: tensor_zero_(to); break;
    case 2: tensor_sigmoid_(to); break;
    case 3: tensor_copy_(to, tensor_flip(to, DIMS(0))); break;
    default: tensor_add_(to, to);
    }
    tensor_set_grad_enabled(was);
    if (tensor_error()) { /* a leaf, or a view of one */
        assert_int_equal(tensor_error_code(), TENSOR_EGRAD);
        tensor_error_clear();
    }
}

/* The gradients of two leaves of a random graph; false when the sweep was refused. */
static bool random_graph(uint64_t seed, bool disturbed, double *out)
{
    seed_now = seed;
    Tensor *t[2 + STEPS], *g[2];
    for (int i = 0; i < 2; i++) {
        t[i] = tensor_zeros(SHAPE(CELLS), TENSOR_F64);
        for (int k = 0; k < CELLS; k++) DONE(tensor_set(t[i], DIMS(k), (pick(2001) - 1000) / 700.0));
        tensor_requires_grad_(t[i], true);
    }
    for (int i = 2; i < 2 + STEPS; i++) {
        int kind = pick(8), a = pick(i), b = pick(i);
        t[i] = OK(forward_step(kind, t[a], t[b]));
    }
    Tensor *loss = tensor_add(tensor_sum(tensor_square(t[1 + STEPS])),
                              tensor_add(tensor_sum(tensor_mul(t[0], t[1])), tensor_sum(t[STEPS])));
    if (disturbed) disturb(t[pick(2 + STEPS)]);
    int status = tensor_gradients_many(TENSORS(loss), TENSOR_LIST(t, 2), g);
    if (status) {
        assert_true(disturbed);
        assert_says(TENSOR_EGRAD, "overwritten");
        return false;
    }
    for (int i = 0; i < 2; i++) DONE(tensor_copy_to(g[i], out + i * CELLS, sizeof(double) * CELLS));
    return true;
}

static void test_fuzz_overwriting(void **state)
{
    (void)state;
    int refused = 0, right = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        double want[2 * CELLS], found[2 * CELLS];
        TensorScope scope = tensor_scope_open();
        assert_true(random_graph(seed, false, want));
        if (random_graph(seed, true, found)) {
            if (memcmp(want, found, sizeof want) != 0) print_error("seed %d\n", (int)seed);
            assert_memory_equal(want, found, sizeof want);
            right++;
        } else {
            refused++;
        }
        tensor_scope_close(scope);
        assert_int_equal(tensor_tape_length(), 0);
    }
    assert_true(refused > 50 && right > 50);
}

/* ---- fuzz: writes through views, against a matrix of scalar tensors -------------------------- */

enum { ROWS = 3, COLUMNS = 4, SIZE = ROWS * COLUMNS, VIEWS = 6, LEAVES = 3 };

typedef struct View {
    Tensor *x, *at;
} View; /* at: the cell that each element is, the same view of 0, 1, 2, ... */

static Tensor *some_view(int kind, int a, int b, Tensor *x)
{
    int n = (int)tensor_size(x, 0);
    switch (kind) {
    case 0: return tensor_transpose(x, 0, 1);
    case 1: return tensor_slice(x, 0, a % n);
    case 2: return tensor_slice(x, 1, b % (int)tensor_size(x, 1), INT64_MAX, 1 + a % 2);
    case 3: return tensor_narrow(x, 0, a % n, 1);
    default: return tensor_permute(x, DIMS(1, 0));
    }
}

static void view_at(const View *v, int64_t i, int64_t j, int64_t *cell)
{
    *cell = (int64_t)tensor_get(v->at, DIMS(i, j));
}

/* One write through v, and the same in the cells. */
static void write_both(const View *v, const View *other, int kind, Tensor *w, Tensor **cell)
{
    int64_t rows = tensor_size(v->x, 0), columns = tensor_size(v->x, 1), c, d = 0;
    bool same = rows == tensor_size(other->x, 0) && columns == tensor_size(other->x, 1);
    Tensor *old[SIZE];
    memcpy(old, cell, sizeof old);
    if (kind == 5 && !same) kind = 0;
    switch (kind) {
    case 0: OK(tensor_mul_(v->x, w)); break;
    case 1: OK(tensor_add_(v->x, w)); break;
    case 2: OK(tensor_copy_(v->x, w)); break;
    case 3: OK(tensor_sigmoid_(v->x)); break;
    case 4: OK(tensor_fill_(v->x, 0.25)); break;
    default: OK(tensor_add_(v->x, other->x));
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            view_at(v, i, j, &c);
            if (same) view_at(other, i, j, &d);
            cell[c] = OK(kind == 0   ? tensor_mul(old[c], w)
                         : kind == 1 ? tensor_add(old[c], w)
                         : kind == 2 ? tensor_mul_scalar(w, 1)
                         : kind == 3 ? tensor_sigmoid(old[c])
                         : kind == 4 ? tensor_scalar(0.25, TENSOR_F64)
                                     : tensor_add(old[c], old[d]));
        }
}

static void run_views(uint64_t seed)
{
    seed_now = seed;
    Tensor *leaf[LEAVES], *cell[SIZE], *found[LEAVES], *want[LEAVES];
    View view[VIEWS];
    for (int k = 0; k < LEAVES; k++)
        leaf[k] = tensor_requires_grad_(tensor_scalar(0.3 + 0.4 * k, TENSOR_F64), true);
    Tensor *start = tensor_reshape(tensor_arange(0, SIZE, 1, TENSOR_F64), SHAPE(ROWS, COLUMNS));
    Tensor *y = pick(2) ? tensor_div_scalar(tensor_clone(start), 10)
                        : tensor_mul(tensor_div_scalar(start, 10), leaf[0]);
    for (int i = 0; i < SIZE; i++)
        cell[i] = OK(tensor_clone(tensor_select(tensor_select(y, 0, i / COLUMNS), 0, i % COLUMNS)));
    view[0] = (View){ y, tensor_reshape(tensor_arange(0, SIZE, 1, TENSOR_I64), SHAPE(ROWS, COLUMNS)) };
    for (int step = 1; step < VIEWS; step++) {
        int of = pick(step), kind = pick(5), a = pick(8), b = pick(8), target = pick(step + 1);
        view[step] = (View){ OK(some_view(kind, a, b, view[of].x)), OK(some_view(kind, a, b, view[of].at)) };
        write_both(&view[target], &view[pick(step + 1)], pick(6), leaf[pick(LEAVES)], cell);
    }
    Tensor *left = tensor_scalar(0, TENSOR_F64), *right = left;
    for (int k = 0; k < VIEWS; k++) { /* every view is read, in its own weights */
        int64_t rows = tensor_size(view[k].x, 0), columns = tensor_size(view[k].x, 1), c;
        left = tensor_add(left, tensor_mul_scalar(tensor_sum(tensor_square(view[k].x)), k + 1));
        for (int64_t i = 0; i < rows * columns; i++) {
            view_at(&view[k], i / columns, i % columns, &c);
            right = tensor_add(right, tensor_mul_scalar(tensor_square(cell[c]), k + 1));
        }
        assert_sane(view[k].x);
    }
    assert_tape_sane();
    assert_near(tensor_item(left), tensor_item(right), 1e-9);
    if (!tensor_requires_grad(right)) return;
    DONE(tensor_gradients_many(TENSORS(left), TENSOR_LIST(leaf, LEAVES), found, .materialize_grads = true,
                               .retain_graph = true));
    DONE(tensor_gradients_many(TENSORS(right), TENSOR_LIST(leaf, LEAVES), want, .materialize_grads = true,
                               .retain_graph = true));
    for (int k = 0; k < LEAVES; k++) assert_tensor_close(found[k], want[k], 1e-9, 1e-9);
}

static void test_fuzz_views(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        TensorScope scope = tensor_scope_open();
        int64_t length = tensor_tape_length();
        run_views(seed);
        tensor_scope_close(scope);
        if (tensor_tape_length() != length) print_error("seed %d\n", (int)seed);
        assert_int_equal(tensor_tape_length(), length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_leaf_is_refused),
        TEST(test_view_of_a_leaf_is_refused),
        TEST(test_expanded_is_refused),
        TEST(test_result_must_fit),
        TEST(test_version_error_names_what_happened),
        TEST(test_version_is_shared),
        TEST(test_write_through_detach_is_noticed),
        TEST(test_write_to_what_nobody_saved_is_fine),
        TEST(test_consumed_entries_do_not_complain),
        TEST(test_chain_in_place),
        TEST(test_result_is_what_backward_reads),
        TEST(test_in_place_with_broadcast),
        TEST(test_in_place_under_create_graph),
        TEST(test_self_overlap),
        TEST(test_write_to_a_view_changes_the_base),
        TEST(test_write_of_a_whole_leaf),
        TEST(test_overwritten_value_gets_no_gradient),
        TEST(test_fill_and_set_cut_the_gradient),
        TEST(test_siblings_are_refreshed),
        TEST(test_view_follows_its_base),
        TEST(test_view_of_a_view),
        TEST(test_view_outlives_the_base_handle),
        TEST(test_view_of_a_leaf_after_the_step),
        TEST(test_write_to_a_view_in_no_grad),
        TEST(test_rows_written_in_a_loop),
        TEST(test_failed_write_changes_nothing),
        TEST(test_fuzz_overwriting),
        TEST(test_fuzz_views),
    };
    return cmocka_run_group_tests_name("in place", tests, NULL, NULL);
}
