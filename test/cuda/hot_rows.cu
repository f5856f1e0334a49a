/* hot_rows.cu - a few rows of map_f32.cu, for test/nvcc.sh to look at their machine code: all of them would
 * take minutes to compile. */
#include "cuda/elementwise/map_rows.cuh"

#define HOT(formula) template __global__ void rows::map_kernel<float, rows::formula<float>, true>(MapCall)
HOT(add_y);
HOT(mul_y);
HOT(mul_a);
HOT(relu_y);
HOT(gelu_tanh_y);
HOT(gelu_tanh_a);
HOT(sigmoid_y);
