/* formula.c - evaluates the text of a derivative over tensors.  The same text of ops.def is compiled into the
 * fused loops; here it makes a recorded sweep, which can be differentiated again.
 *
 *   choice := or [ ? choice : choice ]     or := and { || and }     and := compare { && compare }
 *   compare := sum [ < <= > >= == != sum ]   sum := product { + - product }   product := unary { * / unary }
 *   unary := [ - ! ] unary | number | name | call | ( choice )
 *
 * Numbers stay numbers as long as they meet only numbers.  Both branches of ? : are evaluated and where()
 * selects, so that the other branch's values do not reach the result. */
#include <tapegrad/ops.h>
#include <ctype.h>
#include <stdlib.h>
#include "tensor/core.h"
#include "tensor/numbers.h"

typedef struct Value {
    Tensor *t;
    double c;
} Value; /* t NULL: the number c */

typedef struct Reader {
    const char *op, *text, *at;
    const OpName *names;
    int n;
    bool failed;
} Reader;

static Value choice(Reader *r);

static Value bad(Reader *r, const char *what)
{
    if (!r->failed && !tensor_error_code())
        fail(TENSOR_EUSER, r->op, "formula \"%s\": %s at \"%.20s\"", r->text, what, r->at);
    r->failed = true;
    return (Value){ 0 };
}

static Value of(Reader *r, Tensor *t)
{
    if (!t) r->failed = true;
    return (Value){ t, 0 };
}

static bool take(Reader *r, const char *token)
{
    while (isspace((unsigned char)*r->at)) r->at++;
    size_t n = strlen(token);
    if (strncmp(r->at, token, n) != 0) return false;
    if ((*token == '<' || *token == '>' || *token == '!') && n == 1 && r->at[1] == '=') return false;
    r->at += n;
    return true;
}

static Tensor *as_tensor(Reader *r, Value v)
{
    if (v.t) return v.t;
    const Tensor *like = r->names[0].tensor;
    Tensor *t = new_tensor(SHAPE(), like->dtype, like->place);
    if (t && raw_fill(t, v.c)) {
        tensor_release(t);
        t = NULL;
    }
    if (!t) r->failed = true;
    return own(t);
}

/* As in C, the result of a comparison is a 0 or a 1 to calculate with. */
static Value numeric(Reader *r, Value v)
{
    if (r->failed || !v.t || v.t->dtype != TENSOR_BOOL) return v;
    return of(r, tensor_to(v.t, (TensorDtype)r->names[0].tensor->dtype));
}

static double number_of(char op, double a, double b)
{
    return op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b;
}

static Value arithmetic(Reader *r, char op, Value a, Value b)
{
    if (r->failed) return a;
    if (!a.t || !b.t || a.t->dtype == b.t->dtype) a = numeric(r, a), b = numeric(r, b);
    if (r->failed) return a;
    if (!a.t && !b.t) return (Value){ NULL, number_of(op, a.c, b.c) };
    if (a.t && b.t)
        return of(r, op == '+'   ? tensor_add(a.t, b.t)
                     : op == '-' ? tensor_sub(a.t, b.t)
                     : op == '*' ? tensor_mul(a.t, b.t)
                                 : tensor_div(a.t, b.t));
    if (a.t)
        return of(r, op == '+'   ? tensor_add_scalar(a.t, b.c)
                     : op == '-' ? tensor_sub_scalar(a.t, b.c)
                     : op == '*' ? tensor_mul_scalar(a.t, b.c)
                                 : tensor_div_scalar(a.t, b.c));
    return of(r, op == '+'   ? tensor_add_scalar(b.t, a.c)
                 : op == '-' ? tensor_rsub_scalar(b.t, a.c)
                 : op == '*' ? tensor_mul_scalar(b.t, a.c)
                             : tensor_mul_scalar(tensor_reciprocal(b.t), a.c));
}

/* The elementwise op that a text calls so: by its name, or by C's spelling. */
static const TensorOp *op_spelled(const char *text)
{
    for (int i = 0; i < tensor_op_count(); i++) {
        const OpRow *row = tensor_op_at(i)->row;
        if (row && strcmp(row->spelled ? row->spelled : tensor_op_at(i)->name, text) == 0)
            return tensor_op_at(i);
    }
    return NULL;
}

static Value compare_values(Reader *r, const char *token, Value a, Value b)
{
    if (r->failed) return a;
    if (!a.t && !b.t) {
        const bool eq = a.c == b.c, lt = a.c<b.c, gt = a.c> b.c;
        const bool v = *token == '='   ? eq
                       : *token == '!' ? !eq
                       : *token == '<' ? lt || (token[1] && eq)
                                       : gt || (token[1] && eq);
        return (Value){ NULL, v };
    }
    Tensor *in[2] = { as_tensor(r, a), as_tensor(r, b) };
    return r->failed ? a : of(r, row_apply(op_spelled(token), in[0], in[1], NULL, SITE));
}

static Value logic(Reader *r, bool is_or, Value a, Value b)
{
    if (r->failed) return a;
    if (!a.t && !b.t) return (Value){ NULL, is_or ? a.c != 0 || b.c != 0 : a.c != 0 && b.c != 0 };
    Tensor *x = as_tensor(r, a), *y = as_tensor(r, b);
    return r->failed ? a : of(r, is_or ? tensor_logical_or(x, y) : tensor_logical_and(x, y));
}

