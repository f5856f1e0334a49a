/* matrix_product.h - what matmul and linear share: matrices as views of tensors, and their products outside
 * the graph. */
#ifndef TG_PRODUCT_H
#define TG_PRODUCT_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

/* A batch of matrices inside a tensor; the batch dimensions point into it. */
typedef struct Matrix {
    void *data;
    int64_t rows, cols, row, col; /* sizes and strides */
    int batch_ndim;
    const int64_t *batch_shape, *batch_stride;
} Matrix;

/* matrix - x as [batch..., rows, cols]; without rows (columns) x lacks that dimension, and it is 1.
 * left, right - an operand of matmul: rank 1 is a row on the left, a column on the right. */
Matrix matrix(const Tensor *x, bool rows, bool cols);
Matrix left_matrix(const Tensor *x);
Matrix right_matrix(const Tensor *x);
Matrix flip(Matrix a); /* transposed */

/* fold_rows - the batch of x one below the other, as one matrix; x is copied when its strides do not allow
 * that. 0, or -1: no memory. */
int fold_rows(Matrix *a, const Tensor *x);

/* as_rows - x as one matrix, all but the last size together; on the graph. */
Tensor *as_rows(Tensor *x);

/* multiply - c = alpha a b + beta c (+ bias, one value a column); c's batch is the broadcast one of a and b.
 * With a function (of what c would be otherwise, kept in `before`) or sums (over a's columns; GemmArgs in
 * kernels.h) it may be declined; c is dense then. */
typedef struct Product {
    const char *op;
    const Place *place;
    int dtype; /* of a, b and c */
    double alpha, beta;
    const void *bias;
    bool wide; /* bias and c are f32 beside halves */
    GemmFunction function;
    int row; /* of the function */
    void *before, *sums;
} Product;
int multiply(const Product *p, Matrix a, Matrix b, Matrix c);

/* check_numbers - refuses bool (EDTYPE). */
int check_numbers(OpCall *c, const Tensor *x);

HIDDEN_END
#endif
