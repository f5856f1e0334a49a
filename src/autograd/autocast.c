/* autocast.c - the dtype an op computes in inside TENSOR_AUTOCAST (autocast.h).
 *
 *  - The state is the thread's.  call_modes counts the threads that are inside a block.
 *  - A table keeps casts of leaves.  It holds the leaf's struct and storage, so that neither address is
 * reused, and its version, which changes on a write.  A cast made without a graph is not used where one is
 * recorded, nor the reverse. */
#include "modes.h"
#include "graph_ops.h"
#include "tensor/thread.h"

const TensorAutocastArgs tensor_autocast_defaults = { TENSOR_AUTOCAST_DEFAULTS };

static _Atomic int matmul_precision;

typedef struct Kept {
    Tensor *leaf, *cast; /* held, lent */
    Storage *storage;
    uint32_t version;
    bool graph;
} Kept;

static THREAD_LOCAL struct {
    TensorAutocast now;
    const TensorOp *widened;
    Kept *kept; /* hashed by the leaf's address; a power of two of places, at most half of them taken */
    size_t places, count;
} state;

/* ---- the table ------------------------------------------------------------------------------- */

static Kept *place_of(Kept *kept, size_t places, const Tensor *leaf)
{
    size_t at = (size_t)(((uintptr_t)leaf >> 6) * 0x9E3779B97F4A7C15u >> 20) & (places - 1);
    while (kept[at].leaf && kept[at].leaf != leaf) at = (at + 1) & (places - 1);
    return &kept[at];
}

static void let_go(Kept *k)
{
    take_back(k->cast);
    storage_release(k->storage);
    drop_leaf(k->leaf);
}

static void clear_kept(void)
{
    Kept *kept = state.kept;
    const size_t places = state.places;
    state.kept = NULL, state.places = state.count = 0;
    for (size_t i = 0; i < places; i++)
        if (kept[i].leaf) let_go(&kept[i]);
    tg_free(kept, places * sizeof *kept);
}

void tensor_clear_autocast_cache(void)
{
    clear_kept();
    cast_ahead_forget();
}

static bool grow(void)
{
    const size_t more = state.places ? 2 * state.places : 64;
    Kept *kept = tg_calloc(more * sizeof *kept);
    if (!kept) return false;
    for (size_t i = 0; i < state.places; i++)
        if (state.kept[i].leaf) *place_of(kept, more, state.kept[i].leaf) = state.kept[i];
    tg_free(state.kept, state.places * sizeof *kept);
    state.kept = kept, state.places = more;
    return true;
}

static uint32_t version_of(const Tensor *x)
{
    return atomic_load_explicit(&x->storage->version, memory_order_relaxed);
}

static Tensor *find_cast(const Tensor *leaf, int dtype)
{
    const Kept *k = state.places ? place_of(state.kept, state.places, leaf) : NULL;
    const bool serves = k && k->leaf && k->storage == leaf->storage && k->version == version_of(leaf) &&
                        k->cast->dtype == dtype && k->graph == !grad_off;
    return serves ? k->cast : NULL;
}

/* Without memory the cast is not kept; that is no error. */
static void keep_cast(Tensor *leaf, Tensor *cast)
{
    if (2 * (state.count + 1) > state.places && !grow()) return;
    Kept *k = place_of(state.kept, state.places, leaf), old = *k;
    if (!old.leaf) state.count++;
    hold_leaf(leaf);
    storage_retain(leaf->storage);
    *k = (Kept){ .leaf = leaf,
                 .cast = lend(cast),
                 .storage = leaf->storage,
                 .version = version_of(leaf),
                 .graph = !grad_off };
    if (old.leaf) let_go(&old);
}

/* ---- casts ----------------------------------------------------------------------------------- */

static bool may_cast(const Tensor *x)
{
    return x && x->storage && dtype_is_float(x->dtype) && x->dtype != TENSOR_F64;
}

static int class_of(const TensorOp *op, Tensor *const *inputs, int n)
{
    const unsigned class = op->autocast ? op->autocast : op->row ? op->row->autocast : 0;
    for (int i = 0; i < n && i < OP_MAX_INPUTS; i++)
        if (inputs[i] && inputs[i]->storage && !on_host(inputs[i]->place)) return class >> 4;
    return class & 15;
}

bool autocast_is_of_parts(const TensorOp *op, Tensor *const *inputs, int n)
{
    return class_of(op, inputs, n) == (AUTOCAST_PARTS & 15);
}

