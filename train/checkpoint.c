/* checkpoint.c - a folder of files; a resume loads the newest whole one.
 *
 * Files are numbered in the order they are written: the highest number is the newest, even if a run resumed
 * from an older file because the newest was damaged. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checkpoint.h"

enum { VERSION = 1 };
#define FORMAT "tapegrad checkpoint"
static const char format_version[] = "1";

const IoCheckpointArgs io_checkpoint_defaults = { IO_CHECKPOINT_DEFAULTS };

/* ---- making and freeing ---------------------------------------------------------------------- */

static int add_parts(Checkpoint *run, const IoCheckpointArgs *args)
{
    if (args->module && io_checkpoint_module(run, "model", args->module)) return -1;
    if (args->optimizer && io_checkpoint_optimizer(run, "optimizer", args->optimizer)) return -1;
    if (args->scheduler && io_checkpoint_scheduler(run, "scheduler", args->scheduler)) return -1;
    if (args->scaler && io_checkpoint_scaler(run, "scaler", args->scaler)) return -1;
    if (args->averaged && io_checkpoint_averaged(run, "averaged", args->averaged)) return -1;
    if (args->loader && io_checkpoint_loader(run, "loader", args->loader)) return -1;
    return io_checkpoint_generator(run, "rng", tensor_default_generator());
}

Checkpoint *io_checkpoint_args(IoCheckpointArgs args)
{
    static const char op[] = "io_checkpoint";
    if (TENSOR_CHECK_OPTIONS(op, args, io_checkpoint_defaults) || tensor_error_code()) return NULL;
    if (!args.folder) return tensor_fail(TENSOR_ENULL, op, "the folder is NULL"), NULL;
    if (args.keep < 1) return tensor_fail(TENSOR_EVALUE, op, "keep %d: at least 1", args.keep), NULL;
    Checkpoint *run = calloc(1, sizeof *run);
    if (run) run->folder = strdup(args.folder);
    if (!run || !run->folder) checkpoint_no_memory(op);
    if (run && run->folder && !add_parts(run, &args)) {
        run->keep = args.keep;
        return run;
    }
    io_checkpoint_free(run);
    return NULL;
}

void io_checkpoint_free(Checkpoint *run)
{
    if (!run) return;
    for (int i = 0; i < run->parts; i++) {
        nn_dict_free(run->part[i]->own);
        free(run->part[i]->name), free(run->part[i]);
    }
    for (int i = 0; i < run->numbers; i++) free(run->number[i].name);
    free(run->part), free(run->number), free(run->folder);
    free(run);
}

const char *io_checkpoint_path(const Checkpoint *run) { return run && *run->path ? run->path : NULL; }
const char *io_checkpoint_note(const Checkpoint *run) { return run ? run->note : ""; }

/* ---- the folder ------------------------------------------------------------------------------ */

typedef struct Files {
    long *number; /* ascending */
    int count;
} Files;

static int by_number(const void *a, const void *b)
{
    const long *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* checkpoint-00000012.safetensors: 12; -1: another file. */
static long number_of(const char *name)
{
    static const char prefix[] = "checkpoint-", suffix[] = ".safetensors";
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1)) return -1;
    size_t n = strspn(digits, "0123456789");
    return n >= 8 && n < 18 && strcmp(digits + n, suffix) == 0 ? strtol(digits, NULL, 10) : -1;
}

static int path_of(const Checkpoint *run, long number, char *path, const char *function)
{
    if (snprintf(path, PATH_MAX, "%s/checkpoint-%08ld.safetensors", run->folder, number) < PATH_MAX) return 0;
    return tensor_fail(TENSOR_EIO, function, "%.60s...: %s", run->folder, strerror(ENAMETOOLONG));
}

static int add_file(Files *files, long number, const char *function)
{
    long *grown = realloc(files->number, (size_t)(files->count + 1) * sizeof *grown);
    if (!grown) return checkpoint_no_memory(function);
    files->number = grown;
    files->number[files->count++] = number;
    return 0;
}

/* No folder has no files. */
static int list_files(const Checkpoint *run, Files *files, const char *function)
{
    int status = 0;
    *files = (Files){ 0 };
    DIR *folder = opendir(run->folder);
    if (!folder && errno == ENOENT) return 0;
    if (!folder)
        return tensor_fail(TENSOR_EIO, function, "%s cannot be read: %s", run->folder, strerror(errno));
    for (struct dirent *e; !status && (e = readdir(folder)) != NULL;) {
        long number = number_of(e->d_name);
        if (number >= 0) status = add_file(files, number, function);
    }
    closedir(folder);
    if (files->count) qsort(files->number, (size_t)files->count, sizeof *files->number, by_number);
    if (status) free(files->number);
    return status;
}

static int make_folder(const Checkpoint *run, const char *function)
{
    const char *outer = tensor_compose_begin(function);
    const int status = io_make_folder(run->folder);
    tensor_compose_end(outer);
    return status;
}

/* Our files begin with these bytes after the header's length.  Other files with such a name are not
 * removed. */
