/* load.c - loads a state dict into a module.
 *
 * First it compares all names and shapes, then casts and moves values, and only then changes parameters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "module.h"

enum { TEXT = 20000 }; /* of each of three lists in an error, whose text has room for 64 KiB */

typedef struct Load {
    TensorDict given, dict; /* dict: under the module's names; "" is not wanted */
    bool strict, renamed;   /* renamed: a rule of .names matched */
    const NNRename *names;
    int place; /* position in the dict where the search for the next name begins */
    bool *used;
    Tensor **target, **source;
    int count;
    NNMisfits misfits;
} Load;

const char *nn_shape_text(TensorShape s, char text[64])
{
    size_t n = (size_t)snprintf(text, 64, "[");
    for (int d = 0; d < s.ndim && n < 60; d++)
        n += (size_t)snprintf(text + n, 64 - n, "%s%lld", d ? ", " : "", (long long)s.dim[d]);
    if (n < 63) snprintf(text + n, 64 - n, "]");
    return text;
}

/* Where a path is: "0.parametrizations.weight.original1" is "0.weight_v" too, as PyTorch's older weight norm,
 * torch.nn.utils.weight_norm, named it, when the dict has both of its names. */
static int place_of(const Load *load, const char *path)
{
    static const char list[] = "parametrizations.", *const old[] = { "_g", "_v" };
    const int i = nn_dict_find(load->dict, path, load->place);
    const char *at = i < 0 ? strstr(path, list) : NULL, *name = at ? at + strlen(list) : NULL,
               *end = name ? strstr(name, ".original") : NULL;
    if (!end || (at > path && at[-1] != '.') || (end[9] != '0' && end[9] != '1') || end[10]) return i;
    int found[2];
    for (int k = 0; k < 2; k++) {
        char text[NN_PATH];
        snprintf(text, sizeof text, "%.*s%.*s%s", (int)(at - path), path, (int)(end - name), name, old[k]);
        found[k] = nn_dict_find(load->dict, text, load->place);
    }
    return found[0] < 0 || found[1] < 0 ? -1 : found[end[9] - '0'];
}

static int compare(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    Load *load = ctx;
    if (is_buffer && !t->persistent) return 0;
    const int i = place_of(load, path);
    if (i < 0) return nn_dict_append(&load->misfits.missing, path, t->tensor);
    load->place = i + 1;
    load->used[i] = true;
    char a[64], b[64], text[NN_PATH + 200];
    Tensor *source = load->dict.item[i].tensor;
    load->target[load->count] = t->tensor, load->source[load->count++] = source;
    if (tensor_shape_equal(tensor_shape(t->tensor), tensor_shape(source))) return 0;
    snprintf(text, sizeof text, "%s is %s, given %s", path, nn_shape_text(tensor_shape(t->tensor), a),
             nn_shape_text(tensor_shape(source), b));
    return nn_dict_append(&load->misfits.shapes, text, source);
}

/* Appends "; what: name, name", as many as fit; returns the end. */
static char *describe(char *text, const char *what, TensorDict list)
{
    const char *const begin = text;
    for (int i = 0; i < list.count; i++) {
        const char *name = list.item[i].name;
        if ((size_t)(text - begin) + strlen(name) + 60 > TEXT)
            return text + sprintf(text, ", and %d more", list.count - i);
        text += i ? sprintf(text, ", %s", name) : sprintf(text, "; %s: %s", what, name);
    }
    return text;
}

int nn_refuse_dict(const char *function, const char *who, NNMisfits misfits)
{
    char *text = calloc(3, TEXT);
    if (!text) return tensor_fail(TENSOR_ENOMEM, function, "out of memory");
    char *end = describe(text, "missing", misfits.missing);
    end = describe(end, "unexpected", misfits.unexpected);
    describe(end, "shapes", misfits.shapes);
    tensor_fail(misfits.shapes.count ? TENSOR_ESHAPE : TENSOR_EVALUE, function, "%s%s", who, text);
    free(text);
    return -1;
}

static int refuse(const Load *load, const Module *m, const char *why, bool names)
{
    char who[200];
    NNMisfits misfits = load->misfits;
    if (!names) misfits.missing.count = misfits.unexpected.count = 0;
    snprintf(who, sizeof who, "%s%s", m->type, why);
    return nn_refuse_dict("nn_load_state_dict", who, misfits);
}

/* Entries that may be missing: a tied tensor that another of its names provides, and a batch norm's count
 * of batches, which older files of PyTorch lack. */
static bool may_lack(const Load *load, const TensorDictItem *item)
{
    static const char count[] = "num_batches_tracked";
    const size_t n = strlen(item->name), k = sizeof count - 1;
    for (int i = 0; i < load->count; i++)
        if (load->target[i] == item->tensor) return true;
    return n >= k && strcmp(item->name + n - k, count) == 0 && (n == k || item->name[n - k - 1] == '.');
}

