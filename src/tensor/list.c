/* list.c - calls of a device on many tensors at once (op_row.h). */
#include <stdlib.h>
#include "core.h"

/* The arrays of a call, and how many elements those of each list have. */
typedef struct Arrays {
    void **data;
    int64_t *count;
} Arrays;

/* One block of memory, its dims in any order? */
static bool is_block(const Tensor *x)
{
    int64_t reach = 1;
    if (x->flags & FLAG_CONTIGUOUS) return true;
    for (int d = 0; d < x->ndim; d++)
        if (x->stride[d] < 0) return false;
        else reach += (x->shape[d] - 1) * x->stride[d];
    return reach == x->numel && !overlaps_itself(x);
}

static bool same_order(const Tensor *x, const Tensor *like)
{
    bool same = x->ndim == like->ndim;
    if (x->flags & like->flags & FLAG_CONTIGUOUS) return x->numel == like->numel;
    for (int d = 0; d < x->ndim && same; d++)
        same = x->shape[d] == like->shape[d] && (x->shape[d] == 1 || x->stride[d] == like->stride[d]);
    return same;
}

/* Are all on one device, those of each list in one order, and of one dtype, or of `dtypes` by turns? */
static bool are_alike(Tensor *const *item, int n, int arrays, int dtypes)
{
    bool alike = true;
    for (int i = 0; i < n * arrays && alike; i++) {
        const Tensor *x = item[i], *first = item[i - i % arrays];
        alike = x && x->place == item[0]->place && x->dtype == item[i % dtypes]->dtype &&
                (x == first ? is_block(x) : same_order(x, first));
    }
    return alike;
}

/* The caller frees data; NULL and ENOMEM recorded: no memory. */
static Arrays arrays_of(Tensor *const *x, int n, int each, const char *function)
{
    const size_t all = (size_t)n * (size_t)each;
    Arrays a = { malloc(all * sizeof *a.data + (size_t)n * sizeof *a.count), NULL };
    if (!a.data) return fail(TENSOR_ENOMEM, function, "out of memory"), a;
    a.count = (int64_t *)(void *)(a.data + all);
    for (size_t i = 0; i < all; i++) a.data[i] = x[i]->data;
    for (int i = 0; i < n; i++) a.count[i] = x[i * each]->numel;
    return a;
}

/* A kernel's status as the return value of these functions. */
static int answer(int status, const char *function, const Place *place, const char *slot)
{
    if (status < 0) return kernel_failed(status, function, place, slot);
    return status == KERNEL_DONE;
}

/* foreach_copy between two dtypes: x (dtype of x) = g. */
static int cast_list(const OpListRule *call)
{
    const int n = call->count;
    Tensor *const *item = call->item;
    const Place *place = item[0]->place;
    ListCastArgs args = { .from = item[1]->dtype, .to = item[0]->dtype, .n = n, .ready = call->ready };
    if (!place->device->list_cast || !are_alike(item, n, 2, 2)) return 0;
    Arrays a = arrays_of(item, n, 2, call->function);
    if (!a.data) return -1;
    for (int i = 0; i < n; i++) a.data[2 * i] = item[2 * i + 1]->data, a.data[2 * i + 1] = item[2 * i]->data;
    if (unlikely(graph_watches)) graph_note_list(item, 2 * n);
    args.array = a.data, args.count = a.count;
    const int done =
        answer(place->device->list_cast(place->context, &args), call->function, place, "list_cast");
    free(a.data);
    for (int i = 0; i < n && done == 1 && !call->ready; i++) tensor_bump_version(item[2 * i]);
    return done;
}

