/* cuemu.cpp - the threads of a kernel as fibers: warps, blocks, barriers, the order in which they run.
 *
 * Build it without -fsanitize=address/thread (it hooks into them by weak symbols), but with -fsanitize=memory
 * in a MemorySanitizer build. */
#include "runtime.h"
#include <cstdarg>
#include <memory>
#include <vector>
#include <sys/mman.h>
#include <ucontext.h>

extern "C" {
#define WEAK __attribute__((weak))
WEAK void *__tsan_get_current_fiber(void);
WEAK void *__tsan_create_fiber(unsigned);
WEAK void __tsan_destroy_fiber(void *);
WEAK void __tsan_switch_to_fiber(void *, unsigned);
WEAK void __tsan_acquire(void *);
WEAK void __tsan_release(void *);
WEAK void __tsan_java_init(unsigned long, unsigned long);
WEAK void __tsan_java_alloc(unsigned long, unsigned long);
WEAK void __sanitizer_start_switch_fiber(void **, const void *, size_t);
WEAK void __sanitizer_finish_switch_fiber(void *, const void **, size_t *);
WEAK void __msan_poison(const volatile void *, size_t);
}
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace cuemu {
Exec X;
/* ---- context switch -------------------------------------------------------------------------- */
#if defined(__x86_64__) && !defined(CUEMU_UCONTEXT)
typedef void *Ctx;
extern "C" void cuemu_switch(void **save, void *load);
asm(".text\n.p2align 4\n.globl cuemu_switch\n.type cuemu_switch,@function\ncuemu_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\npopq %rcx\njmpq *%rcx\n.size "
    "cuemu_switch,.-cuemu_switch\n");
static void ctx_switch(Ctx &from, Ctx &to) { cuemu_switch(&from, to); }

static void ctx_make(Ctx &c, char *stk, size_t n, void (*fn)())
{
    uintptr_t *top = (uintptr_t *)((uintptr_t)(stk + n) & ~(uintptr_t)15);
    top[-1] = 0;
    top[-2] = (uintptr_t)fn;
    for (int i = 3; i <= 8; i++) top[-i] = 0;
    c = top - 8;
}
#else
typedef ucontext_t Ctx;
static void ctx_switch(Ctx &from, Ctx &to) { swapcontext(&from, &to); }

static void ctx_make(Ctx &c, char *stk, size_t n, void (*fn)())
{
    getcontext(&c);
    c.uc_stack.ss_sp = stk;
    c.uc_stack.ss_size = n;
    c.uc_link = nullptr;
    makecontext(&c, fn, 0);
}
#endif
/* ---- fibers, warps, one block ---------------------------------------------------------------- */
enum State : uint8_t { READY, AT_BAR, AT_WARP, DONE };
struct Fiber {
    Ctx ctx;
    State st;
    bool begun;
    uint3 idx;
    const char *file;
    int line;
    void *tsan;
    void *fake;
    char *stk; /* while it runs */
};
struct Slot {
    uint32_t mask, arrived, left;
    bool full;
    uintptr_t sync;
    uint64_t val[32];
};
struct Warp {
    uint32_t alive, slots;
    Slot s[32];
};
static const size_t STK = 256 << 10; /* three copies of a table of 32,000 bytes, where nothing is optimized */
static const unsigned MAXT = 1024;
static std::vector<Fiber> F;
static std::vector<Warp> W;
static std::vector<unsigned> order;
static std::vector<char *> idle; /* stacks; the last that a thread left is in the cache */
/* TSan's fibers of threads that ended, with their stacks.  A later kernel of the same host thread takes
 * them again, as it comes after them anyway.  Another block of a kernel does not: that would order both.
 */
struct Ended {
    void *tsan;
    char *stk;
};
static std::vector<Ended> ended, reusable;
static void *reusable_by; /* the host thread */
static const size_t MOST_ENDED = 2048;
static unsigned turn, turn_end; /* of `order`: who runs, and where its warp ends */
static Ctx mainctx;
static Fiber *cur;
static unsigned nthr, n_done, n_bar;
static const char *bar_file;
static int bar_line;
static unsigned bar_true, bar_result;
static uintptr_t bar_sync;
static bool failed;
static const Launch *L;
static void *main_tsan, *main_fake;
static const void *main_stk;
static size_t main_stkn;
static char ord_kind = 'f';
static uint64_t rng = 88172645463325252ull;

static char *sync_pool;
static size_t sync_next;

static unsigned rnd(unsigned n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)(rng % n);
}

