/* options.c - options as text, for samples and tensor_apply_text; the defaults of ops (options.h). */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include "tensor/numbers.h"
#include "options.h"

const char *const op_dtype_choices[] = {
    "f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool", "same", NULL
};

const OpField *options_find(const TensorOp *op, const char *name, size_t length)
{
    for (const OpField *f = op->fields; f && f->name; f++)
        if (strlen(f->name) == length && strncmp(f->name, name, length) == 0) return f;
    return NULL;
}

/* Reads a number for f, within its type's range; returns the place behind it, or NULL. */
static const char *read_number(OpFieldType type, const char *text, void *to)
{
    char *end;
    errno = 0;
    if (type == OP_DOUBLE) {
        const double value = read_double(text, &end);
        *(double *)to = value;
        return end == text || (errno == ERANGE && isinf(value)) ? NULL : end;
    }
    const long long value = strtoll(text, &end, 10);
    if (end == text || errno == ERANGE) return NULL;
    if (type == OP_I64) return *(int64_t *)to = value, end;
    if (value < INT_MIN || value > INT_MAX) return NULL;
    return *(int *)to = (int)value, end;
}

static const char *read_list(const char *text, int64_t *values, int most, int *n)
{
    if (*text++ != '[') return NULL;
    for (*n = 0;;) {
        while (*text == ' ' || *text == ',') text++;
        if (*text == ']') return text + 1;
        if (*n == most || !(text = read_number(OP_I64, text, &values[(*n)++]))) return NULL;
    }
}

/* The members of an array that the text leaves out are 0, as in C. */
static const char *read_array(const OpField *f, const char *text, char *to)
{
    const size_t each = f->type == OP_INT ? sizeof(int) : sizeof(int64_t);
    if (*text++ != '[') return NULL;
    memset(to, 0, (size_t)f->count * each);
    for (int i = 0;; i++) {
        while (*text == ' ' || *text == ',') text++;
        if (*text == ']') return text + 1;
        if (i == f->count || !(text = read_number(f->type, text, to + (size_t)i * each))) return NULL;
    }
}

static size_t word(const char *text) { return strcspn(text, " ,;}"); }

static const char *read_string(const char *text, const char **to, OptionRoom *room)
{
    const size_t n = strcspn(text, " }"); /* an equation has commas */
    if (n >= sizeof room->text - room->used) return NULL;
    char *at = room->text + room->used;
    memcpy(at, text, n);
    at[n] = 0;
    room->used += n + 1;
    *to = at;
    return text + n;
}

static const char *read_enum(const OpField *f, const char *text, int *to)
{
    for (int i = 0; f->choices && f->choices[i]; i++)
        if (strlen(f->choices[i]) == word(text) && strncmp(text, f->choices[i], word(text)) == 0)
            return *to = i, text + word(text);
    return read_number(OP_INT, text, to);
}

static const char *read_bool(const char *text, bool *to)
{
    static const struct {
        const char *name;
        bool value;
    } names[] = { { "true", true }, { "false", false }, { "1", true }, { "0", false } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(text, names[i].name, strlen(names[i].name)) == 0)
            return *to = names[i].value, text + strlen(names[i].name);
    return NULL;
}

static const char *read_shape(const char *text, TensorShape *to, OptionRoom *room)
{
    if (room->lists == CALL_LISTS) return NULL;
    int64_t *list = room->list[room->lists++];
    int n = 0;
    const char *end = read_list(text, list, TENSOR_MAX_DIMS, &n);
    *to = (TensorShape){ n, list };
    return end;
}

const char *options_read_value(const OpField *f, const char *text, void *params, OptionRoom *room)
{
    void *to = (char *)params + f->offset;
    while (*text == ' ') text++;
    const bool number = f->type == OP_INT || f->type == OP_I64 || f->type == OP_DOUBLE;
    if (f->count > 1 || (f->count == 1 && number && *text == '[')) return read_array(f, text, to);
    switch (f->type) {
    case OP_LIST: return read_shape(text, to, room);
    case OP_STRING: return read_string(text, to, room);
    case OP_BOOL: return read_bool(text, to);
    case OP_DOUBLE:
    case OP_I64: return read_number(f->type, text, to);
    case OP_INT: return read_enum(f, text, to);
    }
    return NULL;
}

void options_default(const TensorOp *op, void *params, const OpField **required)
{
    if (op->defaults) memcpy(params, op->defaults, op->params);
    else memset(params, 0, op->params);
    if (required) *required = NULL;
    for (const OpField *f = op->fields; f && f->name; f++)
        if (required && !*required && f->required) *required = f;
}

bool options_no_choice(const char *const *choices, int value, char *text, size_t size)
{
    int n = 0;
    size_t used = 0;
    while (choices[n]) n++;
    if (value >= 0 && value < n) return false;
    text[0] = 0;
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0       ? ""
                                 : i == n - 1 ? " or "
                                              : ", ",
                                 choices[i]);
    return true;
}

int tensor_check_choice(const char *function, const char *option, int value, const char *const *choices)
{
    char names[300];
    if (!choices || !options_no_choice(choices, value, names, sizeof names)) return 0;
    return fail(TENSOR_EVALUE, function, "there is no %s %d: want %s", option ? option : "option", value,
                names);
}

static bool separates(char c) { return c == ' ' || c == ',' || c == '\n' || c == '\t'; }

/* Reads one "name=value" and moves *at behind it. */
static OptionFault read_one(const TensorOp *op, const char **at, char end, void *params, OptionRoom *room,
                            const OpField **found, int *length)
{
    const char *name = *at, *equals = name;
    while (isalnum((unsigned char)*equals) || *equals == '_') equals++;
    *length = (int)(equals - name);
    *found = options_find(op, name, (size_t)*length);
    if (!*found) return OPTION_UNKNOWN;
    while (*equals == ' ') equals++;
    if (*equals != '=') return OPTION_NO_VALUE;
    *at = equals + 1;
    const char *behind = options_read_value(*found, equals + 1, params, room);
    if (!behind || (*behind && *behind != end && !separates(*behind))) return OPTION_BAD;
    *at = behind;
    return OPTIONS_READ;
}

OptionFault options_read(const TensorOp *op, const char **at, char end, void *params, OptionRoom *room,
                         const char **name, int *length)
{
    uint64_t given = 0;
    options_default(op, params, NULL);
    room->lists = 0, room->used = 0;
    while (separates(**at)) ++*at;
    while (**at && **at != end) {
        const OpField *f;
        *name = *at;
        const OptionFault fault = read_one(op, at, end, params, room, &f, length);
        if (fault) return fault;
        const uint64_t bit = UINT64_C(1) << (f - op->fields);
        if (given & bit) return OPTION_TWICE;
        given |= bit;
        while (separates(**at)) ++*at;
    }
    if (**at == end && end) ++*at;
    for (const OpField *f = op->fields; f && f->name; f++)
        if (!(given >> (f - op->fields) & 1) && f->required)
            return *name = f->name, *length = (int)strlen(f->name), OPTION_MISSING;
    return OPTIONS_READ;
}
