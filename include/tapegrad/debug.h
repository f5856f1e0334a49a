/* debug.h - looking for trouble: NaN, failing memory.
 *
 *     tensor_set_detect_anomaly(true);
 *     ... a step ...
 *     // tensor_log: result 1 [64, 10] has nan at [3, 4], and no operand had one
 *     //     at train.c:21 in main */
#ifndef TAPEGRAD_DEBUG_H
#define TAPEGRAD_DEBUG_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor_set_detect_anomaly - from now on this thread looks at the result of every op, and at every gradient
 * in backward: the first that holds a NaN while no operand did makes the op fail (EVALUE) and is named, with
 * its place in the program. Slow; returns what it was. */
TAPEGRAD_API bool tensor_set_detect_anomaly(bool on);

/* tensor_first_nan - the row-major position of the first NaN, or -1. */
TAPEGRAD_API int64_t tensor_first_nan(const Tensor *x);

/* tensor_debug_fail_allocation - the n-th request for memory from now on, of the host's or of a device's, for
 *     a tensor's data or a kernel's needs, fails (and all_after: it and all later ones); 0 switches it off.
 *     For tests that every failure is survived.
 * tensor_debug_fail_device_allocation - the same, but the requests of one device alone count and fail; "cpu":
 *     those of the host's.  -1: EDEVICE, ENULL.
 * tensor_debug_allocation_failed - has that request come? */
TAPEGRAD_API void tensor_debug_fail_allocation(int64_t n, bool all_after);
TAPEGRAD_API int tensor_debug_fail_device_allocation(const char *device, int64_t n, bool all_after);
TAPEGRAD_API bool tensor_debug_allocation_failed(void);

/* tensor_tape_note - what this thread records from here on belongs to `text`: an error in its backward ends
 *     in "in text".  NULL: to nothing.  Returns what it was, which is to be set again; nn_forward does so for
 *     each module: "1.b1 (BatchNorm2d)".  The text is not copied: it lives as long as what was recorded. */
TAPEGRAD_API const char *tensor_tape_note(const char *text);

#ifdef __cplusplus
}
#endif
#endif
