/* macros.c - the macros of the headers that fill no options struct, as a user's program has them, for
 * test/headers.sh.  test/foreign/every_macro.py generates the others, and says which one is missing here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <tapegrad.h>
#include <tapegrad/cmocka.h>

#if TAPEGRAD_VERSION_MAJOR < 0 || TAPEGRAD_VERSION_MINOR < 0 || TAPEGRAD_VERSION_PATCH < 0
#error TAPEGRAD_VERSION
#endif

Tensor *shapes(Tensor *const *array, int n);
Tensor *shapes(Tensor *const *array, int n)
{
    static const float values[] = { 1, 2, 3, 4 };
    Tensor *x = tensor_from_data(values, SHAPE(2, 2), TENSOR_F32), *one = tensor_scalar(1, TENSOR_F32);
    x = tensor_reshape(tensor_sum(tensor_sum(x, -1, .keepdim = true), .dims = DIMS()), SHAPE());
    x = tensor_add(tensor_stack(TENSORS(x, one)), tensor_cat(TENSOR_LIST(array, n), 0));
    x = tensor_rsub(tensor_swapaxes(x, 0, 1), tensor_swapdims(x, 0, -1));
    x = tensor_index(tensor_special_polygamma(1, x), "%d, %d:", 0, n);
    x = tensor_index_set(tensor_index_set_(x, one, "0"), one, "%T", x);
    return tensor_index_accumulate_(tensor_index_set_scalar_(x, 2, "..."), one, "0");
}

Tensor *dtypes(Tensor *x);
Tensor *dtypes(Tensor *x)
{
    x = tensor_float(tensor_double(tensor_half(tensor_bfloat16(x))));
    x = tensor_long(tensor_int(tensor_byte(tensor_bool(x))));
    if (tensor_is_floating_point(x) && tensor_element_size(x) > sizeof(float)) x = tensor_cuda(x);
    return tensor_type_as(tensor_cpu(x), x);
}

Tensor *blocks(Tensor *x, bool leave);
Tensor *blocks(Tensor *x, bool leave)
{
    TENSOR_NO_GRAD
        TENSOR_ENABLE_GRAD
            x = tensor_neg(x);
    TENSOR_AUTOCAST(TENSOR_BF16, .enabled = leave)
    {
        TENSOR_AUTOCAST_OFF x = tensor_neg(x);
        if (leave) return x;
    }
    TENSOR_AUTOCAST(TENSOR_F16)
    TENSOR_SAVED_HOOKS(tensor_save_in(TENSOR_BF16))
    TENSOR_SAVED_HOOKS((TensorSavedHooks){ 0 })
    TENSOR_PROFILE("data") TENSOR_COPY_STREAM("cpu") x = tensor_neg(x);
    return x;
}

/* ---- ops and rows ------------------------------------------------------------------------------ */

OP_UNARY(cube, "x^3", x *x *x, g * 3 * x * x, KEEP_X, -2, 2);
OP_UNARY1(scaled, "c x", c, 2, c *x, g *c, KEEP_NONE, -2, 2, .autocast = AUTOCAST_AS_IS);
OP_UNARY2(affine, "c x + d", c, 1, d, 0, c *x + d, g *c, KEEP_NONE, -2, 2);
OP_BINARY(both, "a b", a *b, g *b, KEEP_B, g *a, KEEP_A, -2, 2);
OP_BINARY1(blend, "a + c b", c, 1, a + c * b, g, KEEP_NONE, g *c, KEEP_NONE, -2, 2, .rules = ROW_NOT_ZERO);

