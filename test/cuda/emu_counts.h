/* emu_counts.h - what the runtime of emu:0 was asked for (cuemu/counts.h). */
#ifndef EMU_COUNTS_H
#define EMU_COUNTS_H

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "cuemu/counts.h"

/* A function of the plugin's. */
static inline void *emu_symbol(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/libtapegrad_emu.so", getenv("TAPEGRAD_PLUGIN_DIR"));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(plugin);
    void *symbol = dlsym(plugin, name);
    assert_non_null(symbol);
    dlclose(plugin);
    return symbol;
}

static inline struct CuemuCounts counts_now(void)
{
    struct CuemuCounts (*counts)(void);
    *(void **)&counts = emu_symbol("cuemu_counts");
    return counts();
}

#endif
