/* tensor.c - the handle and its storage: make, count, inspect.  core.h states what the two counts mean. */
#include <pthread.h>
#include <stdlib.h>
#include "trace/callsite.h"
#include "core.h"
#include "thread.h"
#include "scope.h"

enum { INLINE_BYTES = 4096, HEADER = 64 }; /* small data lies behind its Storage, in one block */
_Static_assert(sizeof(Storage) <= HEADER, "data behind a Storage must stay aligned");

/* ---- storage --------------------------------------------------------------------------------- */

typedef struct Blob {
    void (*deleter)(void *data, void *ctx);
    void *ctx;
} Blob; /* deleter NULL: the memory outlives us */

static Storage *new_storage(size_t bytes, const Place *place)
{
    bool inline_data = on_host(place) && bytes <= INLINE_BYTES;
    Storage *s = tg_alloc(inline_data ? HEADER + bytes : sizeof *s);
    if (!s) return NULL;
    const bool room = on_host(place) || device_has_room(place, (int64_t)bytes);
    s->data = inline_data ? (char *)s + HEADER
              : room      ? place->device->alloc(place->context, bytes ? bytes : 1)
                          : NULL;
    if (!s->data) {
        tg_free(s, sizeof *s);
        return NULL;
    }
    if (!on_host(place)) count_device_bytes(place, (int64_t)bytes);
    s->place = place, s->bytes = bytes, s->inline_data = inline_data, s->blob = NULL;
    atomic_init(&s->writer, NULL);
    atomic_init(&s->write_site, NULL);
    atomic_init(&s->refs, 1);
    atomic_init(&s->version, 0);
    return s;
}

void storage_retain(Storage *s) { atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed); }

void storage_release(Storage *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    if (s->inline_data) {
        tg_free(s, HEADER + s->bytes);
        return;
    }
    if (s->blob) {
        if (s->blob->deleter) s->blob->deleter(s->data, s->blob->ctx);
        tg_free(s->blob, sizeof *s->blob);
    } else {
        if (!on_host(s->place)) count_device_bytes(s->place, -(int64_t)s->bytes);
        s->place->device->free(s->place->context, s->data, s->bytes ? s->bytes : 1);
    }
    tg_free(s, sizeof *s);
}

void (*storage_deleter(const Storage *s))(void *data, void *ctx) { return s->blob ? s->blob->deleter : NULL; }

/* ---- the list of living tensors, when leaks are tracked -------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool tracking;
static Tensor *live;

static COLD void track(Tensor *x)
{
    x->site = callsite_find();
    pthread_mutex_lock(&lock);
    x->live_prev = NULL, x->live_next = live;
    if (live) live->live_prev = x;
    live = x;
    pthread_mutex_unlock(&lock);
}

static COLD void untrack(Tensor *x)
{
    pthread_mutex_lock(&lock);
    if (x->live_next) x->live_next->live_prev = x->live_prev;
    if (x->live_prev) x->live_prev->live_next = x->live_next;
    else if (live == x) live = x->live_next;
    pthread_mutex_unlock(&lock);
}

void tensor_track_leaks(bool on) { atomic_store(&tracking, on); }
bool tensors_are_tracked(void) { return atomic_load(&tracking); }

void for_each_tracked(void (*fn)(const Tensor *x, void *ctx), void *ctx)
{
    pthread_mutex_lock(&lock);
    for (const Tensor *x = live; x; x = x->live_next) fn(x, ctx);
    pthread_mutex_unlock(&lock);
}

int64_t tensor_leak_report(FILE *file)
{
    int64_t n = 0;
    pthread_mutex_lock(&lock);
    for (Tensor *x = live; x; x = x->live_next, n++) {
        char where[256] = "";
        if (file && x->site && !callsite_text(x->site, where, sizeof where)) where[0] = 0;
        if (file)
            fprintf(file, "leak: %s %s, %d reference%s%s%s\n", tensor_dtype_name(x->dtype), S(x),
                    (int)references(x), references(x) == 1 ? "" : "s", *where ? ", made at " : "", where);
    }
    pthread_mutex_unlock(&lock);
    return n;
}

static bool asked_for_leaks(void)
{
    const char *on = getenv("TAPEGRAD_LEAKS");
    return on && *on && *on != '0';
}

__attribute__((constructor)) static void start_tracking(void)
{
    if (asked_for_leaks()) tensor_track_leaks(true);
}

__attribute__((destructor)) static void report_at_exit(void)
{
    if (!asked_for_leaks()) return;
    scope_thread_exit(); /* what this thread's root scope still owns is no leak */
    int64_t n = tensor_leak_report(stderr);
    fprintf(stderr, "%lld tensor%s alive at exit\n", (long long)n, n == 1 ? "" : "s");
}

