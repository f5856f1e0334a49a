/* shared.cpp - static shared memory: NaN before each block.
 *
 * That of all kernels lies in one section, of which a kernel uses little or nothing.  Its pages can be read
 * only, until one is written to, so that a block costs what the last one wrote and no more. */
#include "runtime.h"
#include <csignal>
#include <vector>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#define WEAK __attribute__((weak))
WEAK void __msan_poison(const volatile void *, size_t);
WEAK extern unsigned char __start_cuemu_shared[], __stop_cuemu_shared[];
}

namespace cuemu {
static const uintptr_t PAGE = (uintptr_t)sysconf(_SC_PAGESIZE);
struct Part {
    uintptr_t from, to;
};
/* The whole pages of the section, and what of it shares its first and last page with other data. */
static Part pages, edges[2];
static std::vector<uintptr_t> written; /* pages; as long as there are pages, so that a handler can fill it */
static size_t n_written;
static bool watched; /* a kernel runs, and its faults come to on_write */
static struct sigaction before;

static void poison(uintptr_t from, uintptr_t to)
{
    forget((void *)from, to - from);
    memset((void *)from, 0xff, to - from);
    if (__msan_poison) __msan_poison((void *)from, to - from);
}

/* The first write to a page, by a kernel.  Any other fault is left to who handled it before. */
static void on_write(int, siginfo_t *fault, void *)
{
    const uintptr_t at = (uintptr_t)fault->si_addr;
    if (at < pages.from || at >= pages.to) {
        sigaction(SIGSEGV, &before, nullptr);
        return;
    }
    written[n_written] = at / PAGE * PAGE;
    mprotect((void *)written[n_written++], PAGE, PROT_READ | PROT_WRITE);
}

static bool find_pages()
{
    const uintptr_t from = (uintptr_t)__start_cuemu_shared, to = (uintptr_t)__stop_cuemu_shared;
    if (from == to) return false;
    pages = { (from + PAGE - 1) / PAGE * PAGE, to / PAGE * PAGE };
    if (pages.to < pages.from) pages = { from, from };
    edges[0] = { from, pages.from }, edges[1] = { pages.to, to };
    written.resize((pages.to - pages.from) / PAGE);
    poison(from, to);
    if (pages.from < pages.to && mprotect((void *)pages.from, pages.to - pages.from, PROT_READ)) abort();
    return true;
}

void begin_shared()
{
    static const bool any = find_pages();
    if (!any || pages.from == pages.to) return;
    poison_shared();
    for (size_t i = 0; i < n_written; i++)
        if (mprotect((void *)written[i], PAGE, PROT_READ)) abort();
    n_written = 0;
    struct sigaction write = {};
    write.sa_sigaction = on_write;
    write.sa_flags = SA_SIGINFO | SA_NODEFER;
    watched = sigaction(SIGSEGV, &write, &before) == 0;
}

void poison_shared()
{
    for (const Part &edge : edges) poison(edge.from, edge.to);
    for (size_t i = 0; i < n_written; i++) poison(written[i], written[i] + PAGE);
}

void end_shared()
{
    if (watched) sigaction(SIGSEGV, &before, nullptr);
    watched = false;
}
} // namespace cuemu
