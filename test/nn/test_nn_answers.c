/* test_nn_answers.c - what every kind of module answers to its first case with one option changed: what it is
 * made of and gives, or why it is refused; and to inputs of other sizes, ranks and dtypes (answers.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapegrad.h>
#include "answers.h"
#include "kinds.h"

typedef struct Case {
    const NNKind *kind;
    char text[300];
    int64_t dim[TENSOR_MAX_DIMS];
    int ndim, below; /* below: of an input of integers */
    TensorDtype dtype;
    const void *params;
} Case;

enum { CASES = 200 };
static Case cases[CASES];
static int count;

/* "Linear|in_features=3 out_features=2|4x3": only the first of a kind. */
static void begin_case(const char *text)
{
    Case *c = &cases[count];
    char name[80];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "|"), text);
    c->kind = nn_kind_find(name);
    if (!c->kind) exit(2);
    for (int i = 0; i < count; i++)
        if (cases[i].kind == c->kind) return;
    const char *options = strchr(text, '|') + 1, *input = strchr(options, '|');
    snprintf(c->text, sizeof c->text, "%.*s", (int)strcspn(options, "|"), options);
    input = input ? input + 1 : "";
    for (char *end; *input >= '0' && *input <= '9'; input = *end == 'x' ? end + 1 : end)
        c->dim[c->ndim++] = strtoll(input, &end, 10);
    c->below = *input == '@' ? atoi(input + 1) : 0;
    c->dtype = c->below ? TENSOR_I64 : TENSOR_F32;
    if (++count == CASES) exit(2);
}

static Tensor *input_of(const Case *c)
{
    const TensorShape shape = { c->ndim, c->dim };
    if (c->below) return tensor_to(tensor_full(shape, 1, TENSOR_I64), c->dtype);
    return tensor_full(shape, 1, c->dtype);
}

static size_t list(char *to, size_t room, const char *what, TensorDict d)
{
    size_t n = 0;
    for (int i = 0; i < d.count && n < room; i++) {
        n += (size_t)snprintf(to + n, room - n, "%s%s ", what, d.item[i].name);
        if (n < room) n += answers_result(to + n, room - n, d.item[i].tensor);
        if (n < room) n += (size_t)snprintf(to + n, room - n, "; ");
    }
    return n < room ? n : room - 1;
}

static const char *run(const Case *c, bool with_state)
{
    static char text[2000];
    size_t n = 0;
    Module *m = nn_make(c->kind, c->params);
    if (!m) return answers_error(c->kind->function);
    *text = 0;
    if (with_state) n = list(text, sizeof text, "", nn_state_dict(m));
    Tensor *y = c->ndim || !with_state ? nn_forward(m, input_of(c)) : NULL;
    if (y) answers_result(text + n, sizeof text - n, y);
    else if (tensor_error_code()) snprintf(text + n, sizeof text - n, "%s", answers_error(c->kind->function));
    nn_free(m);
    return text;
}

static const char *with_params(const void *params, void *ctx)
{
    Case c = *(const Case *)ctx;
    c.params = params;
    return run(&c, true);
}

static void inputs(const Case *first)
{
    char value[24], thing[32];
    for (int d = 0; d < TENSOR_DTYPES; d++) {
        Case c = *first;
        c.dtype = (TensorDtype)d;
        answer("input as", tensor_dtype_name(c.dtype), run(&c, false));
    }
    for (int d = 0; d < first->ndim; d++)
        for (int k = -1; k < 2; k++) {
            Case c = *first;
            c.dim[d] = k < 0 ? 0 : c.dim[d] + k;
            snprintf(value, sizeof value, "%lld", (long long)c.dim[d]);
            snprintf(thing, sizeof thing, "input size %d", d);
            answer(thing, value, run(&c, false));
        }
    for (int more = -1; more < 2; more += 2) {
        Case c = *first;
        if (c.ndim + more < 0) continue;
        if (more > 0) memmove(c.dim + 1, c.dim, (size_t)c.ndim * sizeof *c.dim), c.dim[0] = 2;
        else memmove(c.dim, c.dim + 1, (size_t)(c.ndim - 1) * sizeof *c.dim);
        snprintf(value, sizeof value, "%d", c.ndim += more);
        answer("input rank", value, run(&c, false));
    }
}

static void variations(Case *c)
{
    static KindRoom room;
    _Alignas(16) char params[1024] = { 0 };
    if (c->kind->args)
        kind_options(c->kind->fields, c->kind->defaults, c->kind->args, c->text, params, &room);
    c->params = c->kind->args ? params : NULL;
    answers_about("%s %s", c->kind->name, c->text);
    answer("as it is", "", run(c, true));
    answers_options(c->kind->fields, params, c->kind->args, with_params, c);
    TensorScope scope = tensor_scope_open();
    inputs(c);
    tensor_scope_close(scope);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Case *)a)->kind->name, ((const Case *)b)->kind->name);
}

int main(int argc, char **argv)
{
    KindFile f = kind_open("test/oracle/kinds/nn.golden");
    const char *rest;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;)
        if (strcmp(word, "module") == 0) begin_case(rest);
    kind_close(&f);
    for (int i = 0; i < nn_kind_count(); i++)
        kind_samples(nn_kind_at(i)->name, nn_kind_at(i)->samples, begin_case);
    qsort(cases, (size_t)count, sizeof *cases, by_name);
    answers_begin(argc, argv, "test/nn/answers.golden");
    for (int i = 0; i < count; i++) variations(&cases[i]);
    return answers_end();
}
