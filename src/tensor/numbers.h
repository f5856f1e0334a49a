/* numbers.h - numbers as C writes them, whatever the program's locale says: "0.5", not "0,5".
 *
 *     const locale_t was = numbers_begin();
 *     ... strtod, snprintf of a double ...
 *     numbers_end(was); */
#ifndef TG_NUMBERS_H
#define TG_NUMBERS_H

#include <locale.h>
#include "hidden.h"

HIDDEN_BEGIN

locale_t numbers_begin(void);
void numbers_end(locale_t was);

/* read_double - strtod so. */
double read_double(const char *text, char **end);

HIDDEN_END
#endif
