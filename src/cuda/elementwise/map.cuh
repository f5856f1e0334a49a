/* map.cuh - one part of one row, as the kernels take it. */
#ifndef TG_CUDA_MAP_CUH
#define TG_CUDA_MAP_CUH

#include "cuda/pack.cuh"
#include "device/row_ids.h"

enum { MAP_PACK = 8 }; /* elements at once of a row in float: 16 bytes of halves */

struct MapCall {
    Space<1 + ROW_OPERANDS> space; /* out, then the operands */
    void *out;
    const void *in[ROW_OPERANDS];
    int out_dtype, in_dtype[ROW_OPERANDS];
    double p, q;
    bool packs; /* the space is one of packs; behind them: */
    int64_t tail;
};

typedef int MapLauncher(const MapCall *m);

/* The kernels are in a file each, for compilers that have several cores to use. */
MapLauncher *map_row_f32(int row, int part);
MapLauncher *map_row_f64(int row, int part);
MapLauncher *map_row_i64(int row, int part);
MapLauncher *map_row_i32(int row, int part);
MapLauncher *map_row_u8(int row, int part);

#endif
