/* left_over.c - linked into every suite: at its end each mode of the thread is what it was at the begin, no
 * error is left, and no function is still being composed. */
#include <stdio.h>
#include <unistd.h>
#include <tapegrad.h>
#include <tapegrad/autocast.h>
#include <tapegrad/debug.h>
#include <tapegrad/random.h>

static void __attribute__((destructor)) nothing_is_left_over(void)
{
    const char *left = tensor_compose_begin(NULL);
    if (!left) left = tensor_error();
    if (!tensor_grad_enabled()) left = "grad mode is off";
    if (tensor_autocast_enabled()) left = "autocast is on";
    if (tensor_set_detect_anomaly(false)) left = "anomalies are looked for";
    if (!tensor_use_torch_dropout(true)) left = "dropout is not PyTorch's";
    if (!left) return;
    fprintf(stderr, "left over: %s\n", left);
    _exit(1);
}