static bool is_ours(const char *path)
{
    static const char begin[] = "{\"__metadata__\":{\"crc32c\":\"", next[] = "\",\"format\":\"" FORMAT "\"";
    enum { LENGTH = 8, DIGITS = 8, AT = LENGTH + sizeof begin - 1, THEN = AT + DIGITS };
    char head[THEN + sizeof next - 1];
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    return n == sizeof head && memcmp(head + LENGTH, begin, sizeof begin - 1) == 0 &&
           memcmp(head + THEN, next, sizeof next - 1) == 0;
}

/* Removes files beyond the newest .keep, not counting those that the last resume skipped. */
static void remove_oldest(const Checkpoint *run, const Files *before)
{
    char path[PATH_MAX];
    int kept = 1;
    for (int i = before->count - 1; i >= 0; i--) {
        const long number = before->number[i];
        if (kept < run->keep) kept += number <= run->skipped[0] || number > run->skipped[1];
        else if (!path_of(run, number, path, "io_checkpoint_save") && is_ours(path)) unlink(path);
    }
}

/* ---- out ------------------------------------------------------------------------------------- */

static int put(TensorDict *out, const char *part, const char *name, Tensor *t)
{
    static const char op[] = "io_checkpoint_save";
    if (out->count == out->capacity) {
        int more = out->capacity ? 2 * out->capacity : 64;
        TensorDictItem *grown = realloc(out->item, (size_t)more * sizeof *grown);
        if (!grown) return checkpoint_no_memory(op);
        out->item = grown, out->capacity = more;
    }
    size_t size = strlen(part) + strlen(name) + 2;
    char *full = malloc(size);
    if (!full) return checkpoint_no_memory(op);
    snprintf(full, size, "%s.%s", part, name);
    out->item[out->count++] = (TensorDictItem){ full, tensor_retain(t) };
    return 0;
}

static int put_part(TensorDict *out, const Part *p)
{
    TensorDict dict = p->save(p->ctx);
    if (dict.count < 0 && !tensor_error_code())
        tensor_fail(TENSOR_EUSER, "io_checkpoint_save", "the part \"%s\" gave no state", p->name);
    if (dict.count < 0 || tensor_error_code()) return -1;
    for (int i = 0; i < dict.count; i++)
        if (put(out, p->name, dict.item[i].name, dict.item[i].tensor)) return -1;
    return 0;
}

static int put_number(TensorDict *out, const Number *n)
{
    const void *value = n->i ? (const void *)n->i : n->d;
    Tensor *t = tensor_from_data(value, SHAPE(), n->i ? TENSOR_I64 : TENSOR_F64);
    return t ? put(out, "scalars", n->name, t) : -1;
}

/* The list of parts, "model.optimizer.rng" (names have no dot), because an empty part has no entry. */
static int name_parts(const Checkpoint *run, IoMetadata *texts)
{
    size_t size = 1, n = 0;
    for (int i = 0; i < run->parts; i++) size += strlen(run->part[i]->name) + 1;
    char *names = calloc(1, size);
    if (!names) return checkpoint_no_memory("io_checkpoint_save");
    for (int i = 0; i < run->parts; i++)
        n += (size_t)snprintf(names + n, size - n, "%s%s", i ? "." : "", run->part[i]->name);
    const int status = io_metadata_set(texts, "format", FORMAT) ||
                       io_metadata_set(texts, "version", format_version) ||
                       io_metadata_set(texts, "parts", names);
    free(names);
    return status ? -1 : 0;
}

static int collect(const Checkpoint *run, TensorDict *out)
{
    int status = 0;
    for (int i = 0; i < run->parts && !status; i++) status = put_part(out, run->part[i]);
    for (int i = 0; i < run->numbers && !status; i++) status = put_number(out, &run->number[i]);
    return status;
}

/* An error of the reader or the writer becomes the function's that was called. */
static void rename_error(const char *function)
{
    TensorStatus code;
    char *text = checkpoint_take_error(&code), *colon = text ? strstr(text, ": ") : NULL;
    tensor_fail(code, function, "%s", colon ? colon + 2 : "out of memory");
    free(text);
}

static int write_file(const Checkpoint *run, const char *path)
{
    TensorDict dict = { 0 };
    IoMetadata texts = { 0 };
    TensorScope scope = tensor_scope_open();
    int status = collect(run, &dict) || name_parts(run, &texts) ? -1 : 0;
    if (!status && io_save_safetensors(path, dict, .metadata = texts, .checksum = true)) {
        rename_error("io_checkpoint_save");
        status = -1;
    }
    tensor_scope_close(scope);
    io_metadata_free(texts);
    nn_dict_free(dict);
    return status;
}

int io_checkpoint_save(Checkpoint *run)
{
    static const char op[] = "io_checkpoint_save";
    char path[PATH_MAX];
    Files files;
    if (checkpoint_check(run, op) || tensor_error_code()) return -1;
    if (make_folder(run, op) || list_files(run, &files, op)) return -1;
    long next = files.count ? files.number[files.count - 1] + 1 : 1;
    int status = path_of(run, next, path, op) || checkpoint_swap_out(run);
    if (!status) status = write_file(run, path);
    status = checkpoint_swap_in(run, status ? -1 : 0);
    if (!status) {
        remove_oldest(run, &files);
        strcpy(run->path, path);
    }
    free(files.number);
    return status;
}

