/* attention_cudnn.cu - attention of halves by cuDNN, where it is there and has an engine that serves: causal
 * or not, with heads of k and v that several of q share.
 *
 *  - A call is the graph that cuDNN's engines for attention know, an operation a line below.  Probabilities
 *    are rounded to the operands' dtype before the product with v, as by our own kernels.
 *  - What is kept of a row is its log-sum-exp, as shift, and 1, as factor: the backward of either kind reads
 *    what the forward of the other has kept.
 *  - Backward: the graph in which dq is a product, for which cuDNN stores ds.  The other one adds dq up by
 *    atomics, in another order each time.
 *  - Not by cuDNN: dropout, whose numbers would be others; masks, as nothing is promised for rows that see
 *    nothing; versions before 9.16, which had faults in it. */
#include <stdlib.h>
#include <string.h>
#include "cuda/cudnn_graph.cuh"
#include "cuda/sequence/attention.cuh"

namespace {

enum { FORWARD = 16, BACKWARD, DIMS = 4, OLDEST = 91600, WIDTH = 256, MOST_ITEMS = 65535 };

struct AttentionKey {
    int kind, dtype, causal, heads_behind;
    int64_t batch, heads, share, rows, cols, width, value_width;
    int64_t q[3], k[3], v[3]; /* strides of batch, heads and rows */
};

enum {
    ID_Q = 1,
    ID_K,
    ID_V,
    ID_Y,
    ID_STATS,
    ID_SCALE,
    ID_NEVER, /* -inf */
    ID_ONE,
    ID_DY,
    ID_DELTA,
    ID_DQ,
    ID_DK,
    ID_DV,
    ID_VIRTUAL = 100
};

/* ---- operations ------------------------------------------------------------------------------ */

struct Builder {
    DnnGraph *g;
    const AttentionKey &k;
    int64_t next = ID_VIRTUAL;

    cudnnDataType_t half() const { return dnn_type_of(k.dtype); }

    /* [batch, heads, rows, cols], or its matrices transposed where they lie. */
    Descriptor tensor(int64_t id, int64_t heads, int64_t rows, int64_t cols, const int64_t *stride,
                      bool transposed, DnnGraph::Kind kind = DnnGraph::REAL)
    {
        const int64_t size[DIMS] = { k.batch, heads, transposed ? cols : rows, transposed ? rows : cols },
                      step[DIMS] = { stride[0], stride[1], transposed ? 1 : stride[2],
                                     transposed ? stride[2] : 1 };
        return g->tensor(id, half(), DIMS, size, step, kind);
    }
    /* Dense, in our memory, where heads may lie behind the rows. */
    Descriptor result(int64_t id, int64_t heads, int64_t rows, int64_t cols)
    {
        const int64_t inside[3] = { rows * heads * cols, cols, heads * cols },
                      dense[3] = { heads * rows * cols, rows * cols, cols };
        return tensor(id, heads, rows, cols, k.heads_behind ? inside : dense, false);
    }
    /* Dense, only inside of the graph. */
    Descriptor matrix(cudnnDataType_t type, int64_t rows, int64_t cols, bool transposed = false)
    {
        const int64_t size[DIMS] = { k.batch, k.heads, transposed ? cols : rows, transposed ? rows : cols },
                      step[DIMS] = { k.heads * rows * cols, rows * cols, transposed ? 1 : cols,
                                     transposed ? cols : 1 };
        return g->tensor(next++, type, DIMS, size, step, DnnGraph::VIRTUAL);
    }
    Descriptor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) { return matrix(type, k.rows, k.cols); }
    Descriptor each_row(int64_t id = 0) /* 0: inside of the graph */
    {
        const int64_t size[DIMS] = { k.batch, k.heads, k.rows, 1 },
                      step[DIMS] = { k.heads * k.rows, k.rows, 1, 1 };
        return g->tensor(id ? id : next++, CUDNN_DATA_FLOAT, DIMS, size, step,
                         id ? DnnGraph::REAL : DnnGraph::VIRTUAL);
    }
    Descriptor number(int64_t id)
    {
        const int64_t one[DIMS] = { 1, 1, 1, 1 };
        return g->tensor(id, CUDNN_DATA_FLOAT, DIMS, one, one, DnnGraph::BY_VALUE);
    }

