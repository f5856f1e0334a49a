/* checkpoint.c - checkpoints: segments that recompute their saved values in backward (saved.h).
 *
 *   forward   runs under hooks that keep nothing but a number for each value that an op saves
 *   backward  unpacks a number: the segment runs again, under hooks that keep every value by its number
 *
 *  - The graph is that of the first run; the second one's is freed with its scope.  So gradients flow and
 * accumulate as without a checkpoint.
 *  - The second run starts from stand-ins: leaves with the values of the inputs.  Inputs that are leaves are
 *  used themselves: leaves are not packed, and both runs must number the same values.
 *  - The outer checkpoint's hooks save the inputs of a nested one, so the outer one keeps nothing of its
 *  inside. */
#include <tapegrad/saved.h>
#include "modes.h"
#include "random/random_state.h"
#include "tape.h"

typedef struct Input {
    Tensor *leaf;   /* lent: the input itself */
    Tensor *alias;  /* its values, of no graph */
    Packed *packed; /* what the hooks around made of them */
    uint32_t version;
    bool wants;
} Input;

typedef struct Frame {
    const char *name; /* in errors */
    int refs;         /* the call, and each number that an entry keeps */
    bool again;
    TensorFunction one; /* one of both */
    TensorSegment many;
    void *ctx;
    int n, m;
    bool open;              /* the first run is not over */
    int64_t numbers, count; /* given in the first run, so far, and in the second */
    Tensor **value;         /* of the second run, by number; NULL: taken, or not there */
    int64_t room;           /* of value */
    bool torch_masks;
    TensorAutocast autocast;
    TensorGenerator random;
    Input input[];
} Frame;

typedef struct Number {
    Frame *frame;
    int64_t number;
} Number;

static size_t frame_bytes(int n) { return sizeof(Frame) + (size_t)n * sizeof(Input); }

/* ---- what a frame keeps ---------------------------------------------------------------------- */

static void drop_values(Frame *f)
{
    Tensor **value = f->value;
    f->value = NULL;
    for (int64_t i = 0; value && i < f->room; i++) tensor_release(value[i]);
    tg_free(value, (size_t)f->room * sizeof *value);
}

static void frame_unref(Frame *f)
{
    if (--f->refs) return;
    drop_values(f);
    for (int i = 0; i < f->n; i++) {
        take_back(f->input[i].leaf);
        tensor_release(f->input[i].alias);
        if (f->input[i].packed) drop_packed(f->input[i].packed);
    }
    tg_free(f, frame_bytes(f->n));
}

static bool is_true_leaf(const Tensor *x)
{
    return !x->entry && (x->flags & FLAG_REQUIRES_GRAD) && !(x->flags & FLAG_STANDIN);
}

static uint32_t version_of(const Tensor *x)
{
    return atomic_load_explicit(&x->storage->version, memory_order_relaxed);
}

static Tensor *alias_of(const Tensor *x) { return new_view(x, x->ndim, x->shape, x->stride, 0); }

static int keep_input(const char *name, Input *in, Tensor *x)
{
    const int recorded = history_of(x);
    if (recorded < 0) return -1;
    in->wants = recorded, in->version = version_of(x);
    if (is_true_leaf(x)) return in->leaf = lend(x), 0;
    in->alias = alias_of(x);
    if (!in->alias || !saved_hooks.pack) return in->alias ? 0 : -1;
    in->packed = pack_value(name, in->alias);
    tensor_release(in->alias);
    in->alias = NULL;
    return in->packed ? 0 : -1;
}

static Frame *frame_new(const char *name, Tensor *const *inputs, int n)
{
    Frame *f = tg_calloc(frame_bytes(n));
    if (!f) return fail_memory(name), NULL;
    f->name = name, f->refs = 1, f->n = n;
    f->torch_masks = random_torch_masks();
    f->autocast = autocast_state();
    random_save(&f->random);
    for (int i = 0; i < n; i++)
        if (inputs[i] && (check_null(inputs[i], name, i + 3) || keep_input(name, &f->input[i], inputs[i]))) {
            frame_unref(f);
            return NULL;
        }
    return f;
}

/* ---- the runs -------------------------------------------------------------------------------- */

static void *pack(Tensor *x, void *ctx)
{
    Frame *f = ctx;
    Number *number = tg_alloc(sizeof *number);
    if (!number) return fail_memory(f->name), NULL;
    if (f->again && f->count < f->room) f->value[f->count] = tensor_retain(x);
    *number = (Number){ f, f->again ? f->count++ : f->numbers++ };
    f->refs++;
    return number;
}

static void drop(void *packed, void *ctx)
{
    Number *number = packed;
    (void)ctx;
    frame_unref(number->frame);
    tg_free(number, sizeof *number);
}

static Tensor *unpack(void *packed, void *ctx);

