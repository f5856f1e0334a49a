/* index_parse.c - reads the text of an index.
 *
 *   index  = "[" items "]" | items          items = item { "," item } [ "," ]
 *   item   = integer | slice | "..." | "None" | "True" | "False" | name
 *   slice  = [integer] ":" [integer] [ ":" [integer] ]
 *   integer = ["+" | "-"] digits | "%d" | "%ld" | "%lld"        a name takes the next argument, a Tensor * */
#include <ctype.h>
#include <stdlib.h>
#include "index_language.h"

typedef struct Reader {
    const char *op, *text, *at;
    va_list args;
} Reader;

static int refuse(const Reader *r, const char *at, const char *what)
{
    return fail(TENSOR_EVALUE, r->op, "\"%s\" at position %d: %s", r->text, (int)(at - r->text), what);
}

static void skip_spaces(Reader *r)
{
    while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take(Reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_spaces(r);
    if (strncmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static bool number_follows(Reader *r)
{
    skip_spaces(r);
    const char *p = r->at;
    if (*p == '-' || *p == '+') p++;
    return isdigit((unsigned char)*p) || *r->at == '%';
}

/* An integer beyond int64 stays at its end, as strtoll leaves it. */
static int read_integer(Reader *r, int64_t *value)
{
    skip_spaces(r);
    const char *start = r->at;
    if (*start != '%') {
        char *end;
        *value = strtoll(start, &end, 10);
        r->at = end;
        return 0;
    }
    if (take(r, "%lld")) *value = va_arg(r->args, long long);
    else if (take(r, "%ld")) *value = va_arg(r->args, long);
    else if (take(r, "%d")) *value = va_arg(r->args, int);
    else return refuse(r, start, "want %d, %ld or %lld");
    return 0;
}

static int read_name(Reader *r, IndexItem *item)
{
    const char *start = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_') r->at++;
    size_t n = (size_t)(r->at - start);
    bool yes = n == 4 && memcmp(start, "True", n) == 0, no = n == 5 && memcmp(start, "False", n) == 0;
    if (yes || no) {
        item->kind = INDEX_BOOL, item->start = yes;
        return 0;
    }
    item->kind = INDEX_NONE;
    if (n == 4 && memcmp(start, "None", n) == 0) return 0;
    item->kind = INDEX_TENSOR, item->tensor = va_arg(r->args, Tensor *);
    if (item->tensor == TENSOR_INDEX_END_)
        return fail(TENSOR_EVALUE, r->op, "\"%s\" at position %d: no tensor is given for the name \"%.*s\"",
                    r->text, item->at, (int)n, start);
    if (item->tensor && !item->tensor->storage)
        return fail(TENSOR_EVALUE, r->op, "\"%s\" at position %d: the tensor was released", r->text,
                    item->at);
    if (item->tensor) return 0;
    return tensor_error_code()
               ? -1
               : fail(TENSOR_ENULL, r->op, "\"%s\" at position %d: the tensor is NULL", r->text, item->at);
}

/* An integer, or a slice: what a colon follows. */
static int read_range(Reader *r, IndexItem *item)
{
    const char *start = r->at;
    bool first = number_follows(r);
    if (first && read_integer(r, &item->start)) return -1;
    if (!take(r, ":")) {
        item->kind = INDEX_INTEGER;
        return first ? 0 : refuse(r, start, "want an integer, a slice, ..., None, True, False or a name");
    }
    item->kind = INDEX_SLICE;
    if (number_follows(r) && read_integer(r, &item->end)) return -1;
    if (!take(r, ":") || !number_follows(r)) return 0;
    if (read_integer(r, &item->step)) return -1;
    return item->step > 0 ? 0 : refuse(r, start, "the step must be positive");
}

static int read_item(Reader *r, IndexItem *item)
{
    skip_spaces(r);
    *item = (IndexItem){ .at = (int)(r->at - r->text), .end = INT64_MAX, .step = 1 };
    if (take(r, "...")) {
        item->kind = INDEX_ELLIPSIS;
        return 0;
    }
    return isalpha((unsigned char)*r->at) || *r->at == '_' ? read_name(r, item) : read_range(r, item);
}

static int read_items(Reader *r, IndexItem *items)
{
    int n = 0;
    bool bracket = take(r, "["), ellipsis = false;
    do {
        skip_spaces(r);
        if (n > 0 && (*r->at == 0 || *r->at == ']')) break; /* a comma may end the list */
        if (n == INDEX_MOST) return refuse(r, r->at, "too many items");
        if (read_item(r, &items[n])) return -1;
        if (items[n].kind == INDEX_ELLIPSIS && ellipsis)
            return refuse(r, r->text + items[n].at, "a second ...");
        ellipsis |= items[n++].kind == INDEX_ELLIPSIS;
    } while (take(r, ","));
    if (bracket && !take(r, "]")) return refuse(r, r->at, "want , or ]");
    skip_spaces(r);
    return *r->at ? refuse(r, r->at, "want , or the end") : n;
}

int index_parse(const char *op, const char *text, va_list args, IndexItem items[INDEX_MOST])
{
    Reader r = { .op = op, .text = text, .at = text };
    if (!text) return fail(TENSOR_ENULL, op, "the text is NULL");
    va_copy(r.args, args);
    int n = read_items(&r, items);
    if (n >= 0 && va_arg(r.args, Tensor *) != TENSOR_INDEX_END_)
        n = fail(TENSOR_EVALUE, op,
                 "\"%s\": want one argument for each name and each %%d, %%ld or %%lld, and no more", text);
    va_end(r.args);
    return n;
}
