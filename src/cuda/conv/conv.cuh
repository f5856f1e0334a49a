/* conv.cuh - what conv.cu hands to other files. */
#ifndef TG_CUDA_CONV_CUH
#define TG_CUDA_CONV_CUH

#include "cuda/cuda.cuh"

enum ConvKind { CONV_FORWARD, CONV_INPUT, CONV_WEIGHT };

/* conv_halves.cu: by tensor cores, of halves whose channels lie last, eight or a multiple a group, in memory
 * that begins at 16 bytes.  KERNEL_DECLINED: another call. */
int conv_halves(ConvKind kind, const ConvArgs *a);

/* conv_cudnn.cu: by cuDNN, of floats in memory that begins at 16 bytes, all but the gradient of a bias.
 * KERNEL_DECLINED: cuDNN is not there, or has nothing for the call. */
int conv_cudnn(ConvKind kind, const ConvArgs *a);

#endif
