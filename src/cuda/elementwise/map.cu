/* map.cu - elementwise rows: which kernel, over which space. */
#include "map.cuh"

static MapLauncher *launcher(int row, int part, int dtype)
{
    switch (dtype) {
    case TENSOR_F32:
    case TENSOR_F16:
    case TENSOR_BF16: return map_row_f32(row, part);
    case TENSOR_F64: return map_row_f64(row, part);
    case TENSOR_I64: return map_row_i64(row, part);
    case TENSOR_I32: return map_row_i32(row, part);
    default: return map_row_u8(row, part);
    }
}

/* Of the first operand that is read; a part that reads none writes what it computes. */
static int compute_dtype(const MapArgs *a)
{
    for (int k = 0; k < ROW_OPERANDS; k++)
        if (a->in[k].data) return a->in[k].dtype;
    return a->out.dtype;
}

/* How many parameters a row has: no more may be read. */
static const unsigned char params_of[ROW_COUNT] = {
#define UNARY(...) 0,
#define UNARY1(...) 1,
#define UNARY2(...) 2,
#define BINARY(...) 0,
#define BINARY1(...) 1,
#define COMPARE(...) 0,
#define PREDICATE(...) 0,
#define BITS1(...) 0,
#define BITS2(...) 0,
#define BITSC(...) 1,
#include <tapegrad/ops.def>
};

/* Those computed in float, halves among them. */
static bool packed_dtype(int dtype) { return dtype <= TENSOR_BF16 && dtype != TENSOR_F64; }

static bool in_packs_of(MapCall *m)
{
    const void *data[1 + ROW_OPERANDS] = { m->out };
    size_t size[1 + ROW_OPERANDS] = { gpu_dtype_size(m->out_dtype) };
    for (int k = 0; k < ROW_OPERANDS; k++)
        data[1 + k] = m->in[k], size[1 + k] = gpu_dtype_size(m->in_dtype[k]);
    return in_packs(&m->space, data, size, MAP_PACK, &m->tail);
}

int gpu_map(MapArgs *a)
{
    if (a->count == 0) return 0;
    MapLauncher *launch = launcher(a->row, a->part, compute_dtype(a));
    if (!launch) return gpu_fail("the row has no kernel for this dtype");
    MapCall m;
    set_space(&m.space, a->ndim, a->count, a->shape);
    set_strides(&m.space, 0, a->out.stride);
    m.out = a->out.data, m.out_dtype = a->out.dtype;
    for (int k = 0; k < ROW_OPERANDS; k++) {
        set_strides(&m.space, 1 + k, a->in[k].data ? a->in[k].stride : nullptr);
        m.in[k] = a->in[k].data, m.in_dtype[k] = a->in[k].dtype;
    }
    m.packs = a->row < ROW_FAST && packed_dtype(compute_dtype(a)) && in_packs_of(&m);
    m.p = params_of[a->row] > 0 ? a->params[0] : 0, m.q = params_of[a->row] > 1 ? a->params[1] : 0;
    return launch(&m);
}