/* ---- handles --------------------------------------------------------------------------------- */

static Tensor *new_handle(void)
{
    Tensor *x = tg_alloc(sizeof *x);
    if (unlikely(!x)) return NULL;
    atomic_init(&x->counts, 1);
    atomic_init(&x->holds, 1);
    x->flags = 0, x->slot = 0, x->made_in = graph_serial;
    x->entry = NULL, x->grad = NULL, x->hooks = NULL, x->base = NULL;
    x->base_epoch = x->epoch = 0;
    x->site = NULL, x->live_prev = x->live_next = NULL;
    tg_count_tensor(1);
    if (unlikely(atomic_load_explicit(&tracking, memory_order_relaxed))) track(x);
    return x;
}

static void free_handle(Tensor *x)
{
    if (unlikely(x->site || x->live_prev || x->live_next || live == x)) untrack(x);
    tg_count_tensor(-1);
    tg_free(x, sizeof *x);
}

static void set_layout(Tensor *x, int ndim, const int64_t *shape, const int64_t *stride)
{
    x->ndim = (uint8_t)ndim;
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) x->shape[i] = shape[i], x->stride[i] = stride[i], n *= shape[i];
    x->numel = n;
    if (is_dense(ndim, shape, stride)) x->flags |= FLAG_CONTIGUOUS;
}

/* Dense strides of a tensor of that shape; false where there can be none. */
static bool lay_out(TensorShape shape, int dtype, int64_t *stride)
{
    if (unlikely(shape.ndim < 0 || shape.ndim > TENSOR_MAX_DIMS || (unsigned)dtype >= TENSOR_DTYPES))
        return false;
    if (unlikely(!shape.dim && shape.ndim)) return false;
    int64_t n = 1;
    bool bad = false;
    for (int i = shape.ndim - 1; i >= 0; i--) {
        bad |= shape.dim[i] < 0;
        stride[i] = n;
        bad |= __builtin_mul_overflow(n, shape.dim[i] ? shape.dim[i] : 1, &n);
    }
    return !bad && n <= INT64_MAX / 16;
}

/* Records why lay_out refused. */
static COLD void refuse_shape(const char *op, TensorShape shape, int dtype)
{
    if (shape.ndim < 0 || shape.ndim > TENSOR_MAX_DIMS)
        fail(TENSOR_ESHAPE, op, "%d dimensions: at most %d", shape.ndim, TENSOR_MAX_DIMS);
    else if ((unsigned)dtype >= TENSOR_DTYPES) fail(TENSOR_EDTYPE, op, "no such dtype: %d", dtype);
    else if (!shape.dim && shape.ndim)
        fail(TENSOR_ENULL, op, "%d dimensions, but their sizes are NULL", shape.ndim);
    else
        fail(TENSOR_ESHAPE, op, "%s: sizes must not be negative, and their product must fit int64",
             shape_text(shape));
}

Tensor *new_tensor(TensorShape shape, int dtype, const Place *place)
{
    return new_tensor_as("tensor", shape, dtype, place);
}

