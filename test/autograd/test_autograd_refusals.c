/* test_autograd_refusals.c - what leaves, sweeps, writes in place, hooks and checkpoints refuse
 * (answers.h). */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <tapegrad.h>
#include <tapegrad/autocast.h>
#include <tapegrad/debug.h>
#include <tapegrad/saved.h>
#include "answers.h"

static Tensor *leaf_of(TensorShape shape)
{
    return tensor_requires_grad_(tensor_ones(shape, TENSOR_F64), true);
}

static void leaves(void)
{
    Tensor *leaf = leaf_of(SHAPE(2)), *y = tensor_exp(leaf), *plain = tensor_ones(SHAPE(2), TENSOR_F64),
           *view = tensor_select(plain, 0, 0), *i64 = tensor_ones(SHAPE(2), TENSOR_I64),
           *f32 = tensor_ones(SHAPE(2), TENSOR_F32), *three = tensor_ones(SHAPE(3), TENSOR_F64);
    ANSWER(tensor_requires_grad_(i64, true));
    ANSWER(tensor_requires_grad_(i64, false));
    ANSWER(tensor_requires_grad_(y, false));
    ANSWER(tensor_requires_grad_(y, true));
    ANSWER(tensor_set_grad(leaf, leaf));
    ANSWER(tensor_set_grad(leaf, three));
    ANSWER(tensor_set_grad(leaf, f32));
    ANSWER(tensor_set_grad(leaf, plain));
    ANSWER(tensor_set_data(y, plain));
    ANSWER(tensor_set_data(view, view));
    ANSWER(tensor_set_data(plain, three));
    ANSWER(tensor_set_data(leaf, i64));
    ANSWER(tensor_set_data(leaf, f32));
    ANSWER(tensor_set_data(leaf, plain));
    ANSWER(tensor_retain_grad(plain));
    ANSWER(tensor_retain_grad(y));
    ANSWER(tensor_detach_(tensor_select(leaf, 0, 0)));
    ANSWER(tensor_detach_(tensor_select(y, 0, 0)));
    ANSWER(tensor_detach_(view));
    ANSWER(tensor_detach_(y));
}

static Tensor *same(Tensor *g, void *ctx) { return (void)ctx, g; }
static Tensor *longer(Tensor *g, void *ctx) { return (void)ctx, tensor_cat(TENSORS(g, g)); }
static Tensor *narrower(Tensor *g, void *ctx) { return (void)ctx, tensor_to(g, TENSOR_F32); }
static void nothing(Tensor *x, void *ctx) { (void)x, (void)ctx; }
static void no_call(void *ctx) { (void)ctx; }

static void hooked(Tensor *(*hook)(Tensor *, void *))
{
    Tensor *leaf = leaf_of(SHAPE(2));
    tensor_register_hook(leaf, hook, NULL);
    tensor_backward(tensor_sum(leaf));
}

static void hooks(void)
{
    Tensor *leaf = leaf_of(SHAPE(2)), *y = tensor_exp(leaf), *plain = tensor_ones(SHAPE(2), TENSOR_F64);
    ANSWER(tensor_grad(NULL));
    ANSWER(tensor_register_hook(leaf, NULL, NULL));
    ANSWER(tensor_register_hook(plain, same, NULL));
    ANSWER(tensor_register_post_accumulate_grad_hook(leaf, NULL, NULL));
    ANSWER(tensor_register_post_accumulate_grad_hook(y, nothing, NULL));
    ANSWER(tensor_register_post_accumulate_grad_hook(plain, nothing, NULL));
    ANSWER(tensor_register_post_accumulate_grad_hook(leaf, nothing, NULL));
    ANSWER(tensor_remove_hook(plain, 7));
    ANSWER(hooked(same));
    ANSWER(hooked(longer));
    ANSWER(hooked(narrower));
    ANSWER(tensor_queue_callback(NULL, NULL));
    ANSWER(tensor_queue_callback(no_call, NULL));
}

static Tensor *inner_root;
static Tensor *sweep_again(Tensor *g, void *ctx)
{
    (void)ctx;
    return tensor_backward(inner_root, .retain_graph = true) ? NULL : g;
}