static int call(Frame *f, Tensor *const *inputs, Tensor **outputs)
{
    const unsigned before = failure_count;
    const TensorSavedHooks hooks = tensor_saved_hooks_begin((TensorSavedHooks){ pack, unpack, drop, f });
    int status = 0;
    if (f->many) status = f->many(inputs, f->n, outputs, f->m, f->ctx);
    else outputs[0] = f->one((Tensor **)(uintptr_t)inputs, f->n, f->ctx);
    tensor_saved_hooks_end(hooks);
    if (!status && !failed_since(before) && (f->many || outputs[0])) return 0;
    return tensor_error_code() ? -1 : fail(TENSOR_EUSER, f->name, "the function failed without saying why");
}

static Tensor *stand_in(const char *name, Input *in, int i)
{
    Tensor *x = in->packed ? unpack_value(name, NULL, in->packed) : in->alias ? in->alias : in->leaf;
    if (!x) return NULL;
    if (!x->storage) return fail(TENSOR_EGRAD, name, "input %d was released", i), NULL;
    if (!in->packed && version_of(x) != in->version) {
        fail(TENSOR_EGRAD, name, "input %d %s was overwritten in place: it cannot be computed from again", i,
             S(x));
        return NULL;
    }
    if (in->leaf) return borrow(x);
    x = own(alias_of(x));
    if (x && in->wants) x->flags |= FLAG_REQUIRES_GRAD | FLAG_STANDIN;
    return x;
}

static int run_again(Frame *f)
{
    Tensor *inputs[OP_MAX_INPUTS] = { NULL }, *outputs[CALL_MAX_OUTPUTS];
    drop_values(f);
    f->room = f->numbers;
    f->value = tg_calloc((size_t)f->room * sizeof *f->value);
    if (!f->value) return fail_memory(f->name);
    const TensorScope scope = tensor_scope_open();
    int status = scope_failed(scope) ? -1 : 0;
    for (int i = 0; i < f->n && !status; i++) {
        Input *in = &f->input[i];
        if (!in->leaf && !in->alias && !in->packed) continue;
        inputs[i] = stand_in(f->name, in, i + 1);
        status = inputs[i] ? 0 : -1;
    }
    TensorGenerator now;
    random_save(&now);
    random_restore(&f->random);
    const bool masks = tensor_use_torch_dropout(f->torch_masks), grad = tensor_set_grad_enabled(true);
    const TensorAutocast autocast = autocast_enter(f->autocast);
    f->again = true, f->count = 0;
    if (!status) status = call(f, inputs, outputs);
    f->again = false;
    tensor_autocast_end(autocast);
    tensor_set_grad_enabled(grad);
    tensor_use_torch_dropout(masks);
    random_restore(&now);
    if (!status && !f->open && f->count != f->numbers)
        status = fail(TENSOR_EGRAD, f->name,
                      "the second run saved %lld values, the first one %lld: the function must do the same",
                      (long long)f->count, (long long)f->numbers);
    tensor_scope_close(scope);
    if (status) drop_values(f);
    return status;
}

/* A value is taken once: a later sweep, as after .retain_graph, computes again.  A sweep inside the function
 * itself finds it while it runs, and leaves it. */
static Tensor *unpack(void *packed, void *ctx)
{
    const Number *number = packed;
    Frame *f = number->frame;
    (void)ctx;
    const int64_t i = number->number;
    if (f->again) return i < f->count && f->value[i] ? borrow(f->value[i]) : NULL;
    if ((!f->value || i >= f->room || !f->value[i]) && run_again(f)) return NULL;
    Tensor *x = f->value[i];
    f->value[i] = NULL;
    return own(x);
}

static int checkpoint(const char *name, TensorFunction one, TensorSegment many, void *ctx,
                      Tensor *const *inputs, int n, Tensor **outputs, int m)
{
    for (int k = 0; k < m; k++) outputs[k] = NULL;
    if (!one && !many) return fail(TENSOR_ENULL, name, "the function is NULL");
    if (n < 0 || n > OP_MAX_INPUTS || m < 1 || m > CALL_MAX_OUTPUTS)
        return fail(TENSOR_EVALUE, name, "%d inputs and %d results: at most %d and %d are possible", n, m,
                    OP_MAX_INPUTS, CALL_MAX_OUTPUTS);
    if (n && !inputs) return fail(TENSOR_ENULL, name, "%d inputs, but the array is NULL", n);
    Frame *f = frame_new(name, inputs, n);
    if (!f) return -1;
    f->one = one, f->many = many, f->ctx = ctx, f->m = m;
    f->open = true;
    int status = call(f, inputs, outputs);
    f->open = false;
    frame_unref(f);
    for (int k = 0; k < m && status; k++) outputs[k] = NULL;
    return status;
}

Tensor *tensor_checkpoint_list(TensorFunction fn, void *ctx, TensorList inputs)
{
    Tensor *y = NULL;
    return checkpoint("tensor_checkpoint", fn, NULL, ctx, inputs.item, inputs.count, &y, 1) ? NULL : y;
}

int tensor_checkpoint_many(TensorSegment fn, void *ctx, TensorList inputs, Tensor **outputs, int m)
{
    static const char name[] = "tensor_checkpoint_many";
    if (!outputs) return fail(TENSOR_ENULL, name, "room for %d results, but the array is NULL", m);
    return checkpoint(name, NULL, fn, ctx, inputs.item, inputs.count, outputs, m);
}