static void excuse(Load *load)
{
    TensorDict *missing = &load->misfits.missing, all = *missing;
    missing->count = 0;
    for (int i = 0; i < all.count; i++) {
        TensorDictItem *item = &all.item[i];
        if (!may_lack(load, item)) all.item[missing->count++] = *item;
        else free(item->name), tensor_release(item->tensor);
    }
}

static int check(Load *load, const Module *m)
{
    excuse(load);
    for (int i = 0; i < load->dict.count; i++) {
        const TensorDictItem *item = &load->given.item[i];
        if (!load->used[i] && *load->dict.item[i].name &&
            nn_dict_append(&load->misfits.unexpected, item->name, item->tensor))
            return -1;
    }
    const bool differ = load->misfits.missing.count || load->misfits.unexpected.count;
    if (differ && load->names && (!load->renamed || !load->count))
        return refuse(load, m, "; .names matched nothing", true);
    return load->misfits.shapes.count || (load->strict && differ) ? refuse(load, m, "", load->strict) : 0;
}

/* All that can fail: casts the sources to the targets' dtypes and devices. */
static int convert(Load *load)
{
    for (int i = 0; i < load->count; i++) {
        Tensor *s = tensor_detach(load->source[i]);
        if (s && tensor_dtype(s) != tensor_dtype(load->target[i]))
            s = tensor_to(s, tensor_dtype(load->target[i]));
        if (s) s = tensor_to_device(s, tensor_device(load->target[i]));
        if (!s) return -1;
        load->source[i] = s;
    }
    return 0;
}

/* Each copy in its own scope: memory that suffices for the first suffices for all. */
static int copy_one(Tensor *to, Tensor *from)
{
    TensorScope scope = tensor_scope_open();
    const int status = to == from || tensor_copy_(to, from) ? 0 : -1;
    tensor_scope_close(scope);
    return status;
}

static int copy_all(Load *load)
{
    TensorScope scope = tensor_scope_open();
    bool was = tensor_set_grad_enabled(false);
    int status = convert(load);
    for (int i = 0; i < load->count && !status; i++) status = copy_one(load->target[i], load->source[i]);
    tensor_set_grad_enabled(was);
    tensor_scope_close(scope);
    return status;
}

static int count_tensor(void *ctx, const char *path, ModuleTensor *t, bool is_buffer)
{
    (void)path, (void)t, (void)is_buffer;
    ++*(int *)ctx;
    return 0;
}

static int run(Load *load, Module *m)
{
    if (nn_walk(m, compare, load) || check(load, m)) return -1;
    return copy_all(load);
}

static void hand_over(TensorDict *to, TensorDict list)
{
    if (to) *to = list;
    else nn_dict_free(list);
}

static int load_named(const NNLoadArgs *args)
{
    int most = 0;
    TensorDict named = args->dict;
    Load load = { .given = args->dict, .strict = args->strict, .names = args->names };
    if (nn_walk(args->module, count_tensor, &most) ||
        (args->names && nn_rename(args->dict, args->names, &named, &load.renamed)))
        return -1;
    Tensor **tensors = calloc(2 * (size_t)most + 1, sizeof *tensors);
    bool *used = calloc((size_t)args->dict.count + 1, sizeof *used);
    int status = -1;
    if (tensors && used) {
        load.dict = named, load.used = used, load.target = tensors, load.source = tensors + most;
        status = run(&load, args->module);
    } else {
        tensor_fail(TENSOR_ENOMEM, "nn_load_state_dict", "out of memory");
    }
    free(tensors), free(used);
    if (args->names) nn_dict_free(named);
    hand_over(args->missing_keys, load.misfits.missing);
    hand_over(args->unexpected_keys, load.misfits.unexpected);
    nn_dict_free(load.misfits.shapes);
    return status;
}

const NNLoadArgs nn_load_defaults = { NN_LOAD_DEFAULTS };

int nn_load_state_dict_args(NNLoadArgs args)
{
    if (TENSOR_CHECK_OPTIONS("nn_load_state_dict", args, nn_load_defaults)) return -1;
    if (args.missing_keys) *args.missing_keys = (TensorDict){ 0 };
    if (args.unexpected_keys) *args.unexpected_keys = (TensorDict){ 0 };
    if (nn_unmade(args.module, "nn_load_state_dict")) return -1;
    if (nn_dict_broken(args.dict, "nn_load_state_dict")) return -1;
    TensorScope scope = tensor_scope_open();
    const int status = load_named(&args);
    tensor_scope_close(scope);
    return status;
}