/* What was asked for, and what there is; or that the device is lost. */
static COLD void fail_room(const char *name, TensorShape shape, int dtype, const Place *place)
{
    if (place->device->lost && place->device->lost(place->context)) {
        kernel_failed(KERNEL_FAILED, name, place, NULL);
        return;
    }
    const TensorMemory m = tensor_device_memory(place->name);
    char limit[48] = "";
    int64_t bytes = (int64_t)dtype_size(dtype);
    for (int i = 0; i < shape.ndim; i++) bytes *= shape.dim[i];
    if (m.limit) snprintf(limit, sizeof limit, ", the limit is %lld", (long long)m.limit);
    fail(TENSOR_ENOMEM, name,
         "no memory for %s %s on %s: %lld bytes, where %lld are in use and %lld cached, of %lld%s",
         tensor_dtype_name((TensorDtype)dtype), shape_text(shape), place->name, (long long)bytes,
         (long long)m.in_use, (long long)m.cached, (long long)m.total, limit);
}

Tensor *new_tensor_as(const char *name, TensorShape shape, int dtype, const Place *place)
{
    int64_t stride[TENSOR_MAX_DIMS];
    if (unlikely(!lay_out(shape, dtype, stride))) {
        refuse_shape(name, shape, dtype);
        return NULL;
    }
    Tensor *x = new_handle();
    if (unlikely(!x)) {
        fail_memory(name);
        return NULL;
    }
    x->dtype = (uint8_t)dtype, x->ndim = (uint8_t)shape.ndim, x->place = place, x->flags = FLAG_CONTIGUOUS;
    x->numel = 1;
    for (int i = 0; i < shape.ndim; i++)
        x->shape[i] = shape.dim[i], x->stride[i] = stride[i], x->numel *= shape.dim[i];
    x->storage = new_storage((size_t)x->numel * dtype_size(dtype), place);
    if (unlikely(!x->storage)) {
        free_handle(x);
        fail_room(name, shape, dtype, place);
        return NULL;
    }
    x->data = x->storage->data;
    return x;
}

Tensor *new_alias(Storage *storage, void *data, int dtype, int ndim, const int64_t *shape,
                  const int64_t *stride)
{
    Tensor *x = new_handle();
    if (unlikely(!x)) {
        fail_memory("tensor");
        return NULL;
    }
    x->dtype = (uint8_t)dtype, x->place = storage->place, x->storage = storage, x->data = data;
    set_layout(x, ndim, shape, stride);
    storage_retain(storage);
    return x;
}

Tensor *new_view(const Tensor *x, int ndim, const int64_t *shape, const int64_t *stride, int64_t offset)
{
    return new_alias(x->storage, (char *)x->data + offset * (int64_t)dtype_size(x->dtype), x->dtype, ndim,
                     shape, stride);
}

Tensor *tensor_from_blob(void *data, TensorShape shape, TensorDtype dtype, void (*deleter)(void *, void *),
                         void *ctx)
{
    int64_t stride[TENSOR_MAX_DIMS];
    if (!lay_out(shape, (int)dtype, stride)) return refuse_shape("tensor_from_blob", shape, (int)dtype), NULL;
    int64_t n = shape_count(shape);
    if (!data && n > 0) return fail(TENSOR_ENULL, "tensor_from_blob", "data is NULL"), NULL;
    Storage *s = tg_calloc(sizeof *s);
    Blob *blob = s ? tg_calloc(sizeof *blob) : NULL;
    if (!blob) {
        tg_free(s, sizeof *s);
        return fail_memory("tensor_from_blob"), NULL;
    }
    s->place = &cpu_place, s->data = data, s->bytes = (size_t)n * dtype_size(dtype), s->blob = blob;
    atomic_init(&s->refs, 1);
    Tensor *x = new_alias(s, data, (int)dtype, shape.ndim, shape.dim, stride);
    x = own(x);
    if (x) *blob = (Blob){ deleter, ctx }; /* not before: a failed call leaves the memory to the caller */
    storage_release(s);
    return x;
}

