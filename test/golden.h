/* golden.h - reads the golden values that oracle/ops.py made with PyTorch (oracle/golden.py says the format).
 */
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
    char op[64];
    Sample sample;
    bool narrow; /* f16 and bf16 hold all inputs and cotangents */
    const unsigned char *input[OP_MAX_INPUTS];
    int results;
    GoldenValue result[SAMPLE_RESULTS], gradient[OP_MAX_INPUTS];
} GoldenCase;

typedef struct Golden {
    unsigned char *stream;
    size_t size, at, start; /* start: of the first case */
    char torch[64];
    uint32_t cases, read;
} Golden;

/* golden_open - 0, or -1 with a message when the file cannot be read or is of another format. */
int golden_open(Golden *g, const char *path);
void golden_close(Golden *g);
void golden_rewind(Golden *g); /* to the first case */

/* golden_next - 1: the next case; 0: no more; -1: the stream is damaged, or names an op or a parameter that
 * is not there. */
int golden_next(Golden *g, GoldenCase *c);

/* The tensors of a case; dtype: of its floating inputs. */
Tensor *golden_input(const GoldenCase *c, int i, TensorDtype dtype);
Tensor *golden_value(const GoldenValue *v); /* f64, or its own integer dtype */
Tensor *golden_cotangent(const GoldenValue *v, TensorDtype dtype);

#endif
