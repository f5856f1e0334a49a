/* test_io_answers.c - what the readers answer to a file with one byte of its header changed (answers.h). */
#include "answers.h"
#include "scratch.h"

/* The text without the file's path. */
static const char *shown(const char *text, const char *path)
{
    static char line[2000];
    const char *at = strstr(text, path);
    if (!at) return text;
    snprintf(line, sizeof line, "%.*sFILE%s", (int)(at - text), text, at + strlen(path));
    return line;
}

/* ---- safetensors ----------------------------------------------------------------------------- */

static const char *load(const char *header, size_t n, const char *data, size_t bytes)
{
    static char line[2000];
    char file[1024];
    const size_t room = n + 8;
    for (int i = 0; i < 8; i++) file[i] = (char)(n >> 8 * i & 255);
    memcpy(file + 8, header, n);
    memcpy(file + room, data, bytes);
    const char *path = put_file("answers.safetensors", file, room + bytes);
    TensorScope scope = tensor_scope_open();
    TensorDict d = io_load_safetensors(path);
    size_t used = 0;
    *line = 0;
    for (int i = 0; i < d.count; i++) {
        used += (size_t)snprintf(line + used, sizeof line - used, "%s ", d.item[i].name);
        used += answers_result(line + used, sizeof line - used, d.item[i].tensor);
    }
    const char *text = d.count < 0 ? shown(answers_error("io_load_safetensors"), path) : line;
    nn_dict_free(d);
    tensor_scope_close(scope);
    return text;
}

static const char header[] =
    "{\"__metadata__\":{\"a\":\"b\\n\"},\"w\\u00e9\":{\"dtype\":\"U8\",\"shape\":[2,10],"
    "\"data_offsets\":[4,24]},\"s\":{\"dtype\":\"F32\",\"shape\":[],"
    "\"data_offsets\":[0,4]}} ";
static const char data[] = "\0\0\x80?abcdefghijklmnopqrst";

static void safetensors(void)
{
    static const char put[] = "\"\\{}[]:,0 \x01\xc3";
    const size_t n = sizeof header - 1, bytes = sizeof data - 1;
    char changed[sizeof header + 8];
    answers_about("safetensors");
    answer("as it is", "", load(header, n, data, bytes));
    for (size_t at = 0; at < n; at++) {
        char where[24];
        snprintf(where, sizeof where, "byte %zu '%c'", at, header[at]);
        answer(where, "ends", load(header, at, data, bytes));
        memcpy(changed, header, at), memcpy(changed + at, header + at + 1, n - at - 1);
        answer(where, "gone", load(changed, n - 1, data, bytes));
        for (const char *c = put; *c; c++) {
            char value[8];
            snprintf(value, sizeof value, *c >= ' ' ? "'%c'" : "%02x", *c & 255);
            memcpy(changed, header, n + 1), changed[at] = *c;
            answer(where, value, load(changed, n, data, bytes));
        }
    }
    answer("data", "shorter", load(header, n, data, bytes - 1));
    answer("data", "longer", load(header, n, data, bytes + 1));
}

/* ---- idx ------------------------------------------------------------------------------------- */

static void idx(void)
{
    static const unsigned char file[] = { 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8 };
    const size_t n = 18;
    answers_about("idx");
    for (size_t at = 0; at < 12; at++)
        for (int v = 0; v < 20; v++) {
            unsigned char changed[sizeof file];
            char where[24], value[8];
            memcpy(changed, file, sizeof file), changed[at] = (unsigned char)(v < 18    ? v
                                                                              : v == 18 ? 128
                                                                                        : 255);
            snprintf(where, sizeof where, "byte %zu", at), snprintf(value, sizeof value, "%d", changed[at]);
            const char *path = put_file("answers.idx", changed, n);
            TensorScope scope = tensor_scope_open();
            Tensor *x = io_read_idx(path);
            char text[200];
            if (x) answers_result(text, sizeof text, x);
            answer(where, value, x ? text : shown(answers_error("io_read_idx"), path));
            tensor_scope_close(scope);
        }
    for (size_t length = 0; length <= sizeof file; length++) {
        char value[8];
        const char *path = put_file("answers.idx", file, length);
        TensorScope scope = tensor_scope_open();
        Tensor *x = io_read_idx(path);
        snprintf(value, sizeof value, "%zu", length);
        answer("bytes", value, x ? "read" : shown(answers_error("io_read_idx"), path));
        tensor_scope_close(scope);
    }
}

int main(int argc, char **argv)
{
    if (scratch_begin(NULL)) return 1;
    answers_begin(argc, argv, "test/io/answers.golden");
    safetensors();
    idx();
    return scratch_end(NULL) || answers_end();
}
