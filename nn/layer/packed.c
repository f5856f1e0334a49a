/* packed.c - sequences of different lengths: padded, packed, and back.
 *
 * Each function selects rows: of the padded tensor, flattened, or of the packed data with a row of padding
 * appended.  Lengths and indices are computed on the host. */
#include <string.h>
#include "../module.h"

/* ---- integers on the host: they belong to the open scope ------------------------------------- */

static int64_t *integers_of(Tensor *t)
{
    Tensor *host = tensor_contiguous(tensor_to(tensor_to_device(t, "cpu"), TENSOR_I64));
    return host ? tensor_data(host) : NULL;
}

static Tensor *new_integers(int64_t n, int64_t **at)
{
    Tensor *t = tensor_zeros(SHAPE(n), TENSOR_I64);
    t = t ? tensor_to_device(t, "cpu") : NULL;
    *at = t ? tensor_data(t) : NULL;
    return t;
}

static const int64_t *read_lengths(Tensor *t, int64_t n, int64_t most, const char *function)
{
    const TensorDtype dtype = tensor_dtype(t);
    if (tensor_dtype_is_float(dtype) || dtype == TENSOR_BOOL)
        return tensor_fail(TENSOR_EDTYPE, function, "lengths are %s: want integers",
                           tensor_dtype_name(dtype)),
               NULL;
    if (tensor_ndim(t) != 1 || tensor_size(t, 0) != n)
        return tensor_fail(TENSOR_ESHAPE, function, "%lld lengths, of rank %d: want [%lld]",
                           (long long)tensor_numel(t), tensor_ndim(t), (long long)n),
               NULL;
    const int64_t *at = integers_of(t);
    for (int64_t i = 0; i < n && at; i++)
        if (at[i] < 1 || at[i] > most)
            return tensor_fail(TENSOR_EVALUE, function, "length %lld of sequence %lld: want 1 to %lld",
                               (long long)at[i], (long long)i, (long long)most),
                   NULL;
    return at;
}

/* The rows of dense that index names, where its count of rows stands for padding, as [a, b, ...]. */
static Tensor *spread(Tensor *dense, Tensor *index, int64_t a, int64_t b, double padding)
{
    int64_t size[TENSOR_MAX_DIMS + 1];
    const TensorShape s = tensor_shape(dense);
    memcpy(size + 1, s.dim, (size_t)s.ndim * sizeof *size);
    size[1] = 1;
    Tensor *row = tensor_to_device(
        tensor_full((TensorShape){ s.ndim, size + 1 }, padding, tensor_dtype(dense)), tensor_device(dense));
    size[0] = a, size[1] = b;
    Tensor *rows = tensor_index_select(tensor_cat(TENSORS(dense, row)), 0,
                                       tensor_to_device(index, tensor_device(dense)));
    return tensor_reshape(rows, ((TensorShape){ s.ndim + 1, size }));
}

/* ---- padding --------------------------------------------------------------------------------- */

const NNPadSequenceArgs nn_pad_sequence_defaults = { NN_PAD_SEQUENCE_DEFAULTS };

static Tensor *pad(const NNPadSequenceArgs *a)
{
    const TensorList list = a->sequences;
    int64_t longest = 0, *at, start = 0;
    for (int i = 0; i < list.count; i++) {
        if (tensor_ndim(list.item[i]) < 1)
            return tensor_fail(TENSOR_ESHAPE, "nn_pad_sequence", "sequence %d has no length", i), NULL;
        if (tensor_size(list.item[i], 0) > longest) longest = tensor_size(list.item[i], 0);
    }
    Tensor *dense = tensor_cat_args((TensorJoinArgs){ list, 0 }),
           *index = new_integers(longest * list.count, &at);
    if (!dense || !index) return NULL;
    const int64_t n = list.count, sum = tensor_size(dense, 0);
    for (int64_t i = 0; i < n; i++) {
        const int64_t length = tensor_size(list.item[i], 0),
                      first = a->padding_side == NN_PADDING_LEFT ? longest - length : 0;
        for (int64_t t = 0; t < longest; t++)
            at[a->batch_first ? i * longest + t : t * n + i] =
                t >= first && t < first + length ? start + t - first : sum;
        start += length;
    }
    return spread(dense, index, a->batch_first ? n : longest, a->batch_first ? longest : n, a->padding_value);
}

