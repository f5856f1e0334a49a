/* rnn_kernel.c - rnn_loops.h for both types and one instruction set. */
#include <string.h>
#include "rnn_kernel.h"
#include "cpu/math/vecmath.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define N(name) JOIN(name, TYPE)

#define T float
#define TYPE f32
#include "rnn_loops.h"
#undef T
#undef TYPE

#define T double
#define TYPE f64
#include "rnn_loops.h"

const RnnKernel ISA_NAME(rnn_kernel)[2] = { { step_f32, step_grad_f32 }, { step_f64, step_grad_f64 } };
