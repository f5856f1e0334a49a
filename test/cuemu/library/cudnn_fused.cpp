/* cudnn_fused.cpp - stand-in for cuDNN's engines of fused graphs: each operation in its turn, on whole
 * tensors, in double, each result rounded to its tensor's type.  Nothing is known of attention: what comes
 * out is what the graph says.
 *
 * Taken as cuDNN's engines for attention take them: tensors of 4 dims; what is in memory and not one number
 * is of halves but for a value a row; widths are multiples of 8, up to 256. */
#include <algorithm>
#include <math.h>
#include <memory>
#include "dnn.h"

namespace cuemu {
namespace {

enum { DIMS = 4 };
typedef std::vector<int64_t> List;
typedef std::vector<double> Values; /* dense, in the order of indices */

struct Tensor {
    int64_t id;
    int type;
    List size, stride;
    bool inside, number;
    char *data = nullptr;
    double value = 0; /* of a number */
};

struct Operation {
    int kind, mode = 0, axis = -1;
    Tensor in[3], out; /* matmul: a, b; pointwise: x, b, t */
    int inputs = 0;
};

/* ---- what descriptors say -------------------------------------------------------------------- */

Tensor tensor_of(const Descriptor *d)
{
    return { d->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),  d->one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE),
             d->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), d->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
             d->one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL),    d->one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE) };
}

struct Names {
    int kind, in[3], out, of, mode; /* of: the descriptor that has the mode */
};
const Names names[] = {
    { CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
      { CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, -1 },
      CUDNN_ATTR_OPERATION_MATMUL_CDESC,
      CUDNN_ATTR_OPERATION_MATMUL_DESC,
      -1 },
    { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
      { CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_TDESC },
      CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
      CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
      CUDNN_ATTR_POINTWISE_MODE },
    { CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
      { CUDNN_ATTR_OPERATION_REDUCTION_XDESC, -1, -1 },
      CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
      CUDNN_ATTR_OPERATION_REDUCTION_DESC,
      CUDNN_ATTR_REDUCTION_OPERATOR },
    { CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
      { CUDNN_ATTR_OPERATION_RESHAPE_XDESC, -1, -1 },
      CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
      -1,
      -1 },
};

bool read(const Descriptor *d, Operation *op)
{
    for (const Names &name : names) {
        if (name.kind != (int)d->type) continue;
        op->kind = name.kind;
        const Descriptor *y = d->one<Descriptor *>(name.out);
        const Descriptor *of = name.of < 0 ? nullptr : d->one<Descriptor *>(name.of);
        if (!y || (name.of >= 0 && !of)) return false;
        op->out = tensor_of(y);
        if (name.mode >= 0) op->mode = of->one<int>(name.mode);
        if (of && of->attribute.count(CUDNN_ATTR_POINTWISE_AXIS))
            op->axis = (int)of->one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
        for (int i = 0; i < 3; i++) {
            const Descriptor *x = name.in[i] < 0 ? nullptr : d->one<Descriptor *>(name.in[i]);
            if (x) op->in[op->inputs++] = tensor_of(x);
        }
        return op->inputs > 0;
    }
    return false;
}

bool read_all(const std::vector<Descriptor *> &ops, std::vector<Operation> *out)
{
    for (const Descriptor *d : ops) {
        Operation op;
        if (!d || !d->final || !read(d, &op)) return false;
        out->push_back(op);
    }
    return !out->empty();
}

/* ---- values ---------------------------------------------------------------------------------- */

int64_t count(const Tensor &t)
{
    int64_t n = 1;
    for (int64_t s : t.size) n *= s;
    return n;
}

/* The index of t's element i, and where it is. */
void index_of(const Tensor &t, int64_t i, int64_t *at)
{
    for (int d = DIMS - 1; d >= 0; d--) at[d] = i % t.size[(size_t)d], i /= t.size[(size_t)d];
}

int64_t place_of(const Tensor &t, int64_t i)
{
    int64_t at[DIMS], place = 0;
    index_of(t, i, at);
    for (size_t d = 0; d < DIMS; d++) place += at[d] * t.stride[d];
    return place;
}

