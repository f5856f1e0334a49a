/* example.c - data and time for the examples. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "example.h"

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- MNIST, or digits of our own ------------------------------------------------------------- */

/* A 28 x 28 digit: three times the size of a letter, moved, with grey levels and noise, from a small
 * generator that depends on the sample alone. */
static int drawn_digit(void *ctx, int64_t i, Tensor **x, Tensor **y)
{
    uint64_t s = (uint64_t)i * 2 + (ctx != NULL) + 88172645463325252u;
    int digit = (int)(i % 10);
    float pixel[28 * 28];
    for (int k = 0; k < 4; k++) s = s * 6364136223846793005u + 1442695040888963407u;
    int top = 1 + (int)(s >> 33) % 6, left = 3 + (int)(s >> 40) % 8;
    Tensor *drawing = io_canvas(28, 28, 0);
    if (io_draw_text(drawing, top, left, 3, 0xff0000, (char[]){ (char)('0' + digit), 0 })) return -1;
    const float *red = tensor_data(drawing);
    for (int k = 0; k < 28 * 28; k++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        float noise = (float)(s >> 40) / (float)(1 << 24);
        pixel[k] = red[k] > 0 ? 0.6f + 0.4f * noise : 0.25f * noise * noise;
    }
    int64_t label = digit;
    *x = tensor_from_data(pixel, SHAPE(1, 28, 28), TENSOR_F32);
    *y = tensor_from_data(&label, SHAPE(), TENSOR_I64);
    return *x && *y ? 0 : -1;
}

static bool there(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", folder);
    if (access(path, R_OK) == 0) return true;
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte.gz", folder);
    return access(path, R_OK) == 0;
}

static bool drawn;

/* Where MNIST lies; NULL: nowhere.  Looks, and tries a download, once. */
static const char *find_mnist(void)
{
    static char buffer[4096];
    static bool looked;
    static const char *found;
    if (looked) return found;
    looked = true;
    const char *given = getenv("TAPEGRAD_DATA");
    if (given) snprintf(buffer, sizeof buffer, "%s/mnist", given);
    if (given && there(buffer)) found = buffer;
    else if (there("data/mnist") || (access("tools/get_mnist.sh", X_OK) == 0 &&
                                     system("tools/get_mnist.sh data/mnist") == 0 && there("data/mnist")))
        found = "data/mnist";
    if (!found)
        fputs("MNIST was not found and cannot be downloaded: using synthetic digits instead\n", stderr);
    return found;
}

Dataset *example_mnist(const char *folder, DataSplit split)
{
    static char test_digits;            /* a context that is not NULL draws other ones */
    if (!folder) folder = find_mnist(); /* named by the caller: it is there, or an error */
    if (folder) return data_mnist(folder, split, .mean = 0.1307, .std = 0.3081);
    drawn = true;
    return data_custom(split == DATA_TRAIN ? 10000 : 2000, drawn_digit, NULL,
                       split == DATA_TRAIN ? NULL : &test_digits);
}

const char *example_mnist_note(void) { return drawn ? " (synthetic digits)" : ""; }
