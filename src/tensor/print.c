/* print.c - tensors as text, as PyTorch shows them.
 *
 *  - All numbers of a tensor share one format and one width, chosen from the non-zero finite ones: whole
 * numbers get a point ("2."), others four decimals, and scientific notation when the largest is above 1e8 or
 * a thousand times the smallest, or the smallest below 1e-4.
 *  - More than 1000 elements: of each dim longer than 6 the first and last three are shown, and only those
 * are read.
 *  - Lines are filled to 80 columns; what comes after the values (dtype, grad_fn, ...) goes to a new line
 * when it would not fit. */
#include <math.h>
#include "core.h"
#include "numbers.h"
#include "autograd/tape.h"

enum { EDGE = 3, THRESHOLD = 1000, LINE_WIDTH = 80, PRECISION = 4, INDENT = 7 /* of "tensor(" */, CELL = 48 };

/* ---- where the text goes --------------------------------------------------------------------- */

typedef struct Out {
    FILE *file; /* or: */
    char *buffer;
    size_t size, length; /* length: of the whole text, also of what did not fit */
    size_t newline;      /* length when the present line began */
} Out;

static void put(Out *out, const char *text)
{
    size_t n = strlen(text);
    if (out->file) {
        fputs(text, out->file);
    } else if (out->length < out->size) {
        size_t room = out->size - out->length - 1;
        size_t take = n < room ? n : room;
        memcpy(out->buffer + out->length, text, take);
        out->buffer[out->length + take] = 0;
    }
    out->length += n;
    const char *last = strrchr(text, '\n');
    if (last) out->newline = out->length - strlen(last + 1);
}

static void put_spaces(Out *out, int n)
{
    while (n-- > 0) put(out, " ");
}

/* ---- numbers --------------------------------------------------------------------------------- */

typedef struct Page {          /* what is shown of a tensor */
    const Tensor *values;      /* on the CPU, dense, f64 or i64 */
    bool cut[TENSOR_MAX_DIMS]; /* the middle of this dim was left out */
    bool boolean, floating, whole, scientific;
    int width;
} Page;

static int write_cell(const Page *page, int64_t i, char *text)
{
    if (!page->floating) {
        int64_t value = ((const int64_t *)page->values->data)[i];
        return page->boolean ? snprintf(text, CELL, value ? "True" : "False")
                             : snprintf(text, CELL, "%lld", (long long)value);
    }
    double value = ((const double *)page->values->data)[i];
    if (isnan(value)) return snprintf(text, CELL, "nan");
    if (isinf(value)) return snprintf(text, CELL, value < 0 ? "-inf" : "inf");
    if (page->scientific) return snprintf(text, CELL, "%.*e", PRECISION, value);
    return page->whole ? snprintf(text, CELL, "%.0f.", value)
                       : snprintf(text, CELL, "%.*f", PRECISION, value);
}

static bool counts(const Page *page, int64_t i)
{
    if (!page->floating) return true;
    double value = ((const double *)page->values->data)[i];
    return value != 0 && isfinite(value);
}

static void choose_format(Page *page)
{
    const double *x = page->values->data;
    double least = INFINITY, most = 0;
    char text[CELL];
    page->whole = true;
    for (int64_t i = 0; page->floating && i < page->values->numel; i++) {
        if (!counts(page, i)) continue;
        least = fmin(least, fabs(x[i])), most = fmax(most, fabs(x[i]));
        page->whole &= x[i] == ceil(x[i]);
    }
    page->scientific = most > 0 && (most / least > 1000 || most > 1e8 || least < 1e-4);
    page->width = 1;
    for (int64_t i = 0; i < page->values->numel; i++) {
        int n = counts(page, i) ? write_cell(page, i, text) : 0;
        if (n > page->width) page->width = n;
    }
}

/* ---- brackets and lines ---------------------------------------------------------------------- */

static void put_cell(Out *out, const Page *page, int64_t i)
{
    char text[CELL];
    put_spaces(out, page->width - write_cell(page, i, text));
    put(out, text);
}

static void put_line(Out *out, const Page *page, int64_t at, int indent)
{
    int last = page->values->ndim - 1;
    int64_t n = page->values->shape[last], cells = n + page->cut[last];
    int64_t per_line = (LINE_WIDTH - indent) / (page->width + 2);
    if (per_line < 1) per_line = 1;
    put(out, "[");
    for (int64_t cell = 0; cell < cells; cell++) {
        if (cell > 0 && cell % per_line == 0) put(out, ",\n"), put_spaces(out, indent + 1);
        else if (cell > 0) put(out, ", ");
        bool after = page->cut[last] && cell >= EDGE;
        if (after && cell == EDGE) put(out, " ...");
        else put_cell(out, page, at + cell - after);
    }
    put(out, "]");
}

static void put_values(Out *out, const Page *page, int dim, int64_t at, int indent)
{
    const Tensor *x = page->values;
    if (x->ndim == 0) {
        put_cell(out, page, 0);
        return;
    }
    if (dim == x->ndim - 1) {
        put_line(out, page, at, indent);
        return;
    }
    put(out, "[");
    for (int64_t i = 0; i < x->shape[dim]; i++) {
        for (int pass = page->cut[dim] && i == EDGE; pass >= 0; pass--) { /* once more for "..." */
            if (i > 0) {
                put(out, ",");
                for (int line = dim + 1; line < x->ndim; line++) put(out, "\n");
                put_spaces(out, indent + 1);
            }
            if (pass > 0) put(out, "...");
        }
        put_values(out, page, dim + 1, at + i * x->stride[dim], indent + 1);
    }
    put(out, "]");
}

