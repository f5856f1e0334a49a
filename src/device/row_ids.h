/* row_ids.h - the numbers of the elementwise rows, separate from device.h, so that a new row recompiles only
 * files that use rows. */
#ifndef TG_ROW_IDS_H
#define TG_ROW_IDS_H

/* The elementwise rows of ops.def, numbered: ROW_add, ROW_exp, ...; from ROW_FAST on, the rare ones. */
#define TG_ROW_ID(name, ...) ROW_##name,
typedef enum RowId {
#define ONLY_FAST_ROWS
#define UNARY TG_ROW_ID
#define UNARY1 TG_ROW_ID
#define UNARY2 TG_ROW_ID
#define BINARY TG_ROW_ID
#define BINARY1 TG_ROW_ID
#define COMPARE TG_ROW_ID
#define PREDICATE TG_ROW_ID
#include <tapegrad/ops.def>
    ROW_FAST,
    ROW_FAST_LAST = ROW_FAST - 1,
#define ONLY_RARE_ROWS
#define UNARY TG_ROW_ID
#define UNARY1 TG_ROW_ID
#define BINARY TG_ROW_ID
#define BINARY1 TG_ROW_ID
#define PREDICATE TG_ROW_ID
#define BITS1 TG_ROW_ID
#define BITS2 TG_ROW_ID
#define BITSC TG_ROW_ID
#include <tapegrad/ops.def>
    ROW_COUNT
} RowId;

#endif
