/* list.c - rules over lists of tensors on devices: one call for all of one dtype and device. */
#include "optim.h"

static bool elsewhere(const Tensor *x) { return strcmp(tensor_device(x), "cpu") != 0; }

static bool same_place(const Tensor *a, const Tensor *b)
{
    return tensor_dtype(a) == tensor_dtype(b) && strcmp(tensor_device(a), tensor_device(b)) == 0;
}

static bool is_dense(const OptimLists *l, int i)
{
    bool dense = true;
    for (int j = 0; j < l->arrays && dense; j++)
        dense = tensor_is_contiguous(l->item[(size_t)i * (size_t)l->arrays + (size_t)j]);
    return dense;
}

/* One call for i and all behind it that are like it.  One with gaps would have them all declined: apart is
 * for the dense ones, or i alone. */
static int run_from(OptimLists *l, int i, bool apart)
{
    OpListRule call = { .function = l->function,
                        .rule = l->rule->name,
                        .step = l->rule->step,
                        .arrays = l->arrays,
                        .item = l->room,
                        .ready = l->ready };
    while (call.numbers < OPTIM_NUMBERS && l->rule->number[call.numbers]) call.numbers++;
    for (int j = i; j < l->n; j++) {
        Tensor **item = l->item + (size_t)j * (size_t)l->arrays;
        if (l->mark[j] || !same_place(l->item[(size_t)i * (size_t)l->arrays], item[0])) continue;
        if (j > i && apart && !(is_dense(l, i) && is_dense(l, j))) continue;
        if (j > i && l->alike && !l->alike(l->ctx, i, j)) continue;
        memcpy(l->room + (size_t)call.count++ * (size_t)l->arrays, item, (size_t)l->arrays * sizeof *item);
        l->mark[j] = OPTIM_PENDING;
    }
    if (l->numbers(l->ctx, i, &call)) return -1;
    const int done = op_list_rule(&call);
    const bool again = done == 0 && call.count > 1 && !apart;
    for (int j = i; j < l->n; j++)
        if (l->mark[j] == OPTIM_PENDING) l->mark[j] = again ? 0 : done == 1 ? OPTIM_LISTED : OPTIM_DECLINED;
    return again ? run_from(l, i, true) : done < 0 ? -1 : 0;
}

int optim_run_lists(OptimLists *l)
{
    for (int i = 0; i < l->n; i++) l->mark[i] = 0;
    for (int i = 0; i < l->n; i++)
        if (!l->mark[i] && elsewhere(l->item[(size_t)i * (size_t)l->arrays]) && run_from(l, i, false))
            return -1;
    return 0;
}
