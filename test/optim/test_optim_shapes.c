/* test_optim_shapes.c - every case of every optimizer over parameters of all ranks: no dimension, no element,
 * one, many.  Their states are saved and loaded, and one number is as one of a vector of one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include "kinds.h"
#include "optim_cases.h"

enum { SHAPES = 7, MOST = 600 };
static const struct {
    int ndim;
    int64_t dim[4];
} shapes[SHAPES] = { { 0, { 0 } },       { 1, { 1 } },          { 1, { 0 } },   { 2, { 3, 2 } },
                     { 3, { 2, 1, 2 } }, { 4, { 1, 2, 3, 1 } }, { 1, { MOST } } };

typedef struct Set {
    Optimizer *opt;
    Tensor *p[SHAPES];
    int n;
    bool one; /* p[0] and p[1] are one number, and a vector of one */
} Set;

static Tensor *numbers(const Tensor *like, int t)
{
    static double x[MOST];
    for (int64_t i = 0; i < tensor_numel(like); i++) x[i] = sin(0.7 * (double)i + 0.37 * t + 1);
    return tensor_to(tensor_from_data(x, tensor_shape(like), TENSOR_F64), tensor_dtype(like));
}

/* Of the shapes that the optimizer takes. */
static Set make(const Case *c, TensorDtype dtype)
{
    static KindRoom room;
    _Alignas(16) char args[OPTIM_OPTIONS];
    Set s = { 0 };
    for (int k = 0; k < SHAPES; k++) {
        Tensor *p = numbers(tensor_zeros((TensorShape){ shapes[k].ndim, shapes[k].dim }, dtype), 0);
        if (!c->kind->check_param || c->kind->check_param(p, "test") == 0)
            s.p[s.n++] = tensor_requires_grad_(p, true);
        tensor_error_clear();
        s.one |= k == 1 && s.n == 2;
    }
    kind_options(c->kind->fields, c->kind->defaults, c->kind->args, c->text[0], args, &room);
    *(TensorList *)(void *)args = TENSOR_LIST(s.p, s.n);
    s.opt = optim_new(c->kind, args);
    if (!s.opt) fail_msg("%s {%s}: %s", c->name, c->text[0], tensor_error());
    return s;
}

static void step(const Set *s, int t)
{
    TensorScope scope = tensor_scope_open();
    for (int k = 0; k < s->n; k++) assert_int_equal(tensor_set_grad(s->p[k], numbers(s->p[k], t)), 0);
    if (optim_step(s->opt)) fail_msg("%s: %s", s->opt->kind->name, tensor_error());
    tensor_scope_close(scope);
}

static void same(const Case *c, const Set *a, const Set *b)
{
    for (int k = 0; k < a->n; k++)
        if (!tensor_equal(a->p[k], b->p[k]))
            fail_msg("%s {%s}: parameter %d of %d differs", c->name, c->text[0], k, a->n);
}

static void saved_and_loaded(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++)
        for (int narrow = 0; narrow < 2; narrow++) {
            const TensorDtype dtype = narrow ? TENSOR_F32 : TENSOR_F64;
            TensorScope scope = tensor_scope_open();
            Set a = make(&optim_cases[k], dtype), b = make(&optim_cases[k], dtype);
            for (int t = 1; t <= 4; t++) step(&a, t);
            TENSOR_NO_GRAD
                for (int i = 0; i < a.n; i++) tensor_copy_(b.p[i], a.p[i]);
            TensorDict saved = nn_dict_clone(optim_state_dict(a.opt));
            assert_int_equal(optim_load_state_dict(b.opt, saved), 0);
            for (int t = 5; t <= 8; t++) step(&a, t), step(&b, t);
            same(&optim_cases[k], &a, &b);
            const TensorDict one = optim_state_dict(a.opt), other = optim_state_dict(b.opt);
            assert_int_equal(one.count, other.count);
            for (int i = 0; i < one.count; i++) {
                assert_string_equal(one.item[i].name, other.item[i].name);
                if (!tensor_allclose(one.item[i].tensor, other.item[i].tensor, 0, 0, .equal_nan = true))
                    fail_msg("%s {%s}: %s differs", optim_cases[k].name, optim_cases[k].text[0],
                             one.item[i].name);
            }
            nn_dict_free(saved);
            optim_free(a.opt), optim_free(b.opt);
            tensor_scope_close(scope);
        }
}

/* Each parameter alone in its optimizer ends where it does among others, and moves. */
static void alone_and_among_others(void **state)
{
    (void)state;
    for (int k = 0; k < optim_case_count; k++) {
        const Case *c = &optim_cases[k];
        TensorScope scope = tensor_scope_open();
        static KindRoom room;
        _Alignas(16) char args[OPTIM_OPTIONS];
        Set all = make(c, TENSOR_F64);
        for (int t = 1; t <= 5; t++) step(&all, t);
        for (int i = 0; i < all.n; i++) {
            Set one = { .n = 1 };
            one.p[0] = tensor_requires_grad_(numbers(tensor_detach(all.p[i]), 0), true);
            if (tensor_numel(one.p[0]) && tensor_equal(one.p[0], all.p[i]))
                fail_msg("%s {%s}: parameter %d stays", c->name, c->text[0], i);
            kind_options(c->kind->fields, c->kind->defaults, c->kind->args, c->text[0], args, &room);
            *(TensorList *)(void *)args = TENSORS(one.p[0]);
            one.opt = optim_new(c->kind, args);
            for (int t = 1; t <= 5; t++) step(&one, t);
            if (!tensor_equal(one.p[0], all.p[i]))
                fail_msg("%s {%s}: parameter %d depends on the others", c->name, c->text[0], i);
            optim_free(one.opt);
        }
        if (all.one && tensor_item(all.p[0]) != tensor_item(all.p[1]))
            fail_msg("%s {%s}: a number is not as a vector of one", c->name, c->text[0]);
        optim_free(all.opt);
        tensor_scope_close(scope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(saved_and_loaded), TEST(alone_and_among_others) };
    return cmocka_run_group_tests(tests, optim_read_cases, NULL);
}
