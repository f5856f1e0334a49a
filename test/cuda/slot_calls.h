/* slot_calls.h - what ops ask of a device: its kernels are called by way of functions that look on, or that
 * answer for one of them without a call. */
#ifndef SLOT_CALLS_H
#define SLOT_CALLS_H

#include "tensor/core.h"

enum { MADE = 256, SLOTS_SEEN = 64 };

/* What a structured kernel was given that a copy had made: of halves in f32, or of strided memory
 * as dense. */
typedef enum CopyKind { WIDENED, MADE_DENSE, COPY_KINDS } CopyKind;

typedef struct SlotCalls {
    int64_t calls[KERNEL_SLOTS], fed[COPY_KINDS][KERNEL_SLOTS];
    int64_t from_host, to_host;
} SlotCalls;

static SlotCalls slot_calls;
static struct {
    KernelSlot slot; /* KERNEL_SLOTS: none */
    int status;      /* KERNEL_DECLINED, ... */
} slot_answer = { KERNEL_SLOTS, KERNEL_DONE };
static const Device *watched; /* the device itself */
static struct {
    const void *at;
    CopyKind kind;
} made[MADE];

static const char *const slot_name[KERNEL_SLOTS] = {
#define K(slot, Args) #slot,
    KERNEL_LIST(K) LIST_KERNELS(K)
#undef K
};

static inline void forget(const void *memory)
{
    for (int i = 0; i < MADE; i++)
        if (made[i].at == memory) made[i].at = NULL;
}

static inline void note_copy(const CopyArgs *a)
{
    const int from = a->src.dtype, to = a->dst.dtype;
    forget(a->dst.data);
    if (from != to && !(dtype_is_half(from) && to == TENSOR_F32)) return; /* another was asked for */
    for (int i = 0; i < MADE; i++)
        if (!made[i].at) {
            made[i].at = a->dst.data, made[i].kind = from == to ? MADE_DENSE : WIDENED;
            return;
        }
}

/* Which of the words of a call's arguments are where a copy was put? */
static inline void look_at(KernelSlot slot, const void *args, size_t size)
{
    slot_calls.calls[slot]++;
    if (slot == SLOT_copy) note_copy(args);
    if (slot <= SLOT_reduce) return; /* these take any strides, and halves; the rest is structured */
    for (size_t at = 0; at + sizeof(void *) <= size; at += sizeof(void *)) {
        const void *word;
        memcpy(&word, (const char *)args + at, sizeof word);
        for (int i = 0; i < MADE && word; i++)
            if (made[i].at == word) slot_calls.fed[made[i].kind][slot]++;
    }
}

#define K(slot_, Args)                                                   \
    static int watch_##slot_(DeviceContext *context, Args *args)         \
    {                                                                    \
        look_at(SLOT_##slot_, args, sizeof *args);                       \
        if (slot_answer.slot == SLOT_##slot_) return slot_answer.status; \
        return watched->slot_(context, args);                            \
    }
KERNEL_LIST(K)
LIST_KERNELS(K)
#undef K

static void watch_free(DeviceContext *context, void *data, size_t bytes)
{
    forget(data);
    watched->free(context, data, bytes);
}

static int copies_until_failure; /* 0: none fails */

static inline bool copy_fails(void) { return copies_until_failure > 0 && --copies_until_failure == 0; }

static int watch_to_device(DeviceContext *context, void *dst, const void *src, size_t bytes)
{
    slot_calls.from_host++;
    if (copy_fails()) return KERNEL_FAILED;
    return watched->to_device(context, dst, src, bytes);
}

static int watch_to_host(DeviceContext *context, void *dst, const void *src, size_t bytes)
{
    slot_calls.to_host++;
    if (copy_fails()) return KERNEL_FAILED;
    return watched->to_host(context, dst, src, bytes);
}

static inline void forget_slot_calls(void)
{
    memset(&slot_calls, 0, sizeof slot_calls);
    memset(made, 0, sizeof made);
}

/* From here on the kernels of the place are looked at. */
static inline void watch_device(const char *name)
{
    static Device table;
    Place *place = (Place *)(uintptr_t)find_place(name, "watch_device");
    watched = place->device;
    table = *watched;
#define K(slot_, Args) \
    if (table.slot_) table.slot_ = watch_##slot_;
    KERNEL_LIST(K)
    LIST_KERNELS(K)
#undef K
    table.free = watch_free, table.to_device = watch_to_device, table.to_host = watch_to_host;
    place->device = &table;
}

#endif
