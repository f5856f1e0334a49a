/* saved.c - saved values: checked before backward reads them, packed and unpacked by hooks (saved.h).
 *
 *  - A packed value has no storage: its data is the Packed.  During its entry's backward it has storage and
 * data again; saved_end removes the storage.
 *  - Leaves that require a gradient are never packed: a recorded sweep finds them by their storage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "graph_ops.h"
#include "modes.h"
#include "tape.h"
#include "tensor/thread.h"
#include "trace/callsite.h"

THREAD_LOCAL TensorSavedHooks saved_hooks;

/* ---- blocks ---------------------------------------------------------------------------------- */

static void drop_hooks(void);

static void set_hooks(TensorSavedHooks hooks)
{
    if (hooks.pack && !saved_hooks.pack) thread_owns(THREAD_SAVED_HOOKS, drop_hooks);
    const int change = (hooks.pack != NULL) - (saved_hooks.pack != NULL);
    saved_hooks = hooks;
    if (change) atomic_fetch_add(&call_modes, change);
}

TensorSavedHooks tensor_saved_hooks_begin(TensorSavedHooks hooks)
{
    const TensorSavedHooks before = saved_hooks;
    if (!hooks.pack != !hooks.unpack)
        fail(TENSOR_EVALUE, "tensor_saved_hooks_begin", "%s is NULL: want both pack and unpack",
             hooks.pack ? "unpack" : "pack");
    else set_hooks(hooks);
    return before;
}

void tensor_saved_hooks_end(TensorSavedHooks before) { set_hooks(before); }
static void drop_hooks(void) { set_hooks((TensorSavedHooks){ NULL }); }

/* ---- one value ------------------------------------------------------------------------------- */

typedef struct Quiet { /* what hooks run without */
    TensorSavedHooks hooks;
    bool grad, autocast;
} Quiet;

static Quiet quiet_begin(void)
{
    const Quiet was = { saved_hooks, tensor_set_grad_enabled(false), autocast_switch(false) };
    set_hooks((TensorSavedHooks){ NULL });
    return was;
}

static void quiet_end(const Quiet *was)
{
    set_hooks(was->hooks);
    autocast_switch(was->autocast);
    tensor_set_grad_enabled(was->grad);
}

/* A hook that failed without an error of its own gets one. */
static int hook_failed(const char *name, const void *site, const char *hook)
{
    return tensor_error_code() ? -1 : fail_site(TENSOR_EUSER, name, site, "%s of a saved value failed", hook);
}

Packed *pack_value(const char *name, Tensor *x)
{
    Packed *p = tg_alloc(sizeof *p);
    if (!p) return fail_memory(name), NULL;
    *p = (Packed){ .hooks = saved_hooks, .place = x->place, .dtype = x->dtype, .ndim = x->ndim };
    memcpy(p->shape, x->shape, sizeof p->shape);
    const TensorScope scope = tensor_scope_open();
    const Quiet was = quiet_begin();
    p->handle = scope_failed(scope) ? NULL : p->hooks.pack(x, p->hooks.ctx);
    quiet_end(&was);
    tensor_scope_close(scope);
    if (p->handle) return p;
    tg_free(p, sizeof *p);
    return hook_failed(name, NULL, "pack"), NULL;
}

void drop_packed(Packed *p)
{
    if (p->hooks.drop) p->hooks.drop(p->handle, p->hooks.ctx);
    tg_free(p, sizeof *p);
}

Tensor *unpack_value(const char *name, const void *site, const Packed *p)
{
    const unsigned before = failure_count;
    const Quiet was = quiet_begin();
    Tensor *x = p->hooks.unpack(p->handle, p->hooks.ctx);
    quiet_end(&was);
    if (!x || failed_since(before)) return hook_failed(name, site, "unpack"), NULL;
    const TensorShape shape = { p->ndim, p->shape };
    if (check_null(x, name, 1)) return NULL;
    if (!shape_equal(shape_of(x), shape)) {
        fail_site(TENSOR_ESHAPE, name, site, "unpack gave %s for a saved value %s", S(x), shape_text(shape));
        return NULL;
    }
    if (x->place != p->place) x = own(raw_carry(x, p->place));
    return x && x->dtype != p->dtype ? own(raw_cast(x, p->dtype)) : x;
}

