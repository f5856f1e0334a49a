/* stack.c - joining and grids made of other ops: hstack and its kin, meshgrid, products and combinations of
 * lists. */
#include "cpu/shape/host_tables.h"
#include "shape_op.h"

const TensorMeshgridArgs tensor_meshgrid_defaults = { TENSOR_MESHGRID_DEFAULTS };
const TensorCombinationsArgs tensor_combinations_defaults = { TENSOR_COMBINATIONS_DEFAULTS };

/* ---- at least so many dims ------------------------------------------------------------------- */

Tensor *tensor_atleast_1d(Tensor *x)
{
    if (check_null(x, "tensor_atleast_1d", 1)) return NULL;
    return x->ndim ? borrow(x) : tensor_reshape(x, SHAPE(1));
}

Tensor *tensor_atleast_2d(Tensor *x)
{
    if (check_null(x, "tensor_atleast_2d", 1)) return NULL;
    return x->ndim > 1 ? borrow(x) : tensor_reshape(x, SHAPE(1, x->numel));
}

Tensor *tensor_atleast_3d(Tensor *x)
{
    if (check_null(x, "tensor_atleast_3d", 1)) return NULL;
    return x->ndim > 2    ? borrow(x)
           : x->ndim == 2 ? tensor_unsqueeze(x, 2)
                          : tensor_reshape(x, SHAPE(1, x->numel, 1));
}

Tensor *tensor_ravel(Tensor *x)
{
    return check_null(x, "tensor_ravel", 1) ? NULL : tensor_reshape(x, SHAPE(x->numel));
}

/* ---- joined along a dim by rank -------------------------------------------------------------- */

static Tensor *as_column(Tensor *x) { return x->ndim > 1 ? x : tensor_reshape(x, SHAPE(x->numel, 1)); }

static Tensor *join(const char *op, TensorList list, Tensor *(*each)(Tensor *x), int dim)
{
    if (list.count < 1 || !list.item) return fail(TENSOR_EVALUE, op, "no tensors given"), NULL;
    for (int i = 0; i < list.count; i++) /* before a view takes the place of one that was released */
        if (check_null(list.item[i], op, i + 1)) return NULL;
    Tensor **x = tg_alloc((size_t)list.count * sizeof *x), *y = NULL;
    if (!x) return fail_memory(op), NULL;
    const char *outer = tensor_compose_begin(op);
    TensorScope scope = tensor_scope_open();
    bool given = !scope_failed(scope);
    for (int i = 0; i < list.count && given; i++) given = (x[i] = each(list.item[i])) != NULL;
    if (given) y = tensor_cat(TENSOR_LIST(x, list.count), x[0]->ndim <= dim ? 0 : dim);
    tensor_compose_end(outer);
    tg_free(x, (size_t)list.count * sizeof *x);
    return tensor_scope_return(scope, y);
}

Tensor *tensor_hstack(TensorList tensors) { return join("tensor_hstack", tensors, tensor_atleast_1d, 1); }
Tensor *tensor_vstack(TensorList tensors) { return join("tensor_vstack", tensors, tensor_atleast_2d, 0); }
Tensor *tensor_dstack(TensorList tensors) { return join("tensor_dstack", tensors, tensor_atleast_3d, 2); }
Tensor *tensor_column_stack(TensorList tensors) { return join("tensor_column_stack", tensors, as_column, 1); }

/* ---- grids ----------------------------------------------------------------------------------- */

static int check_lists(const char *op, TensorList list, int most)
{
    if (list.count < 1 || list.count > most || !list.item)
        return fail(TENSOR_EVALUE, op, "%d lists: want 1 to %d", list.count, most);
    for (int i = 0; i < list.count; i++) {
        if (check_null(list.item[i], op, i + 1)) return -1;
        if (list.item[i]->ndim > 1)
            return fail(TENSOR_ESHAPE, op, "%s: want lists, one dimension", S(list.item[i]));
        if (list.item[i]->dtype != list.item[0]->dtype)
            return fail(TENSOR_EDTYPE, op, "%s beside %s: want one dtype",
                        tensor_dtype_name((TensorDtype)list.item[i]->dtype),
                        tensor_dtype_name((TensorDtype)list.item[0]->dtype));
    }
    return 0;
}

/* Grid i is list i along dimension i, repeated along the others; swapped: the first two dimensions change
 * places. */
