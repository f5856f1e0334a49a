/* kit.c - suites NAME runs that suite; without a name lists them. */
#include "kit.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    for (const KitSuite *s = kit_suites; s->name; s++)
        if (argc < 2) puts(s->name);
        else if (strcmp(s->name, argv[1]) == 0) return s->main(argc - 1, argv + 1);
    if (argc < 2) return 0;
    fprintf(stderr, "no suite %s\n", argv[1]);
    return 2;
}
