/* emulator.h - what only the emulated device tells and does (cuemu/counts.h). */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cuemu/counts.h"
#include "test_device.h"

/* A function of the plugin's, which is open. */
static inline void *emu_symbol(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/libtapegrad_emu.so", getenv("TAPEGRAD_PLUGIN_DIR"));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    void *symbol = plugin ? dlsym(plugin, name) : NULL;
    if (!symbol) fprintf(stderr, "%s: no %s\n", path, name), abort();
    dlclose(plugin);
    return symbol;
}

/* What the runtime was asked for; of other devices nobody counts: zeros. */
static inline struct CuemuCounts counts_now(void)
{
    struct CuemuCounts (*counts)(void);
    if (!is_emulated()) return (struct CuemuCounts){ 0 };
    *(void **)&counts = emu_symbol("cuemu_counts");
    return counts();
}

/* Runs all with the threads of a kernel in three orders, or in that of CUEMU_ORDER.  The emulator reads its
 * order when it is loaded: a process for each. */
static inline int in_each_order(int argc, char **argv, int (*run_all)(int argc, char **argv))
{
    static const char *const order[] = { "fwd", "rev", "rand:1" };
    int failed = 0;
    if (!is_emulated() || getenv("CUEMU_ORDER")) return run_all(argc, argv);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int status = 1;
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            setenv("CUEMU_ORDER", order[i], 1);
            exit(run_all(argc, argv) ? 1 : 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "failed with the threads in the order %s\n", order[i]);
            failed++;
        }
    }
    return failed;
}

#endif