void set_order(const char *s)
{
    ord_kind = s[0] == 'r' ? (s[1] == 'e' ? 'b' : 'r') : 'f';
    const char *c = strchr(s, ':');
    rng = 88172645463325252ull ^ (c ? strtoull(c + 1, 0, 10) * 2654435761ull : 0);
    if (!rng) rng = 1;
}

/* A fresh address is a fresh happens-before object. */
static uintptr_t new_sync()
{
    const size_t N = 16 << 20;
    if (!sync_pool)
        sync_pool =
            (char *)mmap(0, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    sync_next = (sync_next + 8) % N;
    return (uintptr_t)sync_pool + sync_next;
}

static inline void hb_release(uintptr_t a)
{
    if (__tsan_release) __tsan_release((void *)a);
}

static inline void hb_acquire(uintptr_t a)
{
    if (__tsan_acquire) __tsan_acquire((void *)a);
}

void forget(void *p, size_t n)
{
    static bool init;
    if (!__tsan_java_alloc) return;
    if (!init) {
        init = true;
        __tsan_java_init(0x1000, 0x7fffffffe000ul);
    }
    uintptr_t a = (uintptr_t)p & ~7ul, e = ((uintptr_t)p + n + 7) & ~7ul; /* it takes words */
    __tsan_java_alloc(a, e - a);
}

static void to_main()
{
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(cur->st == DONE ? nullptr : &cur->fake, main_stk, main_stkn);
    Fiber *me = cur;
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(main_tsan, 1);
    ctx_switch(me->ctx, mainctx);
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(me->fake, &main_stk, &main_stkn);
}

static uintptr_t kernel_sync, start_sync;
static void check_warp(Warp &w);
static void enter(Fiber &f)
{
    cur = &f;
    X.tidx = f.idx;
    X.lane = (unsigned)(&f - F.data()) & 31;
}

/* A thread has ended: the next one, where it is yet to begin, runs on the same stack.  Not under TSan, for
 * which each has a stack of its own. */
static bool next_begins()
{
    if (__tsan_switch_to_fiber || turn + 1 >= turn_end) return false;
    Fiber &next = F[order[turn + 1]];
    if (next.begun) return false;
    turn++;
    next.begun = true;
    next.stk = cur->stk, cur->stk = nullptr;
    enter(next);
    return true;
}

static void fiber_main()
{
    hb_acquire(start_sync);
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(nullptr, &main_stk, &main_stkn);
    do {
        L->body();
        unsigned t = (unsigned)(cur - F.data());
        Warp &w = W[t / 32];
        hb_release(kernel_sync);
        cur->st = DONE;
        n_done++;
        w.alive &= ~(1u << (t & 31));
        check_warp(w);
    } while (next_begins());
    to_main();
    abort();
}

static char *stack()
{
    if (idle.empty())
        return (char *)mmap(0, STK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                            0);
    char *stk = idle.back();
    idle.pop_back();
    return stk;
}

static void leave_stack(Fiber &f)
{
    if (f.stk) idle.push_back(f.stk);
    f.stk = nullptr;
}

static void begin(Fiber &f)
{
    f.begun = true;
    const bool again = !reusable.empty();
    if (again) {
        f.tsan = reusable.back().tsan, f.stk = reusable.back().stk;
        reusable.pop_back();
    } else {
        f.stk = stack();
    }
    /* Staggered: equal offsets would share cache sets. */
    ctx_make(f.ctx, f.stk, STK - (uintptr_t)f.stk / STK % 32 * 320, fiber_main);
    if (__tsan_create_fiber && !again) {
        forget(f.stk + STK - (16 << 10), 16 << 10);
        f.tsan = __tsan_create_fiber(0);
    }
}

/* After its block, also one that was abandoned: a fiber that did not end is not taken again. */
static void end_fiber(Fiber &f)
{
    if (f.tsan && f.st == DONE && ended.size() < MOST_ENDED) {
        ended.push_back(Ended{ f.tsan, f.stk });
    } else {
        leave_stack(f);
        if (f.tsan) __tsan_destroy_fiber(f.tsan);
    }
    f.stk = nullptr, f.tsan = nullptr;
}

static void forget_reusable(void *host)
{
    if (reusable_by == host) return;
    for (const Ended &e : reusable) {
        __tsan_destroy_fiber(e.tsan);
        idle.push_back(e.stk);
    }
    reusable.clear();
    reusable_by = host;
}

static void resume(Fiber &f)
{
    if (!f.begun) begin(f);
    enter(f);
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&main_fake, f.stk, STK);
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(f.tsan, 1);
    ctx_switch(mainctx, f.ctx);
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(main_fake, nullptr, nullptr);
    if (cur->st == DONE && !__tsan_switch_to_fiber) leave_stack(*cur);
    cur = nullptr;
}