/* ---- those of an entry ----------------------------------------------------------------------- */

static bool stays(const Entry *e, const Saved *v)
{
    const Tensor *leaf = v->kind == SAVED_INPUT ? e->edge[v->index].leaf : NULL;
    return leaf && !(leaf->flags & FLAG_STANDIN);
}

int saved_pack_all(Entry *e)
{
    for (int i = 0; i < e->saves; i++) {
        Saved *v = &e->saved[i];
        if (stays(e, v)) continue;
        Tensor *x = new_alias(v->storage, v->data, v->dtype, v->ndim, v->shape, v->stride);
        Packed *p = x ? pack_value(e->op->name, x) : NULL;
        tensor_release(x);
        if (!p) return -1;
        storage_release(v->storage);
        v->storage = NULL, v->data = p;
    }
    return 0;
}

/* Puts the unpacked value back into the entry, with the strides that unpack chose. */
static int put_back(const Entry *e, Saved *v)
{
    Tensor *x = unpack_value(e->op->name, e->site, v->data);
    if (!x) return -1;
    storage_retain(x->storage);
    v->storage = x->storage, v->data = x->data;
    v->version = atomic_load_explicit(&x->storage->version, memory_order_relaxed);
    memcpy((int64_t *)(uintptr_t)v->stride, x->stride, (size_t)x->ndim * sizeof *x->stride);
    return 0;
}

static int check_version(const Entry *e, const Saved *v)
{
    const uint32_t now = atomic_load_explicit(&v->storage->version, memory_order_relaxed);
    if (likely(now == v->version)) return 0;
    const char *writer = atomic_load(&v->storage->writer);
    const void *site = atomic_load(&v->storage->write_site);
    char where[200];
    bool known = site && !callsite_in_library(site) && callsite_text(site, where, sizeof where);
    return fail_entry(
        TENSOR_EGRAD, e,
        "backward needs %s %d %s, which was overwritten in place%s%s%s%s: version %u was saved, "
        "it is at %u now",
        v->kind == SAVED_INPUT    ? "operand"
        : v->kind == SAVED_OUTPUT ? "its result"
                                  : "saved tensor",
        v->index + 1, shape_text((TensorShape){ v->ndim, v->shape }), writer ? " by " : "",
        writer ? writer : "", known ? " at " : "", known ? where : "", v->version, now);
}

int saved_begin(Entry *e, Packed **packed)
{
    if (e->freed && e->saves)
        return fail_entry(TENSOR_EGRAD, e,
                          "backward a second time: the values it saved were freed by the first sweep; "
                          "give that one .retain_graph = true");
    for (int i = 0; i < e->saves; i++) {
        Saved *v = &e->saved[i];
        if (likely(v->storage != NULL)) {
            if (check_version(e, v)) return -1;
            continue;
        }
        Packed *p = v->data;
        if (put_back(e, v)) return -1;
        packed[i] = p;
    }
    return 0;
}

void saved_end(Entry *e, Packed *const *packed)
{
    for (int i = 0; i < e->saves; i++) {
        if (likely(!packed[i])) continue;
        Saved *v = &e->saved[i];
        storage_release(v->storage);
        v->storage = NULL, v->data = packed[i];
    }
}

/* ---- hooks that are there already ------------------------------------------------------------ */

static void *keep(Tensor *x) { return x ? tensor_retain(x) : NULL; }
static Tensor *unpack_kept(void *x, void *ctx) { return (void)ctx, borrow(x); }
static void drop_kept(void *x, void *ctx) { (void)ctx, tensor_release(x); }

