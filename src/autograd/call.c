/* call.c - the functions of an OpCall (autograd.h). */
#include "tensor/core.h"
#include "graph_ops.h"
#include "modes.h"
#include "slots.h"
#include "tape.h"

int op_inputs(const OpCall *c) { return c->n; }
Tensor *op_input(const OpCall *c, int i) { return i >= 0 && i < c->n && c->input ? c->input[i] : NULL; }
Tensor *op_output(const OpCall *c, int i) { return i >= 0 && i < c->outputs ? c->output[i] : NULL; }
const void *op_params(const OpCall *c) { return c->params; }
void *op_params_mut(OpCall *c) { return c->params; }

int op_set_list(OpCall *c, TensorShape *list, int n, const int64_t *values)
{
    if (!c->list || c->lists == CALL_LISTS || n < 0 || n > TENSOR_MAX_DIMS)
        return op_fail(c, TENSOR_EVALUE, "cannot keep a list of %d values: %d lists of %d are possible", n,
                       c->list ? CALL_LISTS : 0, TENSOR_MAX_DIMS);
    int64_t *to = c->list[c->lists++];
    memmove(to, values, (size_t)n * sizeof *to);
    *list = (TensorShape){ n, to };
    return 0;
}

bool op_recording(const OpCall *c) { return c->backward && !grad_off; }
bool op_wants(const OpCall *c, int i) { return c->wants && i >= 0 && i < c->n && c->wants[i]; }
bool op_has_grad(const OpCall *c, int k) { return c->grads && k >= 0 && k < c->outputs && c->grads[k]; }

const Place *call_place(const OpCall *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->input[i]) return c->input[i]->place;
    return &cpu_place;
}

int op_set_output(OpCall *c, int i, TensorShape shape, TensorDtype dtype)
{
    if (i < 0 || i >= CALL_MAX_OUTPUTS || i > c->outputs)
        return op_fail(c, TENSOR_EUSER, "op_set_output of result %d out of order (%d so far, at most %d)",
                       i + 1, c->outputs, CALL_MAX_OUTPUTS);
    if (shape_count(shape) < 0)
        return op_fail(c, TENSOR_ESHAPE,
                       "a result %s from %s: sizes must not be negative, nor their product beyond int64",
                       shape_text(shape), c->input[0] ? S(c->input[0]) : "nothing");
    Tensor *y = own(new_tensor(shape, dtype, call_place(c)));
    if (!y) return c->failed = true, -1;
    c->output[i] = y;
    if (i == c->outputs) c->outputs++;
    return 0;
}

int op_set_result(OpCall *c, int i, Tensor *result)
{
    if (!result) {
        c->failed = true;
        return tensor_error_code() ? -1 : op_fail(c, TENSOR_EUSER, "result %d is NULL", i + 1);
    }
    if (i < 0 || i >= CALL_MAX_OUTPUTS || i > c->outputs)
        return op_fail(c, TENSOR_EUSER, "op_set_result of result %d out of order (%d so far, at most %d)",
                       i + 1, c->outputs, CALL_MAX_OUTPUTS);
    c->output[i] = result;
    if (i == c->outputs) c->outputs++;
    return 0;
}

int op_same_shape(OpCall *c)
{
    const Tensor *x = c->input[0];
    return op_set_output(c, 0, shape_of(x), (TensorDtype)x->dtype);
}

int op_save(OpCall *c, Tensor *x)
{
    if (!x) return c->failed = true, -1;
    if (c->extras == CALL_MAX_EXTRA)
        return op_fail(c, TENSOR_EUSER, "saves more than %d tensors", CALL_MAX_EXTRA);
    c->extra[c->extras++] = x;
    return 0;
}

