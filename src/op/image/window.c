/* window.c - the options of sliding windows, by direction (window.h). */
#include "window.h"

Sizes window_option(int64_t all, const int64_t each[WINDOW_RANK], int rank, int64_t missing)
{
    Sizes s = { { missing, missing, missing } };
    bool given = false;
    for (int i = 0; i < WINDOW_RANK; i++) given = given || each[i] != 0;
    for (int i = 0; i < rank; i++) s.at[WINDOW_RANK - rank + i] = given ? each[i] : all;
    return s;
}

int window_sizes(OpCall *c, const char *option, int64_t all, const int64_t each[WINDOW_RANK], int rank,
                 int64_t least, int64_t missing, Sizes *sizes)
{
    for (int i = rank; i < WINDOW_RANK; i++)
        if (each[i] != 0)
            return op_fail(c, TENSOR_EVALUE, "%ss %s: want %d", option,
                           shape_text((TensorShape){ WINDOW_RANK, each }), rank);
    *sizes = window_option(all, each, rank, missing);
    for (int i = WINDOW_RANK - rank; i < WINDOW_RANK; i++)
        if (sizes->at[i] < least || sizes->at[i] > WINDOW_LIMIT)
            return op_fail(c, TENSOR_EVALUE, "%s: %s %s: want %lld to %d", S(op_input(c, 0)), option,
                           window_text(sizes, rank), (long long)least, WINDOW_LIMIT);
    return 0;
}

int window_list(OpCall *c, const char *option, TensorShape list, int rank, int64_t least, Sizes *sizes)
{
    if (list.ndim != 1 && list.ndim != rank)
        return op_fail(c, TENSOR_EVALUE, "%s %s: want one number, or %d", option, shape_text(list), rank);
    for (int i = 0; i < list.ndim; i++)
        if (list.dim[i] < least || list.dim[i] > LINE_LIMIT)
            return op_fail(c, TENSOR_EVALUE, "%s %s: want %lld to %d", option, shape_text(list),
                           (long long)least, LINE_LIMIT);
    *sizes = (Sizes){ { 1, 1, 1 } };
    for (int i = 0; i < rank; i++) sizes->at[WINDOW_RANK - rank + i] = list.dim[list.ndim > 1 ? i : 0];
    return 0;
}

Sizes window_last(TensorShape x, int rank)
{
    Sizes s = { { 1, 1, 1 } };
    for (int i = 0; i < rank; i++) s.at[WINDOW_RANK - rank + i] = x.dim[x.ndim - rank + i];
    return s;
}

TensorShape window_shape(const Sizes *sizes, int rank)
{
    return (TensorShape){ rank, sizes->at + WINDOW_RANK - rank };
}

const char *window_text(const Sizes *sizes, int rank) { return shape_text(window_shape(sizes, rank)); }

int window_rank(OpCall *c, const Tensor *x, const char *what, int rank)
{
    static const char *const names[] = { "", "width", "height, width", "depth, height, width" };
    if (x->ndim == rank + 1 || x->ndim == rank + 2) return 0;
    return op_fail(c, TENSOR_ESHAPE, "%s %s: want [batch, channels, %s], or that without batch", what, S(x),
                   names[rank]);
}

/* ---- channels last --------------------------------------------------------------------------- */

/* The steps of a dense shape whose second dim is the innermost. */
static void steps_last(int ndim, const int64_t *shape, int64_t *stride)
{
    int64_t step = shape[1];
    for (int d = ndim - 1; d > 1; d--) stride[d] = step, step *= shape[d];
    stride[1] = 1, stride[0] = step;
}

bool window_lies_last(const Tensor *x, int rank)
{
    int64_t stride[TENSOR_MAX_DIMS];
    if (x->ndim != rank + 2 || (x->flags & FLAG_CONTIGUOUS) || x->numel == 0) return false;
    steps_last(x->ndim, x->shape, stride);
    for (int d = 0; d < x->ndim; d++)
        if (x->shape[d] > 1 && x->stride[d] != stride[d]) return false;
    return true;
}

Tensor *window_new_last(TensorShape shape, int dtype, const Place *place)
{
    int64_t stride[TENSOR_MAX_DIMS], numel = 1;
    for (int d = 0; d < shape.ndim; d++) numel *= shape.dim[d];
    Tensor *memory = own(new_tensor(SHAPE(numel), dtype, place));
    steps_last(shape.ndim, shape.dim, stride);
    return memory ? own(new_view(memory, shape.ndim, shape.dim, stride, 0)) : NULL;
}

int in_its_layout(OpCall *c, bool last, int (*run)(OpCall *c, ImageLayout layout))
{
    if (last) {
        const int status = run(c, LAYOUT_LAST);
        if (!status || !take_decline()) return status;
    }
    return run(c, LAYOUT_FIRST);
}
