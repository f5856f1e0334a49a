/* json.c - a reader without recursion or allocation: a decoded string is never longer than its JSON. */
#include "tensor/core.h"
#include "json.h"

int json_bad(const Json *j, const char *what)
{
    return fail(TENSOR_EFORMAT, j->op, "%s: %s in the header", j->path, what);
}

static void skip_space(Json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r')) j->at++;
}

bool json_take(Json *j, char c)
{
    skip_space(j);
    if (j->at >= j->end || *j->at != c) return false;
    j->at++;
    return true;
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

/* Bytes of the character at p, of at most n; 0: not well-formed (a stray, overlong, surrogate or too high
 * one). */
static int character_bytes(const unsigned char *p, size_t n)
{
    if (*p < 0x80) return 1;
    int bytes = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
    if (*p < 0xc2 || *p > 0xf4 || n < (size_t)bytes) return 0;
    for (int i = 1; i < bytes; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    unsigned lead = (unsigned)p[0] << 8 | p[1];
    bool wrong = (lead >= 0xe000 && lead < 0xe0a0) || (lead >= 0xeda0 && lead < 0xee00) ||
                 (lead >= 0xf000 && lead < 0xf090) || lead >= 0xf490;
    return wrong ? 0 : bytes;
}

bool json_is_utf8(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        int bytes = character_bytes((const unsigned char *)text + i, n - i);
        if (!bytes) return false;
        i += (size_t)bytes;
    }
    return true;
}

static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) return *out++ = (char)code, out;
    if (code < 0x800) *out++ = (char)(0xc0 | code >> 6);
    else if (code < 0x10000) *out++ = (char)(0xe0 | code >> 12), *out++ = (char)(0x80 | (code >> 6 & 63));
    else
        *out++ = (char)(0xf0 | code >> 18), *out++ = (char)(0x80 | (code >> 12 & 63)),
        *out++ = (char)(0x80 | (code >> 6 & 63));
    *out++ = (char)(0x80 | (code & 63));
    return out;
}

/* ---- strings --------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The four digits after \u; -1. */
static int read_unit(Json *j)
{
    int code = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        int digit = j->at < j->end ? hex_digit(*j->at) : -1;
        if (digit < 0) return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* What follows \u: one unit, or a pair of surrogates; -1.  Zero would end the string early. */
static int read_code(Json *j)
{
    int code = read_unit(j);
    if (code <= 0 || (code >= 0xdc00 && code < 0xe000)) return -1;
    if (code < 0xd800 || code >= 0xe000) return code;
    if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u') return -1;
    j->at += 2;
    int low = read_unit(j);
    return low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : -1;
}

/* What follows a backslash; the end of what is decoded, or NULL. */
static char *read_escape(Json *j, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = j->at < j->end ? *j->at++ : 0;
    if (c == 'u') {
        int code = read_code(j);
        return code < 0 ? NULL : put_utf8(out, (unsigned)code);
    }
    const char *found = c ? strchr(from, c) : NULL;
    if (!found) return NULL;
    *out++ = to[found - from];
    return out;
}

char *json_string(Json *j)
{
    if (!json_take(j, '"')) return json_bad(j, "a string is missing"), NULL;
    char *text = j->at, *out = text;
    for (;;) {
        if (j->at >= j->end) return json_bad(j, "a string does not end"), NULL;
        char c = *j->at++;
        if (c == '"') break;
        if ((unsigned char)c < 0x20) return json_bad(j, "a control character in a string"), NULL;
        if (c != '\\') *out++ = c;
        else if (!(out = read_escape(j, out))) return json_bad(j, "a damaged escape in a string"), NULL;
    }
    *out = 0;
    return text;
}

/* ---- writing --------------------------------------------------------------------------------- */

void json_put_bytes(JsonText *t, const void *bytes, size_t n)
{
    if (t->failed) return;
    if (t->capacity - t->length < n) {
        size_t more = 2 * t->capacity + n + 256;
        char *grown = tg_grow(t->bytes, t->capacity, more);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->bytes = grown, t->capacity = more;
    }
    if (n) memcpy(t->bytes + t->length, bytes, n);
    t->length += n;
}

void json_put(JsonText *t, const char *format, ...)
{
    char text[201];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_put_bytes(t, text, (size_t)n);
}

void json_put_string(JsonText *t, const char *text)
{
    json_put_bytes(t, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') json_put(t, "\\%c", *text);
        else if ((unsigned char)*text < 0x20) json_put(t, "\\u%04x", (unsigned)*text);
        else json_put_bytes(t, text, 1);
    }
    json_put_bytes(t, "\"", 1);
}

void json_text_free(JsonText *t) { tg_free(t->bytes, t->capacity); }

/* ---- integers -------------------------------------------------------------------------------- */

static int read_integer(Json *j, int64_t *value)
{
    char *first = j->at;
    *value = 0;
    for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, *j->at - '0', value))
            return json_bad(j, "a number that is too big");
    if (j->at == first) return json_bad(j, "a number is missing or negative");
    return *first == '0' && j->at - first > 1 ? json_bad(j, "a number with a leading zero") : 0;
}

int json_integers(Json *j, int64_t *out, int max)
{
    int n = 0;
    if (!json_take(j, '[')) return json_bad(j, "an array is missing");
    if (json_take(j, ']')) return 0;
    do {
        int64_t value;
        skip_space(j);
        if (read_integer(j, &value)) return -1;
        if (n == max) return json_bad(j, "an array that is too long");
        out[n++] = value;
    } while (json_take(j, ','));
    return json_take(j, ']') ? n : json_bad(j, "an array that does not end");
}