int op_commit(OpCall *c, Tensor *to, Tensor *from)
{
    if (!to || !from) return c->failed = true, -1;
    if (c->backward || c->commits == CALL_COMMITS || !shape_equal(shape_of(to), shape_of(from)))
        return op_fail(c, TENSOR_EUSER, "op_commit of %s to %s: want one shape, and at most %d in a call",
                       S(from), S(to), CALL_COMMITS);
    Tensor *made = raw_cast(from, to->dtype); /* all that can fail, now */
    if (!made) return c->failed = true, -1;
    c->commit[c->commits].to = tensor_retain(to), c->commit[c->commits++].from = made;
    return 0;
}

/* ---- dense arrays for kernels of one's own --------------------------------------------------- */

static Staged *staged(OpCall *c, int i, bool output)
{
    int count = output ? c->staged_outputs : c->n;
    if (c->n + c->staged_outputs > CALL_STAGED) {
        op_fail(c, TENSOR_EUSER, "has more operands and results than %d, the most that can be read as arrays",
                CALL_STAGED);
        return NULL;
    }
    if (!c->staged || i < 0 || i >= count || (!output && !c->input[i])) {
        op_fail(c, TENSOR_EUSER, "asks for %s %d, which is not there", output ? "result" : "operand", i + 1);
        return NULL;
    }
    if (!c->staging) memset(c->staged, 0, sizeof(Staged) * CALL_STAGED);
    c->staging = true;
    return &c->staged[output ? c->n + i : i];
}

static Tensor *blob(const Tensor *like, void *data, int dtype)
{
    return tensor_from_blob(data, shape_of(like), (TensorDtype)dtype, NULL, NULL);
}

/* The array behind input i in the given dtype: the tensor's own when it is dense and of that dtype, else a
 * copy. */
static void *stage(OpCall *c, int i, bool output, int dtype, void **slot)
{
    Tensor *x = output ? c->output[i] : c->input[i];
    if (x->dtype == dtype && (x->flags & FLAG_CONTIGUOUS) && on_host(x->place)) return x->data;
    if (*slot) return *slot;
    size_t bytes = (size_t)(x->numel ? x->numel : 1) * dtype_size(dtype);
    *slot = tg_alloc(bytes);
    if (!*slot) {
        c->failed = true;
        fail_memory(c->name);
        return NULL;
    }
    if (output) return *slot;
    Tensor *copy = blob(x, *slot, dtype);
    if (!copy || raw_copy(copy, x)) c->failed = true;
    return c->failed ? NULL : *slot;
}

const double *op_input_f64(OpCall *c, int i)
{
    Staged *s = staged(c, i, false);
    return s ? stage(c, i, false, TENSOR_F64, (void **)&s->f64) : NULL;
}

const float *op_input_f32(OpCall *c, int i)
{
    Staged *s = staged(c, i, false);
    return s ? stage(c, i, false, TENSOR_F32, (void **)&s->f32) : NULL;
}

double *op_output_f64(OpCall *c, int i)
{
    Staged *s = staged(c, i, true);
    return s ? stage(c, i, true, TENSOR_F64, (void **)&s->f64) : NULL;
}

float *op_output_f32(OpCall *c, int i)
{
    Staged *s = staged(c, i, true);
    return s ? stage(c, i, true, TENSOR_F32, (void **)&s->f32) : NULL;
}

/* After forward: casts results that were written into staging arrays to their own dtype. */
int store_staged(OpCall *c)
{
    for (int i = 0; i < c->staged_outputs; i++) {
        Staged *s = &c->staged[c->n + i];
        if (!s->f64 && !s->f32) continue;
        Tensor *from = blob(c->output[i], s->f64 ? (void *)s->f64 : s->f32, s->f64 ? TENSOR_F64 : TENSOR_F32);
        if (!from || raw_copy(c->output[i], from)) return -1;
    }
    return 0;
}

static int64_t count_of(const OpCall *c, const Tensor *x, int at)
{
    if (c->failed) return 0;
    if (c->entry) return shape_count((TensorShape){ c->entry->meta[at].ndim, c->entry->meta[at].shape });
    return x ? x->numel : 0;
}

