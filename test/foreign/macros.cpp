// macros.cpp - the macros that C++17 has of the headers, and that blocks are left in order: at their end, by
// return, by an exception.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <tapegrad.hpp>

static int failed;

static void check(bool right, const char *what)
{
    if (!right || tensor_error())
        std::fprintf(stderr, "macros.cpp: %s: %s\n", what, tensor_error() ? tensor_error() : "wrong"),
            failed++;
    tensor_error_clear();
}

/* ---- blocks -------------------------------------------------------------------------------------- */

enum class Leave { at_the_end, by_break, by_return, by_exception };
static bool seen;

static void leave(Leave how)
{
    if (how == Leave::by_exception) throw std::runtime_error("left");
}

static void in_blocks(Leave how)
{
    const bool off = false;
    TENSOR_PROFILE("blocks") TENSOR_SAVED_HOOKS(tensor_save_in(TENSOR_BF16)) TENSOR_NO_GRAD
    {
        TENSOR_AUTOCAST(TENSOR_F16)
        {
            seen = tensor_autocast_enabled() && !tensor_grad_enabled();
            TENSOR_AUTOCAST(TENSOR_BF16, off) seen = seen && !tensor_autocast_enabled();
            TENSOR_AUTOCAST_OFF TENSOR_ENABLE_GRAD
            {
                seen = seen && !tensor_autocast_enabled() && tensor_grad_enabled();
                if (how == Leave::by_break) break;
                if (how == Leave::by_return) return;
                leave(how);
            }
        }
    }
}

static bool restored()
{
    const TensorSavedHooks hooks = tensor_saved_hooks_begin(TensorSavedHooks{});
    tensor_saved_hooks_end(hooks);
    return !hooks.pack && tensor_grad_enabled() && !tensor_autocast_enabled();
}

static void blocks()
{
    for (Leave how : { Leave::at_the_end, Leave::by_break, Leave::by_return, Leave::by_exception }) {
        bool caught = false;
        seen = false;
        try {
            in_blocks(how);
        } catch (const std::runtime_error &) {
            caught = true;
        }
        check(seen && caught == (how == Leave::by_exception), "a block");
        check(restored(), "what a block leaves behind");
    }
    int64_t before = -1; // after the first time: the library keeps a table of what a scope owns
    for (int i = 0; i < 2; i++) {
        try {
            tapegrad::Scope scope;
            tensor_ones(SHAPE(3000), TENSOR_F32);
            leave(Leave::by_exception);
        } catch (const std::runtime_error &) {
        }
        if (i == 0) before = tensor_memory().in_use;
    }
    check(tensor_memory().in_use == before, "a scope that an exception leaves");
}

/* ---- modules ------------------------------------------------------------------------------------- */

struct Block {
    Module base;
    Module *inner;
    Tensor *scale, *mask, *seen;
};

static Tensor *block_forward(Module *self, Tensor *x)
{
    Block *b = reinterpret_cast<Block *>(self);
    return tensor_mul(tensor_mul(nn_forward(b->inner, x), b->scale), b->mask);
}

static void block_call(Module *self, NNCall *c) { c->out[0] = block_forward(self, c->in[0]); }

template <class Forward> static Module *block(Forward forward)
{
    NNLinearArgs options = nn_linear_defaults;
    options.in_features = NN_LAZY, options.out_features = 2;
    Block *b = nn_new(Block, "Block", forward);
    NN_CHILD(b, inner, nn_linear_args(options));
    NN_PARAMETER(b, scale, tensor_ones(SHAPE(2), TENSOR_F32));
    NN_BUFFER(b, mask, tensor_ones(SHAPE(2), TENSOR_F32));
    NN_BUFFER(b, seen, tensor_ones(SHAPE(2), TENSOR_F32), false);
    return nn_done(NN_MODULE(b));
}

static Tensor *run(Tensor **in, int, void *ctx) { return nn_forward(static_cast<Module *>(ctx), in[0]); }

