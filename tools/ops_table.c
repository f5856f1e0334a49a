/* ops_table.c - writes docs/ops.md: the registry as a table, and what PyTorch has and we lack.
 *
 *     ops_table test/oracle/torch_names.txt test/composed.txt include/tapegrad/ *.h > docs/ops.md
 *
 * Everything is found, nothing told: an op's dtypes by running its samples in each, a public function by its
 * name in the headers. Functions that are no ops but made of ops stand in composed.txt; one that an ops_*.h
 * declares, and that is neither, is an error. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "samples.h"

/* ---- the headers, as one text ---------------------------------------------------------------- */

static char *headers;
static size_t headers_size;

static char *append_file(char *text, size_t *size, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) return perror(path), exit(1), NULL;
    long n = ftell(file);
    rewind(file);
    text = realloc(text, *size + (size_t)n + 1);
    if (!text || fread(text + *size, 1, (size_t)n, file) != (size_t)n) return perror(path), exit(1), NULL;
    *size += (size_t)n;
    text[*size] = '\0';
    fclose(file);
    return text;
}

/* Does a header declare tensor_NAME, as a function or a macro? */
static bool declared(const char *name)
{
    char word[128];
    snprintf(word, sizeof word, "tensor_%s", name);
    for (const char *at = headers; (at = strstr(at, word)) != NULL; at++) {
        char after = at[strlen(word)];
        bool begins = at == headers || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool macro = after == ' ' && at >= headers + 8 && strncmp(at - 8, "#define ", 8) == 0;
        if (begins && (after == '(' || macro)) return true;
    }
    return false;
}

/* ---- functions that are no ops --------------------------------------------------------------- */

static char *composed; /* "name | computes | in PyTorch" in lines */

static bool is_composed(const char *name)
{
    char start[128];
    snprintf(start, sizeof start, "\n%.100s | ", name);
    return strstr(composed, start) != NULL;
}

/* Is the function, less _args and the _ of a form in place, an op? */
static bool is_op(const char *name)
{
    char word[128];
    size_t length = (size_t)snprintf(word, sizeof word - 1, "%s", name);
    if (length && word[length - 1] == '_') word[--length] = '\0';
    if (length > 5 && strcmp(word + length - 5, "_args") == 0) word[length - 5] = '\0';
    if (tensor_op_find(word) || is_composed(word) || is_composed(name)) return true;
    strcat(word, "_"); /* there is only a form in place */
    return is_composed(word);
}

/* Functions that a header declares to give a tensor, or several (int): how many have no proof.  Those of
 * tensor.h and random.h make tensors, or look at them. */
static int unproven(const char *text)
{
    static const char *const start[] = { "\nTAPEGRAD_API Tensor *tensor_", "\nTAPEGRAD_API int tensor_" };
    int count = 0;
    for (int kind = 0; kind < 2; kind++)
        for (const char *at = text; (at = strstr(at, start[kind])) != NULL; at++) {
            char name[128];
            const char *word = at + strlen(start[kind]);
            snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "("), word);
            if (strchr(name, '#') || is_op(name)) continue;
            fprintf(stderr,
                    "ops_table: tensor_%s is neither an op, proven by its descriptor, nor in composed.txt\n",
                    name);
            count++;
        }
    return count;
}

