/* sample.h - the sample inputs of an op's descriptor: parses, makes, runs and compares them, for
 * tensor_check_op and the generated tests.
 *
 * A sample list (see autograd.h): samples separated by semicolons, inputs by commas, then the parameters.
 *
 *     3x4,4x2; 5@i64:0..3 {dim=1}; 3,-; {dims=[0 2] keepdim=1}; 3x4,5x6 ! ESHAPE
 *
 *  - Nothing at all is one input of rank 0.
 *  - @dtype: without it a floating input of the dtype that the caller asks for.
 *  - :lo..hi: values from lo to hi, both included for integers.  Without it, floats lie in the op's [lo, hi]
 *    (or [-1, 1]), integers in 0..3, bool is either.
 *  - A parameter that is left out has its default. */
#ifndef TG_SAMPLE_H
#define TG_SAMPLE_H

#include <tapegrad.h>
#include "hidden.h"

HIDDEN_BEGIN

/* op_samples, op_errors - the lists of a descriptor; a row without its own has those of its kind. */
const char *op_samples(const TensorOp *op);
const char *op_errors(const TensorOp *op);

/* op_torch - its name in PyTorch where it is another, "-" where PyTorch has none; NULL: the same name. */
const char *op_torch(const TensorOp *op);

enum { SAMPLE_TEXT = 240, SAMPLE_PARAMS = 1024, SAMPLE_ROOM = 1024, SAMPLE_RESULTS = 64, AS_WRITTEN = -1 };

typedef struct SampleInput {
    bool absent, has_dtype, has_range;
    TensorDtype dtype;
    double lo, hi;
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS];
} SampleInput;

typedef struct Sample {
    const TensorOp *op;
    char text[SAMPLE_TEXT]; /* as it stands in the list */
    int n;
    SampleInput input[OP_MAX_INPUTS];
    _Alignas(16) char params[SAMPLE_PARAMS];
    _Alignas(16) char room[SAMPLE_ROOM]; /* lists and texts of params */
    TensorStatus code;                   /* of an error sample; TENSOR_OK without one */
    char wrong[SAMPLE_TEXT];             /* what cannot be read, in words */
} Sample;

/* sample_next - reads the next sample and moves *list behind it (NULL at the end).  1: read; 0: no more; -1:
 * s->wrong says what is wrong with it. */
int sample_next(const TensorOp *op, const char **list, Sample *s);

/* sample_grow - every size above 1 times the same factor, or only dim 0 of input 0 and of inputs with the
 * same size there, until the largest input has about so many elements; returns the factor, 0 where nothing
 * grows, or the inputs would take more than `memory` bytes as doubles.  Many ops refuse the sizes that come
 * of it. */
typedef enum Growth { GROW_ALL, GROW_FIRST, GROWTHS } Growth;
int64_t sample_grow(Sample *s, Growth growth, int64_t elements, int64_t memory);

/* sample_inputs - the tensors, the same ones for the same seed; every floating input has the dtype floats,
 * or, for AS_WRITTEN, its own (f32 where none is written).  Absent ones are NULL. */
void sample_inputs(const Sample *s, int floats, uint64_t seed, Tensor **x);

/* sample_device - where sample_inputs puts them; NULL: in the CPU's memory.  on_sample_device - x there.
 * sample_rounds_more - does the op round halves more than once there?  (OP_OF_PRODUCTS) */
extern const char *sample_device;
Tensor *on_sample_device(Tensor *x);
bool sample_rounds_more(const TensorOp *op);

/* sample_is_plain - does the op name input i among its no_grad_inputs?  sample_differentiable - may input i
 * have a gradient? */
bool sample_is_plain(const Sample *s, int i);
bool sample_differentiable(const Sample *s, int i, const Tensor *x);

/* sample_leaves - the inputs as leaves that want a gradient, where they may have one; returns how many do. */
int sample_leaves(const Sample *s, Tensor *const *x, Tensor **leaf);

/* sample_apply - seeds the generator for random ops, then tensor_apply_all; of more than SAMPLE_RESULTS
 * results the first. */
int sample_apply(const Sample *s, Tensor *const *x, Tensor **y);

/* random_like - values of y's shape and dtype, about normal: mean 0, variance 1, none beyond 3.47; NULL
 * without memory. */
Tensor *random_like(const Tensor *y, uint64_t seed);
double random_uniform(uint64_t *state);

/* strided_copy - the values of x in memory of another layout: ONE of the ways below.  LAYOUT_END: what a
 * negative start gives, the last elements of a longer tensor. */
typedef enum Layout {
    LAYOUT_DENSE,
    LAYOUT_TRANSPOSED,
    LAYOUT_STEP,
    LAYOUT_OFFSET,
    LAYOUT_END,
    LAYOUTS
} Layout;
extern const char *const layout_name[LAYOUTS];
enum {
    COTANGENTS_REPEATED = LAYOUTS,
    COTANGENTS_EXPANDED
}; /* one value for each index of dim 0, dense, and as an expanded view */
Tensor *strided_copy(const Tensor *x, Layout layout);

/* sample_run - runs the sample at x and sweeps back from all floating results with random cotangents (laid
 * out so) into g[i], NULL for inputs that have none.  Returns the number of results, or -1. */
typedef struct SampleRun {
    Tensor *y[SAMPLE_RESULTS], *g[OP_MAX_INPUTS];
    int results;
} SampleRun;
int sample_run(const Sample *s, Tensor *const *x, bool create_graph, int cotangents, SampleRun *run);

/* ---- comparing ------------------------------------------------------------------------------- */
bool same_bits(const Tensor *a, const Tensor *b);

/* off_by - the largest |a - b| over the largest |b| (but at least floor, or 1 when both are 0); infinite when
 * shapes differ, or one is NaN or infinite where the other is not. */
double off_by(const Tensor *a, const Tensor *b, double floor);

HIDDEN_END
#endif
