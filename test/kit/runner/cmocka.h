/* cmocka.h - the part of cmocka's interface that the suites of the kit use: a machine with a GPU may have
 * neither cmocka's library nor its headers.  runner.c is behind it. */
#ifndef RUNNER_CMOCKA_H
#define RUNNER_CMOCKA_H
#include <stddef.h>
#include <stdint.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);
struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func, teardown_func;
    void *initial_state;
};

#define cmocka_unit_test(f)     \
    {                           \
#f, f, NULL, NULL, NULL \
    }
#define cmocka_unit_test_setup_teardown(f, setup, teardown) \
    {                                                       \
#f, f, setup, teardown, NULL                        \
    }
#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
    _cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof *(tests), setup, teardown)
#define cmocka_run_group_tests(tests, setup, teardown) \
    cmocka_run_group_tests_name(#tests, tests, setup, teardown)

/* The number of tests that failed. */
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
                            CMFixtureFunction setup, CMFixtureFunction teardown);
void cmocka_set_test_filter(const char *pattern); /* * and ? */

#define RUNNER_TEXT(at) __attribute__((format(printf, at, (at) + 1)))
void print_message(const char *format, ...) RUNNER_TEXT(1);
void print_error(const char *format, ...) RUNNER_TEXT(1);
__attribute__((noreturn)) void _fail(const char *file, int line);
__attribute__((noreturn)) void _skip(const char *file, int line);
void _assert_true(uintmax_t holds, const char *text, const char *file, int line);
void _assert_int_equal(uintmax_t a, uintmax_t b, const char *file, int line);
void _assert_int_not_equal(uintmax_t a, uintmax_t b, const char *file, int line);
void _assert_string_equal(const char *a, const char *b, const char *file, int line);
void _assert_in_range(uintmax_t x, uintmax_t least, uintmax_t most, const char *file, int line);

#define fail() _fail(__FILE__, __LINE__)
#define fail_msg(...)                       \
    do {                                    \
        print_error("ERROR: " __VA_ARGS__); \
        print_error("\n"), fail();          \
    } while (0)
#define skip() _skip(__FILE__, __LINE__)
#define assert_true(c) _assert_true((uintmax_t)(c), #c, __FILE__, __LINE__)
#define assert_false(c) _assert_true(!(c), "!(" #c ")", __FILE__, __LINE__)
#define assert_non_null(p) _assert_true((p) != NULL, #p " != NULL", __FILE__, __LINE__)
#define assert_null(p) _assert_true((p) == NULL, #p " == NULL", __FILE__, __LINE__)
#define assert_int_equal(a, b) _assert_int_equal((uintmax_t)(a), (uintmax_t)(b), __FILE__, __LINE__)
#define assert_int_not_equal(a, b) _assert_int_not_equal((uintmax_t)(a), (uintmax_t)(b), __FILE__, __LINE__)
#define assert_ptr_equal(a, b) _assert_int_equal((uintptr_t)(a), (uintptr_t)(b), __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b) _assert_int_not_equal((uintptr_t)(a), (uintptr_t)(b), __FILE__, __LINE__)
#define assert_string_equal(a, b) _assert_string_equal(a, b, __FILE__, __LINE__)
#define assert_in_range(x, least, most) \
    _assert_in_range((uintmax_t)(x), (uintmax_t)(least), (uintmax_t)(most), __FILE__, __LINE__)

#endif