Tensor *nn_pad_sequence_args(NNPadSequenceArgs a)
{
    static const char *const side[] = { "right", "left", NULL };
    if (tensor_check_choice("nn_pad_sequence", "padding_side", (int)a.padding_side, side)) return NULL;
    if (a.sequences.count < 1 || !a.sequences.item) {
        if (!tensor_error_code()) tensor_fail(TENSOR_EVALUE, "nn_pad_sequence", "no sequences");
        return NULL;
    }
    for (int i = 0; i < a.sequences.count; i++)
        if (!a.sequences.item[i]) {
            if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, "nn_pad_sequence", "sequence %d is NULL", i);
            return NULL;
        }
    TensorScope scope = tensor_scope_open();
    return tensor_scope_return(scope, pad(&a));
}

/* The side of a padded tensor: [T, N, ...], or [N, T, ...]. */
static int sides(Tensor *x, bool batch_first, int64_t *steps, int64_t *n, const char *function)
{
    if (tensor_ndim(x) < 2)
        return tensor_fail(TENSOR_ESHAPE, function, "an input of rank %d: want 2 or more", tensor_ndim(x));
    *steps = tensor_size(x, batch_first), *n = tensor_size(x, !batch_first);
    return 0;
}

static bool is_null(const void *a, const void *b, const char *function)
{
    if (a && b) return false;
    if (!tensor_error_code()) tensor_fail(TENSOR_ENULL, function, "an operand is NULL");
    return true;
}

int nn_unpad_sequence(Tensor *padded, Tensor *lengths, bool batch_first, Tensor **to)
{
    static const char function[] = "nn_unpad_sequence";
    int64_t steps, n;
    if (is_null(padded, lengths, function) || is_null(to, to, function)) return -1;
    if (sides(padded, batch_first, &steps, &n, function)) return -1;
    TensorScope scope = tensor_scope_open();
    const int64_t *length = read_lengths(lengths, n, steps, function);
    int status = length ? 0 : -1;
    for (int64_t i = 0; i < n && !status; i++) {
        to[i] = tensor_retain(tensor_narrow(tensor_select(padded, !batch_first, i), 0, 0, length[i]));
        if (to[i]) continue;
        while (i-- > 0) tensor_release(to[i]);
        status = -1;
        break;
    }
    tensor_scope_close(scope);
    for (int64_t i = 0; i < n && !status; i++) {
        Tensor *t = to[i];
        if (!(to[i] = nn_borrow(t))) status = -1;
        tensor_release(t);
    }
    return status;
}

/* ---- packing --------------------------------------------------------------------------------- */

const NNPackArgs nn_pack_defaults = { NN_PACK_DEFAULTS };

/* Hands the tensors of p to the enclosing scope, all or none. */
static PackedSequence hand_over(TensorScope scope, PackedSequence p)
{
    Tensor *at[] = { p.data, p.batch_sizes, p.sorted_indices, p.unsorted_indices };
    bool whole = p.data != NULL;
    for (int i = 0; i < 4; i++) tensor_retain(at[i]);
    tensor_scope_close(scope);
    for (int i = 0; i < 4; i++) {
        Tensor *mine = whole ? nn_borrow(at[i]) : NULL;
        whole &= mine || !at[i];
        tensor_release(at[i]);
        at[i] = mine;
    }
    return whole ? (PackedSequence){ at[0], at[1], at[2], at[3] } : (PackedSequence){ NULL };
}

/* Longest first, ties in their order.  back[order[k]] = k. */
static void sort(const int64_t *length, int64_t n, int64_t *order, int64_t *back)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i;
        for (; k > 0 && length[order[k - 1]] < length[i]; k--) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int64_t k = 0; k < n; k++) back[order[k]] = k;
}

static PackedSequence pack(const NNPackArgs *a, const char *function)
{
    PackedSequence p = { NULL };
    int64_t steps, n, *order, *back, *sizes, *row, sum = 0;
    if (sides(a->input, a->batch_first, &steps, &n, function)) return p;
    const int64_t *length = read_lengths(a->lengths, n, steps, function);
    Tensor *sorted = new_integers(n, &order), *unsorted = new_integers(n, &back);
    if (!length || !sorted || !unsorted) return p;
    if (n == 0) return tensor_fail(TENSOR_EVALUE, function, "no sequences"), p;
    sort(length, n, order, back);
    for (int64_t i = 0; i < n; i++) {
        sum += length[i];
        if (a->enforce_sorted && order[i] != i)
            return tensor_fail(TENSOR_EVALUE, function,
                               "lengths rise at %lld: sort them, or .enforce_sorted = false", (long long)i),
                   p;
    }
    Tensor *batch_sizes = new_integers(length[order[0]], &sizes), *index = new_integers(sum, &row);
    if (!batch_sizes || !index) return p;
    for (int64_t t = 0; t < length[order[0]]; t++)
        for (int64_t k = 0; k < n && length[order[k]] > t; k++, sizes[t]++)
            *row++ = a->batch_first ? order[k] * steps + t : t * n + order[k];
    p.data = tensor_index_select(tensor_flatten(a->input, 0, 1), 0,
                                 tensor_to_device(index, tensor_device(a->input)));
    p.batch_sizes = batch_sizes;
    if (!a->enforce_sorted) p.sorted_indices = sorted, p.unsorted_indices = unsorted;
    return p;
}

