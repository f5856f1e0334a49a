/* random_windows.h - where fractional pools read: on the host, for the kernels of any device. */
#ifndef TG_CPU_RANDOM_WINDOWS_H
#define TG_CPU_RANDOM_WINDOWS_H

#include "device/device.h"
#include "device/host.h"
#include "hidden.h"

HIDDEN_BEGIN

/* random_windows - the places in its plane of all elements of all windows, to [planes, windows, elements];
 * u [planes, rank] are random (op/image/fractional_pool.c), and windows begin as f64 or f32 has it. */
typedef struct RandomWindows {
    int rank;
    bool is_f64;
    int64_t planes, in[3], out[3], kernel[3];
} RandomWindows;
void random_windows(const RandomWindows *f, const double *u, int64_t *to);

HIDDEN_END
#endif
