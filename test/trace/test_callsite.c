/* test_callsite.c - call sites in this very program, and files with damage.
 *
 * callsite_variants.sh tries the kinds of programs and libraries. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/callsite.h"
#include "trace/elf_image.h"

#define NOINLINE __attribute__((noinline))
#define COUNT(a) (sizeof(a) / sizeof *(a))

static _Thread_local volatile unsigned after;              /* touched after each call, or it would be a jump and leave no frame */

/* ---- the place of a call --------------------------------------------------------------------- */

static NOINLINE void *returns_to(void)
{
    return __builtin_return_address(0);
}

enum { TEXT = 300 };

static void wanted(char *text, int line, const char *function)
{
    const char *file = *__FILE__ == '/' ? strrchr(__FILE__, '/') + 1 : __FILE__;
    snprintf(text, TEXT, "%s:%d in %s", file, line, function);
}

static void assert_place(const void *address, int line, const char *function)
{
    char text[TEXT], want[TEXT];
    int n = callsite_text(address, text, sizeof text);
    wanted(want, line, function);
    assert_string_equal(text, want);
    assert_int_equal(n, strlen(text));
}

static NOINLINE void *one_line(int *line)
{
    *line = __LINE__; void *address = returns_to();
    after++;
    return address;
}

static NOINLINE void *several_lines(int *line)
{
    *line = __LINE__ + 1;
    void *volatile address = returns_to(
    );
    return address;
}

static void test_text(void **state)
{
    (void)state;
    int line;
    void *address = one_line(&line);
    assert_place(address, line, "one_line");
    address = several_lines(&line);
    assert_place(address, line, "several_lines");
    address = returns_to(); line = __LINE__;
    assert_place(address, line, "test_text");
}

static void test_text_sizes(void **state)
{
    (void)state;
    int line;
    char whole[TEXT], cut[TEXT];
    void *address = one_line(&line);
    int n = callsite_text(address, whole, sizeof whole);
    assert_true(n > 10);
    assert_int_equal(callsite_text(address, NULL, 0), 0);
    for (size_t size = 1; size < (size_t)n + 3; size++) {
        memset(cut, '#', sizeof cut);
        int length = callsite_text(address, cut, size);
        assert_int_equal(length, (size_t)n < size ? n : (int)size - 1);
        assert_memory_equal(cut, whole, (size_t)length);
        assert_int_equal(cut[length], 0);
        assert_int_equal(cut[size], '#');
    }
}

static void test_text_unknown(void **state)
{
    (void)state;
    char text[TEXT];
    const void *const nowhere[] = { NULL, (void *)1, (void *)(uintptr_t)-1, text };
    for (size_t i = 0; i < COUNT(nowhere); i++) {
        memset(text, '#', sizeof text);
        assert_int_equal(callsite_text(nowhere[i], text, sizeof text), 0);
        assert_string_equal(text, "");
        assert_false(callsite_in_library(nowhere[i]));
    }
    /* libc has no line tables here or there, but its functions have names. */
    if (callsite_text((char *)(uintptr_t)qsort + 1, text, sizeof text)) assert_non_null(strstr(text, "in "));
}

/* Who has no files left cannot search: what comes was found before. */
static void assert_known(const void *address, int line, const char *function, bool known)
{
    char text[TEXT], want[TEXT];
    struct rlimit files, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = files, none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    callsite_text(address, text, sizeof text);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    wanted(want, line, function);
    assert_int_equal(strcmp(text, want) == 0, known);
}

/* One search a place, until an object is unloaded: another may take its addresses. */
static void test_found_once(void **state)
{
    (void)state;
    int line;
    void *address = one_line(&line);
    assert_place(address, line, "one_line");
    assert_known(address, line, "one_line", true);
    void *object = dlopen("libresolv.so.2", RTLD_NOW);
    assert_non_null(object);
    assert_known(address, line, "one_line", true);
    dlclose(object);
    assert_known(address, line, "one_line", false);
    assert_place(address, line, "one_line");
    assert_known(address, line, "one_line", true);
}

/* ---- the stack ------------------------------------------------------------------------------- */

static NOINLINE void *finds(int *line)
{
    *line = __LINE__; void *address = callsite_find();
    after++;
    return address;
}

static void test_find(void **state)
{
    (void)state;
    int line;
    void *address = finds(&line);
    assert_non_null(address);
    assert_false(callsite_in_library(address));
    assert_place(address, line, "finds");
}

static void test_in_library(void **state)
{
    (void)state;
    int line;
    assert_true(callsite_in_library((char *)(uintptr_t)callsite_text + 1));
    assert_true(callsite_in_library((char *)(uintptr_t)dwarf_line_find + 1));
    assert_false(callsite_in_library(one_line(&line)));
    assert_false(callsite_in_library((char *)(uintptr_t)qsort + 1));
}