void fail(const char *fmt, ...)
{
    char b[700];
    int n = 0;
    if (L)
        n = snprintf(b, sizeof b, "cuemu: kernel %s block (%u,%u,%u)", L->name, X.bidx.x, X.bidx.y, X.bidx.z);
    if (cur) n += snprintf(b + n, sizeof b - n, " thread (%u,%u,%u)", cur->idx.x, cur->idx.y, cur->idx.z);
    n += snprintf(b + n, sizeof b - n, ": ");
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b + n, sizeof b - n, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", b);
    failed = true;
    const char *e = getenv("CUEMU_ABORT");
    if (e && *e == '1') abort();
    if (cur) {
        to_main(); /* the block is abandoned */
        abort();
    }
}

/* Wakes the lanes of every complete operation. */
static void check_warp(Warp &w)
{
    for (uint32_t b = w.slots; b; b &= b - 1) {
        Slot &s = w.s[__builtin_ctz(b)];
        if (s.full || (s.mask & w.alive & ~s.arrived)) continue;
        s.full = true;
        for (uint32_t m = s.left; m; m &= m - 1) {
            Fiber &g = F[(&w - W.data()) * 32 + __builtin_ctz(m)];
            if (g.st == AT_WARP) g.st = READY;
        }
    }
}

/* The operation of this mask that waits for this lane, or a new one. */
static Slot *join_operation(Warp &w, unsigned mask, uint32_t bit)
{
    for (uint32_t b = w.slots; b; b &= b - 1) {
        Slot &c = w.s[__builtin_ctz(b)];
        if (!c.full && c.mask == mask && !(c.arrived & bit)) return &c;
    }
    unsigned i = (unsigned)__builtin_ctz(~w.slots);
    w.slots |= 1u << i;
    w.s[i].mask = mask;
    w.s[i].arrived = w.s[i].left = 0;
    w.s[i].full = false;
    w.s[i].sync = new_sync();
    return &w.s[i];
}

uint64_t value_of_lane(const uint64_t *value, uint32_t lanes, int lane)
{
    if (!(lanes >> lane & 1))
        fail("%s:%d: lane %u reads lane %d, which takes no part (arrived %08x)", cur->file, cur->line, X.lane,
             lane, lanes);
    return value[lane];
}

uint64_t warp(unsigned mask, uint64_t v, Combine f, int which, bool orders, const char *file, int line)
{
    unsigned t = (unsigned)(cur - F.data()), lane = t & 31;
    Warp &w = W[t / 32];
    uint32_t bit = 1u << lane;
    cur->file = file;
    cur->line = line;
    if (!(mask & bit)) fail("%s:%d: the calling lane %u is not in the mask %08x", file, line, lane, mask);
    Slot *s = join_operation(w, mask, bit);
    s->arrived |= bit;
    s->left |= bit;
    s->val[lane] = v;
    const uintptr_t sync = s->sync;
    if (orders) hb_release(sync);
    if (!(s->mask & w.alive & ~s->arrived)) check_warp(w);
    if (!s->full) {
        cur->st = AT_WARP;
        to_main();
    }
    if (orders) hb_acquire(sync);
    uint64_t r = f(s->val, s->arrived, which);
    s->left &= ~bit;
    if (!s->left) w.slots &= ~(1u << (s - w.s));
    return r;
}

/* To all of a launch: what was written before one thread's fence is seen after another's that comes later. */
void fence()
{
    hb_acquire(kernel_sync + 1);
    hb_release(kernel_sync + 1);
}

int bar(int predicate, char kind, const char *file, int line)
{
    if (!n_bar) {
        bar_true = 0;
        bar_file = file;
        bar_line = line;
        if (__tsan_release) bar_sync = new_sync();
    } else if (bar_line != line || (bar_file != file && strcmp(bar_file, file))) {
        fail("divergent barrier: this thread is at %s:%d, others wait at %s:%d", file, line, bar_file,
             bar_line);
    }
    if (n_done) fail("%s:%d: __syncthreads after %u thread(s) of the block have exited", file, line, n_done);
    uintptr_t sync = bar_sync;
    hb_release(sync);
    bar_true += predicate != 0;
    if (++n_bar == nthr) {
        n_bar = 0;
        bar_result = bar_true;
        for (unsigned i = 0; i < nthr; i++)
            if (F[i].st == AT_BAR) F[i].st = READY;
        if (ord_kind != 'f') {
            cur->st = READY; /* let the order policy choose who goes on */
            to_main();
        }
    } else {
        cur->st = AT_BAR;
        cur->file = file;
        cur->line = line;
        to_main();
    }
    hb_acquire(sync);
    return kind == 'a' ? bar_result == nthr : kind == 'o' ? bar_result > 0 : (int)bar_result;
}

