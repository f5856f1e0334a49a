/* scope.c - ownership of tensors: the thread's innermost open scope owns each result.
 *
 *  - owned[] is the stack of tensors, each with one reference; open[] is the stack of scopes: a mark and a
 * serial number, whose upper bits are the thread's number.
 *  - Closing a scope releases all above its mark and pops it with every scope inside.  A serial of this
 * thread that is not on the stack was closed before and is ignored; one of another thread is an error.
 *  - Below the first mark lies the thread's root scope. */
#include "core.h"
#include "scope.h"
#include "thread.h"

enum { SERIAL_BITS = 40 };

typedef struct Open {
    size_t mark;
    uint64_t serial;
} Open;

static THREAD_LOCAL struct {
    Tensor **owned;
    size_t count, capacity;
    Open *open;
    size_t depth, open_capacity;
    uint64_t serial; /* of the last scope; 0: this thread has opened none */
} stack;

static COLD void *grow(void *old, size_t *capacity, size_t item, size_t least)
{
    const size_t more = *capacity ? 2 * *capacity : least;
    void *grown = tg_grow(old, *capacity * item, more * item);
    if (!grown) return NULL;
    thread_owns(THREAD_SCOPES, scope_thread_exit);
    *capacity = more;
    return grown;
}

static COLD int grow_stack(void)
{
    Tensor **grown = grow(stack.owned, &stack.capacity, sizeof *grown, 256);
    if (!grown) return fail_memory("scope");
    stack.owned = grown;
    return 0;
}

Tensor *own(Tensor *x)
{
    if (unlikely(!x)) return NULL;
    if (unlikely(stack.count == stack.capacity) && grow_stack()) {
        tensor_release(x);
        return NULL;
    }
    atomic_fetch_add_explicit(&x->counts, ONE_LENT, memory_order_relaxed);
    return stack.owned[stack.count++] = x;
}

Tensor *own_lent(Tensor *x)
{
    if (unlikely(!x)) return NULL;
    if (unlikely(stack.count == stack.capacity) && grow_stack()) {
        take_back(x);
        return NULL;
    }
    return stack.owned[stack.count++] = x;
}

int scope_room(void) { return unlikely(stack.count == stack.capacity) ? grow_stack() : 0; }
Tensor *borrow(Tensor *x) { return own_lent(lend(x)); }

static COLD uint64_t number_of_thread(void)
{
    static _Atomic uint64_t threads;
    return atomic_fetch_add(&threads, 1) + 1;
}

TensorScope tensor_scope_open(void)
{
    if (unlikely(stack.depth == stack.open_capacity)) {
        Open *grown = grow(stack.open, &stack.open_capacity, sizeof *grown, 64);
        if (!grown) {
            fail_memory("tensor_scope_open");
            return (TensorScope){ 0, 0 }; /* closes nothing: the temporaries stay with the scope around */
        }
        stack.open = grown;
    }
    if (unlikely(stack.serial == 0)) stack.serial = number_of_thread() << SERIAL_BITS;
    stack.open[stack.depth++] = (Open){ stack.count, ++stack.serial };
    return (TensorScope){ stack.count, stack.serial };
}

int scope_depth(void) { return (int)stack.depth; }

/* The tensors may own others, whose release may run hooks of the user: pop before releasing. */
static void release_down_to(size_t mark)
{
    while (stack.count > mark) take_back(stack.owned[--stack.count]);
}

void tensor_scope_close(TensorScope scope)
{
    size_t at = stack.depth;
    while (at > 0 && stack.open[at - 1].serial > scope.depth) at--;
    if (at == 0 || stack.open[at - 1].serial != scope.depth) {
        if (scope.depth && scope.depth >> SERIAL_BITS != stack.serial >> SERIAL_BITS)
            fail(TENSOR_EVALUE, "tensor_scope_close", "a scope that another thread opened");
        return;
    }
    stack.depth = at - 1;
    release_down_to(scope.mark);
}

Tensor *tensor_scope_return(TensorScope scope, Tensor *y)
{
    if (y && check_null(y, "tensor_scope_return", 2)) y = NULL;
    lend(y);
    tensor_scope_close(scope);
    return own_lent(y);
}

void scope_thread_exit(void)
{
    stack.depth = 0;
    release_down_to(0);
    tg_free(stack.owned, stack.capacity * sizeof *stack.owned);
    tg_free(stack.open, stack.open_capacity * sizeof *stack.open);
    memset(&stack, 0, sizeof stack);
}