PackedSequence nn_pack_padded_sequence_args(NNPackArgs a)
{
    static const char function[] = "nn_pack_padded_sequence";
    if (TENSOR_CHECK_OPTIONS(function, a, nn_pack_defaults) || is_null(a.input, a.lengths, function))
        return (PackedSequence){ NULL };
    TensorScope scope = tensor_scope_open();
    return hand_over(scope, pack(&a, function));
}

PackedSequence nn_pack_sequence(TensorList sequences, bool enforce_sorted)
{
    const char *outer = tensor_compose_begin("nn_pack_sequence");
    TensorScope scope = tensor_scope_open();
    PackedSequence p = { NULL };
    int64_t *at;
    Tensor *padded = nn_pad_sequence(sequences),
           *lengths = padded ? new_integers(sequences.count, &at) : NULL;
    for (int i = 0; i < sequences.count && lengths; i++) at[i] = tensor_size(sequences.item[i], 0);
    if (lengths)
        p = pack(&(NNPackArgs){ .input = padded, .lengths = lengths, .enforce_sorted = enforce_sorted },
                 "nn_pack_sequence");
    p = hand_over(scope, p);
    tensor_compose_end(outer);
    return p;
}

/* ---- and back -------------------------------------------------------------------------------- */

const NNUnpackArgs nn_unpack_defaults = { NN_UNPACK_DEFAULTS };

const int64_t *nn_batch_sizes(const PackedSequence *p, int64_t *steps, const char *function)
{
    if (is_null(p->data, p->batch_sizes, function)) return NULL;
    const int64_t *sizes = integers_of(p->batch_sizes);
    bool falls = sizes && tensor_ndim(p->batch_sizes) == 1 && tensor_ndim(p->data) > 0;
    int64_t sum = 0;
    *steps = falls ? tensor_size(p->batch_sizes, 0) : 0;
    for (int64_t t = 0; t < *steps; sum += sizes[t++])
        falls &= sizes[t] > 0 && (t == 0 || sizes[t] <= sizes[t - 1]);
    if (falls && *steps > 0 && sum == tensor_size(p->data, 0)) return sizes;
    if (sizes) tensor_fail(TENSOR_EVALUE, function, "batch sizes that rise, or are not those of the data");
    return NULL;
}

static Tensor *unpack(const NNUnpackArgs *a, const char *function, Tensor **lengths)
{
    const PackedSequence *p = &a->sequence;
    int64_t steps, *at, *length, row = 0;
    const int64_t *sizes = nn_batch_sizes(p, &steps, function),
                  *back = sizes && p->unsorted_indices ? integers_of(p->unsorted_indices) : NULL;
    if (!sizes || (p->unsorted_indices && !back)) return NULL;
    const int64_t n = sizes[0], total = a->total_length ? a->total_length : steps;
    if (total < steps)
        return tensor_fail(TENSOR_EVALUE, function, "total_length %lld: the longest has %lld steps",
                           (long long)total, (long long)steps),
               NULL;
    if (back && tensor_numel(p->unsorted_indices) != n)
        return tensor_fail(TENSOR_EVALUE, function, "unsorted_indices of another batch"), NULL;
    Tensor *index = new_integers(total * n, &at);
    *lengths = new_integers(n, &length);
    if (!index || !*lengths) return NULL;
    for (int64_t t = 0; t < total; t++) {
        const int64_t size = t < steps ? sizes[t] : 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t k = back ? back[i] : i;
            at[a->batch_first ? i * total + t : t * n + i] = k < size ? row + k : tensor_size(p->data, 0);
            length[i] += k < size;
        }
        row += size;
    }
    return spread(p->data, index, a->batch_first ? n : total, a->batch_first ? total : n, a->padding_value);
}

Tensor *nn_pad_packed_sequence_args(NNUnpackArgs a)
{
    if (a.lengths) *a.lengths = NULL;
    if (is_null(a.sequence.data, a.sequence.batch_sizes, "nn_pad_packed_sequence")) return NULL;
    Tensor *lengths = NULL;
    TensorScope scope = tensor_scope_open();
    Tensor *y = unpack(&a, "nn_pad_packed_sequence", &lengths);
    PackedSequence both = hand_over(scope, (PackedSequence){ y, lengths });
    if (a.lengths) *a.lengths = both.batch_sizes;
    return both.data;
}
