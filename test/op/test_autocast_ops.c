/* test_autocast_ops.c - every op of the registry inside TENSOR_AUTOCAST: the dtypes of its results are
 * PyTorch's (oracle/autocast.py), on the CPU by running it, on cuda by its class; each says a class. */
#include <stdio.h>
#include <string.h>
#include "golden.h"

enum { PATTERNS = 4, MOST_LINES = 4000 };
static const char pattern_of[PATTERNS + 1] = "sbmn"; /* all f32; all bf16; the first f32; the first bf16 */

static struct Line {
    char op[64], word[2 * PATTERNS][20];
    int at;
} line[MOST_LINES];
static int lines;

/* Where the header (autocast.h) chooses otherwise, or a word says nothing of the class. */
static const struct {
    const char *op, *why;
    bool cpu, cuda;
} exceptions[] = {
    { "gru*", "recurrent nets are AUTOCAST_LOWER as a whole", true, false },
    { "lstm_cell", "the same", true, false },
    { "local_response_norm", "in f32 whatever the rank", true, false },
    { "pinv", "in f32, and not in what its last product is", true, false },
    { "lstsq", "in f32; the cases call a function of products", true, true },
    { "to", "its cases ask for f32", false, true },
    { "float_power*", "f64", false, true },
    { "*float_power_scalar", "f64", false, true },
    { "bernoulli_*", "PyTorch's are made of binary_cross_entropy_with_logits", true, true },
    { "conv?d_grad_*", "PyTorch's takes its dtype from one operand", true, true },
    { "rotary_embedding", "the result has x's dtype, as anywhere", true, false },
    { "corrcoef", "computed in f64, as anywhere", true, false },
    { "weight_norm", "refuses two dtypes, as anywhere", true, false },
};

static bool matches(const char *text, const char *pattern)
{
    if (!*pattern) return !*text;
    if (*pattern == '*') return matches(text, pattern + 1) || (*text && matches(text + 1, pattern));
    return *text && (*pattern == '?' || *pattern == *text) && matches(text + 1, pattern + 1);
}

static bool excepted(const char *op, bool cuda)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (matches(op, exceptions[i].op) && (cuda ? exceptions[i].cuda : exceptions[i].cpu)) return true;
    return false;
}

static void read_lines(void)
{
    char text[256];
    FILE *file = fopen("test/oracle/kinds/autocast.golden", "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        struct Line *l = &line[lines];
        if (text[0] == '#') continue;
        assert_true(lines < MOST_LINES);
        assert_int_equal(sscanf(text, "%63s %d %19s %19s %19s %19s %19s %19s %19s %19s", l->op, &l->at,
                                l->word[0], l->word[1], l->word[2], l->word[3], l->word[4], l->word[5],
                                l->word[6], l->word[7]),
                         10);
        lines++;
    }
    fclose(file);
    assert_true(lines > 1000);
}

static char letter_of(const Tensor *y)
{
    static const char letter[] = "sdhb";
    return tensor_dtype_is_float(tensor_dtype(y)) ? letter[tensor_dtype(y)] : '.';
}

/* The letters of the results; "!" and the error where the call is refused. */
static void run(const GoldenCase *c, char pattern, char *letters)
{
    Tensor *x[OP_MAX_INPUTS], *y[SAMPLE_RESULTS];
    bool first = true;
    for (int i = 0; i < c->sample.n; i++) {
        bool narrow = pattern == 'b' || pattern == (first ? 'n' : 'm');
        x[i] = golden_input(c, i, narrow ? TENSOR_BF16 : TENSOR_F32);
        if (x[i] && tensor_dtype_is_float(tensor_dtype(x[i]))) first = false;
    }
    int n = -1;
    TENSOR_AUTOCAST(TENSOR_BF16) n = sample_apply(&c->sample, x, y);
    for (int k = 0; k < n; k++) letters[k] = letter_of(y[k]);
    letters[n < 0 ? 0 : n] = 0;
    if (n < 0) snprintf(letters, 300, "! %s", tensor_error());
    tensor_error_clear();
}

/* The inner product of vectors, which PyTorch takes by dot; here inner is AUTOCAST_LOWER as a whole. */
static bool is_dot(const GoldenCase *c)
{
    return strcmp(c->sample.op->name, "inner") == 0 && c->sample.input[0].ndim == 1;
}