typedef struct ShiftArgs {
    Tensor *input;
    double by;
    int64_t times;
    TensorByName by_name;
    TensorDtype dtype;
    enum Way { LEFT, RIGHT } way;
    TensorFromDefaults from_defaults;
} ShiftArgs;
static const ShiftArgs shift_defaults = { .by = 1, TENSOR_BY_NAME, TENSOR_FROM_DEFAULTS };
static const char *const ways[] = { "left", "right", NULL };
static const OpField shift_fields[] = { OP_REQUIRED(ShiftArgs, times),
                                        OP_OPTION(ShiftArgs, by),
                                        OP_CHOICE(ShiftArgs, way, ways),
                                        OP_DTYPE(ShiftArgs, dtype),
                                        { 0 } };
static const TensorOp shift = { .name = "shift",
                                .summary = "x + by",
                                .arity = 1,
                                .keep = KEEP_INPUT(0) | KEEP_OUTPUT(0),
                                .autocast = AUTOCAST_CPU_CUDA(AS_IS, F32),
                                .params = sizeof(ShiftArgs),
                                .defaults = &shift_defaults,
                                .fields = shift_fields };
const TensorOp *ops(int i);
const TensorOp *ops(int i)
{
    static const TensorOp *const all[] = { &cube, &scaled, &affine, &both, &blend, &shift };
    ShiftArgs options = shift_defaults;
    options.from_defaults = TENSOR_DEFAULTS_MARK, options.by_name = TENSOR_BY_NAME_MARK;
    return TENSOR_CHECK_OPTIONS("shift", options, shift_defaults) ? NULL : all[i];
}

Tensor *checked(Tensor **in, int n, void *ctx);
Tensor *checked(Tensor **in, int n, void *ctx)
{
    (void)ctx, (void)n;
    return tensor_gradcheck(&cube, in[0]) || tensor_gradgradcheck(&both, in[0], in[1]) ? NULL : in[0];
}
Tensor *checkpointed(Tensor *x, Tensor *y);
Tensor *checkpointed(Tensor *x, Tensor *y)
{
    return tensor_add(tensor_checkpoint(checked, NULL, x), tensor_checkpoint(checked, NULL, x, y));
}

const char *status_name(int status);
const char *status_name(int status)
{
#define NAME(name, text) \
    if (status == name) return text;
    TENSOR_STATUS_LIST(NAME)
#undef NAME
    return TAPEGRAD_VERSION;
}

/* ---- modules ----------------------------------------------------------------------------------- */

typedef struct Block {
    Module base;
    Module *inner, *next;
    Tensor *scale, *shift, *mask, *seen;
} Block;

static Tensor *block_forward(Module *self, Tensor *x)
{
    Block *b = (Block *)self;
    return tensor_mul(nn_forward(b->inner, x), nn_forward(b->next, x, b->scale));
}
static void block_call(Module *self, NNCall *c) { c->out[0] = block_forward(self, c->in[0]); }

Module *block(int width);
Module *block(int width)
{
    Block *b = nn_new(Block, "Block", block_forward), *other = nn_new(Block, "Block", block_call);
    NN_CHILD(b, inner, nn_linear(width, width));
    NN_PARAMETER(b, scale, tensor_ones(SHAPE(width), TENSOR_F32));
    NN_BUFFER(b, mask, tensor_ones(SHAPE(width), TENSOR_F32));
    NN_BUFFER(b, seen, tensor_ones(SHAPE(width), TENSOR_F32), .persistent = false);
    b->shift = nn_register_parameter(b, "shift", tensor_ones(SHAPE(width), TENSOR_F32));
    b->mask = nn_register_buffer(b, "other", tensor_ones(SHAPE(width), TENSOR_F32));
    b->next = nn_child(b, "next", nn_done(other));
    nn_append(b, nn_retain(NN_MODULE(b->next)));
    return nn_done(b);
}

