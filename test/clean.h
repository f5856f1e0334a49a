/* clean.h - what suites share: a test begins and ends with the same tensors alive, the same scopes open, and
 * without an error.
 *
 *     TEST(name)      the test opens scopes of its own
 *     SCOPED(name)    it runs in a scope
 */
#ifndef CLEAN_H
#define CLEAN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "tensor/scope.h"

static int64_t live_before;
static int depth_before;
static TensorScope around;

static inline int begin_clean(void **state)
{
    (void)state;
    live_before = tensor_live_count();
    depth_before = scope_depth();
    return 0;
}

static inline int end_clean(void **state)
{
    (void)state;
    if (tensor_error()) print_error("%s\n", tensor_error());
    const bool clean = !tensor_error() && tensor_live_count() == live_before && scope_depth() == depth_before;
    tensor_error_clear();
    return clean ? 0 : -1;
}

static inline int begin_scoped(void **state)
{
    begin_clean(state);
    around = tensor_scope_open();
    depth_before++;
    return 0;
}

static inline int end_scoped(void **state)
{
    const int inside = scope_depth() - depth_before--;
    tensor_scope_close(around);
    return inside ? -1 : end_clean(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_clean, end_clean)
#define SCOPED(name) cmocka_unit_test_setup_teardown(name, begin_scoped, end_scoped)

#endif