int64_t op_count(const OpCall *c, int i)
{
    return i < 0 || i >= c->n ? 0 : count_of(c, c->entry ? NULL : c->input[i], i);
}

int64_t op_output_count(const OpCall *c, int i)
{
    return i < 0 || i >= c->outputs ? 0 : count_of(c, c->entry ? NULL : c->output[i], c->n + i);
}

/* ---- in backward ----------------------------------------------------------------------------- */

static Tensor *on_hosts_side(Tensor *x, bool recording)
{
    return recording ? graph_ops.to_device(x, cpu_place.name) : own(raw_carry(x, &cpu_place));
}

/* What backward gets.  A recorded backward is made of ops, each of which would round halves: it runs in f32,
 * and the sweep casts its gradients. */
static Tensor *widened(OpCall *c, Tensor *x)
{
    if (x && c->by_host && !on_host(x->place)) x = on_hosts_side(x, op_recording(c));
    if (x && op_recording(c) && dtype_is_half(x->dtype)) x = graph_ops.to(x, TENSOR_F32);
    if (!x) c->failed = true;
    return x;
}

static Tensor *saved(OpCall *c, int kind, int i, const char *what)
{
    for (int s = 0; c->entry && s < c->entry->saves; s++) {
        const Saved *v = &c->entry->saved[s];
        if (v->kind != kind || v->index != i) continue;
        return widened(c, saved_unpack(c->entry, v, !grad_off));
    }
    op_fail(c, TENSOR_EUSER, "backward reads %s %d, which .keep does not name", what, i + 1);
    return NULL;
}

bool saved_to_overwrite(OpCall *c, const Tensor *x)
{
    int held = 0;
    for (int s = 0; c->entry && s < c->entry->saves; s++) held += c->entry->saved[s].storage == x->storage;
    const int refs = atomic_load_explicit(&x->storage->refs, memory_order_acquire);
    if (x->storage->blob || refs != held + 1 || held > (c->frees ? 1 : 0)) return false;
    if (held) c->spent = true;
    return true;
}

bool gradient_to_overwrite(const OpCall *c, int input, const Tensor *dy, Tensor *const *dx)
{
    for (int i = 0; i < c->n; i++)
        if (i < input ? dx[i] == dy : i > input && op_wants(c, i)) return false;
    return c->grads && dy == c->grads[0] && !dy->entry && !anomaly_on && ours_alone(dy);
}

Tensor *op_saved(OpCall *c, int i) { return saved(c, SAVED_INPUT, i, "operand"); }
Tensor *op_saved_output(OpCall *c, int i) { return saved(c, SAVED_OUTPUT, i, "result"); }
Tensor *op_saved_extra(OpCall *c, int k) { return saved(c, SAVED_EXTRA, k, "extra"); }

Tensor *op_grad(OpCall *c, int k)
{
    if (!c->grads || k < 0 || k >= c->outputs) {
        op_fail(c, TENSOR_EUSER, "op_grad(%d): there are %d results", k, c->outputs);
        return NULL;
    }
    if (c->grads[k]) return widened(c, c->grads[k]);
    const Meta *m = &c->entry->meta[c->n + k];
    Tensor *zero = own(new_tensor((TensorShape){ m->ndim, m->shape }, m->dtype, m->place));
    return widened(c, zero && !raw_fill(zero, 0) ? zero : NULL);
}

TensorShape op_input_shape(const OpCall *c, int i)
{
    if (i < 0 || i >= c->n) return (TensorShape){ 0, NULL };
    if (c->entry) return (TensorShape){ c->entry->meta[i].ndim, c->entry->meta[i].shape };
    return c->input[i] ? shape_of(c->input[i]) : (TensorShape){ 0, NULL };
}

TensorDtype op_input_dtype(const OpCall *c, int i)
{
    if (i < 0 || i >= c->n) return TENSOR_F32;
    if (c->entry) return (TensorDtype)c->entry->meta[i].dtype;
    return c->input[i] ? (TensorDtype)c->input[i]->dtype : TENSOR_F32;
}

