/* golden.h - reads the golden values that oracle/ops.py made with PyTorch (oracle/golden.py says the format):
 * one file a family, in it one section an op. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include "samples.h"

typedef struct GoldenValue { /* of a result, or of the gradient of an input */
    bool there;
    TensorDtype dtype;
    int ndim;
    int64_t shape[TENSOR_MAX_DIMS], count;
    const unsigned char *values;    /* f64, i64 or bool, unaligned */
    double error;                   /* PyTorch's own in f32 */
    const unsigned char *cotangent; /* f32, unaligned; NULL: none */
} GoldenValue;

typedef struct GoldenCase {
    Sample sample;
    bool narrow; /* f16 and bf16 hold all inputs and cotangents */
    const unsigned char *input[OP_MAX_INPUTS];
    int results;
    GoldenValue result[SAMPLE_RESULTS], gradient[OP_MAX_INPUTS];
} GoldenCase;

enum { GOLDEN_FILES = 64, GOLDEN_OPS = 1024 };

typedef struct GoldenSection {
    char op[64];
    uint32_t cases, size;
    const unsigned char *begin;
} GoldenSection;

typedef struct Golden {
    int files, sections;
    unsigned char *streams[GOLDEN_FILES];
    GoldenSection section[GOLDEN_OPS];
    char torch[64];
    uint32_t cases; /* of all ops */
    const TensorOp *op;
    unsigned char *stream;
    size_t size, at;
    uint32_t of_op, read;
} Golden;

/* golden_open - all *.golden of a folder, or one file.  0, or -1 with a message when one cannot be read. */
int golden_open(Golden *g, const char *path);
void golden_close(Golden *g);
void golden_begin(Golden *g, const TensorOp *op);

/* golden_next - 1: the next case of the op that was begun; 0: no more; -1: the file is damaged, or names a
 * parameter that is not there. */
int golden_next(Golden *g, GoldenCase *c);

/* The tensors of a case; dtype: of its floating inputs. */
Tensor *golden_input(const GoldenCase *c, int i, TensorDtype dtype);
Tensor *golden_value(const GoldenValue *v); /* f64, or its own integer dtype */
Tensor *golden_cotangent(const GoldenValue *v, TensorDtype dtype);

#endif
