/* memory.c - counts the bytes of tensor data on devices; alloc.c counts the host's. */
#include <tapegrad/debug.h>
#include <tapegrad/device.h>
#include "place.h"

enum { MOST_PLACES = 32 };

static struct Use {
    _Atomic(const Place *) place;
    _Atomic int64_t in_use, peak, requests, limit;
} use[MOST_PLACES];

/* Places never go away, so a slot is taken once. */
static struct Use *use_of(const Place *place)
{
    for (int i = 0; i < MOST_PLACES; i++) {
        const Place *here = atomic_load(&use[i].place);
        if (!here && atomic_compare_exchange_strong(&use[i].place, &here, place)) return &use[i];
        if (here == place) return &use[i];
    }
    return NULL;
}

bool device_has_room(const Place *place, int64_t bytes)
{
    const struct Use *u = use_of(place);
    const int64_t limit = u ? atomic_load(&u->limit) : 0;
    return limit == 0 || atomic_load(&u->in_use) + bytes <= limit;
}

void count_device_bytes(const Place *place, int64_t bytes)
{
    struct Use *u = use_of(place);
    if (!u) return;
    const int64_t now = atomic_fetch_add(&u->in_use, bytes) + bytes;
    if (bytes > 0) atomic_fetch_add(&u->requests, 1);
    int64_t peak = atomic_load(&u->peak);
    while (now > peak && !atomic_compare_exchange_weak(&u->peak, &peak, now)) {}
}

TensorMemory tensor_device_memory(const char *device)
{
    static const char name[] = "tensor_device_memory";
    if (!device) return fail(TENSOR_ENULL, name, "the device is NULL"), (TensorMemory){ 0 };
    const Place *place = find_place(device, name);
    if (!place) return (TensorMemory){ 0 };
    if (on_host(place)) return tensor_memory();
    const struct Use *u = use_of(place);
    DeviceMemory m = { 0 };
    if (!u) return (TensorMemory){ 0 };
    if (place->device->memory) place->device->memory(place->context, &m);
    return (TensorMemory){ .in_use = atomic_load(&u->in_use),
                           .peak = atomic_load(&u->peak),
                           .cached = m.cached,
                           .reserved = m.reserved,
                           .free = m.free,
                           .total = m.total,
                           .system_calls = atomic_load(&u->requests),
                           .limit = atomic_load(&u->limit) };
}

int tensor_device_memory_release(const char *device)
{
    const Place *place = find_place(device, "tensor_device_memory_release");
    if (!place) return -1;
    if (on_host(place)) tensor_memory_release();
    else if (place->device->release) place->device->release(place->context);
    return 0;
}

int tensor_debug_fail_device_allocation(const char *device, int64_t n, bool all_after)
{
    const Place *place = find_place(device, "tensor_debug_fail_device_allocation");
    if (!place) return -1;
    tg_fail_allocation(place->context, n, all_after);
    return 0;
}

int tensor_device_memory_set_limit(const char *device, int64_t bytes)
{
    static const char name[] = "tensor_device_memory_set_limit";
    const Place *place = find_place(device, name);
    if (!place || alloc_check_limit(name, bytes)) return -1;
    struct Use *u = on_host(place) ? NULL : use_of(place);
    if (u) atomic_store(&u->limit, bytes);
    else tensor_memory_set_limit(bytes);
    return 0;
}

int tensor_device_memory_reset_peak(const char *device)
{
    static const char name[] = "tensor_device_memory_reset_peak";
    if (!device) return fail(TENSOR_ENULL, name, "the device is NULL");
    const Place *place = find_place(device, name);
    if (!place) return -1;
    struct Use *u = on_host(place) ? NULL : use_of(place);
    if (u) atomic_store(&u->peak, atomic_load(&u->in_use));
    else tensor_memory_reset_peak();
    return 0;
}
