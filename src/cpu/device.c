/* device.c - the CPU as a device: its table of kernels. */
#include <ops_digest.h>
#include "cpu.h"

static int start(int index) { return index == 0 ? 0 : cpu_fail("there is one CPU device"); }

static void *alloc(size_t bytes) { return tg_alloc(bytes); }
static void release(void *data, size_t bytes) { tg_free(data, bytes); }
static int synchronize(void) { return 0; }

static int copy_bytes(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
    return 0;
}

static const char *describe(void)
{
    static const char *const name[] = { "baseline", "AVX2 + FMA", "AVX-512" };
    return name[cpu_isa()];
}

const Device cpu_device = { .abi = DEVICE_ABI,
                            .size = sizeof(Device),
                            .name = "cpu",
                            .ops_digest = TAPEGRAD_OPS_DIGEST,
                            .start = start,
                            .error = cpu_error,
                            .describe = describe,
                            .alloc = alloc,
                            .free = release,
                            .to_device = copy_bytes,
                            .to_host = copy_bytes,
                            .synchronize = synchronize,
#define K(slot, Args) .slot = cpu_##slot,
                            KERNEL_LIST(K)
#undef K
};