static void shuffle()
{
    for (unsigned i = 0; i < nthr; i++) order[i] = ord_kind == 'b' ? nthr - 1 - i : i;
    if (ord_kind == 'r')
        for (unsigned i = nthr; i > 1; i--) std::swap(order[i - 1], order[rnd(i)]);
}

static void start_warps()
{
    for (unsigned i = 0; i < (nthr + 31) / 32; i++) {
        W[i].slots = 0;
        W[i].alive = nthr - i * 32 >= 32 ? 0xffffffffu : (1u << (nthr - i * 32)) - 1;
    }
}

static void number_threads()
{
    unsigned t = 0;
    for (unsigned z = 0; z < X.bdim.z; z++)
        for (unsigned y = 0; y < X.bdim.y; y++)
            for (unsigned x = 0; x < X.bdim.x; x++) F[t++].idx = uint3{ x, y, z };
}

static void start_fiber(Fiber &f)
{
    f.st = READY;
    f.begun = false;
    f.fake = nullptr;
}

static void poison_dynamic(size_t n)
{
    forget(X.dynamic, n);
    memset(X.dynamic, 0xff, n);
    if (__msan_poison) __msan_poison(X.dynamic, n);
}

static void report_deadlock()
{
    unsigned a = 0, b = 0, k = 0;
    char msg[400] = "";
    int n = 0;
    for (unsigned i = 0; i < nthr; i++) {
        a += F[i].st == AT_BAR;
        b += F[i].st == AT_WARP;
        if (F[i].st == DONE || k == 3 || (i > 0 && F[i].line == F[i - 1].line && F[i].st == F[i - 1].st))
            continue;
        n += snprintf(msg + n, sizeof msg - (size_t)n, " [thread %u at %s:%d]", i, F[i].file, F[i].line);
        k++;
    }
    fail("deadlock: %u at __syncthreads, %u at a shuffle, %u exited:%s", a, b, n_done, msg);
}

/* Lets the fibers of one warp run: 'fwd' and 'rev' as far as they go (their stacks stay in the cache), 'rand'
 * once each. */
static bool run_warp(unsigned w)
{
    bool ran = false, again = true;
    while (again && !failed) {
        again = false;
        turn_end = nthr < w + 32 ? nthr : w + 32;
        for (turn = w; turn < turn_end && !failed; turn++) {
            Fiber &f = F[order[turn]];
            if (f.st != READY) continue;
            ran = again = true;
            resume(f);
        }
        if (ord_kind == 'r') break;
    }
    return ran;
}

static void run_block()
{
    n_done = n_bar = 0;
    start_warps();
    poison_shared();
    if (L->shared) poison_dynamic(L->shared);
    hb_release(start_sync);
    for (unsigned t = 0; t < nthr; t++) start_fiber(F[t]);
    shuffle();
    while (n_done < nthr && !failed) {
        bool ran = false;
        for (unsigned w = 0; w < nthr && !failed; w += 32) ran = run_warp(w) || ran;
        if (!ran) report_deadlock();
        if (ord_kind == 'r') shuffle();
    }
    for (unsigned t = 0; t < nthr; t++) end_fiber(F[t]);
}

bool run_grid(const Launch &l)
{
    L = &l;
    X.gdim = l.g;
    X.bdim = l.b;
    nthr = l.b.x * l.b.y * l.b.z;
    failed = false;
    kernel_sync = new_sync();
    std::unique_ptr<unsigned char[]> dynamic(l.shared ? new unsigned char[l.shared] : nullptr);
    X.dynamic = dynamic.get();
    if (F.size() < nthr) {
        F.resize(MAXT);
        W.resize(MAXT / 32);
        order.resize(MAXT);
    }
    number_threads();
    begin_shared();
    main_tsan = __tsan_get_current_fiber ? __tsan_get_current_fiber() : nullptr;
    forget_reusable(main_tsan);
    start_sync = new_sync();
    uint64_t n = (uint64_t)l.g.x * l.g.y * l.g.z, off = ord_kind == 'r' ? rng % n : 0;
    for (uint64_t i = 0; i < n && !failed; i++) {
        uint64_t b = ord_kind == 'b' ? n - 1 - i : (i + off) % n;
        X.bidx = uint3{ (unsigned)(b % l.g.x), (unsigned)(b / l.g.x % l.g.y), (unsigned)(b / l.g.x / l.g.y) };
        run_block();
    }
    end_shared();
    hb_acquire(kernel_sync);
    reusable.insert(reusable.end(), ended.begin(), ended.end());
    ended.clear();
    L = nullptr;
    return !failed;
}
} // namespace cuemu
