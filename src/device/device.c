/* device.c - devices: the CPU, and plugins, opened at their first use. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <ops_digest.h>
#include <tapegrad/device.h>
#include "place.h"

enum { MAX_PLACES = 32 };

const Place cpu_place = { .device = &cpu_device, .index = 0, .name = "cpu" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Place places[MAX_PLACES];
static int place_count;
static THREAD_LOCAL const Place *current;

const Place *default_place(void) { return current ? current : &cpu_place; }

/* Splits "cuda:1" into name and index; "cuda" is index 0. */
static bool parse(const char *text, char *name, size_t size, int *index)
{
    size_t n = strcspn(text, ":");
    if (n == 0 || n >= size) return false;
    memcpy(name, text, n);
    name[n] = 0;
    for (size_t i = 0; i < n; i++)
        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9'))) return false;
    *index = 0;
    if (!text[n]) return true;
    char *end;
    long value = strtol(text + n + 1, &end, 10);
    *index = (int)value;
    return end != text + n + 1 && !*end && value >= 0 && value < 1024;
}

/* The folder that this library was loaded from; "" when it is linked statically. */
static void own_folder(char *folder, size_t size)
{
    Dl_info info;
    folder[0] = 0;
    if (!dladdr((void *)(uintptr_t)&parse, &info) || !info.dli_fname || !strstr(info.dli_fname, ".so"))
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash) snprintf(folder, size, "%.*s/", (int)(slash - info.dli_fname), info.dli_fname);
}