int autocast_target(const TensorOp *op, Tensor *const *inputs, int n, const void *params)
{
    const int class = class_of(op, inputs, n);
    if (params && op->cast_option &&
        *(const unsigned *)(const void *)((const char *)params + op->cast_option) < TENSOR_DTYPES)
        return -1;
    if (class == (AUTOCAST_LOWER & 15)) return state.now.dtype;
    if (class == (AUTOCAST_F32 & 15)) return TENSOR_F32;
    int widest = -1;
    for (int i = 0; class == (AUTOCAST_PROMOTE & 15) && i < n; i++)
        if (may_cast(inputs[i]))
            widest = widest < 0 ? inputs[i]->dtype
                                : (int)tensor_promote_types((TensorDtype)widest, inputs[i]->dtype);
    return widest;
}

Tensor *autocast_cast(Tensor *x, int dtype)
{
    if (!may_cast(x) || x->dtype == dtype) return x;
    const bool leaf = !x->entry && (x->flags & FLAG_REQUIRES_GRAD) && !x->base && x->dtype == TENSOR_F32;
    const bool keeps = leaf && state.now.cache_enabled && state.now.depth > 0;
    Tensor *cast = keeps ? find_cast(x, dtype) : NULL;
    if (cast) return borrow(cast);
    if (keeps && cast_ahead(x, dtype)) return NULL;
    const bool on = autocast_switch(false);
    cast = graph_ops.to(x, (TensorDtype)dtype);
    autocast_switch(on);
    if (keeps && cast) keep_cast(x, cast);
    return cast;
}

const TensorOp *autocast_widen(const TensorOp *op)
{
    const TensorOp *before = state.widened;
    state.widened = op;
    return before;
}

bool autocast_widens(const TensorOp *op) { return state.widened == op; }

/* ---- blocks ---------------------------------------------------------------------------------- */

TensorAutocast autocast_state(void) { return state.now; }

TensorAutocast autocast_enter(TensorAutocast as)
{
    TensorAutocastArgs args = tensor_autocast_defaults;
    args.dtype = as.dtype, args.enabled = as.enabled, args.cache_enabled = as.cache_enabled;
    if (as.depth) return tensor_autocast_begin_args(args);
    const TensorAutocast before = state.now;
    state.now.enabled = false;
    return before;
}

bool autocast_is_on(void) { return state.now.enabled; }

bool autocast_switch(bool on)
{
    const bool was = state.now.enabled;
    state.now.enabled = on;
    return was;
}

/* The thread ends. */
static void end_all_blocks(void)
{
    tensor_autocast_end((TensorAutocast){ .enabled = false });
    cast_ahead_forget();
}

TensorAutocast tensor_autocast_begin_args(TensorAutocastArgs args)
{
    static const char name[] = "tensor_autocast_begin";
    const TensorAutocast before = state.now;
    if (TENSOR_CHECK_OPTIONS(name, args, tensor_autocast_defaults)) return before;
    if (args.dtype != TENSOR_BF16 && args.dtype != TENSOR_F16) {
        fail(TENSOR_EDTYPE, name, "autocast to %s: want %s or %s", tensor_dtype_name(args.dtype),
             tensor_dtype_name(TENSOR_BF16), tensor_dtype_name(TENSOR_F16));
        return before;
    }
    if (!before.depth) {
        thread_owns(THREAD_AUTOCAST, end_all_blocks);
        atomic_fetch_add(&call_modes, 1);
    }
    state.now = (TensorAutocast){ .dtype = args.dtype,
                                  .enabled = args.enabled,
                                  .cache_enabled = args.cache_enabled,
                                  .depth = before.depth + 1 };
    return before;
}

void tensor_autocast_end(TensorAutocast before)
{
    const int depth = state.now.depth;
    if (before.depth < 0 || before.depth > depth) return; /* not of this thread, or closed before */
    state.now = before;
    if (before.depth || !depth) return;
    atomic_fetch_sub(&call_modes, 1);
    clear_kept();
    cast_ahead_end_block();
}

bool tensor_autocast_enabled(void) { return state.now.enabled; }
TensorDtype tensor_autocast_dtype(void) { return state.now.depth ? state.now.dtype : TENSOR_BF16; }

/* ---- products -------------------------------------------------------------------------------- */

int tensor_set_float32_matmul_precision(TensorMatmulPrecision precision)
{
    static const char *const precisions[] = { "highest", "high", "medium", NULL };
    if (tensor_check_choice(__func__, "precision", (int)precision, precisions)) return -1;
    atomic_store(&matmul_precision, (int)precision);
    return 0;
}

TensorMatmulPrecision tensor_get_float32_matmul_precision(void)
{
    return (TensorMatmulPrecision)atomic_load(&matmul_precision);
}
