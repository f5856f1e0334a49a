/* grid.c - many images as one, as torchvision.utils.make_grid lays them out. */
#include <tapegrad/watch.h>
#include "tensor/core.h"
#include "png_encode.h"

const IoGridArgs io_grid_defaults = { IO_GRID_DEFAULTS };

/* [n, c, h, w], grey ones as RGB; NULL. */
static Tensor *as_batch(Tensor *x, const char *op)
{
    if (!x) return NULL;
    if (x->ndim < 2 || x->ndim > 4 || x->numel == 0)
        return fail(TENSOR_ESHAPE, op, "%s: wants images [n, c, h, w], one [c, h, w] or one [h, w]", S(x)),
               NULL;
    const int64_t *s = x->shape + x->ndim - 2, n = x->ndim == 4 ? x->shape[0] : 1,
                  c = x->ndim == 2 ? 1 : x->shape[x->ndim - 3];
    x = tensor_reshape(x, SHAPE(n, c, s[0], s[1]));
    return x && c == 1 ? tensor_expand(x, SHAPE(n, 3, s[0], s[1])) : x;
}

/* In place: low becomes 0, high 1, and what is beyond them, too. */
static int scale(Tensor *x, const double *range)
{
    double low = range[0], high = range[1];
    if (low == 0 && high == 0) low = tensor_item(tensor_min(x)), high = tensor_item(tensor_max(x));
    if (tensor_error_code()) return -1;
    const double width = high - low > 1e-5 ? high - low : 1e-5;
    tensor_clamp_(x, low, high);
    return tensor_div_scalar_(tensor_sub_scalar_(x, low), width) ? 0 : -1;
}

static Tensor *normalized(Tensor *x, const IoGridArgs *args)
{
    x = tensor_clone(x);
    if (!x || !args->scale_each) return x && !scale(x, args->value_range) ? x : NULL;
    for (int64_t i = 0; i < x->shape[0]; i++)
        if (scale(tensor_select(x, 0, i), args->value_range)) return NULL;
    return x;
}

static Tensor *lay_out(Tensor *x, const IoGridArgs *args)
{
    const int64_t n = x->shape[0], across = args->nrow < n ? args->nrow : n, down = (n + across - 1) / across,
                  pad = args->padding, h = x->shape[2], w = x->shape[3];
    Tensor *grid = tensor_new_full(x, SHAPE(x->shape[1], (h + pad) * down + pad, (w + pad) * across + pad),
                                   args->pad_value);
    for (int64_t i = 0; grid && i < n; i++) {
        Tensor *rows = tensor_narrow(grid, 1, i / across * (h + pad) + pad, h);
        if (!tensor_copy_(tensor_narrow(rows, 2, i % across * (w + pad) + pad, w), tensor_select(x, 0, i)))
            return NULL;
    }
    return grid;
}

static Tensor *make_grid(const IoGridArgs *args, const char *op)
{
    if (check_null(args->tensor, op, 1)) return NULL;
    if (args->nrow < 1 || args->padding < 0 || args->padding > 1 << 20)
        return fail(TENSOR_EVALUE, op, "nrow %lld, padding %lld: at least 1; 0 to 2^20",
                    (long long)args->nrow, (long long)args->padding),
               NULL;
    if (args->normalize &&
        (args->value_range[0] > args->value_range[1] || !dtype_is_float(args->tensor->dtype)))
        return fail(TENSOR_EVALUE, op, "normalize: wants floats (found %s), and value_range from low to high",
                    tensor_dtype_name((TensorDtype)args->tensor->dtype)),
               NULL;
    Tensor *x = as_batch(tensor_detach(args->tensor), op);
    if (x && args->normalize) x = normalized(x, args);
    if (!x) return NULL;
    return x->shape[0] == 1 ? tensor_contiguous(tensor_select(x, 0, 0)) : lay_out(x, args);
}

static Tensor *as_function(const IoGridArgs *args, const char *op,
                           Tensor *(*fn)(const IoGridArgs *, const char *))
{
    if (tensor_check_options(op, args, &io_grid_defaults, sizeof *args)) return NULL;
    TensorScope scope = tensor_scope_open();
    const char *outer = tensor_compose_begin(op);
    const bool was = tensor_set_grad_enabled(false);
    Tensor *y = scope_failed(scope) ? NULL : fn(args, op);
    tensor_set_grad_enabled(was);
    tensor_compose_end(outer);
    return tensor_scope_return(scope, y);
}

Tensor *io_make_grid_args(IoGridArgs args) { return as_function(&args, "io_make_grid", make_grid); }

/* Bytes as torchvision rounds them. */
static Tensor *grid_bytes(const IoGridArgs *args, const char *op)
{
    Tensor *grid = make_grid(args, op);
    if (!grid || grid->dtype == TENSOR_U8) return tensor_to_device(grid, "cpu");
    Tensor *x = tensor_add_scalar(tensor_mul_scalar(grid, 255), 0.5);
    return tensor_to_device(tensor_to(tensor_clamp(x, 0, 255), TENSOR_U8), "cpu");
}

int io_save_image_args(IoGridArgs args)
{
    static const char op[] = "io_save_image";
    TensorScope scope = tensor_scope_open();
    Tensor *bytes = as_function(&args, op, grid_bytes);
    const char *outer = tensor_compose_begin(op);
    int status = bytes && !png_check_name(args.path, op) ? io_save_png(args.path, bytes) : -1;
    tensor_compose_end(outer);
    tensor_scope_close(scope);
    return status;
}
