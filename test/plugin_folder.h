/* plugin_folder.h - where the plugins of this build lie: tests are in $(B)/test, plugins in $(B). */
#ifndef PLUGIN_FOLDER_H
#define PLUGIN_FOLDER_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Points the library to the folder `below` $(B): "" or "/test/plugins". */
static inline void set_plugin_folder(const char *below)
{
    char program[PATH_MAX], folder[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n < 0 ? 0 : n] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(program, '/');
        if (slash) *slash = 0;
    }
    snprintf(folder, sizeof folder, "%s%s", program, below);
    setenv("TAPEGRAD_PLUGIN_DIR", folder, 1);
}

#endif
