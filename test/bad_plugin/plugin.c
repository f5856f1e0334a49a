/* plugin.c - plugins that the library must refuse, each with its sentence; -DBAD_... says what is wrong with
 * it. */
#include <ops_digest.h>
#include "device/device.h"

__attribute__((visibility("default"))) const Device *tensor_device_plugin(void);

#if defined BAD_empty /* there is no device in it */
const Device *tensor_device_plugin(void) { return NULL; }
#else
static const Device device = {
#if defined BAD_oldabi
    .abi = DEVICE_ABI + 1,
    .size = sizeof(Device),
    .name = "oldabi",
    .ops_digest = TAPEGRAD_OPS_DIGEST,
#elif defined BAD_olddigest
    .abi = DEVICE_ABI,
    .size = sizeof(Device),
    .name = "olddigest",
    .ops_digest = "yesterday's",
#elif defined BAD_misnamed
    .abi = DEVICE_ABI,
    .size = sizeof(Device),
    .name = "othername",
    .ops_digest = TAPEGRAD_OPS_DIGEST,
#elif defined BAD_bare /* no kernels */
    .abi = DEVICE_ABI,
    .size = sizeof(Device),
    .name = "bare",
    .ops_digest = TAPEGRAD_OPS_DIGEST,
#endif
};

const Device *tensor_device_plugin(void) { return &device; }
#endif