    void product(Descriptor a, Descriptor b, Descriptor c)
    {
        const cudnnDataType_t type = CUDNN_DATA_FLOAT;
        Descriptor kind = g->make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
        g->set(kind, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
        g->finish(kind);
        Descriptor op = g->make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
        g->set(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a), g->set(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
        g->set(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c), g->set(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
        g->add(op);
    }
    /* y = x mode b; of a selection, x where t, else b; an index along an axis of x. */
    Descriptor each(int mode, Descriptor y, Descriptor x, Descriptor b = nullptr, Descriptor t = nullptr,
                    cudnnDataType_t type = CUDNN_DATA_FLOAT, int64_t axis = -1)
    {
        Descriptor kind = g->make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        g->set(kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
        g->set(kind, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
        if (axis >= 0) g->set(kind, CUDNN_ATTR_POINTWISE_AXIS, axis);
        g->finish(kind);
        Descriptor op = g->make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        g->set(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
        g->set(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
        if (b) g->set(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
        if (t) g->set(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
        g->set(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
        g->add(op);
        return y;
    }
    Descriptor reduce(int by, Descriptor x, Descriptor y)
    {
        const cudnnDataType_t type = CUDNN_DATA_FLOAT;
        Descriptor kind = g->make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
        g->set(kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &by);
        g->set(kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
        g->finish(kind);
        Descriptor op = g->make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
        g->set(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
        g->set(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
        g->set(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
        g->add(op);
        return y;
    }
    /* The same memory as x, seen as y. */
    Descriptor reshape(Descriptor x, Descriptor y)
    {
        Descriptor op = g->make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
        g->set(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x), g->set(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
        g->add(op);
        return y;
    }

    /* scale q k^T */
    Descriptor scaled(Descriptor q, Descriptor kt, Descriptor scale)
    {
        Descriptor s = scores();
        product(q, kt, s);
        return each(CUDNN_POINTWISE_MUL, scores(), s, scale);
    }
    /* s, -inf where a column is behind its row. */
    Descriptor causal(Descriptor s)
    {
        if (!k.causal) return s;
        Descriptor row = each(CUDNN_POINTWISE_GEN_INDEX, scores(CUDNN_DATA_INT32), s, nullptr, nullptr,
                              CUDNN_DATA_FLOAT, 2);
        Descriptor col = each(CUDNN_POINTWISE_GEN_INDEX, scores(CUDNN_DATA_INT32), s, nullptr, nullptr,
                              CUDNN_DATA_FLOAT, 3);
        Descriptor seen =
            each(CUDNN_POINTWISE_CMP_GE, scores(CUDNN_DATA_BOOLEAN), row, col, nullptr, CUDNN_DATA_BOOLEAN);
        return each(CUDNN_POINTWISE_BINARY_SELECT, scores(), s, number(ID_NEVER), seen);
    }
    /* The gradient of k or v: ds^T or p^T of [rows, cols] times x, added up over the heads that share it. */
    void column_gradient(Descriptor p, Descriptor x, int64_t id, int64_t width)
    {
        Descriptor turned = reshape(p, matrix(half(), k.rows, k.cols, true));
        Descriptor to = result(id, k.heads / k.share, k.cols, width);
        if (k.share == 1) return product(turned, x, to);
        Descriptor all = matrix(half(), k.cols, width);
        product(turned, x, all);
        reduce(CUDNN_REDUCE_TENSOR_ADD, all, to);
    }
};

/* ---- graphs ---------------------------------------------------------------------------------- */

void add_forward(DnnGraph *g, const void *key)
{
    const AttentionKey &k = *(const AttentionKey *)key;
    Builder b = { g, k };
    const int64_t shared = k.heads / k.share;
    Descriptor q = b.tensor(ID_Q, k.heads, k.rows, k.width, k.q, false),
               kt = b.tensor(ID_K, shared, k.cols, k.width, k.k, true),
               v = b.tensor(ID_V, shared, k.cols, k.value_width, k.v, false),
               y = b.result(ID_Y, k.heads, k.rows, k.value_width), stats = b.each_row(ID_STATS);
    Descriptor s = b.causal(b.scaled(q, kt, b.number(ID_SCALE)));
    Descriptor most = b.reduce(CUDNN_REDUCE_TENSOR_MAX, s, b.each_row());
    Descriptor e = b.each(CUDNN_POINTWISE_EXP, b.scores(), b.each(CUDNN_POINTWISE_SUB, b.scores(), s, most));
    Descriptor sum = b.reduce(CUDNN_REDUCE_TENSOR_ADD, e, b.each_row());
    b.each(CUDNN_POINTWISE_ADD, stats, most, b.each(CUDNN_POINTWISE_LOG, b.each_row(), sum));
    b.product(b.each(CUDNN_POINTWISE_DIV, b.scores(b.half()), e, sum), v, y);
}

void add_backward(DnnGraph *g, const void *key)
{
    const AttentionKey &k = *(const AttentionKey *)key;
    Builder b = { g, k };
    const int64_t shared = k.heads / k.share;
    Descriptor q = b.tensor(ID_Q, k.heads, k.rows, k.width, k.q, false),
               kt = b.tensor(ID_K, shared, k.cols, k.width, k.k, true),
               vt = b.tensor(ID_V, shared, k.cols, k.value_width, k.v, true),
               y = b.result(ID_Y, k.heads, k.rows, k.value_width),
               dy = b.result(ID_DY, k.heads, k.rows, k.value_width), scale = b.number(ID_SCALE);
    Descriptor products =
        b.each(CUDNN_POINTWISE_MUL, b.matrix(CUDNN_DATA_FLOAT, k.rows, k.value_width), dy, y);
    Descriptor sums = b.reduce(CUDNN_REDUCE_TENSOR_ADD, products, b.each_row());
    Descriptor delta = b.each(CUDNN_POINTWISE_MUL, b.each_row(ID_DELTA), sums, b.number(ID_ONE));
    Descriptor s = b.each(CUDNN_POINTWISE_SUB, b.scores(), b.scaled(q, kt, scale), b.each_row(ID_STATS));
    Descriptor p = b.each(CUDNN_POINTWISE_EXP, b.scores(), b.causal(s));
    b.column_gradient(p, dy, ID_DV, k.value_width);
    Descriptor dp = b.scores();
    b.product(dy, vt, dp);
    dp = b.each(CUDNN_POINTWISE_SUB, b.scores(), dp, delta);
    Descriptor ds = b.each(CUDNN_POINTWISE_MUL, b.scores(b.half()),
                           b.each(CUDNN_POINTWISE_MUL, b.scores(), dp, p), scale);
    b.column_gradient(ds, q, ID_DK, k.width);
    Descriptor turned = b.tensor(b.next++, shared, k.cols, k.width, k.k, false, DnnGraph::VIRTUAL);
    b.product(ds, b.reshape(kt, turned), b.result(ID_DQ, k.heads, k.rows, k.width));
}

/* ---- which calls ----------------------------------------------------------------------------- */

/* Strides of batch, heads and rows; false: it lies in another way. */
bool set_strides(int64_t stride[3], const AttentionArgs &a, const AttentionOperand &x, int64_t share)
{
    const int first = a.ndim == 2 ? 0 : -1, last = a.ndim - 1;
    if (first >= 0 && x.each[first] != 1) return false;
    if (last >= 0 && x.each[last] != share) return false;
    stride[2] = x.row;
    stride[1] = last >= 0 ? x.stride[last] : 1;
    stride[0] = first >= 0 ? x.stride[first] : stride[1] * (last >= 0 ? a.shape[last] / share : 1);
    return stride[0] > 0 && stride[1] > 0 && stride[2] > 0;
}

bool set_key(AttentionKey *key, int kind, const AttentionCall &c)
{
    const AttentionArgs &a = c.a;
    AttentionKey &k = *key;
    memset(&k, 0, sizeof k); /* its gaps are compared, too */
    if ((a.dtype != TENSOR_F16 && a.dtype != TENSOR_BF16) || a.keep || a.mask.data || a.ndim > 2)
        return false;
    if (!c.wide_q || !c.wide_k || !c.wide_v || !c.wide_y || a.width > WIDTH || a.value_width > WIDTH)
        return false;
    k.kind = kind, k.dtype = a.dtype, k.causal = a.causal, k.heads_behind = a.heads > 1;
    k.batch = a.ndim == 2 ? a.shape[0] : 1, k.heads = a.ndim > 0 ? a.shape[a.ndim - 1] : 1;
    k.share = a.ndim > 0 ? a.k.each[a.ndim - 1] : 1;
    k.rows = a.rows, k.cols = a.cols, k.width = a.width, k.value_width = a.value_width;
    if (k.batch * k.heads * k.rows * k.cols * k.width * k.value_width == 0 || k.heads % k.share) return false;
    return k.batch <= MOST_ITEMS && k.heads <= MOST_ITEMS && set_strides(k.q, a, a.q, 1) &&
           set_strides(k.k, a, a.k, k.share) && set_strides(k.v, a, a.v, k.share);
}

const DnnPlan *plan_of(AttentionKey *key, int kind, const AttentionCall &c)
{
    if (!set_key(key, kind, c) || dnn_version() < OLDEST) return nullptr;
    return dnn_plan(key, sizeof *key, kind == FORWARD ? add_forward : add_backward, false);
}

/* ---- what is kept of rows -------------------------------------------------------------------- */

__global__ void set_ones(int64_t n, float *x)
{
    for (int64_t i = first_item(); i < n; i += item_step()) x[i] = 1;
}

/* A row that sees nothing has the factor 0: its e^(s - inf) is 0, too. */
__global__ void log_sums(int64_t n, const float *shift, const float *factor, float *out)
{
    for (int64_t i = first_item(); i < n; i += item_step())
        out[i] = factor[i] == 0 ? INFINITY : shift[i] - logf(factor[i]);
}

} // namespace

bool attention_cudnn_first()
{
    static const char *const asked = getenv("TAPEGRAD_CUDNN");
    return asked && strcmp(asked, "all") == 0;
}

int attention_cudnn(const AttentionCall &c)
{
    AttentionKey key;
    const DnnPlan *p = plan_of(&key, FORWARD, c);
    if (!p) return KERNEL_DECLINED;
    Scratch room((size_t)p->room);
    if (!room.data) return KERNEL_FAILED;
    float scale = (float)c.a.scale, never = -INFINITY;
    const int64_t id[] = { ID_Q, ID_K, ID_V, ID_Y, ID_STATS, ID_SCALE, ID_NEVER };
    void *const data[] = {
        (void *)c.a.q.data, (void *)c.a.k.data, (void *)c.a.v.data, c.a.y, c.a.shift, &scale, &never
    };
    const int n = 6 + key.causal;
    if (dnn_execute("attention", p, n, id, data, room.data)) return KERNEL_FAILED;
    const int64_t rows = c.a.batch * c.a.rows;
    LAUNCH(set_ones, gpu_blocks(rows), THREADS, rows, (float *)c.a.factor);
    return gpu_launched("attention");
}

int attention_cudnn_grad(const AttentionCall &c)
{
    AttentionKey key;
    if (!c.a.dq || !c.a.dk || !c.a.dv) return KERNEL_DECLINED;
    const DnnPlan *p = plan_of(&key, BACKWARD, c);
    if (!p || key.share != c.a.share) return KERNEL_DECLINED;
    const int64_t rows = c.a.batch * c.a.rows;
    Scratch room((size_t)p->room), stats((size_t)rows * sizeof(float)), delta((size_t)rows * sizeof(float));
    if (!room.data || !stats.data || !delta.data) return KERNEL_FAILED;
    LAUNCH(log_sums, gpu_blocks(rows), THREADS, rows, (const float *)c.a.shift, (const float *)c.a.factor,
           (float *)stats.data);
    if (gpu_launched("attention_grad")) return KERNEL_FAILED;
    float scale = (float)c.a.scale, one = 1, never = -INFINITY;
    const int64_t id[] = { ID_Q,  ID_K,  ID_V,  ID_Y,   ID_DY,    ID_DELTA, ID_STATS,
                           ID_DQ, ID_DK, ID_DV, ID_ONE, ID_SCALE, ID_NEVER };
    void *const data[] = { (void *)c.a.q.data,
                           (void *)c.a.k.data,
                           (void *)c.a.v.data,
                           c.a.y,
                           (void *)c.a.dy,
                           delta.data,
                           stats.data,
                           c.a.dq,
                           c.a.dk,
                           c.a.dv,
                           &one,
                           &scale,
                           &never };
    return dnn_execute("attention_grad", p, 12 + key.causal, id, data, room.data);
}