Tensor *tensor_retain(Tensor *x)
{
    if (!x || unlikely(!x->storage && check_null(x, "tensor_retain", 1))) return NULL;
    atomic_fetch_add_explicit(&x->counts, 1, memory_order_relaxed);
    return x;
}

int tensor_assign(Tensor **handle, Tensor *x)
{
    if (!handle) return fail(TENSOR_ENULL, "tensor_assign", "the handle is NULL");
    if (check_null(x, "tensor_assign", 2)) return -1;
    Tensor *old = *handle;
    *handle = tensor_retain(x);
    tensor_release(old);
    return 0;
}

Tensor *lend(Tensor *x)
{
    if (x) atomic_fetch_add_explicit(&x->counts, ONE_LENT + 1, memory_order_relaxed);
    return x;
}

THREAD_LOCAL void (*leaf_ended)(Tensor *leaf);

void hold_leaf(Tensor *leaf) { atomic_fetch_add_explicit(&leaf->holds, 1, memory_order_relaxed); }

void drop_leaf(Tensor *leaf)
{
    if (atomic_fetch_sub_explicit(&leaf->holds, 1, memory_order_acq_rel) == 1) free_handle(leaf);
}

/* The last reference is gone. */
static void end_tensor(Tensor *x)
{
    Tensor *grad = x->grad, *base = x->base;
    Entry *entry = x->entry;
    x->grad = x->base = NULL, x->entry = NULL;
    if (entry) entry_release_result(entry, x);
    storage_release(x->storage);
    x->storage = NULL, x->data = NULL;
    while (x->hooks) {
        Hook *hook = x->hooks;
        x->hooks = hook->next;
        tg_free(hook, sizeof *hook);
    }
    take_back(grad);
    take_back(base);
    if (unlikely(atomic_load_explicit(&x->holds, memory_order_relaxed) > 1) && leaf_ended) leaf_ended(x);
    drop_leaf(x);
}

void take_back(Tensor *x)
{
    if (!x) return;
    uint64_t before = atomic_fetch_sub_explicit(&x->counts, ONE_LENT + 1, memory_order_acq_rel);
    if ((uint32_t)before == 1) end_tensor(x);
}

Tensor *lend_living(Tensor *x)
{
    uint64_t counts = x ? atomic_load_explicit(&x->counts, memory_order_relaxed) : 0;
    while (counts && !atomic_compare_exchange_weak_explicit(&x->counts, &counts, counts + ONE_LENT + 1,
                                                            memory_order_acquire, memory_order_relaxed))
        continue;
    return counts ? x : NULL;
}

static COLD void refuse_release(const Tensor *x, uint64_t counts)
{
    if (!counts) fail(TENSOR_EVALUE, "tensor_release", "operand 1 was released before");
    else
        fail(TENSOR_EVALUE, "tensor_release",
             "%s %s belongs to a scope or is a gradient: release only what you retained",
             tensor_dtype_name((TensorDtype)x->dtype), S(x));
}

