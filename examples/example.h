/* example.h - what several examples share: data, time.  Not part of the library. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <tapegrad.h>

/* example_mnist - MNIST from $TAPEGRAD_DATA/mnist, ./data/mnist, or downloaded there (checksums verified);
 * when all that fails, digits that the program draws itself, and a line on stderr that says so.  folder:
 * where to look first, or NULL. */
Dataset *example_mnist(const char *folder, DataSplit split);
const char *example_mnist_note(void); /* " (synthetic digits)" once it has drawn them, else "" */

double seconds(void); /* since some moment; monotonic */

#endif
