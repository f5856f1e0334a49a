/* map_narrow.h - the loops of ops.def's narrow rows in their own type, for one instruction set: f32, or i64
 * and i32.  map_rare.h's, which widen, are their plain forms, and serve the other types. */
#ifndef TG_MAP_NARROW_H
#define TG_MAP_NARROW_H

#include <tapegrad/op_row.h>
#include "device/device.h"
#include "device/row_ids.h"
#include "cpu/isa.h"

/* Narrow rows come first among the rare ones, so that ROW_FAST is the first of them. */
enum {
#define ONLY_NARROW_ROWS
#define UNARY(name, ...) NARROW_##name,
#define UNARY1 UNARY
#define BINARY UNARY
#define BINARY1 UNARY
#define PREDICATE UNARY
#define BITS1 UNARY
#define BITS2 UNARY
#define BITSC UNARY
#include <tapegrad/ops.def>
    NARROW_ROWS
};

typedef struct NarrowRow {
    OpRowLoop f32[3], i64, i32; /* by part; NULL: none */
} NarrowRow;

ISA_DECLARE(const NarrowRow *, map_narrow_rows, void);

#endif