/* Operands first, then the row's parameters, which are numbers. */
static Value call(Reader *r, const char *name)
{
    Value arg[4] = { { 0 } };
    double params[2] = { 0 };
    int n = 0;
    do {
        if (n == 4) return bad(r, "too many arguments");
        arg[n++] = choice(r);
    } while (!r->failed && take(r, ","));
    if (r->failed || !take(r, ")")) return bad(r, "a parenthesis is missing");
    if (strcmp(name, "R") == 0 && n == 1) return arg[0];
    const TensorOp *op = op_spelled(name);
    if (op && op->row->scalar && n == 2 && arg[0].t && !arg[1].t) { /* a number has a row of its own */
        char scalar[40];
        snprintf(scalar, sizeof scalar, "%s_scalar", name);
        op = op_spelled(scalar) ? op_spelled(scalar) : op;
    }
    if (!op || op->arity + op->row->params != n) return bad(r, "no elementwise op of that name");
    for (int i = op->arity; i < n; i++) {
        if (arg[i].t) return bad(r, "a parameter is no number");
        params[i - op->arity] = arg[i].c;
    }
    Tensor *a = as_tensor(r, arg[0]), *b = op->arity == 2 ? as_tensor(r, arg[1]) : NULL;
    return r->failed ? arg[0] : of(r, row_apply(op, a, b, params, SITE));
}

static Value name_or_call(Reader *r)
{
    char name[32];
    size_t n = 0;
    while (isalnum((unsigned char)*r->at) || *r->at == '_') {
        if (n + 1 == sizeof name) return bad(r, "a name is too long");
        name[n++] = *r->at++;
    }
    name[n] = 0;
    if (take(r, "(")) return call(r, name);
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->names[i].name, name) == 0) return (Value){ r->names[i].tensor, r->names[i].number };
    return bad(r, "unknown name");
}

static Value unary(Reader *r)
{
    if (r->failed) return (Value){ 0 };
    if (take(r, "-")) {
        Value v = numeric(r, unary(r));
        return r->failed || !v.t ? (Value){ NULL, -v.c } : of(r, tensor_neg(v.t));
    }
    if (take(r, "!")) {
        Value v = unary(r);
        return r->failed || !v.t ? (Value){ NULL, v.c == 0 } : of(r, tensor_logical_not(v.t));
    }
    if (take(r, "(")) {
        Value v = choice(r);
        return r->failed || take(r, ")") ? v : bad(r, "a parenthesis is missing");
    }
    while (isspace((unsigned char)*r->at)) r->at++;
    if (isdigit((unsigned char)*r->at) || *r->at == '.') {
        char *end;
        double c = read_double(r->at, &end);
        r->at = end;
        while (*r->at == 'f' || *r->at == 'F' || *r->at == 'L') r->at++;
        return (Value){ NULL, c };
    }
    if (isalpha((unsigned char)*r->at)) return name_or_call(r);
    return bad(r, "cannot be read");
}

static Value product(Reader *r)
{
    Value v = unary(r);
    for (;;) {
        char op = take(r, "*") ? '*' : take(r, "/") ? '/' : 0;
        if (!op || r->failed) return v;
        v = arithmetic(r, op, v, unary(r));
    }
}

static Value sum(Reader *r)
{
    Value v = product(r);
    for (;;) {
        char op = take(r, "+") ? '+' : take(r, "-") ? '-' : 0;
        if (!op || r->failed) return v;
        v = arithmetic(r, op, v, product(r));
    }
}

static Value compare(Reader *r)
{
    static const char *const tokens[] = { "<=", ">=", "==", "!=", "<", ">" };
    Value v = sum(r);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens && !r->failed; i++)
        if (take(r, tokens[i])) return compare_values(r, tokens[i], v, sum(r));
    return v;
}

static Value conjunction(Reader *r)
{
    Value v = compare(r);
    while (!r->failed && take(r, "&&")) v = logic(r, false, v, compare(r));
    return v;
}

static Value disjunction(Reader *r)
{
    Value v = conjunction(r);
    while (!r->failed && take(r, "||")) v = logic(r, true, v, conjunction(r));
    return v;
}

static Value choice(Reader *r)
{
    Value c = disjunction(r);
    if (r->failed || !take(r, "?")) return c;
    Value a = choice(r);
    if (!take(r, ":")) return bad(r, "a colon is missing");
    Value b = choice(r);
    if (r->failed) return c;
    if (!c.t) return c.c != 0 ? a : b;
    Tensor *x = as_tensor(r, a), *y = as_tensor(r, b);
    Tensor *mask = c.t->dtype == TENSOR_BOOL ? c.t : tensor_ne_scalar(c.t, 0);
    return r->failed || !mask ? of(r, NULL) : of(r, tensor_where(mask, x, y));
}

Tensor *op_formula(const char *op, const char *text, const OpName *names, int n)
{
    if (!op || !text || !names || n < 1 || !names[0].tensor)
        return fail(TENSOR_ENULL, op ? op : "op_formula", "the text or the first tensor is NULL"), NULL;
    for (int i = 0; i < n; i++)
        if (names[i].tensor && check_null(names[i].tensor, op, i + 1)) return NULL;
    Reader r = { .op = op, .text = text, .at = text, .names = names, .n = n };
    Value v = choice(&r);
    while (isspace((unsigned char)*r.at)) r.at++;
    if (!r.failed && *r.at) bad(&r, "something is left over");
    if (r.failed) return NULL;
    if (v.t) return v.t;
    return tensor_full_like(names[0].tensor,
                            v.c); /* a number alone: the gradient is that number everywhere */
}