Module *nets(TensorDict published);
Module *nets(TensorDict published)
{
    Tensor *rows = tensor_ones(SHAPE(5, 3), TENSOR_F32);
    Module *list = nn_module_list(block(1), block(2)), *empty = nn_module_list();
    Module *tensors = nn_parameter_list(rows), *named = nn_parameter_dict({ "rows", rows });
    Module *net = nn_sequential(
        nn_module_dict({ "list", list }, { "empty", empty }, { "tensors", tensors }, { "named", named }),
        nn_lazy_linear(10), nn_linear(NN_LAZY, 10, .bias = false), nn_relu(),
        nn_embedding(5, 3, .padding_idx = TENSOR_NO_PADDING), nn_embedding_from_pretrained(rows),
        nn_embedding_from_pretrained(rows, .freeze = false), nn_adaptive_max_pool1d(1),
        nn_adaptive_max_pool2d(1, 2, .return_indices = true), nn_adaptive_max_pool2d(1, 2),
        nn_adaptive_max_pool3d(1, 2, 3), nn_upsampling_nearest2d(.scale_factor = 2),
        nn_upsampling_bilinear2d(.scale_factor = 2));
    Module *pads = nn_sequential(
        nn_zero_pad1d(1), nn_zero_pad2d(1), nn_zero_pad3d(1), nn_constant_pad1d(1, 0.5),
        nn_constant_pad2d(1, 0.5), nn_constant_pad3d(1, 0.5), nn_reflection_pad1d(1), nn_reflection_pad2d(1),
        nn_reflection_pad3d(1), nn_replication_pad1d(1), nn_replication_pad2d(1), nn_replication_pad3d(1),
        nn_circular_pad1d(1), nn_circular_pad2d(1), nn_circular_pad3d(1), nn_sequential());
    Tensor *logits, *loss;
    nn_call(net, .in = { rows, rows }, .out = { &logits, &loss });
    const NNRename *names = NN_NAMES(NN_RENAME("module.", ""), NN_RENAME("attn.bias", NULL),
                                     NN_RENAME("c_attn.weight", "in_proj_weight", .transpose = true));
    if (nn_load_state_dict(net, published, .names = names)) return pads;
    nn_load_state_dict(net, published, .strict = false, .names = NN_NAMES(NN_RENAME("h.*.ln_1", "b.*.n1")));
    return net;
}

/* ---- training ---------------------------------------------------------------------------------- */

int train(Module *net, Optimizer *optimizer, DataLoader *loader, CsvLog *log);
int train(Module *net, Optimizer *optimizer, DataLoader *loader, CsvLog *log)
{
    const TensorList list = nn_parameters(net);
    optim_options(optimizer, 0, OptimSgdArgs)->lr = 0.1;
    tensor_fused_sgd_(TENSOR_FUSED_LISTS(list, .grads = list), .lr = 0.1);
    tensor_fused_adam_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    tensor_fused_adamw_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    tensor_fused_radam_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    tensor_fused_adamax_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    tensor_fused_adagrad_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    tensor_fused_adadelta_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    tensor_fused_rmsprop_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    tensor_fused_rprop_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    tensor_fused_lion_(TENSOR_FUSED_LISTS(list), .lr = 0.1);
    io_csv_log_row(log, 1, 2.5);
    optim_one_cycle_lr(optimizer, .max_lrs = PER_GROUP(0.1, 0.01), .total_steps = 9);
    return nn_evaluate(net, loader, NULL, .metrics = NN_METRICS(nn_metric_accuracy())) > 0;
}

void in_a_test(Tensor *x, Tensor *y);
void in_a_test(Tensor *x, Tensor *y)
{
    assert_tensor_close(x, y, 1e-5, 1e-6);
    assert_op(&cube);
    assert_op_parts(&cube, OP_CHECK_FORWARD);
    assert_gradcheck(&cube, x);
    assert_gradgradcheck(&both, x, y);
    assert_gradcheck_args(tensor_gradcheck_defaults);
    assert_gradcheck_with(.op = &cube, .atol = 1e-3);
    assert_tensor_error(tensor_matmul(x, y), TENSOR_ESHAPE);
    assert_status_error(tensor_backward(x), TENSOR_EGRAD);
}