static void modules()
{
    tapegrad::Scope scope;
    Module *net = nn_sequential(block(block_forward), block(block_call));
    Module *list = nn_module_list(net, nn_sequential());
    Tensor *y = tensor_checkpoint(run, net, tensor_ones(SHAPE(3, 2), TENSOR_F32));
    check(y && tensor_size(y, 1) == 2, "a net of C++");
    check(nn_has(net, "1.inner.weight") && nn_state_dict(net).count == 8, "its names");
    Optimizer *optimizer = optim_sgd_args([&] {
        OptimSgdArgs sgd = optim_sgd_defaults;
        return sgd.params = nn_parameters(net), sgd;
    }());
    optim_options(optimizer, 0, OptimSgdArgs)->lr = 0.5;
    check(optim_options(optimizer, 0, OptimSgdArgs)->lr == 0.5, "options of a group");
    OptimOneCycleLrArgs cycle = optim_one_cycle_lr_defaults;
    const double most[] = { 0.1 };
    cycle.optimizer = optimizer, cycle.total_steps = 9, cycle.max_lrs = { 1, most };
    Scheduler *schedule = optim_one_cycle_lr_args(cycle);
    check(schedule && static_cast<OptimPerGroup>(PER_GROUP(0.1, 0.01)).count == 2, "a number a group");
    optim_scheduler_free(schedule), optim_free(optimizer), nn_free(list);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

// Members by name are C++20's, and an extension before.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wc++20-extensions"
#endif
OP_UNARY(cube, "x^3", x *x *x, g * 3 * x * x, KEEP_X, -2, 2);
OP_UNARY1(scaled, "c x", c, 2, c *x, g *c, KEEP_NONE, -2, 2, .rules = ROW_NOT_ZERO);
OP_UNARY2(affine, "c x + d", c, 1, d, 0, c *x + d, g *c, KEEP_NONE, -2, 2);
OP_BINARY(both, "a b", a *b, g *b, KEEP_B, g *a, KEEP_A, -2, 2);
OP_BINARY1(blend, "a + c b", c, 1, a + c * b, g, KEEP_NONE, g *c, KEEP_NONE, -2, 2);
#pragma GCC diagnostic pop

static void rows()
{
    tapegrad::Scope scope;
    for (const TensorOp *op : { &cube, &scaled, &affine, &both, &blend })
        check(tensor_check_op(op, OP_CHECK_FORWARD | OP_CHECK_GRADIENT, nullptr) == 0, op->name);
    Tensor *x = tensor_full(SHAPE(2), 2, TENSOR_F32);
    const double c = 5;
    check(tensor_get(tensor_apply(&scaled, &x, 1, &c), DIMS(1)) == 10, "a row with a parameter");
    check(tensor_apply_(&cube, &x, 1, nullptr) == x && tensor_get(x, DIMS(0)) == 8, "a row in place");
}

/* ---- tensors and texts --------------------------------------------------------------------------- */

static void tensors()
{
    tapegrad::Scope scope;
    const float values[] = { 1, 2, 3, 4 };
    Tensor *x = tensor_from_data(values, SHAPE(2, 2), TENSOR_F32), *all[] = { x, x };
    check(tensor_numel(tensor_cat_args({ TENSOR_LIST(all, 2), 0 })) == 8, "TENSOR_LIST");
    check(tensor_numel(tensor_cat_args({ TENSORS(x, x), 0 })) == 8, "TENSORS");
    check(tensor_item(tensor_index(x, "%d, %d", 1, 0)) == 3, "tensor_index");
    x = tensor_index_set(x, tensor_scalar_tensor(7, TENSOR_F32), "0");
    x = tensor_index_accumulate_(tensor_index_set_scalar_(tensor_index_set_(x, x, "..."), 1, "1"), x, "...");
    check(tensor_item(tensor_index(x, "0, 0")) == 14, "writes");
    x = tensor_float(tensor_double(tensor_half(tensor_bfloat16(tensor_cpu(tensor_absolute(x))))));
    check(tensor_is_floating_point(x) && tensor_element_size(tensor_byte(x)) == 1, "dtypes");
    x = tensor_type_as(tensor_long(tensor_int(tensor_bool(x))), x);
    x = tensor_rsub(tensor_swapaxes(x, 0, 1), tensor_swapdims(x, 0, 1));
    check(tensor_dim(tensor_special_polygamma(1, x)) == 2, "other names");
    TensorHuberArgs options = tensor_huber_defaults;
    check(options.from_defaults == TENSOR_DEFAULTS_MARK &&
              !TENSOR_CHECK_OPTIONS("huber", options, tensor_huber_defaults),
          "options");
    const unsigned autocast = AUTOCAST_CPU_CUDA(AS_IS, F32), keep = KEEP_INPUT(0) | KEEP_OUTPUT(0);
    check(autocast != AUTOCAST_F32 && keep == 0x10001u, "constants");
    const int64_t padding = TENSOR_NO_PADDING;
    check(padding < 0 && TAPEGRAD_VERSION_MAJOR + TAPEGRAD_VERSION_MINOR + TAPEGRAD_VERSION_PATCH > 0,
          "numbers");
    check(std::strlen(TAPEGRAD_VERSION) > 0, "the version");
    int statuses = 0;
#define COUNT(name, text) statuses += (name) >= 0;
    TENSOR_STATUS_LIST(COUNT)
#undef COUNT
    check(statuses > 5, "statuses");
}

int main()
{
    blocks(), modules(), rows(), tensors();
    return failed != 0;
}
