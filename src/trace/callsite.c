/* callsite.c - finds the user's frame on the stack, and its source line.
 *
 * A return address is that of the instruction after the call, maybe on the next line or in the next function:
 * always look up the byte before it. */
#define _GNU_SOURCE
#include "callsite.h"

#if defined(__linux__) && defined(__ELF__)

#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>
#include "elf_image.h"

/* The bounds that the linker gives the library's code; NULL in a build that did not rename it. */
extern const char __start_tapegrad_text[] __attribute__((weak, visibility("hidden")));
extern const char __stop_tapegrad_text[] __attribute__((weak, visibility("hidden")));

/* ---- the program and its shared objects ------------------------------------------------------ */

typedef struct Module {
    uintptr_t pc; /* what is asked for */
    int seen;
    bool program;               /* the executable itself: always the first one */
    uintptr_t base, low, high;  /* base: loaded minus linked; low, high: the segment of pc, as linked */
    uint32_t digest;            /* of the program headers */
    unsigned long long unloads; /* of shared objects so far */
    char path[PATH_MAX];
} Module;

static int match_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    Module *m = arg;
    bool program = m->seen++ == 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t low = segment->p_vaddr, high = low + segment->p_memsz;
        if (segment->p_type != PT_LOAD || m->pc - info->dlpi_addr < low || m->pc - info->dlpi_addr >= high)
            continue;
        m->program = program, m->unloads = info->dlpi_subs;
        m->base = info->dlpi_addr, m->low = low, m->high = high;
        m->digest = elf_digest(info->dlpi_phdr, info->dlpi_phnum * sizeof *segment);
        snprintf(m->path, sizeof m->path, "%s", program ? "/proc/self/exe" : info->dlpi_name);
        return 1;
    }
    return 0;
}

