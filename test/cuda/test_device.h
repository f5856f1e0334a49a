/* test_device.h - the device that the suites test: TAPEGRAD_TEST_DEVICE in the environment, or emu:0. */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plugin_folder.h"

static inline const char *test_device(void)
{
    const char *name = getenv("TAPEGRAD_TEST_DEVICE");
    return name && *name ? name : "emu:0";
}

static inline bool is_emulated(void) { return strncmp(test_device(), "emu", 3) == 0; }

/* Points the library to this build's plugins; false, and the reason told, where the device does not open. */
static inline bool test_device_opens(void)
{
    set_plugin_folder("");
    if (tensor_device_available(test_device())) return true;
    tensor_set_default_device(test_device());
    fprintf(stderr, "%s\n", tensor_error());
    return false;
}

#endif