static int check_case(const struct Line *l, const GoldenCase *c)
{
    int wrong = 0;
    for (int p = 0; p < PATTERNS; p++) {
        char letters[SAMPLE_RESULTS + 300];
        if (l->word[p][0] == '-' || excepted(l->op, false) || is_dot(c)) continue;
        TensorScope scope = tensor_scope_open();
        run(c, pattern_of[p], letters);
        tensor_scope_close(scope);
        if (strncmp(letters, l->word[p], strlen(l->word[p])) == 0)
            continue; /* a case may give the first ones */
        print_error("%s %d \"%s\", %c: %s, PyTorch's are %s\n", l->op, l->at, c->sample.text, pattern_of[p],
                    letters, l->word[p]);
        wrong++;
    }
    return wrong;
}

static void test_dtypes_on_the_cpu(void **unused)
{
    (void)unused;
    static Golden g;
    static GoldenCase c;
    int wrong = 0, seen = 0;
    assert_int_equal(golden_open(&g, "test/oracle/golden"), 0);
    for (int i = 0; i < tensor_op_count(); i++) {
        const TensorOp *op = tensor_op_at(i);
        if (!in_shard(i)) continue;
        golden_begin(&g, op);
        for (int at = 0; golden_next(&g, &c) == 1; at++)
            for (int k = 0; k < lines; k++)
                if (line[k].at == at && strcmp(line[k].op, op->name) == 0)
                    wrong += check_case(&line[k], &c), seen++;
    }
    golden_close(&g);
    assert_true(seen > 1000 / shards());
    assert_int_equal(wrong, 0);
}

/* What the class of other devices says of a word; 0: nothing. */
static char letter_by_class(const TensorOp *op, char pattern)
{
    const unsigned class = op->autocast        ? op->autocast
                           : op->row->autocast ? op->row->autocast
                                               : AUTOCAST_AS_IS;
    switch (class >> 4) {
    case AUTOCAST_LOWER & 15: return 'b';
    case AUTOCAST_F32 & 15: return 's';
    case AUTOCAST_PARTS & 15: return 0;
    default: return pattern == 'b' ? 'b' : pattern == 's' ? 's' : 0;
    }
}

static void test_dtypes_on_cuda(void **unused)
{
    (void)unused;
    int wrong = 0, seen = 0;
    for (int k = 0; k < lines; k++) {
        const TensorOp *op = tensor_op_find(line[k].op);
        assert_non_null(op);
        if (excepted(op->name, true) || op->flags & OP_NONDIFFERENTIABLE) continue;
        for (int p = 0; p < PATTERNS; p++) {
            const char want = letter_by_class(op, pattern_of[p]), *word = line[k].word[PATTERNS + p];
            for (const char *at = word; want && *word != '-' && *at; at++) {
                if (*at != '.') seen++;
                if (*at == '.' || *at == want) continue;
                print_error("%s, %c: %c by its class, PyTorch's is %s\n", op->name, pattern_of[p], want,
                            word);
                wrong++;
            }
        }
    }
    assert_true(seen > 1000);
    assert_int_equal(wrong, 0);
}

static bool is_class(unsigned nibble)
{
    return nibble >= (AUTOCAST_LOWER & 15) && nibble <= (AUTOCAST_PARTS & 15);
}

/* Do lines of PyTorch's dtypes tell the class of an op?  Comparisons and their like give no floats, and
 * nothing is rounded in them. */
static bool told_by_lines(const TensorOp *op)
{
    if (op->flags & OP_NONDIFFERENTIABLE) return true;
    for (int k = 0; k < lines; k++)
        for (int p = 0; strcmp(line[k].op, op->name) == 0 && p < 2 * PATTERNS; p++)
            if (strpbrk(line[k].word[p], "sb")) return true;
    return false;
}

/* A row may leave AUTOCAST_AS_IS out where PyTorch's dtypes hold it to that. */
static void test_every_op_says_a_class(void **unused)
{
    (void)unused;
    int wrong = 0;
    for (int i = 0; i < tensor_op_count(); i++) {
        const TensorOp *op = tensor_op_at(i);
        unsigned class = op->autocast ? op->autocast : op->row ? op->row->autocast : 0;
        if (!class && op->row && told_by_lines(op)) class = AUTOCAST_AS_IS;
        if (is_class(class & 15) && is_class(class >> 4)) continue;
        print_error("%s has no class: .autocast = AUTOCAST_...%s\n", op->name,
                    op->row ? ", or a line in autocast.golden" : "");
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    read_lines();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_says_a_class),
        cmocka_unit_test(test_dtypes_on_the_cpu),
        cmocka_unit_test(test_dtypes_on_cuda),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