/* ---- what is read ---------------------------------------------------------------------------- */

/* x with the middle of dim left out: a new tensor on x's device. */
static Tensor *ends_of(const Tensor *x, int dim)
{
    int64_t shape[TENSOR_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[dim] = 2 * EDGE;
    Tensor *y = new_tensor((TensorShape){ x->ndim, shape }, x->dtype, x->place);
    shape[dim] = EDGE;
    for (int end = 0; y && end < 2; end++) {
        Tensor *from =
            new_view(x, x->ndim, shape, x->stride, end ? (x->shape[dim] - EDGE) * x->stride[dim] : 0);
        Tensor *to = new_view(y, x->ndim, shape, y->stride, end ? EDGE * y->stride[dim] : 0);
        bool done = from && to && raw_copy(to, from) == 0;
        tensor_release(from);
        tensor_release(to);
        if (done) continue;
        tensor_release(y);
        y = NULL;
    }
    return y;
}

/* NULL when memory or the device fails, recorded. */
static Tensor *read_values(const Tensor *x, Page *page)
{
    Tensor *part = tensor_retain((Tensor *)x);
    for (int d = 0; part && d < x->ndim; d++) {
        page->cut[d] = x->numel > THRESHOLD && x->shape[d] > 2 * EDGE;
        if (!page->cut[d]) continue;
        Tensor *shorter = ends_of(part, d);
        tensor_release(part);
        part = shorter;
    }
    Tensor *y =
        part ? new_tensor(shape_of(part), dtype_is_float(x->dtype) ? TENSOR_F64 : TENSOR_I64, &cpu_place)
             : NULL;
    if (y && raw_copy(y, part)) {
        tensor_release(y);
        y = NULL;
    }
    tensor_release(part);
    return y;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void put_suffix(Out *out, const char *text, size_t *column)
{
    size_t n = strlen(text);
    if (*column + n + 2 > LINE_WIDTH) {
        put(out, ",\n");
        put_spaces(out, INDENT);
        *column = INDENT + n;
    } else {
        put(out, ", ");
        *column += n + 2;
    }
    put(out, text);
}

static void size_text(const Tensor *x, char *text, size_t size)
{
    int n = snprintf(text, size, "size=(");
    for (int d = 0; d < x->ndim; d++)
        n += snprintf(text + n, size - (size_t)n, d ? ", %lld" : "%lld", (long long)x->shape[d]);
    snprintf(text + n, size - (size_t)n, ")");
}

static void put_suffixes(Out *out, const Tensor *x)
{
    char text[TENSOR_MAX_DIMS * 22 + 16];
    size_t column = out->length - out->newline + 2;
    bool empty = x->numel == 0;
    if (x->place != &cpu_place) {
        snprintf(text, sizeof text, "device='%s'", x->place->name);
        put_suffix(out, text, &column);
    }
    if (empty && x->ndim != 1) {
        size_text(x, text, sizeof text);
        put_suffix(out, text, &column);
    }
    if (empty ? x->dtype != TENSOR_F32
              : x->dtype != TENSOR_F32 && x->dtype != TENSOR_I64 && x->dtype != TENSOR_BOOL) {
        snprintf(text, sizeof text, "dtype=%s", tensor_dtype_name((TensorDtype)x->dtype));
        put_suffix(out, text, &column);
    }
    bool derived = follows_base(x) ? on_graph(x->base) : x->entry != NULL;
    if (derived) {
        const char *op = follows_base(x) ? "as_strided" : x->entry->op->name; /* what view_refresh records */
        snprintf(text, sizeof text, "grad_fn=<%.64s>", op);
        put_suffix(out, text, &column);
    } else if (on_graph(x)) {
        put_suffix(out, "requires_grad=True", &column);
    }
}

static int write_tensor(Out *out, const Tensor *x, const char *op)
{
    if (!x) {
        put(out, "tensor(NULL)");
        return 0;
    }
    if (check_null(x, op, 1)) return -1;
    Page page = { .floating = dtype_is_float(x->dtype), .boolean = x->dtype == TENSOR_BOOL };
    Tensor *values = x->numel ? read_values(x, &page) : NULL;
    if (x->numel && !values) return -1;
    put(out, "tensor(");
    if (values) {
        page.values = values;
        const locale_t was = numbers_begin();
        choose_format(&page);
        put_values(out, &page, 0, 0, INDENT);
        numbers_end(was);
    } else {
        put(out, "[]");
    }
    put_suffixes(out, x);
    put(out, ")");
    tensor_release(values);
    return 0;
}

int tensor_snprint(char *buffer, size_t size, const Tensor *x)
{
    Out out = { .buffer = buffer, .size = buffer ? size : 0 };
    if (out.size > 0) buffer[0] = 0;
    return write_tensor(&out, x, "tensor_snprint") ? -1 : (int)out.length;
}

static void print_line(FILE *file, const Tensor *x, const char *op)
{
    Out out = { .file = file };
    if (write_tensor(&out, x, op) == 0) put(&out, "\n");
}

void tensor_fprint(FILE *file, const Tensor *x) { print_line(file, x, "tensor_fprint"); }
void tensor_print(const Tensor *x) { print_line(stdout, x, "tensor_print"); }
