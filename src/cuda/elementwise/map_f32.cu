/* map_f32.cu - elementwise rows computed in float. */
#include "map_rows.cuh"

MapLauncher *map_row_f32(int row, int part) { return rows::launcher_of<float>(row, part); }
