/* nn/packed.h - sequences of different lengths in one batch.  Included by nn.h.
 *
 *     Tensor *x = nn_pad_sequence(TENSORS(a, b, c), .batch_first = true);            // [3, longest, width]
 *     PackedSequence p = nn_pack_padded_sequence(x, lengths, .batch_first = true, .enforce_sorted = false);
 *     PackedSequence q = nn_lstm_forward_packed(lstm, p, NULL, NULL, &h, &c);        // computes no padding
 *     Tensor *y = nn_pad_packed_sequence(q, .batch_first = true);                    // zeros after the ends
 *
 * Lengths are integers [N], 1 or more.  A failed call returns a PackedSequence whose data is NULL; given one,
 * a call fails too.  The open scope owns its tensors, as any result. */
#ifndef TAPEGRAD_NN_PACKED_H
#define TAPEGRAD_NN_PACKED_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PackedSequence {
    Tensor *data;           /* [sum of lengths, ...]: step 0 of all, longest first, then step 1 of all, ... */
    Tensor *batch_sizes;    /* i64 [T]: number of sequences longer than t */
    Tensor *sorted_indices; /* i64 [N]: sorted_indices[k] is the k-th longest, */
    Tensor *unsorted_indices; /* its inverse; both NULL: the input was sorted */
} PackedSequence;

typedef enum NNPaddingSide { NN_PADDING_RIGHT, NN_PADDING_LEFT } NNPaddingSide;

typedef struct NNPadSequenceArgs {
    TensorList sequences;
    bool batch_first;
    double padding_value;
    TensorByName by_name;
    NNPaddingSide padding_side;
} NNPadSequenceArgs;
#define NN_PAD_SEQUENCE_DEFAULTS .batch_first = false
TAPEGRAD_API extern const NNPadSequenceArgs nn_pad_sequence_defaults;

/* nn_pad_sequence(TENSORS(a, b), ...) - N tensors [length, ...] stacked with padding: [T, N, ...], T the
 * longest; .batch_first: [N, T, ...].  EVALUE: no tensors.  ESHAPE: they differ in more than the first
 * size. */
#define nn_pad_sequence(...) \
    TENSOR_CALL_(nn_pad_sequence_args, NNPadSequenceArgs, NN_PAD_SEQUENCE_DEFAULTS, .sequences = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_pad_sequence_args(NNPadSequenceArgs args);

typedef struct NNPackArgs {
    Tensor *input, *lengths;
    bool batch_first;
    bool enforce_sorted; /* EVALUE unless the lengths decrease; false: sorts them */
    TensorFromDefaults from_defaults;
} NNPackArgs;
#define NN_PACK_DEFAULTS .enforce_sorted = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const NNPackArgs nn_pack_defaults;

/* nn_pack_padded_sequence(x, lengths) - packs x [T, N, ...], or [N, T, ...] with .batch_first, without the
 * steps after each sequence's end.
 * EVALUE: a length outside 1 .. T.  ESHAPE: lengths not [N].  EDTYPE: they are not integers.
 * nn_pack_sequence(TENSORS(a, b), enforce_sorted) - nn_pad_sequence, packed. */
#define nn_pack_padded_sequence(...) \
    TENSOR_CALL_(nn_pack_padded_sequence_args, NNPackArgs, NN_PACK_DEFAULTS, .input = __VA_ARGS__)
TAPEGRAD_API PackedSequence nn_pack_padded_sequence_args(NNPackArgs args);
TAPEGRAD_API PackedSequence nn_pack_sequence(TensorList sequences, bool enforce_sorted);

typedef struct NNUnpackArgs {
    PackedSequence sequence;
    bool batch_first;
    double padding_value;
    int64_t total_length; /* T of the result, at least the longest; 0: the longest */
    Tensor **lengths;     /* receives the lengths, i64 [N]; may be NULL */
} NNUnpackArgs;
#define NN_UNPACK_DEFAULTS .batch_first = false
TAPEGRAD_API extern const NNUnpackArgs nn_unpack_defaults;

/* nn_pad_packed_sequence(p, .batch_first = true, .lengths = &lengths) - back to [T, N, ...], in the original
 *     order, with padding_value after the ends.  EVALUE: total_length is too small.
 * nn_unpad_sequence(x, lengths, batch_first, to) - sets to[0 .. N) to the N tensors [length, ...] of a padded
 *     one.  0 or -1. */
#define nn_pad_packed_sequence(...) \
    TENSOR_CALL_(nn_pad_packed_sequence_args, NNUnpackArgs, NN_UNPACK_DEFAULTS, .sequence = __VA_ARGS__)
TAPEGRAD_API Tensor *nn_pad_packed_sequence_args(NNUnpackArgs args);
TAPEGRAD_API int nn_unpad_sequence(Tensor *padded, Tensor *lengths, bool batch_first, Tensor **to);

/* nn_rnn_forward_packed, nn_lstm_forward_packed - nn_rnn_forward (for a gru, too) and nn_lstm_forward on
 * packed sequences: each direction runs from one end of its sequence to the other, and h_n and c_n hold the
 * states there, in the order before packing.  EVALUE: another module. */
TAPEGRAD_API PackedSequence nn_rnn_forward_packed(Module *module, PackedSequence x, Tensor *h0, Tensor **h_n);
TAPEGRAD_API PackedSequence nn_lstm_forward_packed(Module *module, PackedSequence x, Tensor *h0, Tensor *c0,
                                                   Tensor **h_n, Tensor **c_n);

#ifdef __cplusplus
}
#endif
#endif