static void *pack_narrow(Tensor *x, void *ctx)
{
    const TensorDtype dtype = (TensorDtype)(uintptr_t)ctx;
    if (!tensor_dtype_is_float(dtype))
        return fail(TENSOR_EDTYPE, "tensor_save_in", "%s is no floating dtype", tensor_dtype_name(dtype)),
               NULL;
    return keep(dtype_is_float(x->dtype) && dtype_size(x->dtype) > dtype_size(dtype) ? graph_ops.to(x, dtype)
                                                                                     : x);
}

static void *pack_on_cpu(Tensor *x, void *ctx) { return (void)ctx, keep(graph_ops.to_device(x, "cpu")); }

TensorSavedHooks tensor_save_in(TensorDtype dtype)
{
    return (TensorSavedHooks){ pack_narrow, unpack_kept, drop_kept, (void *)(uintptr_t)dtype };
}

TensorSavedHooks tensor_save_on_cpu(void)
{
    return (TensorSavedHooks){ pack_on_cpu, unpack_kept, drop_kept, NULL };
}

/* ---- on disk: the bytes of a dense tensor, a file each ---- */

typedef struct OnDisk {
    size_t bytes, size;
    TensorDtype dtype;
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS];
    char path[];
} OnDisk;

static void drop_file(void *packed, void *ctx)
{
    OnDisk *f = packed;
    (void)ctx;
    unlink(f->path);
    tg_free(f, f->size);
}

static int disk_failed(const char *path, const char *what)
{
    return fail(TENSOR_EIO, "tensor_save_on_disk", "%s: %s: %s", path, what, strerror(errno));
}

static int write_file(const OnDisk *f, const void *data)
{
    const int fd = mkstemp((char *)(uintptr_t)f->path);
    if (fd < 0) return disk_failed(f->path, "cannot be made");
    FILE *file = fdopen(fd, "wb");
    bool written = file && fwrite(data, 1, f->bytes, file) == f->bytes;
    if (file ? fclose(file) != 0 : close(fd) != 0) written = false;
    return written ? 0 : (disk_failed(f->path, "cannot be written"), unlink(f->path), -1);
}

static void *pack_on_disk(Tensor *x, void *ctx)
{
    static const char name[] = "/tapegrad-saved-XXXXXX";
    const char *folder = ctx;
    Tensor *host = own(raw_carry(x, &cpu_place)), *dense = host ? own(raw_contiguous(host)) : NULL;
    const size_t size = sizeof(OnDisk) + strlen(folder) + sizeof name;
    OnDisk *f = dense ? tg_alloc(size) : NULL;
    if (!f) return dense ? fail_memory("tensor_save_on_disk"), NULL : NULL;
    *f = (OnDisk){
        .bytes = (size_t)x->numel * dtype_size(x->dtype), .size = size, .dtype = x->dtype, .ndim = x->ndim
    };
    memcpy(f->shape, x->shape, sizeof f->shape);
    snprintf(f->path, size - sizeof *f, "%s%s", folder, name);
    if (!write_file(f, dense->data)) return f;
    tg_free(f, size);
    return NULL;
}

static Tensor *unpack_from_disk(void *packed, void *ctx)
{
    const OnDisk *f = packed;
    (void)ctx;
    Tensor *x = own(new_tensor((TensorShape){ f->ndim, f->shape }, f->dtype, &cpu_place));
    errno = 0;
    FILE *file = x ? fopen(f->path, "rb") : NULL;
    const bool read = file && fread(x->data, 1, f->bytes, file) == f->bytes;
    if (x && !read && file) errno = errno ? errno : ENODATA;
    if (x && !read) disk_failed(f->path, "cannot be read"), x = NULL;
    if (file) fclose(file);
    return x;
}

TensorSavedHooks tensor_save_on_disk(const char *folder)
{
    if (!folder)
        return fail(TENSOR_ENULL, "tensor_save_on_disk", "folder is NULL"), (TensorSavedHooks){ NULL };
    return (TensorSavedHooks){ pack_on_disk, unpack_from_disk, drop_file, (void *)(uintptr_t)folder };
}
