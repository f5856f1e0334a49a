/* index_language.h - the text of an index, "..., None, 1:-1:2, rows", as a list of items. */
#ifndef TG_INDEX_LANGUAGE_H
#define TG_INDEX_LANGUAGE_H

#include "hidden.h"
#include "op/op.h"

HIDDEN_BEGIN

typedef enum IndexKind {
    INDEX_INTEGER,
    INDEX_SLICE,
    INDEX_ELLIPSIS,
    INDEX_NONE,
    INDEX_BOOL,
    INDEX_TENSOR
} IndexKind;

typedef struct IndexItem {
    IndexKind kind;
    int at; /* where it stands in the text */
    int64_t start, end,
        step; /* of a slice: 0, INT64_MAX and 1 where left out; start: an integer, or a bool */
    Tensor *tensor;
} IndexItem;

enum { INDEX_MOST = 3 * TENSOR_MAX_DIMS }; /* None may stand between all dimensions */

/* index_parse - reads text into items, taking an argument for every name and every %d; returns their number,
 * or -1 and EVALUE with the text and the position. */
int index_parse(const char *op, const char *text, va_list args, IndexItem items[INDEX_MOST]);

/* index_by_tensors - tensor_index_tensors under another name (index_tensors.c). */
Tensor *index_by_tensors(const char *name, Tensor *x, TensorList indices, const void *site);

HIDDEN_END
#endif