static void print_composed(void)
{
    printf("| function | is | in PyTorch |\n|---|---|---|\n");
    for (const char *line = strchr(composed, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        const char *name = line + 1, *bar = strstr(name, " | "), *last = bar ? strstr(bar + 3, " | ") : NULL;
        if (*name == '#' || !last) continue;
        printf("| `tensor_%.*s` | `%.*s` | `%.*s` |\n", (int)(bar - name), name, (int)(last - bar - 3),
               bar + 3, (int)strcspn(last + 3, "\n"), last + 3);
    }
}

/* Elementwise functions are declared by their rows. */
static bool is_public(const TensorOp *op) { return op->row || declared(op->name); }

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* The dtype of result 0 when the inputs that name none have this one; -1 if no sample runs so. */
static int result_dtype(const TensorOp *op, TensorDtype dtype)
{
    const char *list = op_samples(op);
    static Sample s;
    int result = -1;
    while (result < 0 && list && sample_next(op, &list, &s) > 0) {
        Tensor *x[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
        TensorScope scope = tensor_scope_open();
        bool any = false;
        for (int i = 0; i < s.n; i++)
            if (!s.input[i].absent && !s.input[i].has_dtype)
                s.input[i].dtype = dtype, s.input[i].has_dtype = any = true;
        if (!any) /* all name theirs: take the first that may be another */
            for (int i = 0; i < s.n && !any; i++)
                if (!s.input[i].absent && s.input[i].dtype == dtype) any = true;
        if (any) {
            sample_inputs(&s, AS_WRITTEN, 1, x);
            if (sample_apply(&s, x, y) > 0) result = (int)tensor_dtype(y[0]);
        }
        tensor_error_clear();
        tensor_scope_close(scope);
    }
    return result;
}

static void print_dtypes(const TensorOp *op)
{
    static const TensorDtype order[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16,
                                         TENSOR_I64, TENSOR_I32, TENSOR_U8,  TENSOR_BOOL };
    enum { DTYPES = sizeof order / sizeof *order };
    int result[DTYPES], taken = 0, promoted = 0;
    for (int i = 0; i < DTYPES; i++) {
        result[i] = result_dtype(op, order[i]);
        taken += result[i] >= 0;
        promoted += i >= 4 && result[i] == TENSOR_F32 && result[0] == TENSOR_F32;
    }
    if (taken == DTYPES && promoted == 4) printf("all; integers and bool give f32");
    else if (taken == DTYPES) printf("all");
    else if (taken == 4 && result[3] >= 0 && result[4] < 0) printf("floats");
    else
        for (int i = 0, first = 1; i < DTYPES; i++)
            if (result[i] >= 0) printf("%s%s", first ? "" : " ", tensor_dtype_name(order[i])), first = 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void print_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|' || *text == '*' || *text == '_' || *text == '<' || *text == '\\') putchar('\\');
        putchar(*text == '\n' ? ' ' : *text);
    }
}

static void print_code(const char *before, const char *text)
{
    printf("`%s", before);
    for (; *text; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
    printf("`");
}

static void print_gradient(const TensorOp *op)
{
    const char *const *part = op->row ? op->row->gradient : NULL;
    if (op->flags & OP_NONDIFFERENTIABLE) printf("none");
    else if (op->gradient) print_code("", op->gradient);
    else if (part && part[0]) {
        print_code(part[1] ? "da = " : "dx = ", part[0]);
        if (part[1]) printf(", "), print_code("db = ", part[1]);
    }
}

static char *torch_names; /* "space: name name ..." in lines */

/* Is this word (of n characters) among the names of a space? */
static bool in_space(const char *space, const char *word, int n)
{
    char start[64], full[128];
    snprintf(start, sizeof start, "\n%s: ", space);
    const char *line = strstr(torch_names, start), *end = line ? strchr(line + 1, '\n') : NULL;
    int length = snprintf(full, sizeof full, " %.*s", n < 100 ? n : 100, word);
    for (const char *at = line; at && (at = strstr(at, full)) != NULL && (!end || at < end); at++)
        if (at[length] == ' ' || at[length] == '\n' || at[length] == '\0') return true;
    return false;
}

/* Prints where PyTorch has this name, without _scalar or _tensor where it takes both by one; - for nowhere.
 */
static void print_torch_name(const char *name)
{
    static const char *const spaces[] = { "torch", "torch.nn.functional", "torch.Tensor", "torch.special",
                                          "torch.linalg" };
    const char *last = strrchr(name, '_');
    const bool by_one = last && (strcmp(last, "_scalar") == 0 || strcmp(last, "_tensor") == 0);
    const int length[] = { (int)strlen(name), by_one ? (int)(last - name) : 0 };
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof spaces / sizeof *spaces && length[k]; i++)
            if (in_space(spaces[i], name, length[k])) {
                printf("`%s.%.*s`", spaces[i], length[k], name);
                return;
            }
    printf("-");
}

static void print_op(const TensorOp *op)
{
    printf("| ");
    print_code(is_public(op) ? "tensor_" : "", op->name);
    printf(" | ");
    print_cell(op->summary);
    if (op->row) printf(", "), print_code("y = ", op->row->formula);
    printf(" | ");
    print_gradient(op);
    printf(" | ");
    print_dtypes(op);
    printf(" | ");
    if (!op_torch(op)) print_torch_name(op->name);
    else if (strcmp(op_torch(op), "-") == 0) printf("-");
    else print_code("torch.", op_torch(op));
    printf(" |\n");
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const TensorOp *const *)a)->name, (*(const TensorOp *const *)b)->name);
}

