/* host_add.c - see host_add.h. */
#include "device/host.h"
#include "host_add.h"

void host_add_lines(int dtype, int ndim, const int64_t *shape, void *y, const int64_t *y_stride,
                    const void *x, const int64_t *x_stride)
{
    const int last = ndim - 1;
    const int64_t n = shape[last], to = y_stride[last], from = x_stride[last];
    int64_t index[TENSOR_MAX_DIMS] = { 0 }, at = 0, source = 0, lines = n > 0;
    for (int d = 0; d < last; d++) lines *= shape[d];
    for (int64_t line = 0; line < lines; line++) {
        if (dtype == TENSOR_F32)
            for (int64_t j = 0; j < n; j++)
                ((float *)y)[at + j * to] += ((const float *)x)[source + j * from];
        else
            for (int64_t j = 0; j < n; j++)
                ((double *)y)[at + j * to] += ((const double *)x)[source + j * from];
        for (int d = last - 1; d >= 0; d--) {
            at += y_stride[d], source += x_stride[d];
            if (++index[d] < shape[d]) break;
            at -= y_stride[d] * shape[d], source -= x_stride[d] * shape[d], index[d] = 0;
        }
    }
}
