/* map_f64.cu - elementwise rows computed in double. */
#include "map_rows.cuh"

MapLauncher *map_row_f64(int row, int part) { return rows::launcher_of<double>(row, part); }