static void *work(void *arg)
{
    bool *good = arg;
    char text[TEXT], want[TEXT];
    int line;
    *good = true;
    for (int i = 0; i < 20; i++) {
        callsite_text(finds(&line), text, sizeof text);
        wanted(want, line, "finds");
        if (strcmp(text, want) != 0) *good = false;
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    bool good[3];
    pthread_t thread[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, &good[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 3; i++) assert_true(good[i]);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static uint32_t noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void read_place(const LineTables *tables, uint64_t address)
{
    LinePlace found;
    if (!dwarf_line_find(tables, address, 0, UINT64_MAX, &found)) return;
    after += (unsigned)(strlen(found.file) + (found.directory ? strlen(found.directory) : 0));
}

/* A hand-made table of version 2: one directory, two files, and rows of four bytes each. */
static const uint8_t table2[] = {
    56, 0, 0, 0,  2, 0,  34, 0, 0, 0,  1, 1, 0xfb, 14, 10,  0, 1, 1, 1, 1, 0, 0, 0, 1,
    's', 'u', 'b', 0, 0,  'a', '.', 'c', 0, 0, 0, 0,  'b', '.', 'h', 0, 1, 0, 0,  0,
    0, 5, 2, 0, 0x10, 0, 0,  10 + 5 + 8 + 14 * 4,  4, 2,  10 + 5 + 14 * 4,  2, 4,  0, 1, 1
};

static LineTables exact_copy(size_t size)           /* on the heap, so that sanitizers see one byte too far */
{
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, table2, size);
    return (LineTables){ .line = { copy, size } };
}

static void test_table(void **state)
{
    (void)state;
    LineTables t = { .line = { table2, sizeof table2 } };
    LinePlace at;
    assert_int_equal(table2[0] + 4, sizeof table2);
    assert_false(dwarf_line_find(&t, 0x1003, 0x1000, 0x2000, &at));
    assert_true(dwarf_line_find(&t, 0x1004, 0x1000, 0x2000, &at));
    assert_string_equal(at.file, "a.c");
    assert_null(at.directory);
    assert_int_equal(at.line, 9);
    assert_true(dwarf_line_find(&t, 0x100b, 0x1000, 0x2000, &at));
    assert_string_equal(at.file, "b.h");
    assert_string_equal(at.directory, "sub");
    assert_int_equal(at.line, 9);
    assert_false(dwarf_line_find(&t, 0x100c, 0x1000, 0x2000, &at));
    assert_false(dwarf_line_find(&t, 0x1004, 0x2000, 0x3000, &at));
}

static void test_table_damaged(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (size_t size = 0; size <= sizeof table2; size++) {
        LineTables t = exact_copy(size);
        read_place(&t, 0x1009);
        free((void *)(uintptr_t)t.line.data);
    }
    for (int round = 0; round < 20000; round++) {
        LineTables t = exact_copy(sizeof table2);
        uint8_t *bytes = (uint8_t *)(uintptr_t)t.line.data;
        for (int i = 0; i < 1 + round % 3; i++) bytes[noise(&seed) % sizeof table2] = (uint8_t)noise(&seed);
        read_place(&t, 0x1009);
        free(bytes);
    }
}

static void read_image(const char *path)
{
    ElfImage image;
    if (!elf_open(&image, path)) return;
    ElfSection section[3] = {
        elf_section(&image, ".debug_line"), elf_section(&image, ".debug_line_str"), elf_section(&image, ".debug_str")
    };
    LineTables t = { section[0].bytes, section[1].bytes, section[2].bytes };
    const char *function = elf_function(&image, 0x2000);
    after += elf_segments_digest(&image) + (unsigned)(function ? strlen(function) : 0);
    if (t.line.size > 5000) t.line.size = 5000;
    read_place(&t, 0x2000);
    for (int i = 0; i < 3; i++) elf_section_done(section[i]);
    elf_close(&image);
}

/* Bytes are changed, and put back, in a copy of this program: in its header and in its section headers at the end. */
static void test_image_damaged(void **state)
{
    (void)state;
    char path[] = "callsite_damaged_XXXXXX";
    ElfImage image;
    uint32_t seed = 2;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(elf_open(&image, "/proc/self/exe"));
    size_t size = image.file.size, headers = image.sections.size;
    size_t first = (size_t)(image.sections.data - image.file.data);
    assert_int_equal(write(fd, image.file.data, size), size);
    uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(bytes != MAP_FAILED);
    for (int round = 0; round < 600; round++) {
        size_t at = round % 3 ? first + noise(&seed) % headers : noise(&seed) % 64;
        bytes[at] = (uint8_t)noise(&seed);
        read_image(path);
        bytes[at] = image.file.data[at];
    }
    munmap(bytes, size);
    for (size_t part = size; part; part = part * 3 / 4) {
        assert_int_equal(ftruncate(fd, (off_t)part), 0);
        read_image(path);
    }
    elf_close(&image);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),    cmocka_unit_test(test_text_sizes),      cmocka_unit_test(test_text_unknown),
        cmocka_unit_test(test_found_once),
        cmocka_unit_test(test_find),    cmocka_unit_test(test_in_library),      cmocka_unit_test(test_threads),
        cmocka_unit_test(test_table),   cmocka_unit_test(test_table_damaged),   cmocka_unit_test(test_image_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