int gradient_dtype(const OpCall *c, int i)
{
    const int dtype = op_input_dtype(c, i);
    const Entry *from = c->entry ? c->entry->edge[i].from : NULL;
    const bool wider = from && from->op == graph_ops.cast && from->meta[0].dtype == TENSOR_F32;
    return wider && dtype_is_half(dtype) ? TENSOR_F32 : dtype;
}

int result_dtype(const OpCall *c, int i)
{
    return autocast_widens(c->op) && dtype_is_half(c->input[i]->dtype) ? TENSOR_F32 : c->input[i]->dtype;
}

TensorShape op_output_shape(const OpCall *c, int i)
{
    if (i < 0 || i >= c->outputs) return (TensorShape){ 0, NULL };
    if (c->entry) return (TensorShape){ c->entry->meta[c->n + i].ndim, c->entry->meta[c->n + i].shape };
    return shape_of(c->output[i]);
}

/* ---- plain arrays in backward ---------------------------------------------------------------- */

/* Arrays carry no graph: a recorded sweep that read them would have 0 as its gradient's gradient. */
static bool may_read_arrays(OpCall *c)
{
    if (!c->backward) return op_fail(c, TENSOR_EUSER, "asks for an array of backward outside it"), false;
    if (!op_recording(c)) return true;
    op_fail(c, TENSOR_EGRAD,
            "its backward works on arrays, which cannot be recorded (create_graph): make the gradients of "
            "ops where op_recording says so");
    return false;
}

/* x as a dense array, its own or a copy that lives until backward returns. */
static void *array_of(OpCall *c, Tensor *x, int dtype)
{
    if (x && !on_host(x->place)) {
        kernel_failed(KERNEL_DECLINED, c->name, x->place, "arrays");
        c->failed = true;
        return NULL;
    }
    Tensor *dense = x ? own(raw_cast(x, dtype)) : NULL;
    if (!dense) c->failed = true;
    return dense ? dense->data : NULL;
}

static void *gradient_array(OpCall *c, int i, int dtype)
{
    if (!op_wants(c, i) || !may_read_arrays(c)) return NULL;
    if (!c->dx[i]) {
        Tensor *dx = own(new_tensor(op_input_shape(c, i), dtype, &cpu_place));
        if (!dx || raw_fill(dx, 0)) return c->failed = true, NULL;
        c->dx[i] = dx;
    }
    if (c->dx[i]->dtype != dtype)
        return op_fail(c, TENSOR_EUSER, "writes the gradient of operand %d as f32 and as f64", i + 1), NULL;
    return c->dx[i]->data;
}

#define ARRAYS(suffix, type, dtype)                                                   \
    const type *op_saved_##suffix(OpCall *c, int i)                                   \
    {                                                                                 \
        return may_read_arrays(c) ? array_of(c, op_saved(c, i), dtype) : NULL;        \
    }                                                                                 \
    const type *op_saved_output_##suffix(OpCall *c, int i)                            \
    {                                                                                 \
        return may_read_arrays(c) ? array_of(c, op_saved_output(c, i), dtype) : NULL; \
    }                                                                                 \
    const type *op_saved_extra_##suffix(OpCall *c, int k)                             \
    {                                                                                 \
        return may_read_arrays(c) ? array_of(c, op_saved_extra(c, k), dtype) : NULL;  \
    }                                                                                 \
    const type *op_grad_##suffix(OpCall *c, int k)                                    \
    {                                                                                 \
        return may_read_arrays(c) ? array_of(c, op_grad(c, k), dtype) : NULL;         \
    }                                                                                 \
    type *op_gradient_##suffix(OpCall *c, int i) { return gradient_array(c, i, dtype); }
ARRAYS(f64, double, TENSOR_F64)
ARRAYS(f32, float, TENSOR_F32)
