/* resample_table.c - the slot resample_table: the weights of a line, or of its transpose, as a table. */
#include "cpu/cpu.h"
#include "resample_taps.h"

/* Result element i is the sum over k in [start[i], start[i + 1]) of weight[k] times element index[k]. */
typedef struct Table {
    int64_t *start, *index;
    double *weight;
} Table;

static void fill(const ResampleLine *a, Table t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->out; i++) {
        t.start[i] = n;
        n += resample_taps(a, i, t.index + n, t.weight + n);
    }
    t.start[a->out] = n;
}

/* Rows of t become columns of `to`: counted, then placed, in order. */
static void transpose(const ResampleLine *a, Table t, Table to)
{
    int64_t *begin = to.start, sum = 0;
    memset(begin, 0, (size_t)(a->in + 1) * sizeof *begin);
    for (int64_t k = 0; k < t.start[a->out]; k++) begin[t.index[k]]++;
    for (int64_t j = 0; j <= a->in; j++) {
        const int64_t count = begin[j];
        begin[j] = sum, sum += count;
    }
    for (int64_t i = 0; i < a->out; i++)
        for (int64_t k = t.start[i]; k < t.start[i + 1]; k++) {
            const int64_t at = begin[t.index[k]]++;
            to.index[at] = i, to.weight[at] = t.weight[k];
        }
    for (int64_t j = a->in; j > 0; j--) begin[j] = begin[j - 1]; /* each had moved to the next one's */
    begin[0] = 0;
}

int cpu_resample_table(ResampleTableArgs *a)
{
    const int64_t out = a->line.out, n = out * a->taps;
    const size_t bytes = (size_t)(out + 1 + 3 * n) * sizeof(int64_t);
    int64_t *room = tg_alloc(bytes);
    if (!room) return fail_memory("resample");
    double *const wide = (double *)(void *)(room + out + 1 + n);
    const Table table = { a->start, a->index, a->dtype == TENSOR_F64 ? a->weight : wide },
                forward = a->transposed ? (Table){ room, room + out + 1, wide + n } : table;
    fill(&a->line, forward);
    if (a->transposed) transpose(&a->line, forward, table);
    for (int64_t k = 0; a->dtype != TENSOR_F64 && k < forward.start[out]; k++)
        ((float *)a->weight)[k] = (float)table.weight[k];
    tg_free(room, bytes);
    return 0;
}
