/* rename.c - the names of a dict, by rules: prefixes stripped, parts renamed. */
#include <string.h>
#include "module.h"

enum { STARS = 8 };

typedef struct Match {
    const char *begin, *end; /* in the name */
    struct {
        const char *at;
        size_t length;
    } star[STARS + 1]; /* the last one has no text */
} Match;

/* Does the rule match what begins at `at`? */
static bool matches_at(const char *rule, const char *at, Match *m)
{
    int stars = 0;
    m->begin = at;
    for (const char *r = rule; *r; r++) {
        const size_t length = *r == '*' ? strcspn(at, ".") : *at == *r;
        if (!length || stars == STARS) return false;
        if (*r == '*') m->star[stars].at = at, m->star[stars++].length = length;
        at += length;
    }
    m->end = at;
    return !*rule || !*at || *at == '.' || at[-1] == '.';
}

static bool matches(const char *rule, const char *name, Match *m)
{
    for (const char *at = name; at; at = *rule && (at = strchr(at, '.')) ? at + 1 : NULL)
        if (matches_at(rule, at, m)) return true;
    return false;
}

static size_t put(char *text, size_t n, const char *more, size_t length)
{
    if (n + length >= NN_PATH) return NN_PATH; /* and so it stays */
    memcpy(text + n, more, length);
    return n + length;
}

/* name becomes what one rule makes of it.  -1: too long. */
static int apply(const NNRename *rule, const Match *m, char name[NN_PATH])
{
    char text[NN_PATH];
    size_t n = put(text, 0, name, (size_t)(m->begin - name));
    int star = 0;
    for (const char *c = rule->to; *c; c++) {
        if (*c == '*' && m->star[star].at) {
            n = put(text, n, m->star[star].at, m->star[star].length);
            star++;
        } else {
            n = put(text, n, c, 1);
        }
    }
    n = put(text, n, m->end, strlen(m->end));
    if (n >= NN_PATH)
        return tensor_fail(TENSOR_EVALUE, "nn_load_state_dict", "\"%.60s...\" becomes too long a name", name);
    text[n] = 0;
    memcpy(name, text, n + 1);
    return 0;
}

/* An item under its new name; its tensor belongs to the open scope. */
static int rename_item(const TensorDictItem *item, const NNRename *rules, TensorDict *to, bool *any)
{
    char name[NN_PATH];
    Tensor *t = item->tensor;
    if (put(name, 0, item->name, strlen(item->name) + 1) >= NN_PATH)
        return nn_dict_append(to, item->name, t); /* of no module */
    for (const NNRename *rule = rules; rule->from; rule++) {
        Match m = { .begin = NULL };
        if (!matches(rule->from, name, &m)) continue;
        *any = true;
        if (!rule->to) return nn_dict_append(to, "", t);
        if (apply(rule, &m, name)) return -1;
        if (rule->transpose && tensor_ndim(t) == 2) t = tensor_transpose(t, 0, 1);
    }
    if (t && nn_dict_find(*to, name, to->count) >= 0)
        return tensor_fail(TENSOR_EVALUE, "nn_load_state_dict", "\"%s\" and another both become \"%s\"",
                           item->name, name);
    return t ? nn_dict_append(to, name, t) : -1;
}

int nn_rename(TensorDict dict, const NNRename *rules, TensorDict *to, bool *any)
{
    *to = (TensorDict){ 0 };
    for (int i = 0; i < dict.count; i++)
        if (rename_item(&dict.item[i], rules, to, any)) {
            nn_dict_free(*to);
            return -1;
        }
    return 0;
}
