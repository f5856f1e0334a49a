/* jit.h - what a kernel that was compiled at run time shares with the emulator. */
#pragma once
#include "cuemu/cuemu.h"

/* What NVRTC's stand-in gives for machine code: a shared object, behind its size. */
struct cuemuImage {
    char magic[8]; /* "cuemu" */
    uint64_t size;
};

/* Of each kernel NAME(T argument) there: the bytes of T, and a call by one thread. */
#define CUEMU_BYTES "cuemu_bytes_" /* extern unsigned long cuemu_bytes_NAME */
#define CUEMU_CALL "cuemu_call_" /* extern void cuemu_call_NAME(const cuemu::Exec *, const void *argument) */
