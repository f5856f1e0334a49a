/* test_dict.c - dicts of names and tensors, of a few entries and of many. */
#include "clean.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(int i)
{
    static char text[32];
    snprintf(text, sizeof text, "layer.%d.weight", i);
    return text;
}

static Tensor *number(int i) { return tensor_scalar(i, TENSOR_F64); }

/* As a list that is searched would answer. */
static void expect(TensorDict d, int from, int count)
{
    assert_int_equal(d.count, count);
    for (int i = 0; i < count; i++) {
        assert_string_equal(d.item[i].name, name_of(from + i));
        assert_true(tensor_item(nn_dict_get(d, name_of(from + i))) == from + i);
    }
    assert_null(nn_dict_get(d, name_of(from + count)));
    assert_null(nn_dict_get(d, ""));
}

static void many_entries(void **state)
{
    (void)state;
    enum { N = 3000 };
    TensorDict d = { 0 };
    for (int i = 0; i < N; i++) {
        assert_int_equal(nn_dict_set(&d, name_of(i), number(-1)), 0);
        if (i % 97 == 0) assert_null(nn_dict_get(d, name_of(i + 1)));
    }
    for (int i = N - 1; i >= 0; i--) assert_int_equal(nn_dict_set(&d, name_of(i), number(i)), 0);
    expect(d, 0, N);
    TensorDict copy = nn_dict_clone(d);
    nn_dict_free(d);
    expect(copy, 0, N);
    nn_dict_free(copy);
}

/* Items that a program took away or put in by hand. */
static void entries_changed_by_hand(void **state)
{
    (void)state;
    TensorDict d = { 0 };
    for (int i = 0; i < 100; i++) nn_dict_set(&d, name_of(i), number(i));
    d.count--;
    tensor_release(d.item[99].tensor), free(d.item[99].name);
    expect(d, 0, 99);
    assert_int_equal(nn_dict_set(&d, "other", number(5)), 0);
    assert_int_equal(d.count, 100);
    assert_true(tensor_item(nn_dict_get(d, "other")) == 5);
    assert_null(nn_dict_get(d, name_of(99)));
    assert_int_equal(nn_dict_set(&d, "other", number(6)), 0);
    assert_int_equal(d.count, 100);
    for (int i = 0; i < 200; i++) nn_dict_set(&d, name_of(1000 + i), number(i));
    assert_true(tensor_item(nn_dict_get(d, "other")) == 6);
    assert_true(tensor_item(nn_dict_get(d, name_of(1150))) == 150);
    nn_dict_free(d);
    TensorDict broken = { .item = (TensorDictItem[]){ { NULL, NULL } }, .count = 1 };
    assert_null(nn_dict_get(broken, "x"));
    assert_int_equal(tensor_error_code(), TENSOR_ENULL);
    tensor_error_clear();
}

/* The dict of a module is filled again at each call. */
static void a_module_with_many_layers(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_linear(2, 2));
    for (int i = 1; i < 40; i++) nn_append(net, nn_linear(2, 2));
    for (int again = 0; again < 3; again++) {
        const TensorDict d = nn_state_dict(net);
        assert_int_equal(d.count, 80);
        assert_non_null(nn_dict_get(d, "39.bias"));
        assert_null(nn_dict_get(d, "40.bias"));
        assert_int_equal(nn_named_parameters(net).count, 80);
        assert_int_equal(nn_parameters(net).count, 80);
    }
    nn_free(net);
}

static void no_memory(void **state)
{
    (void)state;
    for (int64_t n = 1;; n++) {
        TensorDict d = { 0 };
        int set = 0;
        tensor_debug_fail_allocation(n, false);
        for (int i = 0; i < 40 && !tensor_error_code(); i++)
            set += nn_dict_set(&d, name_of(i), number(i)) == 0;
        const bool failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        tensor_error_clear();
        expect(d, 0, set);
        nn_dict_free(d);
        if (!failed) break;
    }
}

/* All of it, or nothing. */
static void no_memory_for_a_copy(void **state)
{
    (void)state;
    TensorDict d = { 0 }, copy;
    for (int i = 0; i < 3; i++) nn_dict_set(&d, name_of(i), number(i));
    for (int n = 1; n < 100; n++) {
        tensor_debug_fail_allocation(n, false);
        copy = nn_dict_clone(d);
        const bool failed = tensor_debug_allocation_failed();
        tensor_debug_fail_allocation(0, false);
        assert_int_equal(copy.count, tensor_error_code() ? -1 : 3);
        tensor_error_clear(), nn_dict_free(copy);
        if (!failed) break;
    }
    nn_dict_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(many_entries),
        SCOPED(no_memory_for_a_copy),
        SCOPED(entries_changed_by_hand),
        SCOPED(a_module_with_many_layers),
        SCOPED(no_memory),
    };
    return cmocka_run_group_tests_name("dicts", tests, NULL, NULL);
}