/* A hook that sweeps the graph again which the outer sweep is in. */
static void sweep_in_sweep(void)
{
    Tensor *x = tensor_exp(leaf_of(SHAPE(2))), *y = tensor_exp(x);
    inner_root = tensor_sum(tensor_add(x, y));
    tensor_register_hook(y, sweep_again, NULL);
    tensor_backward(inner_root, .retain_graph = true);
}

static void sweeps(void)
{
    Tensor *leaf = leaf_of(SHAPE(2)), *y = tensor_exp(leaf), *s = tensor_sum(y), *other = leaf_of(SHAPE(2)),
           *plain = tensor_ones(SHAPE(2), TENSOR_F64), *three = tensor_ones(SHAPE(3), TENSOR_F64),
           *i64 = tensor_ones(SHAPE(2), TENSOR_I64), *gradient = NULL;
    ANSWER(tensor_backward(tensor_sum(plain)));
    ANSWER(tensor_backward(y));
    ANSWER(tensor_backward(y, three));
    ANSWER(tensor_backward(y, i64));
    ANSWER(tensor_backward_many(TENSOR_LIST(NULL, 1)));
    ANSWER(tensor_backward_many(TENSOR_LIST(&s, 0)));
    ANSWER(tensor_backward_many(TENSORS(s, s), TENSORS(plain)));
    ANSWER(tensor_backward_many(TENSORS(s), TENSOR_LIST(NULL, 1)));
    ANSWER(tensor_gradients(s, plain));
    ANSWER(tensor_gradients(s, other));
    ANSWER(tensor_gradients(s, other, .allow_unused = true, .retain_graph = true));
    ANSWER(tensor_gradients_many(TENSORS(s), TENSOR_LIST(&leaf, 0), &gradient));
    ANSWER(tensor_gradients_many(TENSORS(s), TENSOR_LIST(NULL, 1), &gradient));
    ANSWER(tensor_gradients_many(TENSOR_LIST(NULL, 1), TENSORS(leaf), &gradient));
    ANSWER(tensor_gradients_many(TENSOR_LIST(&s, 0), TENSORS(leaf), &gradient));
    ANSWER(tensor_gradients_many(TENSORS(s), TENSORS(leaf), NULL));
    ANSWER(tensor_backward(s));
    ANSWER(tensor_backward(s));
    ANSWER(sweep_in_sweep());
}

static void overwritten(void)
{
    Tensor *leaf = leaf_of(SHAPE(2)), *x = tensor_mul_scalar(leaf, 2), *in = tensor_sum(tensor_square(x)),
           *y = tensor_exp(leaf), *out = tensor_sum(y), *twice;
    tensor_mul_scalar_(x, 1), tensor_fill_(y, 1);
    ANSWER(tensor_backward(in));
    ANSWER(tensor_backward(out));
    twice = tensor_sum(tensor_square(leaf));
    TENSOR_NO_GRAD { tensor_set_data(leaf, tensor_ones(SHAPE(2), TENSOR_F64)); }
    ANSWER(tensor_backward(twice, .create_graph = true));
}

static void writes(void)
{
    Tensor *leaf = leaf_of(SHAPE(2, 3)), *y = tensor_exp(leaf), *x = tensor_ones(SHAPE(2, 3), TENSOR_F64),
           *row = tensor_ones(SHAPE(3), TENSOR_F64), *wide = tensor_expand(row, SHAPE(2, 3)),
           *i64 = tensor_ones(SHAPE(3), TENSOR_I64), *truth = tensor_ones(SHAPE(3), TENSOR_BOOL),
           *turned = tensor_detach(tensor_transpose(x, 0, 1));
    ANSWER(tensor_add_(leaf, x));
    ANSWER(tensor_add_(tensor_select(leaf, 0, 0), row));
    ANSWER(tensor_add_(wide, x));
    ANSWER(tensor_add_(row, x));
    ANSWER(tensor_add_(i64, row));
    ANSWER(tensor_add_(truth, i64));
    ANSWER(tensor_add_(row, i64));
    ANSWER(tensor_copy_(tensor_select(turned, 0, 0), tensor_select(y, 1, 0)));
    ANSWER(tensor_apply_(NULL, &x, 1, NULL));
    ANSWER(tensor_apply_(tensor_op_find("exp"), NULL, 1, NULL));
    ANSWER(tensor_apply_(tensor_op_find("exp"), &x, 0, NULL));
    ANSWER(tensor_apply_(tensor_op_find("transpose"), &x, 1, NULL));
    ANSWER(tensor_apply_(tensor_op_find("exp"), &x, 1, NULL));
}

