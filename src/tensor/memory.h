/* memory.h - counters of memory, for memory.c and trace/memory_report.c. */
#ifndef TG_MEMORY_H
#define TG_MEMORY_H

#include "core.h"

#pragma GCC visibility push(hidden)

/* device_has_room - does a request stay within the device's limit?
 * count_device_bytes - of the data of a storage on a device other than the host: made (> 0) or gone. */
bool device_has_room(const Place *place, int64_t bytes);
void count_device_bytes(const Place *place, int64_t bytes);

/* for_each_tracked - of the tensors that are alive and tracked; under a lock: fn makes and frees none. */
void for_each_tracked(void (*fn)(const Tensor *x, void *ctx), void *ctx);
bool tensors_are_tracked(void);

/* open_places - of the devices that were opened; the host is none of them. */
int open_places(const Place **list, int room);

#pragma GCC visibility pop

#endif
