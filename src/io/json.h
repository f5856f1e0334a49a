/* json.h - as much JSON as the headers of files need: objects, arrays of integers, strings. */
#ifndef TG_JSON_H
#define TG_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "hidden.h"

HIDDEN_BEGIN
typedef struct Json {
    const char *op, *path; /* for errors */
    char *at, *end;        /* what is still to be read; strings are decoded in place */
} Json;

/* json_take - skips white space; true (and passed) when c comes next.
 * json_string - the next string, decoded, which ends with a zero byte and lies in the text; NULL.
 * json_integers - an array of at most max integers that are not negative: their number, or -1.
 * json_bad - records EFORMAT: what is wrong in the header of the file; returns -1. */
bool json_take(Json *j, char c);
char *json_string(Json *j);
int json_integers(Json *j, int64_t *out, int max);
int json_bad(const Json *j, const char *what);

/* A text that grows.  json_put appends at most 200 bytes; json_put_string a string in quotes, with escapes;
 * json_put_bytes n bytes as they are.
 * Without memory the text ends up `failed`, and what is appended is dropped.  json_text_free frees it. */
typedef struct JsonText {
    char *bytes;
    size_t length, capacity;
    bool failed;
} JsonText;
void json_put(JsonText *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void json_put_string(JsonText *t, const char *text);
void json_put_bytes(JsonText *t, const void *bytes, size_t n);
void json_text_free(JsonText *t);

/* json_is_utf8 - n bytes of well-formed UTF-8? */
bool json_is_utf8(const char *text, size_t n);
HIDDEN_END

#endif
