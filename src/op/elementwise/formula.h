/* formula.h - the derivative of a row, read as an expression over tensors. */
#ifndef TG_FORMULA_H
#define TG_FORMULA_H

#include "tensor/core.h"

#pragma GCC visibility push(hidden)
typedef struct FormulaName {
    const char *name;
    Tensor *tensor;
    double number;
} FormulaName; /* tensor NULL: a number */

/* formula_eval - the value of text, made by recordable ops; NULL and an error that quotes the text when it
 * cannot be read. A constant becomes a tensor like the first name's. */
Tensor *formula_eval(const char *op, const char *text, const FormulaName *names, int n);
#pragma GCC visibility pop

#endif
