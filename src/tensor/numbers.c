/* numbers.c - the C locale for this thread, while it reads or writes a number. */
#include <pthread.h>
#include <stdlib.h>
#include "numbers.h"

static locale_t plain;
static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

locale_t numbers_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain ? uselocale(plain) : (locale_t)0;
}

void numbers_end(locale_t was)
{
    if (was) uselocale(was);
}

double read_double(const char *text, char **end)
{
    const locale_t was = numbers_begin();
    const double value = strtod(text, end);
    numbers_end(was);
    return value;
}
