/* device.c - the CPU as a device: its table of kernels. */
#include <ops_digest.h>
#include "cpu.h"

static const char *error(DeviceContext *none)
{
    (void)none;
    return cpu_error();
}

static void *alloc(DeviceContext *none, size_t bytes)
{
    (void)none;
    return tg_alloc(bytes);
}

static void release(DeviceContext *none, void *data, size_t bytes)
{
    (void)none;
    tg_free(data, bytes);
}

static int synchronize(DeviceContext *none)
{
    (void)none;
    return 0;
}

static int copy_bytes(DeviceContext *none, void *dst, const void *src, size_t bytes)
{
    (void)none;
    memcpy(dst, src, bytes);
    return 0;
}

static const char *describe(DeviceContext *none)
{
    static const char *const name[] = { "baseline", "AVX2 + FMA", "AVX-512" };
    (void)none;
    return name[cpu_isa()];
}

/* Kernels of the CPU call each other without a context. */
#define K(slot, Args)                                     \
    static int on_##slot(DeviceContext *none, Args *args) \
    {                                                     \
        (void)none;                                       \
        return cpu_##slot(args);                          \
    }
KERNEL_LIST(K)
#undef K

enum { FLOATS = 1 << TENSOR_F32 | 1 << TENSOR_F64, DOUBLE = 1 << TENSOR_F64 };

/* Convolution reads bf16, too. */
#define TAKEN(slot) \
    ((slot) >= SLOT_conv2d && (slot) <= SLOT_conv2d_grad_weight ? FLOATS | 1 << TENSOR_BF16 : FLOATS)

/* What reads doubles alone: ops cast for it. */
#define IN_DOUBLE(slot) ((slot) >= SLOT_pairs && (slot) <= SLOT_class_margin && (slot) != SLOT_ctc)

const Device cpu_device = { .abi = DEVICE_ABI,
                            .size = sizeof(Device),
                            .name = "cpu",
                            .ops_digest = TAPEGRAD_OPS_DIGEST,
                            .error = error,
                            .describe = describe,
                            .alloc = alloc,
                            .free = release,
                            .to_device = copy_bytes,
                            .to_host = copy_bytes,
                            .synchronize = synchronize,
#define K(slot, Args) [SLOT_##slot] = IN_DOUBLE(SLOT_##slot) ? DOUBLE : TAKEN(SLOT_##slot),
                            .takes = { KERNEL_LIST(K) },
#undef K
#define K(slot, Args) .slot = on_##slot,
                            KERNEL_LIST(K)
#undef K
};