static void anomalies(void)
{
    Tensor *x =
        tensor_requires_grad_(tensor_from_data((double[]){ 1, -1, 0, 0 }, SHAPE(2, 2), TENSOR_F64), true);
    const bool was = tensor_set_detect_anomaly(true);
    ANSWER(tensor_log(x));
    ANSWER(tensor_sqrt(tensor_select(x, 0, 0)));
    ANSWER(tensor_backward(tensor_sum(tensor_mul_scalar(tensor_sqrt(tensor_abs(x)), 0))));
    tensor_set_detect_anomaly(was);
}

/* ---- hooks of saved values, checkpoints ------------------------------------------------------- */

static void *pack(Tensor *x, void *ctx) { return (void)x, (void)ctx, NULL; }
static Tensor *unpack(void *packed, void *ctx) { return (void)ctx, packed; }
static void *pack_itself(Tensor *x, void *ctx) { return (void)ctx, tensor_retain(x); }
static Tensor *unpack_none(void *packed, void *ctx) { return (void)packed, (void)ctx, NULL; }
static void drop(void *packed, void *ctx) { (void)ctx, tensor_release(packed); }

static Tensor *unpack_longer(void *packed, void *ctx)
{
    return (void)ctx, tensor_cat(TENSORS(packed, packed));
}

static void saving(TensorSavedHooks hooks)
{
    Tensor *leaf = leaf_of(SHAPE(2)), *y;
    TENSOR_SAVED_HOOKS(hooks) { y = tensor_sum(tensor_square(tensor_exp(leaf))); }
    tensor_backward(y);
}

static int runs;

static Tensor *fails(Tensor **x, int n, void *ctx) { return (void)x, (void)n, (void)ctx, NULL; }
static Tensor *square(Tensor **x, int n, void *ctx) { return (void)n, (void)ctx, tensor_square(x[0]); }
static Tensor *grows(Tensor **x, int n, void *ctx)
{
    (void)n, (void)ctx;
    Tensor *y = tensor_exp(x[0]);
    return runs++ ? tensor_exp(y) : y;
}

static int fails_many(Tensor *const *x, int n, Tensor **y, int m, void *ctx)
{
    return (void)x, (void)n, (void)y, (void)m, (void)ctx, -1;
}

static int many(Tensor *const *x, int n, Tensor **y, int m, void *ctx)
{
    for (int k = 0; k < m; k++) y[k] = x[0];
    return (void)n, (void)ctx, 0;
}

static void overwritten_input(void)
{
    Tensor *leaf = leaf_of(SHAPE(2)), *x = tensor_mul_scalar(leaf, 2),
           *y = tensor_checkpoint(square, NULL, x);
    tensor_mul_scalar_(x, 2);
    tensor_backward(tensor_sum(y));
}

static void another_function(void)
{
    runs = 0;
    tensor_backward(tensor_sum(tensor_checkpoint(grows, NULL, leaf_of(SHAPE(2)))));
}

