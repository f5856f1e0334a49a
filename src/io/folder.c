/* folder.c - creates missing folders. */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <tapegrad/io.h>
#include "tensor/core.h"

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

int io_make_folder(const char *folder)
{
    static const char op[] = "io_make_folder";
    char path[PATH_MAX];
    if (!folder) return fail(TENSOR_ENULL, op, "the path is NULL");
    const int n = snprintf(path, sizeof path, "%s/", folder);
    if (n >= PATH_MAX) return fail(TENSOR_EIO, op, "%.60s...: %s", folder, strerror(ENAMETOOLONG));
    for (int i = 1; i < n; i++) {
        if (path[i] != '/') continue;
        path[i] = 0;
        if (mkdir(path, 0777) && (errno != EEXIST || !is_folder(path)))
            return fail(TENSOR_EIO, op, "%s cannot be made: %s", path, strerror(errno));
        path[i] = '/';
    }
    return 0;
}
