/* map_rare.h - the loops of ops.def's rare rows, one for all instruction sets. */
#ifndef TG_MAP_RARE_H
#define TG_MAP_RARE_H

#include <tapegrad/op_row.h>
#include "../device.h"

typedef struct RareRow {
    OpRowLoop f64[3], i64;              /* by part; NULL: none */
    bool to_bool;                       /* writes bytes 0 and 1 */
    unsigned char params;
} RareRow;

const RareRow *rare_row(int row) __attribute__((visibility("hidden")));

#endif
