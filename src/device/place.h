/* place.h - a device that was opened, and how its kernels are run. */
#ifndef TG_PLACE_H
#define TG_PLACE_H

#include "device/device.h"
#include "device/host.h"
#include "hidden.h"

HIDDEN_BEGIN

typedef struct Place { /* a device that was opened */
    const Device *device;
    DeviceContext *context;
    int index;
    char name[24]; /* "cuda:0" */
} Place;

extern const Place cpu_place;
const Place *find_place(const char *name, const char *op); /* opens; NULL and EDEVICE */
const Place *default_place(void);
int open_places(const Place **list, int room); /* those opened, without the host */
int describe_devices(char *text, size_t size); /* lines for tensor_build_info */
FORCE_INLINE bool on_host(const Place *place) { return place->device == &cpu_device; }

/* RUN_KERNEL - 0; or -1: the kernel failed, and an error is recorded; or the device lacks it or declined the
 * call, and nothing is.  Then, until take_decline is asked (once; true), this thread records no errors: what
 * follows from a call that will be made another way is none.  Whoever runs ops asks, and takes the other way:
 * by a composition of ops, or on the host (autograd/host.c).
 * NEED_KERNEL - where there is no other way: a decline is an error, too. */
#define KERNEL_STATUS(place, slot, args) \
    ((place)->device->slot ? (place)->device->slot((place)->context, args) : KERNEL_DECLINED)
#define RUN_KERNEL(op, place, slot, args) kernel_status(KERNEL_STATUS(place, slot, args), op, place, #slot)
#define NEED_KERNEL(op, place, slot, args) need_kernel(RUN_KERNEL(op, place, slot, args), op, place)
extern THREAD_LOCAL const char *declined; /* the slot */
int kernel_failed(int status, const char *op, const Place *place, const char *slot) COLD;
FORCE_INLINE int kernel_status(int status, const char *op, const Place *place, const char *slot)
{
    return likely(status == KERNEL_DONE) ? 0 : kernel_failed(status, op, place, slot);
}
bool take_decline(void);
int fail_declined(const char *op, const Place *place, const char *slot) COLD; /* as an error */
FORCE_INLINE int need_kernel(int status, const char *op, const Place *place)
{
    const char *slot = declined;
    return likely(!status) ? 0 : slot && take_decline() ? fail_declined(op, place, slot) : -1;
}
/* TAKES - does the device have the slot, for this dtype without a cast? */
#define TAKES(place, slot, dtype_) \
    ((place)->device->slot && ((place)->device->takes[SLOT_##slot] >> (dtype_)&1))
/* multiplied_there - do products of another device than the host read the dtype? */
FORCE_INLINE bool multiplied_there(const Place *place, int dtype)
{
    return !on_host(place) && TAKES(place, gemm, dtype);
}

/* Steps that are captured (graph/step.c).
 * graph_wait - before what waits for a device, copies from or to the host or cannot be captured otherwise:
 *     `function` `why`.  -1: an error is recorded. */
extern THREAD_LOCAL uint8_t graph_serial; /* of what this thread captures; 0: nothing */
extern THREAD_LOCAL bool graph_watches;   /* calls of ops are compared with those of the step before */
int graph_break(const char *function, const char *why) COLD;
FORCE_INLINE int graph_wait(const char *function, const char *why)
{
    return likely(!graph_serial) ? 0 : graph_break(function, why);
}

/* memory.c: bytes of tensor data on devices other than the host.
 * device_has_room - does a request stay within the device's limit?
 * count_device_bytes - of the data of a storage: made (> 0) or gone. */
bool device_has_room(const Place *place, int64_t bytes);
void count_device_bytes(const Place *place, int64_t bytes);

HIDDEN_END

#endif