int io_checkpoint_probe(Checkpoint *run)
{
    static const char op[] = "io_checkpoint_probe";
    char path[PATH_MAX];
    if (checkpoint_check(run, op) || tensor_error_code() || make_folder(run, op)) return -1;
    const int n = snprintf(path, sizeof path, "%s/probe-XXXXXX", run->folder);
    if (n >= PATH_MAX) errno = ENAMETOOLONG;
    const int file = n >= PATH_MAX ? -1 : mkstemp(path);
    if (file < 0)
        return tensor_fail(TENSOR_EIO, op, "%s cannot be written to: %s", run->folder, strerror(errno));
    close(file), unlink(path);
    return 0;
}

/* ---- in -------------------------------------------------------------------------------------- */

typedef enum Found { WHOLE, BROKEN, FAILED } Found; /* FAILED: an older file is no remedy */

static Found check_version(const char *version, const char *path, const char *function)
{
    char *end;
    const long found = version ? strtol(version, &end, 10) : 0;
    if (!version)
        return tensor_fail(TENSOR_EFORMAT, function, "%s is damaged: it names no version", path), BROKEN;
    if (end == version || *end || found < 1)
        return tensor_fail(TENSOR_EFORMAT, function, "%s is damaged: \"%.40s\" is no version", path, version),
               BROKEN;
    if (found <= VERSION) return WHOLE;
    return tensor_fail(TENSOR_EFORMAT, function, "%s is of version %ld: a newer one than this library's, %s",
                       path, found, format_version),
           FAILED;
}

static Found check_format(IoMetadata texts, const char *path, const char *function)
{
    const char *format = io_metadata_get(texts, "format");
    if (!format || strcmp(format, FORMAT))
        return tensor_fail(TENSOR_EFORMAT, function, "%s is no checkpoint", path), BROKEN;
    if (!io_metadata_get(texts, "crc32c"))
        return tensor_fail(TENSOR_EFORMAT, function, "%s is damaged: it has lost its checksum", path), BROKEN;
    return check_version(io_metadata_get(texts, "version"), path, function);
}

static Found load_file(Checkpoint *run, const char *path, const char *function)
{
    IoMetadata texts = { 0 };
    TensorDict dict = io_load_safetensors(path, .metadata = &texts);
    if (dict.count < 0) {
        rename_error(function);
        return tensor_error_code() == TENSOR_EFORMAT || tensor_error_code() == TENSOR_EIO ? BROKEN : FAILED;
    }
    TensorScope scope = tensor_scope_open();
    Found found = check_format(texts, path, function);
    if (found == WHOLE &&
        checkpoint_apply(run, &(CheckpointFile){ path, io_metadata_get(texts, "parts"), dict }, function))
        found = FAILED;
    tensor_scope_close(scope);
    if (found == WHOLE) snprintf(run->path, sizeof run->path, "%s", path);
    io_metadata_free(texts);
    nn_dict_free(dict);
    return found;
}

int io_checkpoint_load(Checkpoint *run, const char *path)
{
    static const char op[] = "io_checkpoint_load";
    if (checkpoint_check(run, op) || tensor_error_code()) return -1;
    if (!path) return tensor_fail(TENSOR_ENULL, op, "the path is NULL");
    const int status = checkpoint_swap_out(run) || load_file(run, path, op) != WHOLE ? -1 : 0;
    return checkpoint_swap_in(run, status);
}

/* The error of a file that is skipped becomes a line of the note. */
static void note_error(Checkpoint *run, const char *function)
{
    size_t used = strlen(run->note), prefix = strlen(function) + 2;
    const char *text = tensor_error();
    snprintf(run->note + used, sizeof run->note - used, "skipped %.*s\n", (int)strcspn(text + prefix, "\n"),
             text + prefix);
    tensor_error_clear();
}

int io_checkpoint_resume(Checkpoint *run)
{
    static const char op[] = "io_checkpoint_resume";
    char path[PATH_MAX];
    Files files;
    if (checkpoint_check(run, op) || tensor_error_code()) return -1;
    if (list_files(run, &files, op)) return -1;
    Found found = checkpoint_swap_out(run) ? FAILED : BROKEN;
    run->note[0] = 0;
    run->skipped[1] = files.count ? files.number[files.count - 1] : 0;
    for (int i = files.count - 1; i >= 0 && found == BROKEN; i--) {
        run->skipped[0] = files.number[i];
        found = path_of(run, files.number[i], path, op) ? FAILED : load_file(run, path, op);
        if (found == BROKEN) note_error(run, op);
    }
    free(files.number);
    if (checkpoint_swap_in(run, 0)) return -1;
    if (found != BROKEN) return found == WHOLE ? 1 : -1;
    if (!files.count) return 0;
    return tensor_fail(TENSOR_EFORMAT, op, "none of %d files in %s is whole:\n%s", files.count, run->folder,
                       run->note);
}