static int grids(TensorList list, Tensor **to, bool swapped)
{
    int64_t shape[TENSOR_MAX_DIMS], line[TENSOR_MAX_DIMS];
    for (int i = 0; i < list.count; i++) shape[i] = list.item[i]->numel;
    for (int i = 0; i < list.count; i++) {
        for (int d = 0; d < list.count; d++) line[d] = d == i ? shape[d] : 1;
        to[i] = tensor_expand(tensor_reshape(list.item[i], (TensorShape){ list.count, line }),
                              (TensorShape){ list.count, shape });
        if (to[i] && swapped) to[i] = tensor_transpose(to[i], 0, 1);
        if (!to[i]) return -1;
    }
    return list.count;
}

int tensor_meshgrid_args(TensorMeshgridArgs args)
{
    static const char op[] = "tensor_meshgrid";
    static const char *const indexings[] = { "ij", "xy", NULL };
    parts_or_none(-1, args.grids,
                  args.tensors.count < TENSOR_MAX_DIMS ? args.tensors.count
                                                       : TENSOR_MAX_DIMS); /* until they are there */
    if (check_lists(op, args.tensors, TENSOR_MAX_DIMS)) return -1;
    if (!args.grids) return fail(TENSOR_ENULL, op, "the array for the grids is NULL");
    if (tensor_check_choice(op, "indexing", (int)args.indexing, indexings)) return -1;
    return grids(args.tensors, args.grids, args.indexing == TENSOR_INDEXING_XY && args.tensors.count > 1);
}

Tensor *tensor_cartesian_prod(TensorList tensors)
{
    Tensor *grid[TENSOR_MAX_DIMS];
    if (check_lists("tensor_cartesian_prod", tensors, TENSOR_MAX_DIMS)) return NULL;
    if (tensors.count == 1) return borrow(tensors.item[0]);
    TensorScope scope = tensor_scope_open();
    bool made = !scope_failed(scope) && grids(tensors, grid, false) > 0;
    Tensor *y = made ? tensor_stack(TENSOR_LIST(grid, tensors.count), -1) : NULL;
    return tensor_scope_return(scope,
                               y ? tensor_reshape(y, SHAPE(y->numel / tensors.count, tensors.count)) : NULL);
}

enum { MOST_GRIDS = 4 };

static Tensor *combinations_here(Tensor *x, TensorShape shape, bool again)
{
    Tensor *list = own(new_tensor(shape, TENSOR_I64, &cpu_place));
    if (list && list->numel) host_combinations(list->data, shape.dim[0], x->numel, shape.dim[1], again);
    return carried(list, x->place);
}

/* On another device: the indices into [n, ..., n], of r dims, that ascend. */
static Tensor *combinations_there(Tensor *x, int64_t count, int64_t r, bool again)
{
    Tensor *number = numbers_on(x->numel, TENSOR_I64, x->place), *grid[MOST_GRIDS], *ascends = NULL;
    for (int k = 0; k < r; k++) {
        int64_t shape[MOST_GRIDS];
        for (int d = 0; d < r; d++) shape[d] = d == k ? x->numel : 1;
        grid[k] = tensor_reshape(number, (TensorShape){ (int)r, shape });
        if (k == 0) continue;
        Tensor *pair = again ? tensor_le(grid[k - 1], grid[k]) : tensor_lt(grid[k - 1], grid[k]);
        ascends = k > 1 ? tensor_logical_and(ascends, pair) : pair;
    }
    return r == 1 ? tensor_unsqueeze(number, 1) : tensor_nonzero_static(ascends, .size = count);
}

Tensor *tensor_combinations_args(TensorCombinationsArgs args)
{
    static const char op[] = "tensor_combinations";
    Tensor *x = args.input;
    const int64_t r = args.r;
    if (TENSOR_CHECK_OPTIONS(op, args, tensor_combinations_defaults)) return NULL;
    if (check_null(x, op, 1)) return NULL;
    if (x->ndim != 1) return fail(TENSOR_ESHAPE, op, "%s: want a list, one dimension", S(x)), NULL;
    if (r < 0) return fail(TENSOR_EVALUE, op, "r = %lld of %s: want 0 or more", (long long)r, S(x)), NULL;
    const bool again = args.with_replacement;
    const int64_t count = r == 0 || (again && x->numel == 0) ? 0 : host_choices(x->numel, r, again);
    if (count < 0) return fail(TENSOR_ESHAPE, op, "%lld of %s: too many choices", (long long)r, S(x)), NULL;
    TensorScope scope = tensor_scope_open();
    TensorShape shape = r ? SHAPE(count, r) : SHAPE(0);
    Tensor *list = scope_failed(scope) ? NULL
                   : count == 0 || on_host(x->place) || r > MOST_GRIDS
                       ? combinations_here(x, shape, again)
                       : combinations_there(x, count, r, again);
    return tensor_scope_return(
        scope,
        list ? tensor_reshape(tensor_index_select(x, 0, tensor_reshape(list, SHAPE(list->numel))), shape)
             : NULL);
}
