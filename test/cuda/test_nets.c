/* test_nets.c - eight nets train on a device to the CPU's losses, from one seed and on the same batch: an
 * MLP, MNIST's CNN, ResNet-18, an LSTM, a GPT, a VAE, a DCGAN and a Transformer, each narrow.  No call goes
 * to the host, and on emu:0, which counts, no step waits or copies.  Dropout is the counter-based one, whose
 * masks are the same on both. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "emulator.h"
#include "nets.h"

enum { STEPS = 20, FEW = 4 };

/* The emulated device takes its time. */
static int steps(void) { return is_emulated() ? FEW : STEPS; }

/* ---- a step ---------------------------------------------------------------------------------- */

static void descend(Optimizer *opt, Tensor *loss)
{
    optim_zero_grad(opt);
    assert_int_equal(tensor_backward(loss), 0);
    assert_int_equal(optim_step(opt), 0);
}

static Tensor *judged(Module *discriminator, Tensor *x, bool real)
{
    Tensor *y = nn_forward(discriminator, x);
    return tensor_binary_cross_entropy_with_logits(y, real ? tensor_ones_like(y) : tensor_zeros_like(y));
}

static Tensor *play(Module *net, Optimizer **opt, Tensor **in)
{
    Module *discriminator = nn_get_module(net, "1");
    Tensor *fake = nn_forward(nn_get_module(net, "0"), in[1]);
    Tensor *loss =
        tensor_add(judged(discriminator, in[0], true), judged(discriminator, tensor_detach(fake), false));
    descend(opt[1], loss);
    Tensor *fooled = judged(discriminator, fake, true);
    descend(opt[0], fooled);
    return tensor_add(loss, fooled);
}

static void run(const Net *n, const char *device, double *losses)
{
    Tensor *in[INPUTS] = { NULL };
    TensorScope scope = tensor_scope_open();
    tensor_manual_seed(7);
    Module *net = n->make();
    assert_non_null(net);
    n->batch(in, device);
    assert_int_equal(nn_to_device(net, device), 0);
    Optimizer *opt[2] = { NULL };
    for (int i = 0; i < (n->loss ? 1 : 2); i++)
        opt[i] = optim_adamw(nn_parameters(n->loss ? net : nn_get_module(net, i ? "1" : "0")), .lr = n->lr);
    const int64_t fallbacks = tensor_host_fallbacks();
    for (int step = 0; step < steps(); step++) {
        TensorScope one = tensor_scope_open();
        const struct CuemuCounts before = counts_now();
        Tensor *loss = n->loss ? n->loss(net, in) : play(net, opt, in);
        if (n->loss) descend(opt[0], loss);
        const struct CuemuCounts after = counts_now();
        if (after.waits != before.waits || after.to_host != before.to_host)
            fail_msg("%s: step %d waits for the device", n->name, step);
        if (after.to_device != before.to_device)
            fail_msg("%s: step %d copies to the device %lld times", n->name, step,
                     (long long)(after.to_device - before.to_device));
        losses[step] = tensor_item(loss);
        tensor_scope_close(one);
    }
    if (tensor_host_fallbacks() != fallbacks) fail_msg("%s: the host computed a part of it", n->name);
    assert_null(tensor_error());
    optim_free(opt[0]), optim_free(opt[1]), nn_free(net);
    tensor_scope_close(scope);
}

/* Small losses of later steps differ by more, relatively. */
static double bound_of(const Net *n, int step) { return step < FEW ? n->tolerance : 20 * n->tolerance; }

static void trains(void **state)
{
    const Net *n = *state;
    double want[STEPS], got[STEPS];
    const int64_t live = tensor_live_count();
    run(n, "cpu", want), run(n, test_device(), got);
    for (int i = 0; i < steps(); i++)
        if (!(fabs(got[i] - want[i]) <= bound_of(n, i) * fabs(want[i])))
            fail_msg("%s: step %d has the loss %.9g, on the CPU %.9g", n->name, i, got[i], want[i]);
    assert_true(want[steps() - 1] < want[0]);
    assert_int_equal(tensor_live_count(), live);
}

int main(int argc, char **argv)
{
    enum { NETS = sizeof nets / sizeof *nets };
    struct CMUnitTest tests[NETS];
    if (!test_device_opens()) return 1;
    tensor_use_torch_dropout(false);
    for (int i = 0; i < NETS; i++)
        tests[i] = (struct CMUnitTest){ .name = nets[i].name,
                                        .test_func = trains,
                                        .initial_state = (void *)(uintptr_t)&nets[i] };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const int failed = cmocka_run_group_tests_name("nets on a device", tests, NULL, NULL);
    tensor_use_torch_dropout(true);
    return failed;
}
