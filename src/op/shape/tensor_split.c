/* tensor_split.c - a tensor in nearly equal views, or in the views between indices: made of split and slices.
 */
#include "shape_op.h"

/* A tensor of rank 0 has none. */
static int real_dim(const char *op, const Tensor *x, int dim)
{
    if (check_null(x, op, 1)) return -1;
    return x->ndim ? find_dim(op, x, dim) : fail(TENSOR_EINDEX, op, "[] has no dimension");
}

static int by_sections(const char *op, Tensor *x, int sections, int dim, Tensor **parts, int max)
{
    const int d = real_dim(op, x, dim);
    if (d < 0) return -1;
    if (sections < 1) return fail(TENSOR_EVALUE, op, "%d sections: want 1 or more", sections);
    if (!parts) return fail(TENSOR_ENULL, op, "the array for the parts is NULL");
    if (sections > max) return fail(TENSOR_ESHAPE, op, "%d parts, and room for %d", sections, max);
    const int64_t size = x->shape[d] / sections, longer = x->shape[d] % sections;
    if (longer == 0 && size) return tensor_split(x, size, d, parts, max);
    int64_t sizes[TENSOR_MAX_DIMS];
    if (sections <= TENSOR_MAX_DIMS) {
        for (int k = 0; k < sections; k++) sizes[k] = size + (k < longer);
        return tensor_split_sizes(x, (TensorShape){ sections, sizes }, d, parts);
    }
    for (int k = 0; k < sections; k++) {
        parts[k] = tensor_narrow(x, d, k * size + (k < longer ? k : longer), size + (k < longer));
        if (!parts[k]) return -1;
    }
    return sections;
}

static int by_indices(const char *op, Tensor *x, TensorShape indices, int dim, Tensor **parts)
{
    const int d = real_dim(op, x, dim);
    parts_or_none(-1, parts, indices.ndim + 1); /* until they are there */
    if (d < 0) return -1;
    if (!parts || (indices.ndim > 0 && !indices.dim))
        return fail(TENSOR_ENULL, op, "the indices or the array for the parts are NULL");
    for (int k = 0; k <= indices.ndim; k++) {
        parts[k] =
            tensor_slice(x, d, k ? indices.dim[k - 1] : 0, k < indices.ndim ? indices.dim[k] : INT64_MAX);
        if (!parts[k]) return -1;
    }
    return indices.ndim + 1;
}

int tensor_tensor_split(Tensor *x, int sections, int dim, Tensor **parts, int max)
{
    return parts_or_none(by_sections("tensor_tensor_split", x, sections, dim, parts, max), parts, max);
}

int tensor_tensor_split_indices(Tensor *x, TensorShape indices, int dim, Tensor **parts)
{
    return by_indices("tensor_tensor_split_indices", x, indices, dim, parts);
}

/* ---- along a fixed dim ----------------------------------------------------------------------- */

static int check_rank(const char *op, const Tensor *x, int least)
{
    if (check_null(x, op, 1)) return -1;
    return x->ndim >= least ? 0 : fail(TENSOR_ESHAPE, op, "%s: want rank %d or more", S(x), least);
}

static int equal_sections(const char *op, Tensor *x, int sections, int dim, int least, Tensor **parts,
                          int max)
{
    if (check_rank(op, x, least)) return parts_or_none(-1, parts, max);
    if (sections > 0 && x->shape[dim] % sections)
        return parts_or_none(
            fail(TENSOR_ESHAPE, op, "dimension %d of %s: %d sections do not divide it", dim, S(x), sections),
            parts, max);
    return parts_or_none(by_sections(op, x, sections, dim, parts, max), parts, max);
}

static int across(const Tensor *x) { return x && x->ndim > 1; } /* the dim of hsplit */

int tensor_hsplit(Tensor *x, int sections, Tensor **parts, int max)
{
    return equal_sections("tensor_hsplit", x, sections, across(x), 1, parts, max);
}

int tensor_vsplit(Tensor *x, int sections, Tensor **parts, int max)
{
    return equal_sections("tensor_vsplit", x, sections, 0, 2, parts, max);
}
int tensor_dsplit(Tensor *x, int sections, Tensor **parts, int max)
{
    return equal_sections("tensor_dsplit", x, sections, 2, 3, parts, max);
}

int tensor_hsplit_indices(Tensor *x, TensorShape indices, Tensor **parts)
{
    return check_rank("tensor_hsplit_indices", x, 1)
               ? parts_or_none(-1, parts, indices.ndim + 1)
               : by_indices("tensor_hsplit_indices", x, indices, across(x), parts);
}

int tensor_vsplit_indices(Tensor *x, TensorShape indices, Tensor **parts)
{
    return check_rank("tensor_vsplit_indices", x, 2)
               ? parts_or_none(-1, parts, indices.ndim + 1)
               : by_indices("tensor_vsplit_indices", x, indices, 0, parts);
}

int tensor_dsplit_indices(Tensor *x, TensorShape indices, Tensor **parts)
{
    return check_rank("tensor_dsplit_indices", x, 3)
               ? parts_or_none(-1, parts, indices.ndim + 1)
               : by_indices("tensor_dsplit_indices", x, indices, 2, parts);
}