/* Of the element of t that belongs to index `at` of a larger tensor: several share one where t is smaller. */
int64_t element_of(const Tensor &t, const int64_t *at, const List &size)
{
    int64_t i = 0;
    for (size_t d = 0; d < DIMS; d++) i = i * t.size[d] + at[d] / (size[d] / t.size[d]);
    return i;
}

double rounded(int type, double v)
{
    char word[8];
    if (type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN) return v;
    blas_store(word, type_of(type), 0, v);
    return blas_load(word, type_of(type), 0);
}

Values load(const Tensor &t)
{
    Values v((size_t)count(t), t.value);
    for (size_t i = 0; i < v.size() && !t.number; i++)
        v[i] = blas_load(t.data, type_of(t.type), place_of(t, (int64_t)i));
    return v;
}

void store(const Tensor &t, const Values &v)
{
    for (size_t i = 0; i < v.size(); i++) blas_store(t.data, type_of(t.type), place_of(t, (int64_t)i), v[i]);
}

/* ---- operations ------------------------------------------------------------------------------ */

double pointwise(int mode, double x, double b, double t)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_EXP: return exp(x);
    case CUDNN_POINTWISE_LOG: return log(x);
    case CUDNN_POINTWISE_CMP_GE: return x >= b;
    case CUDNN_POINTWISE_BINARY_SELECT: return t != 0 ? x : b;
    default: return NAN;
    }
}

void run_pointwise(const Operation &op, const Values *in, Values *out)
{
    for (size_t i = 0; i < out->size(); i++) {
        int64_t at[DIMS];
        double x[3] = { 0, 0, 0 };
        index_of(op.out, (int64_t)i, at);
        for (int j = 0; j < op.inputs; j++) x[j] = in[j][(size_t)element_of(op.in[j], at, op.out.size)];
        (*out)[i] =
            op.mode == CUDNN_POINTWISE_GEN_INDEX ? (double)at[op.axis] : pointwise(op.mode, x[0], x[1], x[2]);
    }
}

void run_product(const Operation &op, const Values *in, Values *out)
{
    const Tensor &a = op.in[0], &b = op.in[1], &c = op.out;
    const int64_t m = c.size[2], n = c.size[3], depth = a.size[3];
    for (size_t i = 0; i < out->size(); i++) {
        int64_t at[DIMS];
        index_of(c, (int64_t)i, at);
        const int64_t of_a = (at[0] * a.size[1] + at[1] / (c.size[1] / a.size[1])) * m * depth,
                      of_b = (at[0] * b.size[1] + at[1] / (c.size[1] / b.size[1])) * depth * n;
        double sum = 0;
        for (int64_t k = 0; k < depth; k++)
            sum += in[0][(size_t)(of_a + at[2] * depth + k)] * in[1][(size_t)(of_b + k * n + at[3])];
        (*out)[i] = sum;
    }
}

void run_reduction(const Operation &op, const Values *in, Values *out)
{
    const Tensor &x = op.in[0];
    const bool most = op.mode == CUDNN_REDUCE_TENSOR_MAX;
    std::fill(out->begin(), out->end(), most ? -INFINITY : 0);
    for (size_t i = 0; i < in[0].size(); i++) {
        int64_t at[DIMS];
        index_of(x, (int64_t)i, at);
        double *y = &(*out)[(size_t)element_of(op.out, at, x.size)];
        *y = !most ? *y + in[0][i] : in[0][i] > *y || isnan(in[0][i]) ? in[0][i] : *y;
    }
}

/* Through memory in which x lies by its strides; NaN where it has nothing. */
void run_reshape(const Operation &op, const Values *in, Values *out)
{
    int64_t extent = 1;
    for (size_t d = 0; d < DIMS; d++) extent += (op.in[0].size[d] - 1) * op.in[0].stride[d];
    Values memory((size_t)extent, NAN);
    for (size_t i = 0; i < in[0].size(); i++) memory[(size_t)place_of(op.in[0], (int64_t)i)] = in[0][i];
    for (size_t i = 0; i < out->size(); i++) (*out)[i] = memory.at((size_t)place_of(op.out, (int64_t)i));
}

