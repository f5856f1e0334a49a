/* load.c - a state dict into a module.
 *
 * First everything is compared, then what needs casting or moving is made, and only then a value changes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "module.h"

enum { TEXT = 780, ITEMS = TEXT / 3 }; /* of all lists in an error; the library's error text is 1 KiB */

/* Names one after the other, as many as fit. */
typedef struct Names {
    char text[TEXT];
    size_t end[ITEMS + 1]; /* of the first i items */
    int shown, count;
} Names;

typedef struct Load {
    TensorDict given, dict; /* dict: under the module's names; "" is not wanted */
    bool strict;
    int place; /* in the dict, where the next name is looked for first */
    bool *used;
    Tensor **target, **source;
    int count;
    Names missing, unexpected, shapes;
} Load;

static void add_name(Names *names, const char *format, ...) TAPEGRAD_PRINTF(2, 3);
static void add_name(Names *names, const char *format, ...)
{
    char item[NN_PATH + 200];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(item, sizeof item, format, args);
    va_end(args);
    const size_t at = names->end[names->shown], comma = names->count ? 2 : 0;
    if (n > 0 && names->shown == names->count++ && names->shown < ITEMS && at + comma + (size_t)n < TEXT)
        names->end[++names->shown] =
            at + (size_t)snprintf(names->text + at, TEXT - at, "%s%s", comma ? ", " : "", item);
}

static const char *shape_text(const Tensor *t, char text[64])
{
    TensorShape s = tensor_shape(t);
    size_t n = (size_t)snprintf(text, 64, "[");
    for (int d = 0; d < s.ndim && n < 60; d++)
        n += (size_t)snprintf(text + n, 64 - n, "%s%lld", d ? ", " : "", (long long)s.dim[d]);
    if (n < 63) snprintf(text + n, 64 - n, "]");
    return text;
}

static bool same_shape(const Tensor *a, const Tensor *b)
{
    TensorShape s = tensor_shape(a), t = tensor_shape(b);
    return s.ndim == t.ndim && (s.ndim == 0 || memcmp(s.dim, t.dim, (size_t)s.ndim * sizeof *s.dim) == 0);
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
    if (i < 0) {
        add_name(&load->missing, "%s", path);
        return 0;
    }
    load->place = i + 1;
    load->used[i] = true;
    char a[64], b[64];
    Tensor *source = load->dict.item[i].tensor;
    if (!same_shape(t->tensor, source))
        add_name(&load->shapes, "%s is %s, given %s", path, shape_text(t->tensor, a), shape_text(source, b));
    load->target[load->count] = t->tensor, load->source[load->count++] = source;
    return 0;
}

/* As many as fit into most bytes. */
static int describe(char *text, size_t size, const char *what, const Names *names, size_t most)
{
    int shown = names->shown;
    if (!names->count) return 0;
    while (shown > 0 && names->end[shown] > most) shown--;
    int n = snprintf(text, size, "; %s: %.*s", what, (int)names->end[shown], names->text);
    if (shown < names->count)
        n += snprintf(text + n, size - (size_t)n, "%s%d more", shown ? ", and " : "", names->count - shown);
    return n;
}

static int check(Load *load, const Module *m)
{
    for (int i = 0; i < load->dict.count; i++)
        if (!load->used[i] && *load->dict.item[i].name)
            add_name(&load->unexpected, "%s", load->given.item[i].name);
    if (!load->shapes.count && (!load->strict || load->missing.count + load->unexpected.count == 0)) return 0;
    const Names *const names[] = { load->strict ? &load->missing : NULL,
                                   load->strict ? &load->unexpected : NULL, &load->shapes };
    static const char *const what[] = { "missing", "unexpected", "shapes" };
    char text[TEXT + 150] = "";
    size_t n = 0, lists = 0;
    for (int i = 0; i < 3; i++) lists += names[i] && names[i]->count;
    for (int i = 0; i < 3; i++)
        if (names[i])
            n += (size_t)describe(text + n, sizeof text - n, what[i], names[i], (TEXT - 20) / lists);
    return tensor_fail(load->shapes.count ? TENSOR_ESHAPE : TENSOR_EVALUE, "nn_load_state_dict", "%s%s",
                       m->type, text);
}

/* Whatever can fail: sources of the targets' dtypes, on their devices. */
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

/* In a scope of its own: if there is room for what the first copy holds, there is for all. */
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

static int load_named(const NNLoadArgs *args)
{
    int most = 0;
    TensorDict named = args->dict;
    if (nn_walk(args->module, count_tensor, &most) ||
        (args->names && nn_rename(args->dict, args->names, &named)))
        return -1;
    Load *load = calloc(1, sizeof *load);
    Tensor **tensors = calloc(2 * (size_t)most + 1, sizeof *tensors);
    bool *used = calloc((size_t)args->dict.count + 1, sizeof *used);
    int status = -1;
    if (load && tensors && used) {
        load->given = args->dict, load->dict = named, load->strict = args->strict;
        load->used = used, load->target = tensors, load->source = tensors + most;
        status = run(load, args->module);
    } else {
        tensor_fail(TENSOR_ENOMEM, "nn_load_state_dict", "out of memory");
    }
    free(load), free(tensors), free(used);
    if (args->names) nn_dict_free(named);
    return status;
}

const NNLoadArgs nn_load_defaults = { NN_LOAD_DEFAULTS };

int nn_load_state_dict_args(NNLoadArgs args)
{
    if (TENSOR_CHECK_OPTIONS("nn_load_state_dict", args, nn_load_defaults)) return -1;
    if (nn_null(args.module, "nn_load_state_dict")) return -1;
    if (nn_dict_broken(args.dict, "nn_load_state_dict")) return -1;
    TensorScope scope = tensor_scope_open();
    const int status = load_named(&args);
    tensor_scope_close(scope);
    return status;
}
