/* kinds.h - for the generated tests of modules and optimizers: options from a text, golden values from a file
 * of lines, and what the public headers declare. */
#ifndef KINDS_H
#define KINDS_H

#include <stdio.h>
#include <tapegrad/autograd.h>

typedef struct KindRoom { /* what lists and texts of options point to: it must live as long */
    _Alignas(16) char bytes[1024];
} KindRoom;

/* kind_options - "lr=0.1 nesterov=true" into a struct that holds defaults; a failed test names what cannot be
 * read. */
void kind_options(const OpField *fields, const void *defaults, size_t size, const char *text, void *to,
                  KindRoom *room);

/* A file of lines: a word, then the rest.  kind_line - the next line, without its end; NULL at the end of the
 * file. */
typedef struct KindFile {
    FILE *file;
    char *line;
    size_t size;
} KindFile;
KindFile kind_open(const char *path);
char *kind_line(KindFile *f, const char **rest);
void kind_close(KindFile *f);

/* kind_samples - fn("NAME|text") for each of the samples of a kind, by semicolons. */
void kind_samples(const char *name, const char *samples, void (*fn)(const char *text));

/* kind_numbers - the numbers of a text into a list of its own, which the caller frees. */
double *kind_numbers(const char *text, int64_t *count);

/* kind_golden - "NAME 2x3 values" (the name where named is true) into *g, which kind_golden_free empties. */
typedef struct KindGolden {
    char *name;
    int64_t dim[TENSOR_MAX_DIMS];
    TensorShape shape;
    double *values;
} KindGolden;
void kind_golden(KindGolden *g, const char *text, bool named);
void kind_golden_free(KindGolden *g);

/* kind_input - input k, as oracle/modules.py says: "2x3", "4@5", "4@1..6", "2x3@b", "2x3:.5..2"; NULL for
 * "-". */
Tensor *kind_input(const char *text, int k, TensorDtype dtype);

/* kind_declared - fn(ctx, "nn_linear") for every function that the headers of a folder and the header of its
 * name declare as `TAPEGRAD_API <type> *<prefix>name(` or `name_args(`; without _args. */
void kind_declared(const char *header, const char *folder, const char *type, const char *prefix,
                   void (*fn)(void *ctx, const char *name), void *ctx);

#endif
