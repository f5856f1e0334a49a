/* map_int.cu - elementwise rows on integers; bools are computed as u8. */
#include "map_rows.cuh"

MapLauncher *map_row_i64(int row, int part) { return rows::launcher_of<int64_t>(row, part); }
MapLauncher *map_row_i32(int row, int part) { return rows::launcher_of<int32_t>(row, part); }
MapLauncher *map_row_u8(int row, int part) { return rows::launcher_of<uint8_t>(row, part); }