static void *open_plugin(const char *name, char *why, size_t size)
{
    char folder[PATH_MAX], path[PATH_MAX + 64];
    const char *given = secure_getenv("TAPEGRAD_PLUGIN_DIR");
    void *handle = NULL;
    if (given && *given) {
        snprintf(path, sizeof path, "%s/libtapegrad_%s.so", given, name);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    own_folder(folder, sizeof folder);
    if (!handle && *folder) {
        snprintf(path, sizeof path, "%slibtapegrad_%s.so", folder, name);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!handle) {
        snprintf(path, sizeof path, "libtapegrad_%s.so", name);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!handle)
        snprintf(why, size,
                 strcmp(name, "cuda") == 0
                     ? "its plugin could not be opened: %s"
                     : "its plugin could not be opened (\"cpu\" and \"cuda:0\" are the usual devices): %s",
                 dlerror());
    return handle;
}

static const Device *load_device(const char *name, char *why, size_t size)
{
    void *handle = open_plugin(name, why, size);
    if (!handle) return NULL;
    const Device *(*entry)(void);
    *(void **)&entry = dlsym(handle, "tensor_device_plugin");
    const Device *device = entry ? entry() : NULL;
    if (!device) snprintf(why, size, "its plugin exports no device");
    else if (device->abi != DEVICE_ABI || device->size != sizeof(Device))
        snprintf(why, size,
                 "its plugin was built for another version of the library (interface %u of %u bytes, here %u "
                 "of %u): rebuild it",
                 device->abi, device->size, DEVICE_ABI, (unsigned)sizeof(Device));
    else if (strcmp(device->ops_digest, TAPEGRAD_OPS_DIGEST) != 0)
        snprintf(why, size, "its plugin was built from another ops.def (%s, here %s): rebuild it",
                 device->ops_digest, TAPEGRAD_OPS_DIGEST);
    else if (strcmp(device->name, name) != 0) snprintf(why, size, "its plugin is for \"%s\"", device->name);
    else if (!device->map || !device->copy || !device->fill || !device->reduce)
        snprintf(why, size, "its plugin lacks a kernel that every device has (map, copy, fill, reduce)");
    else return device;
    dlclose(handle);
    return NULL;
}

/* lock held */
static const Place *open_place(const char *name, int index, char *why, size_t size)
{
    const Device *device = NULL;
    for (int i = 0; i < place_count; i++) {
        if (strcmp(places[i].device->name, name) != 0) continue;
        device = places[i].device;
        if (places[i].index == index) return &places[i];
    }
    if (!device) device = load_device(name, why, size);
    if (!device) return NULL;
    if (place_count == MAX_PLACES) {
        snprintf(why, size, "%d devices are open, no more are possible", MAX_PLACES);
        return NULL;
    }
    DeviceContext *context = device->open(index, tg_alloc_must_fail);
    if (!context) {
        snprintf(why, size, "%s", device->error(NULL));
        return NULL;
    }
    Place *p = &places[place_count++];
    p->device = device, p->context = context, p->index = index;
    snprintf(p->name, sizeof p->name, "%.16s:%d", name, index);
    return p;
}

int open_places(const Place **list, int room)
{
    pthread_mutex_lock(&lock);
    const int n = place_count < room ? place_count : room;
    for (int i = 0; i < n; i++) list[i] = &places[i];
    pthread_mutex_unlock(&lock);
    return n;
}

static const Place *lookup(const char *text, char *why, size_t size)
{
    char name[16];
    int index;
    if (strcmp(text, "cpu") == 0) return &cpu_place;
    if (!parse(text, name, sizeof name, &index) || strcmp(name, "cpu") == 0) {
        snprintf(why, size, "no such device; \"cpu\" and \"cuda:0\" are the form");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    const Place *p = open_place(name, index, why, size);
    pthread_mutex_unlock(&lock);
    return p;
}

const Place *find_place(const char *name, const char *op)
{
    char why[512];
    if (!name) return fail(TENSOR_ENULL, op, "the device is NULL"), NULL;
    const Place *p = lookup(name, why, sizeof why);
    if (!p) fail(TENSOR_EDEVICE, op, "\"%.40s\": %s", name, why);
    return p;
}

int tensor_set_default_device(const char *device)
{
    const Place *p = find_place(device, "tensor_set_default_device");
    if (p) current = p;
    return p ? 0 : -1;
}

const char *tensor_default_device(void) { return default_place()->name; }

bool tensor_device_available(const char *device)
{
    char why[512];
    return device && lookup(device, why, sizeof why);
}

int tensor_synchronize(const char *device)
{
    const Place *p = find_place(device, "tensor_synchronize");
    if (!p || (!on_host(p) && graph_wait("tensor_synchronize", "waits"))) return -1;
    return kernel_status(p->device->synchronize(p->context), "tensor_synchronize", p, "synchronize");
}

void *tensor_device_stream(const char *device)
{
    const Place *p = find_place(device, "tensor_device_stream");
    return p && p->device->stream ? p->device->stream(p->context) : NULL;
}

/* ---- kernels that fail or are not there ------------------------------------------------------- */

THREAD_LOCAL const char *declined;

/* Reports an index, or another value, out of range, of a call that the device noted or no longer knows. */
static int fail_fault(const DeviceFault *f, const Place *place)
{
    static const char when[] = "told when it was waited for; TAPEGRAD_CUDA_SYNC=1 tells at once";
    char value[32], want[64];
    if (f->real) snprintf(value, sizeof value, "%g", f->number);
    else snprintf(value, sizeof value, "%lld", (long long)f->value);
    if (!f->op)
        return fail(TENSOR_EINDEX, NULL, "%s %s at position %lld of a call long ago is out of range (%s %s)",
                    f->real ? "value" : "index", value, (long long)f->position, place->name, when);
    if (f->high == INT64_MAX) snprintf(want, sizeof want, "%lld or more", (long long)f->low);
    else snprintf(want, sizeof want, "%lld to %lld", (long long)f->low, (long long)f->high);
    return fail_site((TensorStatus)f->status, f->op, f->site,
                     "%s %s at position %lld is out of range: want %s (%s %s)", f->what, value,
                     (long long)f->position, want, place->name, when);
}

/* Reports the call at which the loss of a device was noticed; that one broke it, or one queued before. */
static int fail_lost(const char *op, const Place *place)
{
    static char lost_in[MAX_PLACES][48];
    char *first = lost_in[place - places];
    pthread_mutex_lock(&lock);
    if (!*first) snprintf(first, sizeof lost_in[0], "%s", op ? op : "a call");
    pthread_mutex_unlock(&lock);
    return fail(TENSOR_EDEVICE, op,
                "%s is lost since %s: %s (its memory is gone, the program must be started again; "
                "TAPEGRAD_CUDA_SYNC=1 names the call that breaks it)",
                place->name, first, place->device->error(place->context));
}

/* Reports that a kernel found no memory for its own buffers. */
static int fail_room_of(const char *op, const Place *place)
{
    const TensorMemory m = tensor_device_memory(place->name);
    return fail(TENSOR_ENOMEM, op, "%s: %s, where %lld are in use and %lld cached, of %lld", place->name,
                place->device->error(place->context), (long long)m.in_use, (long long)m.cached,
                (long long)m.total);
}

int kernel_failed(int status, const char *op, const Place *place, const char *slot)
{
    DeviceFault f;
    if (status == KERNEL_FAILED && place->device->fault && place->device->fault(place->context, &f))
        return fail_fault(&f, place);
    if (status == KERNEL_NO_MEMORY) return fail_room_of(op, place);
    if (status != KERNEL_DECLINED && place->device->lost && place->device->lost(place->context))
        return fail_lost(op, place);
    if (status != KERNEL_DECLINED)
        return fail(TENSOR_EDEVICE, op, "%s: %s", place->name, place->device->error(place->context));
    declined = slot;
    return -1;
}

bool take_decline(void)
{
    const bool was = declined != NULL;
    declined = NULL;
    return was;
}

int fail_declined(const char *op, const Place *place, const char *slot)
{
    return fail(TENSOR_EDEVICE, op, "%s has no kernel for it (%s)", place->name, slot);
}

/* What tapegrad info prints of devices other than the CPU: those open, and cuda:0's own sentence. */
int describe_devices(char *text, size_t size)
{
    char why[512];
    const Place *cuda = lookup("cuda:0", why, sizeof why);
    int n = cuda ? snprintf(text, size, "cuda:0        %s\n", cuda->device->describe(cuda->context))
                 : snprintf(text, size, "cuda:0        not available: %s\n", why);
    return n;
}
