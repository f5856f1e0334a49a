/* kit.h - the suites that are one program (mk/kit.mk writes the list). */
#ifndef KIT_H
#define KIT_H

typedef struct KitSuite {
    const char *name;
    int (*main)(int argc, char **argv);
} KitSuite;
extern const KitSuite kit_suites[]; /* the last one has no name */

#endif
