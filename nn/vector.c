/* vector.c - the parameters of a net as one vector, and back. */
#include <stdlib.h>
#include <tapegrad/foreach.h>
#include "module.h"

/* An array with room for one tensor per parameter, which the caller frees; NULL and an error if the list
 * is broken. */
static Tensor **parts_of(const char *function, TensorList list)
{
    if (tensor_error_code()) return NULL;
    const bool bad = list.count < 0 || (list.count > 0 && !list.item);
    if (bad) tensor_fail(TENSOR_ENULL, function, "the list of parameters is NULL");
    else if (list.count == 0) tensor_fail(TENSOR_EVALUE, function, "no parameters");
    for (int i = 0; i < list.count && !bad; i++)
        if (!list.item[i]) tensor_fail(TENSOR_ENULL, function, "parameter %d is NULL", i);
        else tensor_numel(list.item[i]); /* was it released? */
    if (tensor_error_code()) return NULL;
    Tensor **part = malloc((size_t)list.count * sizeof(Tensor *));
    if (!part) tensor_fail(TENSOR_ENOMEM, function, "out of memory");
    return part;
}

Tensor *nn_parameters_to_vector(TensorList list)
{
    static const char function[] = "nn_parameters_to_vector";
    Tensor **part = parts_of(function, list);
    if (!part) return NULL;
    const char *outer = tensor_compose_begin(function);
    TensorScope scope = tensor_scope_open();
    for (int i = 0; i < list.count; i++)
        part[i] = tensor_reshape(list.item[i], SHAPE(tensor_numel(list.item[i])));
    Tensor *vec = tensor_cat(TENSOR_LIST(part, list.count), 0);
    free(part);
    tensor_compose_end(outer);
    return tensor_scope_return(scope, vec);
}

/* -1 and an error if vec is not 1-D or has another number of elements than the parameters. */
static int check_length(const char *function, const Tensor *vec, TensorList list)
{
    if (!vec) return tensor_fail(TENSOR_ENULL, function, "the vector is NULL");
    int64_t elements = 0;
    for (int i = 0; i < list.count; i++) elements += tensor_numel(list.item[i]);
    char text[64];
    if (tensor_shape(vec).ndim == 1 && tensor_numel(vec) == elements) return 0;
    return tensor_fail(TENSOR_ESHAPE, function, "a vector %s for parameters of %lld elements",
                       nn_shape_text(tensor_shape(vec), text), (long long)elements);
}

int nn_vector_to_parameters(Tensor *vec, TensorList list)
{
    static const char function[] = "nn_vector_to_parameters";
    Tensor **part = parts_of(function, list);
    if (!part) return -1;
    const char *outer = tensor_compose_begin(function);
    const bool was = tensor_set_grad_enabled(false);
    TensorScope scope = tensor_scope_open();
    int status = check_length(function, vec, list);
    int64_t from = 0;
    for (int i = 0; i < list.count && !status; i++) {
        const int64_t elements = tensor_numel(list.item[i]);
        part[i] = tensor_reshape(tensor_narrow(vec, 0, from, elements), tensor_shape(list.item[i]));
        from += elements;
    }
    if (!status) status = tensor_foreach_copy_(list, TENSOR_LIST(part, list.count));
    tensor_scope_close(scope);
    tensor_set_grad_enabled(was);
    tensor_compose_end(outer);
    free(part);
    return status;
}
