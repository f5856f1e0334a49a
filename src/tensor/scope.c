/* scope.c - who owns a tensor: the innermost open scope of the thread.
 *
 *  - owned[] is the stack of tensors, each with one reference; open[] the stack of scopes: a mark and a
 * serial number.
 *  - Closing a scope releases all above its mark and pops it with every scope inside; a serial that is not on
 * the stack (closed before) is ignored.
 *  - Below the first mark lies the thread's root scope. */
#include "core.h"
#include "thread.h"

typedef struct Open {
    size_t mark, serial;
} Open;

static THREAD_LOCAL struct {
    Tensor **owned;
    size_t count, capacity;
    Open *open;
    size_t depth, open_capacity, serial;
} stack;

Tensor *own(Tensor *x)
{
    if (unlikely(!x)) return NULL;
    if (unlikely(stack.count == stack.capacity)) {
        size_t more = stack.capacity ? 2 * stack.capacity : 256;
        Tensor **grown = tg_grow(stack.owned, stack.capacity * sizeof *grown, more * sizeof *grown);
        if (!grown) {
            tensor_release(x);
            fail_memory("scope");
            return NULL;
        }
        stack.owned = grown, stack.capacity = more;
    }
    atomic_fetch_add_explicit(&x->owned, 1, memory_order_relaxed);
    return stack.owned[stack.count++] = x;
}

Tensor *borrow(Tensor *x) { return own(tensor_retain(x)); }

TensorScope tensor_scope_open(void)
{
    if (unlikely(stack.depth == stack.open_capacity)) {
        size_t more = stack.open_capacity ? 2 * stack.open_capacity : 64;
        Open *grown = tg_grow(stack.open, stack.open_capacity * sizeof *grown, more * sizeof *grown);
        if (!grown) {
            fail_memory("tensor_scope_open");
            return (TensorScope){ 0, 0 }; /* closes nothing: the temporaries stay with the scope around */
        }
        stack.open = grown, stack.open_capacity = more;
    }
    stack.open[stack.depth++] = (Open){ stack.count, ++stack.serial };
    return (TensorScope){ stack.count, stack.serial };
}

/* The tensors may own others, whose release may run hooks of the user: pop before releasing. */
static void release_down_to(size_t mark)
{
    while (stack.count > mark) {
        Tensor *x = stack.owned[--stack.count];
        atomic_fetch_sub_explicit(&x->owned, 1, memory_order_relaxed);
        tensor_release(x);
    }
}

void tensor_scope_close(TensorScope scope)
{
    size_t at = stack.depth;
    while (at > 0 && stack.open[at - 1].serial > scope.depth) at--;
    if (at == 0 || stack.open[at - 1].serial != scope.depth) return;
    stack.depth = at - 1;
    release_down_to(scope.mark);
}

Tensor *tensor_scope_return(TensorScope scope, Tensor *y)
{
    tensor_retain(y);
    tensor_scope_close(scope);
    return own(y);
}

void scope_thread_exit(void)
{
    stack.depth = 0;
    release_down_to(0);
    tg_free(stack.owned, stack.capacity * sizeof *stack.owned);
    tg_free(stack.open, stack.open_capacity * sizeof *stack.open);
    memset(&stack, 0, sizeof stack);
}