static void saved(void)
{
    Tensor *x[65], *y[257];
    for (int i = 0; i < 65; i++) x[i] = leaf_of(SHAPE(1));
    ANSWER(tensor_saved_hooks_begin((TensorSavedHooks){ .pack = pack }));
    ANSWER(tensor_saved_hooks_begin((TensorSavedHooks){ .unpack = unpack }));
    ANSWER(saving((TensorSavedHooks){ pack, unpack, NULL, NULL }));
    ANSWER(saving((TensorSavedHooks){ pack_itself, unpack_none, drop, NULL }));
    ANSWER(saving((TensorSavedHooks){ pack_itself, unpack_longer, drop, NULL }));
    ANSWER(saving(tensor_save_in(TENSOR_I32)));
    ANSWER(saving(tensor_save_in(TENSOR_F16)));
    ANSWER(tensor_checkpoint(NULL, NULL, x[0]));
    ANSWER(tensor_checkpoint(fails, NULL, x[0]));
    ANSWER(tensor_checkpoint_list(square, NULL, TENSOR_LIST(x, 65)));
    ANSWER(tensor_checkpoint_list(square, NULL, TENSOR_LIST(x, 64)));
    ANSWER(tensor_checkpoint_list(square, NULL, TENSOR_LIST(NULL, 1)));
    ANSWER(tensor_checkpoint_list(square, NULL, TENSOR_LIST(x, -1)));
    ANSWER(tensor_checkpoint_many(fails_many, NULL, TENSORS(x[0]), y, 1));
    ANSWER(tensor_checkpoint_many(many, NULL, TENSORS(x[0]), y, 0));
    ANSWER(tensor_checkpoint_many(many, NULL, TENSORS(x[0]), y, 256));
    ANSWER(tensor_checkpoint_many(many, NULL, TENSORS(x[0]), y, 257));
    ANSWER(overwritten_input());
    ANSWER(another_function());
}

/* ---- another thread's ------------------------------------------------------------------------- */

static Tensor *theirs;
static TensorScope their_scope;

static void *elsewhere(void *ctx)
{
    TensorScope scope = tensor_scope_open();
    Tensor *x = tensor_ones(SHAPE(2), TENSOR_F64);
    ANSWER(tensor_exp(theirs));
    ANSWER(tensor_add(x, theirs));
    ANSWER(tensor_add_(theirs, x));
    ANSWER(tensor_fill_(theirs, 1));
    ANSWER(tensor_backward(theirs, x));
    ANSWER(tensor_retain_grad(theirs));
    ANSWER(tensor_detach_(theirs));
    ANSWER(tensor_register_hook(theirs, same, NULL));
    ANSWER(tensor_scope_close(their_scope));
    tensor_scope_close(scope);
    return ctx;
}

/* A handle that the program gave back, while a graph still keeps its struct: nothing reads freed memory. */
static void released(void)
{
    TensorScope scope = tensor_scope_open();
    Tensor *gone = tensor_retain(leaf_of(SHAPE(2)));
    Tensor *kept = tensor_scope_return(scope, tensor_square(gone));
    tensor_release(gone);
    ANSWER(tensor_exp(gone));
    ANSWER(tensor_sum(gone));
    ANSWER(tensor_add(kept, gone));
    ANSWER(tensor_matmul(kept, gone));
    ANSWER(tensor_item(gone));
    ANSWER(tensor_release(gone));
    ANSWER(tensor_index(kept, "i", gone));
    ANSWER(tensor_retain(gone));
}

static void threads(void)
{
    pthread_t thread;
    their_scope = tensor_scope_open();
    theirs = tensor_exp(leaf_of(SHAPE(2)));
    if (pthread_create(&thread, NULL, elsewhere, NULL) || pthread_join(thread, NULL)) exit(2);
    tensor_scope_close(their_scope);
}

static void modes(void)
{
    ANSWER(tensor_autocast_end(tensor_autocast_begin(TENSOR_F32)));
    ANSWER(tensor_autocast_end(tensor_autocast_begin(TENSOR_I64)));
    ANSWER(tensor_autocast_end(tensor_autocast_begin(TENSOR_F16)));
    ANSWER(tensor_set_float32_matmul_precision((TensorMatmulPrecision)-1));
    ANSWER(tensor_set_float32_matmul_precision((TensorMatmulPrecision)3));
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/autograd/refusals.golden");
    answers_of("leaves", leaves);
    answers_of("hooks", hooks);
    answers_of("sweeps", sweeps);
    answers_of("overwritten", overwritten);
    answers_of("writes", writes);
    answers_of("anomalies", anomalies);
    answers_of("saved values", saved);
    answers_of("released", released);
    answers_of("threads", threads);
    answers_of("modes", modes);
    return answers_end();
}
