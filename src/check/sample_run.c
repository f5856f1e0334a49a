/* sample_run.c - runs a sample forward and backward, in any layout, and compares results. */
#include <math.h>
#include <stdlib.h>
#include "op/op.h"
#include "sample.h"

/* ---- running --------------------------------------------------------------------------------- */

bool sample_is_plain(const Sample *s, int i) { return i < 32 && (s->op->no_grad_inputs >> i & 1); }

bool sample_differentiable(const Sample *s, int i, const Tensor *x)
{
    return x && tensor_dtype_is_float(tensor_dtype(x)) && !(s->op->flags & OP_NONDIFFERENTIABLE) &&
           !sample_is_plain(s, i);
}

int sample_leaves(const Sample *s, Tensor *const *x, Tensor **leaf)
{
    int wanting = 0;
    for (int i = 0; i < s->n; i++) {
        leaf[i] = x[i] ? tensor_detach(x[i]) : NULL;
        if (!sample_differentiable(s, i, x[i])) continue;
        tensor_requires_grad_(leaf[i], true);
        wanting++;
    }
    return wanting;
}

int sample_apply(const Sample *s, Tensor *const *x, Tensor **y)
{
    if (s->op->flags & OP_RANDOM) tensor_manual_seed(7);
    int n = tensor_apply_all(s->op, x, s->n, s->op->params ? s->params : NULL, y, SAMPLE_RESULTS);
    return n < SAMPLE_RESULTS ? n : SAMPLE_RESULTS;
}

/* One value for each index of dim 0. */
static Tensor *repeated(Tensor *v, bool expanded)
{
    Tensor *first = v;
    for (int d = 1; first && d < v->ndim; d++)
        if (v->shape[d] > 1) first = tensor_narrow(first, d, 0, 1);
    if (first && v->ndim == 1 && v->shape[0] > 1) first = tensor_narrow(first, 0, 0, 1);
    Tensor *wide = first ? tensor_expand(first, shape_of(v)) : NULL;
    return wide && !expanded ? tensor_clone(wide) : wide;
}

static Tensor *laid_out(Tensor *v, int cotangents)
{
    if (!v || cotangents < LAYOUTS) return v ? strided_copy(v, (Layout)cotangents) : NULL;
    return repeated(v, cotangents == COTANGENTS_EXPANDED);
}

int sample_run(const Sample *s, Tensor *const *x, bool create_graph, int cotangents, SampleRun *run)
{
    Tensor *leaf[OP_MAX_INPUTS], *wanted[OP_MAX_INPUTS], *found[OP_MAX_INPUTS], *root[SAMPLE_RESULTS],
        *v[SAMPLE_RESULTS];
    memset(run, 0, sizeof *run);
    int m = sample_leaves(s, x, leaf), k = 0, roots = 0;
    run->results = sample_apply(s, leaf, run->y);
    if (run->results < 0) return -1;
    for (int i = 0; i < run->results; i++)
        if (tensor_requires_grad(run->y[i])) {
            root[roots] = run->y[i];
            v[roots] = laid_out(random_like(run->y[i], 11 + (uint64_t)i), cotangents);
            if (!v[roots++]) return run->results = -1;
        }
    if (!m || !roots) return run->results;
    for (int i = 0; i < s->n; i++)
        if (sample_differentiable(s, i, x[i])) wanted[k++] = leaf[i];
    if (tensor_gradients_many(TENSOR_LIST(root, roots), TENSOR_LIST(wanted, m), found,
                              .grad_outputs = TENSOR_LIST(v, roots), .create_graph = create_graph,
                              .materialize_grads = true))
        return run->results = -1;
    for (int i = 0, j = 0; i < s->n; i++)
        if (sample_differentiable(s, i, x[i])) run->g[i] = found[j++];
    return run->results;
}

/* ---- layouts --------------------------------------------------------------------------------- */

const char *const layout_name[LAYOUTS] = { "dense", "transposed", "stride 2", "offset", "from the end" };

