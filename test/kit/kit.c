/* kit.c - suites NAME runs that suite, as does the program under that name; without one, lists them. */
#include "kit.h"
#include <stdio.h>
#include <string.h>

static const KitSuite *find(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (const KitSuite *s = kit_suites; s->name; s++)
        if (strcmp(s->name, name) == 0) return s;
    return NULL;
}

int main(int argc, char **argv)
{
    const KitSuite *own = find(argv[0]), *named = argc > 1 ? find(argv[1]) : NULL;
    if (own) return own->main(argc, argv);
    if (named) return named->main(argc - 1, argv + 1);
    for (const KitSuite *s = kit_suites; s->name; s++) puts(s->name);
    if (argc < 2) return 0;
    fprintf(stderr, "no suite %s\n", argv[1]);
    return 2;
}
