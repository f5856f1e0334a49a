/* rnn_cell.c - single steps of recurrent nets: a layer over a sequence of one step. */
#include "op/shape/shape_op.h"
#include "rnn.h"

const TensorLstmCellArgs tensor_lstm_cell_defaults = { 0 };

static int check(OpCall *c)
{
    if (call_one_dtype(c)) return -1;
    const Tensor *x = op_input(c, 0), *h = op_input(c, 1),
                 *cell = c->op->variant == RNN_LSTM ? op_input(c, 2) : NULL;
    if (x->ndim != 1 && x->ndim != 2)
        return op_fail(c, TENSOR_ESHAPE, "input %s: want [batch, in] or [in]", S(x));
    if (h && h->ndim != x->ndim)
        return op_fail(c, TENSOR_ESHAPE, "hx %s, input %s: want the same rank", S(h), S(x));
    if (cell && cell->ndim != x->ndim)
        return op_fail(c, TENSOR_ESHAPE, "cx %s, input %s: want the same rank", S(cell), S(x));
    return 0;
}

static int compose(OpCall *c)
{
    const int kind = c->op->variant;
    const bool alone = op_input(c, 0)->ndim == 1;
    Tensor *operand[RNN_ROLES] = { 0 }, *y, *c_n;
    for (int role = 0; role < W_HR; role++) {
        Tensor *x = rnn_slot(kind, role) < 0 ? NULL : op_input(c, rnn_slot(kind, role));
        if (x && alone && role <= C0 && !(x = tensor_unsqueeze(x, 0))) return -1;
        if (x && role == X && !(x = tensor_unsqueeze(x, 0))) return -1;
        operand[role] = x;
    }
    if (rnn_layer(kind, operand, false, c->site, &y, &c_n)) return -1;
    y = tensor_select(y, 0, 0);
    if (op_set_result(c, 0, alone ? tensor_squeeze(y, 0) : y)) return -1;
    return kind == RNN_LSTM ? op_set_result(c, 1, alone ? tensor_squeeze(c_n, 0) : c_n) : 0;
}

#define CELL                                                                                                \
    .shape = check, .compose = compose, .flags = OP_ANY_DEVICE | OP_OF_PRODUCTS | OP_FLOAT_INPUTS,          \
    .gradient = "da of the gates' sums; dx = da w_ih, dh = da w_hh + ..., dw_ih = da^T x, dw_hh = da^T h, " \
                "db = sum da"
#define SIMPLE_CELL CELL, .arity = 6, .optional = KEEP_INPUT(1) | KEEP_INPUT(4) | KEEP_INPUT(5)
#define RNN_CELL                                                                                             \
    SIMPLE_CELL,                                                                                             \
        .samples =                                                                                           \
            "2x3,2x2,2x3,2x2,2,2; 3,2,2x3,2x2,2,2; 2x3,-,2x3,2x2,-,-; 1,1,1x1,1x1,-,1; 0x3,0x2,2x3,2x2,2,2", \
        .errors = "2x2x3,-,2x3,2x2,-,- ! ESHAPE; 2x3,2,2x3,2x2,-,- ! ESHAPE; 2x4,-,2x3,2x2,-,- ! ESHAPE; "   \
                  "2x3,3x2,2x3,2x2,-,- ! ESHAPE; "                                                           \
                  "2x3,-,2x3,2x2,3,- ! ESHAPE; 2x3@i64,-,2x3,2x2,-,- ! EDTYPE"

static const TensorOp op_rnn_tanh_cell = { .name = "rnn_tanh_cell",
                                           .autocast = AUTOCAST_LOWER,
                                           .variant = RNN_TANH,
                                           .summary = "tanh(w_ih x + b_ih + w_hh h + b_hh)",
                                           RNN_CELL };
static const TensorOp op_rnn_relu_cell = { .name = "rnn_relu_cell",
                                           .autocast = AUTOCAST_LOWER,
                                           .variant = RNN_RELU,
                                           .summary = "relu(w_ih x + b_ih + w_hh h + b_hh)",
                                           RNN_CELL };
static const TensorOp op_gru_cell = {
    .name = "gru_cell",
    .autocast = AUTOCAST_LOWER,
    .variant = RNN_GRU,
    .summary = "one step of a gru: (1 - z) n + z h, n = tanh(w_in x + b_in + r (w_hn h + b_hn))",
    SIMPLE_CELL,
    .samples =
        "2x3,2x2,6x3,6x2,6,6; 3,2,6x3,6x2,6,6; 2x3,-,6x3,6x2,-,-; 1,1,3x1,3x1,-,-; 0x3,0x2,6x3,6x2,6,6",
    .errors = "2x2x3,-,6x3,6x2,-,- ! ESHAPE; 2x3,2,6x3,6x2,-,- ! ESHAPE; 2x3,-,5x3,5x2,-,- ! ESHAPE; "
              "2x3,-,6x3,6x2,-,5 ! ESHAPE",
};
static const TensorOp op_lstm_cell = {
    .name = "lstm_cell",
    .autocast = AUTOCAST_LOWER,
    .variant = RNN_LSTM,
    .summary = "one step of an lstm: h' and c' = f c + i g",
    .arity = 7,
    .outputs = 2,
    CELL,
    .optional = KEEP_INPUT(H0) | KEEP_INPUT(C0) | KEEP_INPUT(B_IH) | KEEP_INPUT(B_HH),
    .samples = "2x3,2x2,2x2,8x3,8x2,8,8; 3,2,2,8x3,8x2,8,8; 2x3,-,2x2,8x3,8x2,-,-; 1,1,-,4x1,4x1,-,-; "
               "0x3,0x2,0x2,8x3,8x2,8,8",
    .errors = "2x2x3,-,-,8x3,8x2,-,- ! ESHAPE; 2x3,2,-,8x3,8x2,-,- ! ESHAPE; 2x3,-,2,8x3,8x2,-,- ! ESHAPE; "
              "2x3,-,2x3,8x3,8x2,-,- ! ESHAPE; 2x3,-,-,8x3,8x1,-,- ! ESHAPE",
};
REGISTER_OPS(&op_rnn_tanh_cell, &op_rnn_relu_cell, &op_gru_cell, &op_lstm_cell);

Tensor *tensor_rnn_tanh_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih,
                             Tensor *b_hh)
{
    return APPLY(&op_rnn_tanh_cell, NULL, input, hx, w_ih, w_hh, b_ih, b_hh);
}

Tensor *tensor_rnn_relu_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih,
                             Tensor *b_hh)
{
    return APPLY(&op_rnn_relu_cell, NULL, input, hx, w_ih, w_hh, b_ih, b_hh);
}

Tensor *tensor_gru_cell(Tensor *input, Tensor *hx, Tensor *w_ih, Tensor *w_hh, Tensor *b_ih, Tensor *b_hh)
{
    return APPLY(&op_gru_cell, NULL, input, hx, w_ih, w_hh, b_ih, b_hh);
}

Tensor *tensor_lstm_cell_args(TensorLstmCellArgs a)
{
    Tensor *in[] = { a.input, a.hx, a.cx, a.w_ih, a.w_hh, a.b_ih, a.b_hh }, *y[2] = { NULL, NULL };
    op_apply(&op_lstm_cell, in, 7, NULL, SITE, y, 2);
    if (a.c_next) *a.c_next = y[1];
    return y[0];
}
