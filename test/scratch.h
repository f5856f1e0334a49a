/* scratch.h - a folder for the files of a suite, and bytes that are written into it. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "sane.h"

static char scratch_[64];

static inline int scratch_begin(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(scratch_, sizeof scratch_, "%.40s/tapegrad-XXXXXX",
             base && *base && strlen(base) <= 40 ? base : P_tmpdir);
    return mkdtemp(scratch_) ? 0 : -1;
}

/* Files in the folder, of which the names hold this. */
static inline int scratch_count(const char *part)
{
    int n = 0;
    DIR *d = opendir(scratch_);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.' && strstr(e->d_name, part);
    if (d) closedir(d);
    return n;
}

/* A path in the folder, in one of 8 rotating buffers. */
static inline const char *scratch(const char *name)
{
    static char path[8][512];
    static int turn;
    char *p = path[turn++ % 8];
    snprintf(p, sizeof *path, "%s/%s", scratch_, name);
    return p;
}

static inline int scratch_end(void **state)
{
    (void)state;
    DIR *d = opendir(scratch_);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') remove(scratch(e->d_name));
    if (d) closedir(d);
    return rmdir(scratch_);
}

/* A setup: sane_begin, and the folder without files. */
static inline int scratch_empty(void **state)
{
    int status = sane_begin(state);
    DIR *d = opendir(scratch_);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') remove(scratch(e->d_name));
    if (d) closedir(d);
    return status;
}

static inline const char *put_file(const char *name, const void *bytes, size_t n)
{
    const char *path = scratch(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* The bytes of a file; the caller frees them. */
static inline unsigned char *get_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n + 1);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

#endif
