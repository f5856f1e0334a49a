/* example.h - what several examples share: data, pictures, progress.  Not part of the library. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <tapegrad.h>

/* example_mnist - MNIST from $TAPEGRAD_DATA/mnist, ./data/mnist, or downloaded there (checksums verified);
 * when all that fails, digits that the program draws itself, and a line on stderr that says so.  folder:
 * where to look first, or NULL. */
Dataset *example_mnist(const char *folder, DataSplit split);
const char *example_mnist_note(void); /* " (synthetic digits)" once it has drawn them, else "" */

/* A canvas of [3, h, w] f32 and what is drawn on it; colours are 0xRRGGBB. */
Tensor *canvas(int64_t height, int64_t width, unsigned colour);
void draw_dot(Tensor *c, double row, double column, double radius, unsigned colour);
void draw_line(Tensor *c, double row0, double column0, double row1, double column1, unsigned colour);
void draw_text(Tensor *c, int64_t row, int64_t column, int size, unsigned colour,
               const char *text); /* digits, letters, . % - / : */

/* A curve of n values over 0 .. n - 1, with labelled axes; 0 or -1. */
int plot_curve(const char *path, const char *title, const char *x_label, const char *y_label,
               const double *values, int64_t n);

double seconds(void); /* since some moment; monotonic */

#endif
