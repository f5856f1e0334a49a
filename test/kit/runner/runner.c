/* runner.c - runs a group of tests as cmocka does: a test that fails, or that a signal such as SIGSEGV ends,
 * is told and counted, and the next one runs. */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cmocka.h"

enum { FAILED = 1, SKIPPED };
static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
static const char *filter;
static sigjmp_buf after;

void cmocka_set_test_filter(const char *pattern) { filter = pattern; }

void print_message(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list), fflush(stdout);
    va_end(list);
}

void print_error(const char *format, ...)
{
    va_list list;
    fflush(stdout);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
}

void _fail(const char *file, int line)
{
    print_error("%s:%d: error: Failure!\n", file, line);
    siglongjmp(after, FAILED);
}

void _skip(const char *file, int line)
{
    (void)file, (void)line;
    siglongjmp(after, SKIPPED);
}

void _assert_true(uintmax_t holds, const char *text, const char *file, int line)
{
    if (!holds) print_error("%s\n", text), _fail(file, line);
}

void _assert_int_equal(uintmax_t a, uintmax_t b, const char *file, int line)
{
    if (a != b) print_error("%" PRIdMAX " != %" PRIdMAX "\n", (intmax_t)a, (intmax_t)b), _fail(file, line);
}

void _assert_int_not_equal(uintmax_t a, uintmax_t b, const char *file, int line)
{
    if (a == b) print_error("%" PRIdMAX " twice\n", (intmax_t)a), _fail(file, line);
}

void _assert_string_equal(const char *a, const char *b, const char *file, int line)
{
    if (!a || !b || strcmp(a, b) != 0)
        print_error("\"%s\" != \"%s\"\n", a ? a : "(null)", b ? b : "(null)"), _fail(file, line);
}

void _assert_in_range(uintmax_t x, uintmax_t least, uintmax_t most, const char *file, int line)
{
    if (x < least || x > most)
        print_error("%" PRIdMAX " is not within %" PRIdMAX " and %" PRIdMAX "\n", (intmax_t)x,
                    (intmax_t)least, (intmax_t)most),
            _fail(file, line);
}

static void on_signal(int number)
{
    print_error("Test failed with exception: %s\n", strsignal(number));
    siglongjmp(after, FAILED);
}

/* 0, FAILED or SKIPPED: of a part of the test, which may jump out. */
static int guarded(const struct CMUnitTest *t, CMFixtureFunction fixture, void **state)
{
    const int jumped = sigsetjmp(after, 1);
    if (jumped) return jumped;
    if (fixture) return fixture(state) ? FAILED : 0;
    t->test_func(state);
    return 0;
}

static int run(const struct CMUnitTest *t, void **state)
{
    if (t->setup_func && guarded(t, t->setup_func, state)) return print_error("setup failed\n"), FAILED;
    const int came_of_it = guarded(t, NULL, state);
    if (t->teardown_func && guarded(t, t->teardown_func, state))
        return print_error("teardown failed\n"), FAILED;
    return came_of_it;
}

int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n,
                            CMFixtureFunction setup, CMFixtureFunction teardown)
{
    static const char *const word[] = { "[       OK ]", "[  FAILED  ]", "[  SKIPPED ]" };
    enum { SIGNALS = sizeof signals / sizeof *signals };
    struct sigaction before[SIGNALS], ours = { .sa_handler = on_signal };
    int count[3] = { 0 };
    void *group = NULL;
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &ours, &before[i]);
    print_message("[==========] %s: Running %zu test(s).\n", name, n);
    if (setup && setup(&group)) return print_error("[  FAILED  ] setup of %s\n", name), 1;
    for (size_t i = 0; i < n; i++) {
        void *state = tests[i].initial_state ? tests[i].initial_state : group;
        if (filter && fnmatch(filter, tests[i].name, 0) != 0) continue;
        print_message("[ RUN      ] %s\n", tests[i].name);
        const int came_of_it = run(&tests[i], &state);
        count[came_of_it]++;
        if (came_of_it == FAILED) print_error("%s %s\n", word[FAILED], tests[i].name);
        else print_message("%s %s\n", word[came_of_it], tests[i].name);
    }
    if (teardown && teardown(&group)) count[FAILED]++;
    print_message("[==========] %s: %d test(s) run.\n", name, count[0] + count[FAILED] + count[SKIPPED]);
    print_message("[  PASSED  ] %d test(s).\n", count[0]);
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
    return count[FAILED];
}
