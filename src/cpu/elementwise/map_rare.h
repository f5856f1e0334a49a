/* map_rare.h - the loops of ops.def's rare rows: on floats in double, one for each instruction set; on
 * integers in int64_t. */
#ifndef TG_MAP_RARE_H
#define TG_MAP_RARE_H

#include <tapegrad/op_row.h>
#include "device/device.h"
#include "device/row_ids.h"
#include "cpu/isa.h"
#include "hidden.h"

HIDDEN_BEGIN

/* [row][part]; NULL: none.  params: the row's, and whether results are rounded to f32 (or to halves), so that
 * an error of 2^-40 does not show. */
typedef OpRowLoop RareLoops[ROW_COUNT - ROW_FAST][3];
ISA_DECLARE(const RareLoops *, map_rare_loops, void);

typedef struct RareRow {
    OpRowLoop i64; /* NULL: none */
    bool to_bool;  /* writes bytes 0 and 1 */
    unsigned char params;
} RareRow;
const RareRow *rare_row(int row);

/* The functions that no instruction set makes faster. */
double rare_lgamma(double x), rare_digamma(double x), rare_polygamma(double x, double n),
    rare_erfinv(double y), rare_i0(double x), rare_i1(double x), rare_erfcx(double x), rare_ndtr(double x),
    rare_log_ndtr(double x), rare_ndtri(double p);

HIDDEN_END
#endif