int op_list_rule(const OpListRule *call)
{
    if (tensor_error_code()) return -1;
    if (!call || !call->rule || !call->step || !call->item)
        return fail(TENSOR_ENULL, "op_list_rule", "the call, its rule or its list is NULL");
    const int all = call->count * call->arrays, rows = call->row ? call->rows : 1;
    if (rows < 1 || rows > OP_LIST_ROWS || call->numbers < 0 || call->numbers > OP_LIST_NUMBERS)
        return fail(TENSOR_EVALUE, "op_list_rule", "%d rows of %d numbers: want 1 to %d of at most %d", rows,
                    call->numbers, OP_LIST_ROWS, OP_LIST_NUMBERS);
    if (all <= 0) return 0;
    if (call->arrays == 2 && !call->skip && call->item[0] && call->item[1] &&
        call->item[0]->dtype != call->item[1]->dtype && strcmp(call->rule, "foreach_copy") == 0)
        return cast_list(call);
    if (!are_alike(call->item, call->count, call->arrays, 1)) return 0;
    const Place *place = call->item[0]->place;
    ListRuleArgs args = { .rule = call->rule,
                          .step = call->step,
                          .dtype = call->item[0]->dtype,
                          .arrays = call->arrays,
                          .numbers = call->numbers,
                          .n = call->count,
                          .number = call->number,
                          .number_there = call->number_there ? call->number_there->data : NULL,
                          .skip = call->skip ? call->skip->data : NULL,
                          .row = call->row ? call->row->data : NULL,
                          .rows = call->rows,
                          .ready = call->ready };
    if (!TAKES(place, list_rule, args.dtype)) return 0;
    if (unlikely(graph_watches)) {
        graph_note_list(call->item, all);
        for (int i = 0; i < call->numbers && call->number && !call->counts; i++)
            graph_note_number(call->number[i]);
    }
    const Arrays a = arrays_of(call->item, call->count, call->arrays, call->function);
    if (!a.data) return -1;
    args.array = a.data, args.count = a.count;
    const int done =
        answer(place->device->list_rule(place->context, &args), call->function, place, "list_rule");
    free(a.data);
    for (int i = 0; i < all && done == 1 && !call->ready; i++)
        if (i % call->arrays != 1) tensor_bump_version(call->item[i]);
    return done;
}

/* Those of the tensors that have the dtype, into their places of y; what is no block is copied. */
static int norms_of(const char *function, TensorList self, int dtype, double ord, Tensor *y)
{
    const Place *place = y->place;
    ListNormArgs args = { .dtype = dtype, .out_dtype = y->dtype, .ord = ord, .out = y->data };
    const size_t n = (size_t)self.count;
    void **array = malloc(n * (2 * sizeof *array + sizeof *args.count));
    if (!array) return fail(TENSOR_ENOMEM, function, "out of memory");
    int64_t *count = (int64_t *)(void *)(array + 2 * n);
    int done = 1;
    for (int i = 0; i < self.count && done == 1; i++) {
        Tensor *x = self.item[i];
        if (x->dtype != dtype) continue;
        if (!is_block(x) && !(x = own(raw_contiguous(x)))) done = -1;
        else {
            array[2 * args.n] = x->data, array[2 * args.n + 1] = (void *)(uintptr_t)i;
            count[args.n++] = x->numel;
        }
    }
    args.array = array, args.count = count;
    if (args.n && done == 1)
        done = answer(place->device->list_norm(place->context, &args), function, place, "list_norm");
    free(array);
    return done;
}

int op_list_norm(const char *function, TensorList self, double ord, Tensor **norms)
{
    if (tensor_error_code()) return -1;
    if (!norms || (!self.item && self.count)) return fail(TENSOR_ENULL, "op_list_norm", "a list is NULL");
    int wide = TENSOR_F32;
    for (int i = 0; i < self.count; i++) {
        const Tensor *x = self.item[i];
        if (!x || x->place != self.item[0]->place || !TAKES(x->place, list_norm, x->dtype)) return 0;
        if (x->dtype == TENSOR_F64) wide = TENSOR_F64;
    }
    if (self.count <= 0) return 0;
    if (unlikely(graph_watches)) graph_note_list(self.item, self.count);
    Tensor *y = new_tensor(SHAPE(self.count), wide, self.item[0]->place);
    int done = y ? 1 : -1;
    for (int d = 0; d < TENSOR_DTYPES && done == 1; d++)
        if (TAKES(y->place, list_norm, d)) done = norms_of(function, self, d, ord, y);
    if (done != 1) {
        if (y) tensor_release(y);
        return done;
    }
    return (*norms = own(y)) ? 1 : -1;
}