static bool find_module(const void *address, Module *m)
{
    *m = (Module){ .pc = (uintptr_t)address - 1 };
    return address && dl_iterate_phdr(match_module, m);
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool object_is(const Module *m, const char *const *names)
{
    const char *slash = strrchr(m->path, '/'), *name = slash ? slash + 1 : m->path;
    if (m->program || !strstr(name, ".so")) return false;
    for (; *names; names++)
        if (begins(name, *names)) return true;
    return false;
}

/* ---- the text -------------------------------------------------------------------------------- */

typedef struct Text {
    char *at;
    size_t size, length;
} Text;

static void put(Text *t, const char *piece, size_t length)
{
    for (; length && t->length + 1 < t->size; length--, piece++)
        t->at[t->length++] = (unsigned char)*piece < ' ' || *piece == 127 ? '?' : *piece;
    t->at[t->length] = 0;
}

static void put_place(Text *t, const LinePlace *place)
{
    const char *file = place->file, *directory = place->directory;
    char line[16];
    if (*file == '/') file = strrchr(file, '/') + 1, directory = NULL;
    if (begins(file, "./")) file += 2;
    if (directory && begins(directory, "./")) directory += 2;
    if (directory && *directory && *directory != '/' && strcmp(directory, ".") != 0) {
        put(t, directory, strlen(directory));
        put(t, "/", 1);
    }
    put(t, file, strlen(file));
    put(t, line, (size_t)snprintf(line, sizeof line, ":%u", place->line));
}

static void put_function(Text *t, const char *name)
{
    size_t length = strcspn(name + 1, ".") + 1; /* without ".constprop.0", ".cold" */
    put(t, " in ", 4);
    put(t, name, length);
}

static void put_line(Text *t, const ElfImage *image, const Module *m)
{
    ElfSection line = elf_section(image, ".debug_line"), line_str = elf_section(image, ".debug_line_str");
    ElfSection str = elf_section(image, ".debug_str");
    LineTables tables = { line.bytes, line_str.bytes, str.bytes };
    LinePlace place;
    if (dwarf_line_find(&tables, m->pc - m->base, m->low, m->high, &place)) put_place(t, &place);
    elf_section_done(line), elf_section_done(line_str), elf_section_done(str);
}

static bool open_module(ElfImage *image, const Module *m)
{
    if (!elf_open(image, m->path)) return false;
    if (elf_segments_digest(image) == m->digest) return true;
    elf_close(image);
    return false;
}

/* What was found, by address: who fails does so at the same lines again and again.  Where an object was
 * unloaded, another may lie at its addresses. */
enum { KEPT = 64, KEPT_TEXT = 120 };
static struct {
    uintptr_t pc;
    char text[KEPT_TEXT];
} kept[KEPT];
static unsigned long long kept_unloads;
static atomic_flag kept_busy = ATOMIC_FLAG_INIT; /* nobody waits for it, a forked child neither */

static bool recall(Text *t, const Module *m)
{
    const size_t i = m->pc % KEPT;
    if (atomic_flag_test_and_set(&kept_busy)) return false;
    const bool known = kept[i].pc == m->pc && kept_unloads == m->unloads;
    if (known) put(t, kept[i].text, strlen(kept[i].text));
    atomic_flag_clear(&kept_busy);
    return known;
}

/* A line that failed before is the user's: nothing need be read. */
static bool is_kept(const Module *m)
{
    char none;
    return recall(&(Text){ &none, 1, 0 }, m);
}

static void keep(const Text *t, const Module *m)
{
    const size_t i = m->pc % KEPT;
    if (t->length >= KEPT_TEXT || t->length + 1 >= t->size || atomic_flag_test_and_set(&kept_busy)) return;
    if (kept_unloads != m->unloads) memset(kept, 0, sizeof kept);
    kept_unloads = m->unloads;
    kept[i].pc = m->pc;
    memcpy(kept[i].text, t->at, t->length + 1);
    atomic_flag_clear(&kept_busy);
}

/* A function without a line has no blank before it. */
static int without_line(Text *t)
{
    if (*t->at == ' ') memmove(t->at, t->at + 1, t->length--);
    return (int)t->length;
}

int callsite_text(const void *address, char *buf, size_t size)
{
    Module m;
    ElfImage image;
    Dl_info info;
    if (!size) return 0;
    Text t = { buf, size, 0 };
    *buf = 0;
    if (!find_module(address, &m) || recall(&t, &m)) return without_line(&t);
    if (open_module(&image, &m)) {
        const char *function = elf_function(&image, m.pc - m.base);
        put_line(&t, &image, &m);
        if (function) put_function(&t, function);
        keep(&t, &m);
        elf_close(&image);
    } else if (dladdr((void *)m.pc, &info) && info.dli_sname && *info.dli_sname) {
        put_function(&t, info.dli_sname);
    }
    return without_line(&t);
}

/* ---- the stack ------------------------------------------------------------------------------- */

static bool function_is(const Module *m, const char *const *names)
{
    ElfImage image;
    bool is = false;
    if (!open_module(&image, m)) return false;
    const char *function = elf_function(&image, m->pc - m->base);
    for (; function && *names; names++) is |= begins(function, *names);
    elf_close(&image);
    return is;
}

static bool in_library(const Module *m)
{
    static const char *const objects[] = { "libtapegrad", NULL };
    static const char *const functions[] = { "tensor_", "nn_", "optim_",    "data_",
                                             "io_",     "op_", "tapegrad_", NULL };
    Module own;
    uintptr_t start = (uintptr_t)__start_tapegrad_text, stop = (uintptr_t)__stop_tapegrad_text;
    if (start && m->pc >= start && m->pc < stop) return true;
    if (object_is(m, objects)) return true; /* a plugin, or a second copy of the library */
    if (start || !find_module((const void *)((uintptr_t)callsite_note + 1), &own)) return false;
    return own.program ? m->program && function_is(m, functions) : m->base == own.base;
}

bool callsite_in_library(const void *address)
{
    Module m;
    return find_module(address, &m) && in_library(&m);
}

/* Code that stands between the library and itself: what runs its threads, and what calls it back. */
static bool in_runtime(const Module *m)
{
    static const char *const objects[] = { "libc.so",  "libc-",       "ld-",     "libpthread", "libgomp",
                                           "libomp",   "libiomp",     "libblis", "libasan",    "libtsan",
                                           "libubsan", "libclang_rt", NULL };
    static const char *const functions[] = { "GOMP_", "gomp_", "__kmp", NULL };
    return m->program ? !is_kept(m) && function_is(m, functions) : object_is(m, objects);
}

static bool in_own_text(const void *address)
{
    return (const char *)address > __start_tapegrad_text && (const char *)address <= __stop_tapegrad_text;
}

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *arg)
{
    Callsite *c = arg;
    int exact = 0; /* of a signal's frame: the instruction itself */
    uintptr_t ip = _Unwind_GetIPInfo(context, &exact);
    if (!ip) return _URC_END_OF_STACK;
    const void *address = (const void *)(ip + (exact ? 1 : 0));
    if (!in_own_text(address)) c->frame[c->frames++] = address;
    return c->frames < CALLSITE_FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void callsite_note(Callsite *c, const void *site)
{
    c->frames = 0;
    c->site = site && __start_tapegrad_text && !in_own_text(site) ? site : NULL;
    if (!c->site) _Unwind_Backtrace(note_frame, c);
}

const void *callsite_of(const Callsite *c)
{
    Module m;
    bool inside = __start_tapegrad_text != NULL; /* else the library's frames are among those noted */
    for (int i = 0; i < c->frames && !c->site; i++) {
        if (!find_module(c->frame[i], &m)) continue;
        if (in_library(&m)) inside = true;
        else if (inside && !in_runtime(&m)) return c->frame[i];
    }
    return c->site;
}

void *callsite_find(void)
{
    Callsite c;
    callsite_note(&c, NULL);
    return (void *)(uintptr_t)callsite_of(&c);
}

#else

void callsite_note(Callsite *c, const void *site) { c->site = site, c->frames = 0; }

const void *callsite_of(const Callsite *c) { return c->site; }

void *callsite_find(void) { return NULL; }

int callsite_text(const void *address, char *buf, size_t size)
{
    (void)address;
    if (size) *buf = 0;
    return 0;
}

bool callsite_in_library(const void *address)
{
    (void)address;
    return false;
}

#endif
