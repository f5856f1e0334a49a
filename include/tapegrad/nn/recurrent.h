/* nn/recurrent.h - recurrent layers and cells.  Included by nn.h; ops/sequence.h has the equations and the
 * shapes.
 *
 *     Module *lstm = nn_lstm(100, 200, 2, .dropout = 0.5);
 *     Tensor *h = NULL, *c = NULL;                                     // zeros
 *     Tensor *y = nn_lstm_forward(lstm, x, h, c, &h, &c);              // x [T, N, 100] -> y [T, N, 200],
 *                                                                      // h, c [2, N, 200]
 *     y = nn_forward(lstm, x);                                         // from zeros, last states dropped
 *
 * To continue from the last batch's states, detach them first: h = tensor_detach(h).
 *
 * Parameters of layer k: weight_ih_lk [G H, in], weight_hh_lk [G H, H], bias_ih_lk [G H], bias_hh_lk [G H],
 * G = 1 (rnn), 3 (gru) or 4 (lstm); if bidirectional, then the same with the suffix _reverse; then layer k +
 * 1, with in = H (or 2 H).  With .proj_size P: weight_hh_lk [4 H, P], and weight_hr_lk [P, H] last.  A cell
 * has weight_ih, weight_hh, bias_ih, bias_hh.  All are from U(-1 / sqrt(H), 1 / sqrt(H)). */
#ifndef TAPEGRAD_NN_RNN_H
#define TAPEGRAD_NN_RNN_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- whole sequences ------------------------------------------------------------------------- */

typedef enum NNRecurrence { NN_RECURRENCE_TANH, NN_RECURRENCE_RELU } NNRecurrence;

typedef struct NNRnnArgs {
    int64_t input_size, hidden_size;
    int num_layers;
    TensorByName by_name;
    NNRecurrence nonlinearity;
    bool bias, batch_first;
    double dropout; /* between layers, in training */
    bool bidirectional;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNRnnArgs;
#define NN_RNN_DEFAULTS .num_layers = 1, .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNRnnArgs nn_rnn_defaults;

typedef struct NNLstmArgs {
    int64_t input_size, hidden_size;
    int num_layers;
    bool bias, batch_first;
    double dropout; /* between layers, in training */
    bool bidirectional;
    int64_t proj_size; /* lstm only; 0: no projections */
    TensorByName by_name;
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNLstmArgs;
#define NN_LSTM_DEFAULTS .num_layers = 1, .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNLstmArgs nn_lstm_defaults;

/* nn_rnn(in, H), nn_gru(in, H, layers), nn_lstm(in, H, .batch_first = true) - [T, N, in] -> [T, N, H],
 * or [T, N, 2 H] if bidirectional; with .batch_first [N, T, ...].
 * EVALUE: sizes below 1, dropout outside [0, 1], proj_size >= hidden_size or for a gru, more layers than
 * ops/sequence.h allows. */
#define nn_rnn(...) TENSOR_CALL_(nn_rnn_args, NNRnnArgs, NN_RNN_DEFAULTS, .input_size = __VA_ARGS__)
#define nn_gru(...) TENSOR_CALL_(nn_gru_args, NNLstmArgs, NN_LSTM_DEFAULTS, .input_size = __VA_ARGS__)
#define nn_lstm(...) TENSOR_CALL_(nn_lstm_args, NNLstmArgs, NN_LSTM_DEFAULTS, .input_size = __VA_ARGS__)
TAPEGRAD_API Module *nn_rnn_args(NNRnnArgs args);
TAPEGRAD_API Module *nn_gru_args(NNLstmArgs args);
TAPEGRAD_API Module *nn_lstm_args(NNLstmArgs args);

/* nn_rnn_forward - runs nn_rnn or nn_gru from the states h0 [layers directions, N, H]; *h_n receives the last
 * states.
 * nn_lstm_forward - the same for nn_lstm.
 * h0 and c0 may be NULL (zeros); h_n and c_n may be NULL.  EVALUE: another module. */
TAPEGRAD_API Tensor *nn_rnn_forward(Module *module, Tensor *x, Tensor *h0, Tensor **h_n);
TAPEGRAD_API Tensor *nn_lstm_forward(Module *module, Tensor *x, Tensor *h0, Tensor *c0, Tensor **h_n,
                                     Tensor **c_n);

/* ---- one step -------------------------------------------------------------------------------- */

typedef struct NNRnnCellArgs {
    int64_t input_size, hidden_size;
    bool bias;
    TensorByName by_name;
    NNRecurrence nonlinearity; /* nn_rnn_cell only */
    TensorDtype dtype;
    TensorFromDefaults from_defaults;
} NNRnnCellArgs;
#define NN_RNN_CELL_DEFAULTS .bias = true, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNRnnCellArgs nn_rnn_cell_defaults;

/* nn_rnn_cell(in, H), nn_gru_cell(in, H), nn_lstm_cell(in, H) - x [N, in] (or [in]) -> the next h [N, H] (or
 * [H]); nn_forward starts from zeros. EVALUE: hidden_size below 1, input_size below 0. */
#define NN_CELL_(function, ...) \
    TENSOR_CALL_(function, NNRnnCellArgs, NN_RNN_CELL_DEFAULTS, .input_size = __VA_ARGS__)
#define nn_rnn_cell(...) NN_CELL_(nn_rnn_cell_args, __VA_ARGS__)
#define nn_gru_cell(...) NN_CELL_(nn_gru_cell_args, __VA_ARGS__)
#define nn_lstm_cell(...) NN_CELL_(nn_lstm_cell_args, __VA_ARGS__)
TAPEGRAD_API Module *nn_rnn_cell_args(NNRnnCellArgs args);
TAPEGRAD_API Module *nn_gru_cell_args(NNRnnCellArgs args);
TAPEGRAD_API Module *nn_lstm_cell_args(NNRnnCellArgs args);

/* nn_rnn_cell_forward - for nn_rnn_cell and nn_gru_cell: the next h, from hx (NULL: zeros).
 * nn_lstm_cell_forward - for nn_lstm_cell; *c_next receives the next c.  h = nn_lstm_cell_forward(m, x, h, c,
 * &c). */
TAPEGRAD_API Tensor *nn_rnn_cell_forward(Module *module, Tensor *x, Tensor *hx);
TAPEGRAD_API Tensor *nn_lstm_cell_forward(Module *module, Tensor *x, Tensor *hx, Tensor *cx, Tensor **c_next);

#ifdef __cplusplus
}
#endif
#endif
