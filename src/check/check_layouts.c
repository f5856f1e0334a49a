/* check_layouts.c - checks that results and gradients have the same bits for every layout of inputs and
 * cotangents: dense, transposed, with gaps, at an offset, from a negative start, expanded. */
#include <stdio.h>
#include <string.h>
#include "tensor/core.h"
#include "report.h"

enum { TRIED = 1 };
static THREAD_LOCAL int grown; /* samples of this op that ran with many elements */

/* tensor_view refuses some layouts, as it must. */
static bool may_refuse(const Sample *s) { return s->op->flags & OP_VIEW; }

static void compare(const Sample *s, const SampleRun *run, const SampleRun *dense, const char *what)
{
    for (int k = 0; k < dense->results; k++)
        if (!same_bits(run->y[k], dense->y[k]))
            complain(s, "result %d is off by %.3g, %s", k + 1, off_by(run->y[k], dense->y[k], 0), what);
    for (int i = 0; i < s->n; i++)
        if (!same_bits(run->g[i], dense->g[i]))
            complain(s, "the gradient of input %d is off by %.3g, %s", i + 1,
                     off_by(run->g[i], dense->g[i], 0), what);
}

static void try_inputs(const Sample *s, Tensor *const *x, int cotangents, const SampleRun *dense,
                       const char *what)
{
    SampleRun run;
    if (sample_run(s, x, false, cotangents, &run) >= 0) compare(s, &run, dense, what);
    else if (may_refuse(s) && tensor_error_code() == TENSOR_ESHAPE) tensor_error_clear();
    else complain(s, "is refused, %s", what);
}

static void check_strides_in(const Sample *s, TensorDtype dtype)
{
    Tensor *x[OP_MAX_INPUTS], *view[OP_MAX_INPUTS];
    SampleRun dense, repeated;
    sample_inputs(s, dtype, 8, x);
    if (sample_run(s, x, false, LAYOUT_DENSE, &dense) < 0) {
        complain(s, "is refused");
        return;
    }
    if (sample_run(s, x, false, COTANGENTS_REPEATED, &repeated) >= 0)
        try_inputs(s, x, COTANGENTS_EXPANDED, &repeated, "cotangents expanded");
    for (int layout = 1; layout < LAYOUTS; layout++) {
        char what[64];
        TensorScope scope = tensor_scope_open();
        for (int i = 0; i < s->n; i++) view[i] = x[i] ? strided_copy(x[i], (Layout)layout) : NULL;
        snprintf(what, sizeof what, "%s, inputs %s", tensor_dtype_name(dtype), layout_name[layout]);
        try_inputs(s, view, LAYOUT_DENSE, &dense, what);
        snprintf(what, sizeof what, "%s, cotangents %s", tensor_dtype_name(dtype), layout_name[layout]);
        try_inputs(s, x, (Layout)layout, &dense, what);
        tensor_scope_close(scope);
    }
}

static void check_strides(const Sample *s)
{
    check_strides_in(s, TENSOR_F64);
    check_strides_in(s, TENSOR_F32);
    check_strides_in(s, TENSOR_BF16);
}

/* Every size above 1 of one input at a time is made by expanding its first slice; the dense run gets the same
 * values. */
static void check_expanded(const Sample *s)
{
    Tensor *x[OP_MAX_INPUTS];
    SampleRun dense;
    sample_inputs(s, TENSOR_F64, 9, x);
    for (int i = 0; i < s->n; i++) {
        for (int d = 0; x[i] && d < tensor_ndim(x[i]); d++) {
            if (tensor_size(x[i], d) < 2) continue;
            char what[64];
            Tensor *was = x[i];
            Tensor *wide = tensor_expand(tensor_narrow(was, d, 0, 1), tensor_shape(was));
            x[i] = tensor_clone(wide);
            snprintf(what, sizeof what, "input %d expanded along dim %d", i + 1, d);
            bool runs = sample_run(s, x, false, LAYOUT_DENSE, &dense) >= 0;
            x[i] = wide;
            if (runs) try_inputs(s, x, LAYOUT_DENSE, &dense, what);
            else tensor_error_clear(); /* such values may be refused */
            x[i] = was;
        }
    }
}

/* So many elements that loops go over them piece by piece. */
static void check_grown_by(const Sample *s, Growth growth)
{
    enum { ELEMENTS = 2500, MEMORY = 8 << 20, BIG = 1 << 18 };
    Sample big;
    SampleRun dense;
    Tensor *x[OP_MAX_INPUTS], *view[OP_MAX_INPUTS];
    memcpy(&big, s, sizeof big);
    if (grown == TRIED || !sample_grow(&big, growth, ELEMENTS, MEMORY)) return;
    sample_inputs(&big, TENSOR_F64, 10, x);
    if (sample_run(&big, x, false, LAYOUT_DENSE, &dense) >= 0 && tensor_numel(dense.y[0]) < BIG) {
        grown++;
        for (int i = 0; i < s->n; i++) view[i] = x[i] ? strided_copy(x[i], LAYOUT_STEP) : NULL;
        try_inputs(&big, view, LAYOUT_DENSE, &dense, "many elements, inputs stride 2");
        try_inputs(&big, x, LAYOUT_STEP, &dense, "many elements, cotangents stride 2");
    }
    tensor_error_clear();
}

static void check_grown(const Sample *s)
{
    const int before = grown;
    check_grown_by(s, GROW_ALL);
    if (grown == before) check_grown_by(s, GROW_FIRST);
}

void check_op_layouts(const TensorOp *op)
{
    /* PyTorch's masks follow the memory of their input; Philox's follow the numbers of its elements. */
    const bool torch_masks = tensor_use_torch_dropout(false);
    grown = 0;
    each_sample(op, check_grown);
    each_sample(op, check_strides);
    each_sample(op, check_expanded);
    tensor_use_torch_dropout(torch_masks);
}
