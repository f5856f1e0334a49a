/* swish.c - an op of your own with a CUDA kernel of its own (swish.cu).
 *
 *   swish [device]         "cuda:0" where it can be used, else "cpu"
 *
 * On the CPU the op is a loop over doubles.  On a GPU its forward and backward launch the kernels that
 * swish.cu registered, in the stream of this thread's work: behind what made x, before what reads y. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tapegrad.h>
#include "swish.h"

static const SwishKernels *kernels;
static unsigned threads = 256;

void swish_register(const SwishKernels *those) { kernels = those; }

static bool on_cpu(const Tensor *x) { return strcmp(tensor_device(x), "cpu") == 0; }

/* Checks what the kernels take, and hands on what CUDA says of the launch. */
static int on_gpu(OpCall *c, const Tensor *x)
{
    if (!kernels)
        return op_fail(c, TENSOR_EDEVICE, "on %s: this program has no kernel for it", tensor_device(x));
    if (tensor_dtype(x) != TENSOR_F32)
        return op_fail(c, TENSOR_EDTYPE, "its kernel takes f32, not %s", tensor_dtype_name(tensor_dtype(x)));
    return 0;
}

static int launched(OpCall *c, const char *error)
{
    return error ? op_fail(c, TENSOR_EDEVICE, "its kernel with blocks of %u threads: %s", threads, error) : 0;
}

static int forward(OpCall *c)
{
    Tensor *x = op_input(c, 0), *y = op_output(c, 0);
    if (on_cpu(x)) {
        const double *from = op_input_f64(c, 0);
        double *to = op_output_f64(c, 0);
        for (int64_t i = 0; from && to && i < op_count(c, 0); i++) to[i] = from[i] / (1 + exp(-from[i]));
        return 0;
    }
    if (on_gpu(c, x) || !(x = tensor_contiguous(x))) return -1;
    if (tensor_numel(x) == 0) return 0;
    return launched(c, kernels->forward(tensor_device_stream(tensor_device(x)), threads, tensor_numel(x),
                                        tensor_data(x), tensor_data(y)));
}

/* Of ops on the CPU, and where a gradient of the gradient is wanted. */
static int backward(OpCall *c, Tensor *dy, Tensor **dx)
{
    Tensor *x = op_saved(c, 0);
    if (!x) return -1;
    if (on_cpu(x) || op_recording(c)) {
        Tensor *s = tensor_sigmoid(x);
        Tensor *slope = tensor_mul(s, tensor_add_scalar(tensor_mul(x, tensor_rsub_scalar(s, 1)), 1));
        dx[0] = tensor_mul(dy, slope);
        return dx[0] ? 0 : -1;
    }
    x = tensor_contiguous(x), dy = tensor_contiguous(dy);
    dx[0] = x ? tensor_empty_like(x) : NULL;
    if (!dy || !dx[0] || on_gpu(c, x)) return -1;
    if (tensor_numel(x) == 0) return 0;
    return launched(c, kernels->backward(tensor_device_stream(tensor_device(x)), threads, tensor_numel(x),
                                         tensor_data(x), tensor_data(dy), tensor_data(dx[0])));
}

static const TensorOp swish = { .name = "swish",
                                .arity = 1,
                                .keep = KEEP_INPUT(0),
                                .samples = "3x4; 5; 0x2",
                                .shape = op_same_shape,
                                .forward = forward,
                                .backward = backward,
                                .flags = OP_ANY_DEVICE };

static Tensor *apply(Tensor *x) { return tensor_apply(&swish, &x, 1, NULL); }

/* The largest difference from silu, which is the same function, and of the gradients. */
static double difference(const char *device)
{
    Tensor *x = tensor_requires_grad_(tensor_to_device(tensor_randn(SHAPE(1000), TENSOR_F32), device), true);
    Tensor *y = apply(x), *z = tensor_silu(x);
    Tensor *ours = tensor_gradients(tensor_sum(tensor_square(y)), x),
           *theirs = tensor_gradients(tensor_sum(tensor_square(z)), x);
    return tensor_item(
        tensor_max(tensor_add(tensor_abs(tensor_sub(y, z)), tensor_abs(tensor_sub(ours, theirs)))));
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : tensor_device_available("cuda:0") ? "cuda:0" : "cpu";
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(1);
    const int failed = tensor_gradcheck(&swish, tensor_randn(SHAPE(2, 3), TENSOR_F64));
    printf("on the CPU, gradcheck: %s\n", failed ? "failed" : "passed");
    const double far = difference(device);
    if (tensor_error()) printf("%s\n", tensor_error());
    else printf("on %s, from silu: %.1e\n", device, far);
    int ok = !failed && !tensor_error() && far < 1e-5;

    if (ok && strcmp(device, "cpu") != 0) { /* more threads than a block may have */
        threads = 4096;
        if (apply(tensor_to_device(tensor_ones(SHAPE(8), TENSOR_F32), device))) ok = 0;
        printf("as it should be refused: %s\n", tensor_error());
        tensor_error_clear();
        threads = 256;
        ok = ok && difference(device) < 1e-5; /* the device goes on */
    }
    tensor_scope_close(scope);
    return !ok;
}