static double unreadable_value(const Tensor *x)
{
    return tensor_dtype_is_float(tensor_dtype(x)) ? (double)NAN : 101;
}

static Tensor *room_for(const Tensor *x, int64_t count)
{
    return tensor_to_device(tensor_full(SHAPE(count), unreadable_value(x), tensor_dtype(x)), x->place->name);
}

static Tensor *from_the_end(const Tensor *x)
{
    Tensor *room = room_for(x, x->numel + 5);
    Tensor *view = tensor_detach(tensor_view(tensor_slice(room, 0, x->numel ? -x->numel : 5), shape_of(x)));
    return view && !raw_copy(view, x) ? view : NULL;
}

/* The gaps hold what must not be read: NaN, or a big index. */
Tensor *strided_copy(const Tensor *x, Layout layout)
{
    int ndim = x->ndim;
    int64_t shape[TENSOR_MAX_DIMS] = { 0 }, stride[TENSOR_MAX_DIMS] = { 0 },
            step = layout == LAYOUT_STEP ? 2 : 1, count = 5 + step;
    for (int d = 0; d < ndim; d++) shape[d] = x->shape[d];
    if (layout == LAYOUT_DENSE) return tensor_clone(tensor_detach((Tensor *)(uintptr_t)x));
    if (layout == LAYOUT_END) return from_the_end(x);
    for (int d = 0; d < ndim; d++) {
        int at =
            layout == LAYOUT_TRANSPOSED ? d : ndim - 1 - d; /* transposed: the first dim is the innermost */
        stride[at] = step;
        step *= shape[at] > 1 ? shape[at] : 1;
        count *= shape[at] > 1 ? shape[at] : 1;
    }
    Tensor *room = room_for(x, count);
    Tensor *view = room ? own(new_view(room, ndim, shape, stride, 3)) : NULL;
    return view && !raw_copy(view, x) ? view : NULL;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void *bytes_of(const Tensor *x, size_t *size)
{
    *size = (size_t)tensor_numel(x) * tensor_dtype_size(tensor_dtype(x));
    void *bytes = malloc(*size + 1);
    if (!bytes || tensor_copy_to(x, bytes, *size)) *size = (size_t)-1;
    return bytes;
}

bool same_bits(const Tensor *a, const Tensor *b)
{
    if (!a || !b) return a == b;
    if (!shape_equal(shape_of(a), shape_of(b)) || a->dtype != b->dtype) return false;
    size_t na, nb;
    void *pa = bytes_of(a, &na), *pb = bytes_of(b, &nb);
    bool same = na == nb && na != (size_t)-1 && memcmp(pa, pb, na) == 0;
    free(pa);
    free(pb);
    return same;
}

static double *doubles_of(const Tensor *x)
{
    double *v = malloc(((size_t)tensor_numel(x) + 1) * sizeof *v);
    Tensor *host = v ? tensor_from_blob(v, tensor_shape(x), TENSOR_F64, NULL, NULL) : NULL;
    if (host && raw_copy(host, x) == 0) return v;
    free(v);
    return NULL;
}

double off_by(const Tensor *a, const Tensor *b, double floor)
{
    if (!a || !b || !shape_equal(shape_of(a), shape_of(b))) return a == b ? 0 : (double)INFINITY;
    double *va = doubles_of(a), *vb = doubles_of(b), scale = floor, worst = va && vb ? 0 : (double)INFINITY;
    for (int64_t i = 0; va && vb && i < b->numel; i++) {
        if (isfinite(vb[i]) && fabs(vb[i]) > scale) scale = fabs(vb[i]);
        if (va[i] == vb[i] || (isnan(va[i]) && isnan(vb[i]))) continue;
        double off = fabs(va[i] - vb[i]);
        worst = isfinite(off) ? fmax(worst, off) : (double)INFINITY;
    }
    free(va);
    free(vb);
    return worst / (scale > 0 ? scale : 1);
}
