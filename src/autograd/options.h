/* options.h - options as text: "dim=1 keepdim=true dims=[0 2] reduction=sum", read into an op's parameter
 * struct by its table of fields. */
#ifndef TG_OPTIONS_H
#define TG_OPTIONS_H

#include "hidden.h"
#include "tensor/core.h"

typedef struct OptionRoom { /* what lists and texts of the struct point to: it must live as long, and stay in
                               place */
    int64_t list[CALL_LISTS][TENSOR_MAX_DIMS];
    int lists;
    char text[256];
    size_t used;
} OptionRoom;

typedef enum OptionFault {
    OPTIONS_READ,
    OPTION_UNKNOWN,  /* no such option */
    OPTION_NO_VALUE, /* no = after it */
    OPTION_BAD,      /* no value of its type */
    OPTION_TWICE,
    OPTION_MISSING /* one that must be given */
} OptionFault;

HIDDEN_BEGIN

/* options_default - params holds the defaults.  required, if not NULL: the first field that has none, or
 * NULL. */
void options_default(const TensorOp *op, void *params, const OpField **required);

/* options_no_choice - is value none of the choices?  Then text receives their names, "a, b or c". */
bool options_no_choice(const char *const *choices, int value, char *text, size_t size);

const OpField *options_find(const TensorOp *op, const char *name, size_t length);

/* options_read_value - reads one value for f from text, up to a space, comma, '}' or the end; returns the
 * place behind it, NULL when there is no such value.  An enum is read by the names of its choices, or as a
 * number; a bool as true, false, 1, 0; a list in brackets. */
const char *options_read_value(const OpField *f, const char *text, void *params, OptionRoom *room);

/* options_read - the defaults, and over them "name=value ..." from *at up to `end`, a '}' or 0, behind which
 * *at then stands.  At a fault *at stands at it, and *name is the option's name (length characters).  An enum
 * is read by the names of its choices, or as a number; a bool as true, false, 1, 0; a list in brackets. */
OptionFault options_read(const TensorOp *op, const char **at, char end, void *params, OptionRoom *room,
                         const char **name, int *length);

HIDDEN_END
#endif
