/* debug.h - debugging: NaN, failing allocations.
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

/* tensor_set_detect_anomaly - makes this thread check the results of every op, and every gradient in
 * backward.  A NaN where no operand had one fails the op (EVALUE); the error names the op and its source
 * line.  Slow.  Returns the previous setting. */
TAPEGRAD_API bool tensor_set_detect_anomaly(bool on);

/* tensor_first_nan - the row-major position of the first NaN, or -1. */
TAPEGRAD_API int64_t tensor_first_nan(const Tensor *x);

/* tensor_debug_fail_allocation - makes the n-th allocation from now on fail, for a tensor's data or a
 *     kernel's workspace, on the host or a device; with all_after, every later one too.  0 switches it off.
 *     For tests of out-of-memory paths.
 * tensor_debug_fail_device_allocation - the same, but only allocations on that device count and fail; "cpu":
 *     the host's.  -1: EDEVICE, ENULL.
 * tensor_debug_allocation_failed - has that allocation failed yet? */
TAPEGRAD_API void tensor_debug_fail_allocation(int64_t n, bool all_after);
TAPEGRAD_API int tensor_debug_fail_device_allocation(const char *device, int64_t n, bool all_after);
TAPEGRAD_API bool tensor_debug_allocation_failed(void);

/* tensor_tape_note - labels the entries that this thread records from now on: an error in their backward ends
 *     in "in text".  NULL: no label.  Returns the previous label, for you to restore.  nn_forward labels each
 *     module: "1.b1 (BatchNorm2d)".  The text is not copied: it must outlive those entries. */
TAPEGRAD_API const char *tensor_tape_note(const char *text);

#ifdef __cplusplus
}
#endif
#endif