void tensor_release(Tensor *x)
{
    if (!x) return;
    uint64_t counts = atomic_load_explicit(&x->counts, memory_order_relaxed);
    do {
        if (unlikely((uint32_t)counts <= counts >> 32)) {
            refuse_release(x, counts);
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&x->counts, &counts, counts - 1, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if ((uint32_t)counts == 1) end_tensor(x);
}

bool bump_version(Tensor *x)
{
    atomic_fetch_add_explicit(&x->storage->version, 1, memory_order_relaxed);
    return true;
}

void note_write(Tensor *x, const char *writer, const void *site)
{
    atomic_store_explicit(&x->storage->writer, writer, memory_order_relaxed);
    atomic_store_explicit(&x->storage->write_site, site, memory_order_relaxed);
    bump_version(x);
}

/* ---- inspection ------------------------------------------------------------------------------ */

static const char *const dtype_names[TENSOR_DTYPES] = { "f32", "f64", "f16", "bf16",
                                                        "i64", "i32", "u8",  "bool" };

const char *tensor_dtype_name(TensorDtype dtype)
{
    return (unsigned)dtype < TENSOR_DTYPES ? dtype_names[dtype] : "?";
}

size_t tensor_dtype_size(TensorDtype dtype)
{
    return (unsigned)dtype < TENSOR_DTYPES ? dtype_size(dtype) : 0;
}

bool tensor_dtype_is_float(TensorDtype dtype)
{
    return (unsigned)dtype < TENSOR_DTYPES && dtype_is_float(dtype);
}

TensorDtype tensor_promote_types(TensorDtype a, TensorDtype b)
{
    /* bool < u8 < i32 < i64 < f16, bf16 < f32 < f64; f16 with bf16 gives f32 (torch.promote_types) */
    static const uint8_t rank[TENSOR_DTYPES] = { 6, 7, 4, 5, 3, 2, 1, 0 };
    if ((unsigned)a >= TENSOR_DTYPES || (unsigned)b >= TENSOR_DTYPES) return TENSOR_F32;
    if ((a == TENSOR_F16 && b == TENSOR_BF16) || (a == TENSOR_BF16 && b == TENSOR_F16)) return TENSOR_F32;
    return rank[a] >= rank[b] ? a : b;
}

int tensor_ndim(const Tensor *x) { return check_null(x, "tensor_ndim", 1) ? 0 : x->ndim; }

int64_t tensor_size(const Tensor *x, int dim)
{
    if (check_null(x, "tensor_size", 1)) return -1;
    int d = dim < 0 ? dim + x->ndim : dim;
    if (d < 0 || d >= x->ndim) return fail(TENSOR_EINDEX, "tensor_size", "dimension %d of %s", dim, S(x));
    return x->shape[d];
}

int64_t tensor_stride(const Tensor *x, int dim)
{
    if (check_null(x, "tensor_stride", 1)) return 0;
    int d = dim < 0 ? dim + x->ndim : dim;
    if (d < 0 || d >= x->ndim)
        return fail(TENSOR_EINDEX, "tensor_stride", "dimension %d of %s", dim, S(x)), 0;
    return x->stride[d];
}

TensorShape tensor_shape(const Tensor *x)
{
    return check_null(x, "tensor_shape", 1) ? (TensorShape){ 0, NULL } : shape_of(x);
}

int64_t tensor_numel(const Tensor *x) { return check_null(x, "tensor_numel", 1) ? 0 : x->numel; }

TensorDtype tensor_dtype(const Tensor *x)
{
    return check_null(x, "tensor_dtype", 1) ? TENSOR_F32 : (TensorDtype)x->dtype;
}

const char *tensor_device(const Tensor *x)
{
    return check_null(x, "tensor_device", 1) ? NULL : x->place->name;
}

bool tensor_is_contiguous(const Tensor *x)
{
    return !check_null(x, "tensor_is_contiguous", 1) && (x->flags & FLAG_CONTIGUOUS);
}

bool tensor_shares_storage(const Tensor *a, const Tensor *b)
{
    return !check_null(a, "tensor_shares_storage", 1) && !check_null(b, "tensor_shares_storage", 2) &&
           a->storage == b->storage;
}

void *tensor_data(const Tensor *x) { return check_null(x, "tensor_data", 1) ? NULL : x->data; }

uint32_t tensor_version(const Tensor *x)
{
    return check_null(x, "tensor_version", 1) ? 0 : atomic_load(&x->storage->version);
}

void tensor_bump_version(Tensor *x)
{
    if (!check_null(x, "tensor_bump_version", 1)) bump_version(x);
}