static void print_ops(bool public)
{
    int n = tensor_op_count(), shown = 0;
    const TensorOp **op = malloc((size_t)n * sizeof *op);
    if (!op) exit(1);
    for (int i = 0; i < n; i++)
        if (is_public(tensor_op_at(i)) == public) op[shown++] = tensor_op_at(i);
    qsort(op, (size_t)shown, sizeof *op, by_name);
    printf("%d ops.\n\n| op | computes | gradient | dtypes | in PyTorch |\n|---|---|---|---|---|\n", shown);
    for (int i = 0; i < shown; i++) print_op(op[i]);
    free(op);
}

/* ---- what we lack ---------------------------------------------------------------------------- */

/* A function of a name space is ours as tensor_NAME, in place as tensor_NAME_, or with the name space before
 * it: tensor_linalg_NAME. */
static bool have(const char *space, const char *name)
{
    char full[160];
    const char *last = strrchr(space, '.');
    if (strcmp(name, "apply") == 0 || strcmp(name, "set") == 0)
        return false; /* tensor_apply and tensor_set are something else */
    if (declared(name) || tensor_op_find(name)) return true;
    snprintf(full, sizeof full, "%s_", name);
    if (declared(full)) return true;
    snprintf(full, sizeof full, "%s_%s", last ? last + 1 : space, name);
    return declared(full);
}

static void print_missing(char *names)
{
    char *line = strtok(names, "\n");
    if (!line) exit(1);
    printf("Against %s, of the functions that it lists as its tensor operations; a name counts as here when "
           "a function of that name is, whatever its name space:\n\n| name space | there | here | not here "
           "|\n|---|---|---|---|\n",
           line);
    char *lines[32];
    int n = 0;
    while (n < 32 && (line = strtok(NULL, "\n")) != NULL) lines[n++] = line;
    for (int i = 0; i < n; i++) {
        char *colon = strchr(lines[i], ':'), *missing = calloc(strlen(lines[i]) * 2 + 1, 1);
        if (!colon || !missing) exit(1);
        *colon = '\0';
        int there = 0, here = 0;
        for (char *name = strtok(colon + 1, " "); name; name = strtok(NULL, " ")) {
            there++;
            if (have(lines[i], name)) here++;
            else strcat(strcat(missing, *missing ? " " : ""), name);
        }
        printf("| %s | %d | %d | ", lines[i], there, here);
        print_cell(missing);
        printf(" |\n");
        free(missing);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: ops_table TORCH_NAMES COMPOSED HEADER ...\n"), 2;
    size_t names_size = 0, composed_size = 0;
    int bad = 0;
    char *names = append_file(NULL, &names_size, argv[1]);
    torch_names = names;
    composed = append_file(NULL, &composed_size, argv[2]);
    for (int i = 3; i < argc; i++) {
        const size_t from = headers_size;
        headers = append_file(headers, &headers_size, argv[i]);
        if (strstr(argv[i], "/ops")) bad += unproven(headers + from);
    }
    if (bad) return 1;
    printf("# Ops\n\nMade by `make docs/ops.md` from the descriptors; do not edit. x, a, b are operands, y "
           "is the result, g (or dy) the gradient at y. "
           "\"floats\" are f32, f64, f16 and bf16; halves compute in f32.\n\n## Public\n\n");
    print_ops(true);
    printf(
        "\n## Made of these\n\nFunctions that call the ops above, and have their gradients and dtypes.\n\n");
    print_composed();
    printf("\n## Parts of others\n\nGradients that are ops themselves, so that they have gradients too; "
           "reached through `tensor_op_find`.\n\n");
    print_ops(false);
    printf("\n## What PyTorch has and we lack\n\n");
    print_missing(names);
    free(names), free(composed), free(headers);
    return 0;
}
