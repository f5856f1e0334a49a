/* bench.c - our side of the benchmarks: bench CASE THREADS sets the case up, runs it a few times, says
 * "ready", and then for each line with a number of seconds prints the median time of a block, in nanoseconds
 * per unit, and by how many KiB the peak of resident memory grew since the start. bench/side_by_side.py runs
 * it in turn with PyTorch. bench ceiling prints what the machine can do at most.  DEVICE=cuda:0: all is
 * there, and the peak is that of the device's memory; with GRAPH=1 blocks are captured and replayed.
 * CLOCK=cpu: the time of the CPU that this process takes; CLOCK=issue: that until a block is queued, without
 * the wait for the device. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cases.h"
#include <tapegrad.h>

static const char *device = "cpu";
static bool issue_only;
static TensorGraph *graph;

double now(void)
{
    static clockid_t clock = CLOCK_MONOTONIC;
    static bool asked;
    struct timespec t;
    const char *kind = asked ? NULL : getenv("CLOCK");
    if (kind) issue_only = strcmp(kind, "issue") == 0;
    if (kind && (issue_only || strcmp(kind, "cpu") == 0)) clock = CLOCK_PROCESS_CPUTIME_ID;
    asked = true;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *p, const void *q)
{
    double a = *(const double *)p, c = *(const double *)q;
    return (a > c) - (a < c);
}

static void run_block(const BenchCase *c)
{
    if (!graph || tensor_graph_begin(graph)) c->block();
    if (graph) tensor_graph_end(graph);
}

/* Seconds that n blocks take. */
static double time_of(const BenchCase *c, long n)
{
    double spent = 0, t = now();
    for (long j = 0; j < n; j++) {
        run_block(c);
        if (!issue_only) continue;
        spent += now() - t;
        tensor_synchronize(device);
        t = now();
    }
    if (issue_only) return spent;
    tensor_synchronize(device);
    return now() - t;
}

static double median_block(const BenchCase *c, double seconds)
{
    enum { BLOCKS = 5 };
    double found[BLOCKS];
    const long n = (long)(seconds / BLOCKS / (time_of(c, 1) + 1e-9)) + 1;
    for (int i = 0; i < BLOCKS; i++) found[i] = time_of(c, n) / (double)n / c->per * 1e9;
    qsort(found, BLOCKS, sizeof *found, ascending);
    return found[BLOCKS / 2];
}

/* Not getrusage's, which begins at that of the program that started this one. */
static long peak_kilobytes(void)
{
    char line[256];
    long found = 0;
    if (strcmp(device, "cpu") != 0) return tensor_device_memory(device).peak / 1024;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0) found = atol(line + 6);
    if (status) fclose(status);
    return found;
}

/* The sizes in a name that begins as the case's, or NULL. */
static const char *sizes_of(const BenchCase *c, const char *name)
{
    const size_t n = strlen(c->name);
    if (strncmp(c->name, name, n) != 0) return NULL;
    return c->name[n - 1] == '_' || !name[n] ? name + n : NULL;
}

static int measure(const BenchCase *c, const char *sizes)
{
    char line[64];
    const long base = peak_kilobytes();
    tensor_manual_seed(0);
    c->setup(sizes);
    if (getenv("GRAPH") && *getenv("GRAPH") == '1') graph = tensor_graph(device);
    for (int i = 0; i < (graph ? 6 : 3); i++) run_block(c);
    if (!tensor_error()) puts("ready"), fflush(stdout);
    while (!tensor_error() && fgets(line, sizeof line, stdin)) {
        const double ns = median_block(c, atof(line));
        printf("%.2f %ld\n", ns, peak_kilobytes() - base);
        fflush(stdout);
    }
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "ceiling") == 0) {
        printf("%.4g %.4g %.4g %.4g\n", ceiling_flops(), ceiling_copy(4 << 10), ceiling_copy(4 << 20),
               ceiling_copy(64 << 20));
        return 0;
    }
    if (getenv("DEVICE")) tensor_set_default_device(device = getenv("DEVICE"));
    const BenchCase *const tables[] = { bench_steps, bench_kernels, bench_small };
    if (argc > 2) tensor_set_num_threads(atoi(argv[2]));
    for (size_t i = 0; argc > 1 && i < sizeof tables / sizeof *tables; i++)
        for (const BenchCase *c = tables[i]; c->name; c++) {
            const char *sizes = sizes_of(c, argv[1]);
            if (sizes) return measure(c, sizes);
        }
    fprintf(stderr, "bench CASE THREADS, or bench ceiling\n");
    return 2;
}