void run(const std::vector<Operation> &ops)
{
    std::map<int64_t, Values> known;
    for (const Operation &op : ops) {
        Values in[3], out((size_t)count(op.out));
        for (int i = 0; i < op.inputs; i++) {
            const auto at = known.find(op.in[i].id);
            in[i] = at == known.end() ? load(op.in[i]) : at->second;
        }
        switch (op.kind) {
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: run_product(op, in, &out); break;
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: run_pointwise(op, in, &out); break;
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: run_reduction(op, in, &out); break;
        default: run_reshape(op, in, &out);
        }
        for (double &v : out) v = rounded(op.out.type, v);
        if (!op.out.inside) store(op.out, out);
        known[op.out.id] = out;
    }
}

/* ---- what is sound, and taken ---------------------------------------------------------------- */

/* Does each size of x divide that of y, as of a tensor that is spread over it? */
bool divides(const List &x, const List &y)
{
    for (size_t d = 0; d < DIMS; d++)
        if (x[d] <= 0 || y[d] % x[d]) return false;
    return true;
}

bool sound(const Operation &op)
{
    for (int i = 0; i <= op.inputs; i++) {
        const Tensor &t = i < op.inputs ? op.in[i] : op.out;
        if (t.size.size() != DIMS || t.stride.size() != DIMS) return false;
    }
    const List &x = op.in[0].size, &y = op.out.size;
    if (op.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
        const List &b = op.in[1].size;
        return op.inputs == 2 && x[0] == y[0] && b[0] == y[0] && y[1] % x[1] == 0 && y[1] % b[1] == 0 &&
               x[2] == y[2] && x[3] == b[2] && b[3] == y[3];
    }
    if (op.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) return divides(y, x);
    if (op.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) return count(op.in[0]) == count(op.out);
    for (int i = 0; i < op.inputs; i++)
        if (!divides(op.in[i].size, y)) return false;
    return op.mode != CUDNN_POINTWISE_GEN_INDEX || (op.axis >= 0 && op.axis < DIMS);
}

/* Inside of a graph what is read must have been made. */
bool in_order(const std::vector<Operation> &ops)
{
    std::map<int64_t, bool> made;
    for (const Operation &op : ops) {
        for (int i = 0; i < op.inputs; i++)
            if (op.in[i].inside && !made.count(op.in[i].id)) return false;
        if (made.count(op.out.id) || op.out.number) return false;
        made[op.out.id] = true;
    }
    return true;
}

bool taken(const Tensor &t)
{
    if (t.inside || t.number) return true;
    if (t.size[3] == 1 && t.type == CUDNN_DATA_FLOAT) return true;
    const int64_t width = t.stride[3] == 1 ? t.size[3] : t.size[2];
    return (t.type == CUDNN_DATA_HALF || t.type == CUDNN_DATA_BFLOAT16) && width % 8 == 0 && width <= 256;
}

/* Sets where it is in memory, or its value, which is read now. */
bool find(Tensor *t, const Descriptor *pack)
{
    const auto ids = pack->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto data = pack->all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    if (t->inside) return true;
    for (size_t i = 0; i < ids.size() && i < data.size(); i++)
        if (ids[i] == t->id) t->data = (char *)data[i];
    if (!t->data) return false;
    if (!t->number) return is_device_ptr(t->data) && (uintptr_t)t->data % 16 == 0;
    if (is_device_ptr(t->data)) return false;
    t->value = blas_load(t->data, type_of(t->type), 0);
    return true;
}

} // namespace

bool fused_sound(const std::vector<Descriptor *> &ops)
{
    std::vector<Operation> all;
    return read_all(ops, &all) && std::all_of(all.begin(), all.end(), sound) && in_order(all);
}

bool fused_taken(const std::vector<Descriptor *> &ops)
{
    std::vector<Operation> all;
    if (!read_all(ops, &all)) return false;
    for (const Operation &op : all)
        for (int i = 0; i <= op.inputs; i++)
            if (!taken(i < op.inputs ? op.in[i] : op.out)) return false;
    return true;
}

std::function<void()> fused_call(const std::vector<Descriptor *> &ops, const Descriptor *pack)
{
    const auto all = std::make_shared<std::vector<Operation>>();
    if (!read_all(ops, all.get())) return {};
    for (Operation &op : *all) {
        for (int i = 0; i < op.inputs; i++)
            if (!find(&op.in[i], pack)) return {};
        if (!find(&op.out, pack)) return {};
    }
    return [all] { run(*all); };
}

} // namespace cuemu
