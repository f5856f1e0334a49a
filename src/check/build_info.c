/* build_info.c - the text of `tapegrad info`: features of this build and machine. */
#include <stdio.h>
#include "cpu/product/gemm.h"
#include "cpu/linalg/lapack.h"
#include "tensor/core.h"

const char *tensor_build_info(void)
{
    static THREAD_LOCAL char text[2048];
    const size_t size = sizeof text;
    int n = snprintf(text, size, "tapegrad      %s (ops %s)\ncpu           %s\n", TAPEGRAD_VERSION,
                     cpu_device.ops_digest, cpu_device.describe(NULL));
    const char *blis = blis_version();
    n += strcmp(blis, "absent") == 0
             ? snprintf(text + n, size - (size_t)n, "blis          missing: built with WITHOUT_BLIS\n")
             : snprintf(text + n, size - (size_t)n, "blis          %s, sub-configuration %s\n", blis,
                        blis_config());
    n += lapack_describe(text + n, size - (size_t)n);
    n += snprintf(text + n, size - (size_t)n, "threads       %d\n", tensor_num_threads());
    describe_devices(text + n, size - (size_t)n);
    return text;
}
