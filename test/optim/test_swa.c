/* test_swa.c - averages of weights: PyTorch's from oracle/kinds/swa.golden (oracle/swa.py says of what),
 * turns in the net, state, batch norms, refusals, failing memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clean.h"
#include <tapegrad/cmocka.h>
#include <tapegrad/debug.h>
#include "kinds.h"

static Module *make_net(void)
{
    return nn_sequential(nn_linear(2, 3, .dtype = TENSOR_F64), nn_batch_norm1d(3, .dtype = TENSOR_F64));
}

static void fill(Module *net, int t)
{
    const TensorDict dict = nn_state_dict(net);
    int at = 0;
    for (int i = 0; i < dict.count; i++) {
        Tensor *x = nn_get(net, dict.item[i].name);
        TensorScope scope = tensor_scope_open();
        const bool counts = tensor_dtype(x) == TENSOR_I64;
        const double n = (double)tensor_numel(x);
        Tensor *y = tensor_mul_scalar(tensor_arange(at, at + n, 1, TENSOR_F64), 0.3);
        y = tensor_add_scalar(tensor_sin(tensor_add_scalar(y, t)), 1);
        TENSOR_NO_GRAD {
            if (counts) tensor_fill_(x, 3 * t);
            else tensor_copy_(x, tensor_reshape(y, tensor_shape(x)));
        }
        if (!counts) at += (int)n;
        tensor_scope_close(scope);
    }
}

static DataLoader *make_loader(void)
{
    Tensor *x = tensor_sin(tensor_mul_scalar(tensor_arange(0, 24, 1, TENSOR_F64), 0.7));
    return data_loader(data_tensors(tensor_reshape(x, SHAPE(12, 2)), NULL), .batch_size = 4);
}

static void compare(TensorDict dict, const char *prefix, const char *golden)
{
    int64_t n, at = 0;
    double *want = kind_numbers(golden, &n);
    for (int i = 0; i < dict.count; i++) {
        if (strncmp(dict.item[i].name, prefix, strlen(prefix)) != 0) continue;
        Tensor *x = tensor_reshape(tensor_to(dict.item[i].tensor, TENSOR_F64), SHAPE(-1));
        for (int64_t k = 0; k < tensor_numel(x); k++, at++) {
            const double found = tensor_get(x, DIMS(k));
            if (!(fabs(found - want[at]) < 1e-12))
                fail_msg("%s, element %d: %.17g, want %.17g", dict.item[i].name, (int)k, found, want[at]);
        }
    }
    assert_int_equal(at, n);
    free(want);
}

static AveragedModel *make_case(const char *name, Module *net)
{
    return strcmp(name, "swa") == 0       ? optim_averaged_model(net)
           : strcmp(name, "ema 0.9") == 0 ? optim_averaged_model(net, .ema_decay = 0.9)
                                          : optim_averaged_model(net, 0.3, .use_buffers = true);
}

static void as_pytorch(void **state)
{
    (void)state;
    KindFile f = kind_open("test/oracle/kinds/swa.golden");
    DataLoader *loader = make_loader();
    Module *net = make_net();
    AveragedModel *m = NULL;
    const char *rest;
    int t = 0, cases = 0;
    for (char *word; (word = kind_line(&f, &rest)) != NULL;) {
        if (strcmp(word, "averages") == 0) {
            optim_averaged_free(m);
            m = make_case(rest, net);
            assert_non_null(m);
            t = 0, cases++;
        } else if (strcmp(word, "update") == 0) {
            fill(net, ++t);
            assert_int_equal(optim_averaged_update(m), 0);
            assert_int_equal(optim_averaged_count(m), t);
            compare(optim_averaged_state_dict(m), "module.", rest);
        } else if (strcmp(word, "bn") == 0) {
            assert_int_equal(optim_averaged_swap(m), 0);
            nn_eval(net);
            assert_int_equal(optim_update_bn(loader, net), 0);
            assert_false(net->training);
            compare(nn_state_dict(net), "", rest);
            compare(optim_averaged_state_dict(m), "module.", rest);
            assert_int_equal(optim_averaged_swap(m), 0);
            compare(optim_averaged_state_dict(m), "module.", rest);
        }
    }
    assert_int_equal(cases, 3);
    kind_close(&f);
    optim_averaged_free(m), nn_free(net), data_loader_free(loader);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void turns(void **state)
{
    (void)state;
    Module *net = make_net();
    fill(net, 1);
    Optimizer *opt = optim_sgd(nn_parameters(net), 0.5);
    AveragedModel *m = optim_averaged_model(net, 0.5);
    assert_int_equal(optim_averaged_update(m), 0);
    Tensor *w = nn_get(net, "0.weight"), *first = tensor_clone(tensor_detach(w));
    fill(net, 2);
    Tensor *own = tensor_clone(tensor_detach(w));
    assert_int_equal(optim_averaged_swap(m), 0);
    assert_ptr_equal(nn_get(net, "0.weight"), w);
    assert_true(tensor_equal(w, first) && tensor_requires_grad(w));
    assert_status_error(optim_averaged_update(m), TENSOR_EVALUE);
    assert_int_equal(optim_averaged_swap(m), 0);
    assert_true(tensor_equal(w, own));
    tensor_set_grad(w, tensor_ones_like(w)); /* the optimizer goes on with the net's own */
    assert_int_equal(optim_step(opt), 0);
    assert_true(fabs(tensor_get(w, DIMS(0, 0)) - (tensor_get(own, DIMS(0, 0)) - 0.5)) < 1e-15);
    assert_int_equal(optim_averaged_update(m), 0);
    optim_averaged_free(m), optim_free(opt), nn_free(net);
}

static int keeps_largest(TensorList averaged, TensorList current, int64_t num_averaged, void *ctx)
{
    *(int64_t *)ctx = num_averaged;
    for (int i = 0; i < averaged.count; i++)
        if (!tensor_copy_(averaged.item[i], tensor_maximum(averaged.item[i], current.item[i]))) return -1;
    return 0;
}

/* A function of one's own; tied weights are averaged once, under both names; the net may go first. */
static void own_function(void **state)
{
    (void)state;
    Module *net = nn_sequential(nn_linear(2, 2), nn_linear(2, 2));
    nn_register_parameter(nn_get_module(net, "1"), "weight", nn_get(net, "0.weight"));
    int64_t seen = -1;
    AveragedModel *m = optim_averaged_model(net, .multi_avg_fn = keeps_largest, .ctx = &seen);
    for (int t = 1; t <= 4; t++) fill(net, t), assert_int_equal(optim_averaged_update(m), 0);
    assert_int_equal(seen, 3);
    nn_free(net);
    const TensorDict dict = optim_averaged_state_dict(m);
    assert_int_equal(dict.count, 5);
    assert_true(tensor_equal(nn_dict_get(dict, "module.0.weight"), nn_dict_get(dict, "module.1.weight")));
    assert_true(tensor_item(tensor_amax(nn_dict_get(dict, "module.0.bias"))) > 1.8);
    optim_averaged_free(m);
}

/* ---- state ----------------------------------------------------------------------------------- */

static void save_and_load(void **state)
{
    (void)state;
    Module *net = make_net();
    AveragedModel *a = optim_averaged_model(net), *b = optim_averaged_model(net);
    for (int t = 1; t <= 3; t++) fill(net, t), optim_averaged_update(a);
    TensorDict saved = nn_dict_clone(optim_averaged_state_dict(a));
    assert_int_equal(optim_averaged_load_state_dict(b, saved), 0);
    for (int t = 4; t <= 6; t++) fill(net, t), optim_averaged_update(a), optim_averaged_update(b);
    const TensorDict x = optim_averaged_state_dict(a), y = optim_averaged_state_dict(b);
    assert_int_equal(x.count, 8);
    for (int i = 0; i < x.count; i++) assert_true(tensor_equal(x.item[i].tensor, y.item[i].tensor));
    TensorDict broken = nn_dict_clone(saved);
    nn_dict_set(&broken, "module.0.bias", tensor_ones(SHAPE(2), TENSOR_F64));
    assert_status_error(optim_averaged_load_state_dict(b, broken), TENSOR_ESHAPE);
    nn_dict_set(&broken, "other", tensor_ones(SHAPE(2), TENSOR_F64));
    assert_status_error(optim_averaged_load_state_dict(b, broken), TENSOR_EVALUE);
    assert_status_error(optim_averaged_load_state_dict(b, (TensorDict){ 0 }), TENSOR_EVALUE);
    assert_status_error(optim_averaged_load_state_dict(b, nn_state_dict(net)), TENSOR_EVALUE);
    assert_int_equal(optim_averaged_count(b), 6);
    nn_dict_free(saved), nn_dict_free(broken);
    optim_averaged_free(a), optim_averaged_free(b), nn_free(net);
}

static int says_nothing(TensorList averaged, TensorList current, int64_t num_averaged, void *ctx)
{
    return (void)averaged, (void)current, (void)num_averaged, (void)ctx, -1;
}

static void refusals(void **state)
{
    (void)state;
    Module *net = make_net();
    assert_null(optim_averaged_model(NULL));
    assert_status_error(-1, TENSOR_ENULL);
    assert_null(optim_averaged_model(net, 1.5));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_null(optim_averaged_model(net, 0.5, .multi_avg_fn = keeps_largest));
    assert_status_error(-1, TENSOR_EVALUE);
    assert_status_error(optim_averaged_update(NULL), TENSOR_ENULL);
    assert_status_error(optim_averaged_swap(NULL), TENSOR_ENULL);
    assert_status_error(optim_update_bn(NULL, net), TENSOR_ENULL);
    AveragedModel *m = optim_averaged_model(net, .multi_avg_fn = says_nothing);
    assert_int_equal(optim_averaged_update(m), 0);
    assert_status_error(optim_averaged_update(m), TENSOR_EUSER);
    assert_int_equal(optim_averaged_count(m), 1);
    optim_averaged_free(m), optim_averaged_free(NULL), nn_free(net);
}

static int refuses_gradients(Module *m, NNCall *call, void *ctx)
{
    (void)m, (void)call, (void)ctx;
    return tensor_grad_enabled() ? -1 : 0;
}

static void batches_record_nothing(void **state)
{
    (void)state;
    Module *net = make_net();
    DataLoader *loader = make_loader();
    nn_register_forward_pre_hook(net, refuses_gradients, NULL);
    assert_int_equal(optim_update_bn(loader, net), 0);
    assert_true(tensor_grad_enabled());
    data_loader_free(loader), nn_free(net);
}

/* A batch that does not fit leaves statistics, momentum and mode as they were. */
static void failing_batches(void **state)
{
    (void)state;
    Module *net = make_net();
    fill(net, 1);
    TensorDict before = nn_dict_clone(nn_state_dict(net));
    DataLoader *loader =
        data_loader(data_tensors(tensor_ones(SHAPE(4, 5), TENSOR_F64), NULL), .batch_size = 2);
    assert_status_error(optim_update_bn(loader, net), TENSOR_ESHAPE);
    const TensorDict after = nn_state_dict(net);
    for (int i = 0; i < after.count; i++)
        assert_true(tensor_equal(after.item[i].tensor, before.item[i].tensor));
    assert_true(((const NNBatchNormArgs *)nn_get_module(net, "1")->args)->momentum == 0.1 && net->training);
    nn_dict_free(before);
    data_loader_free(loader), nn_free(net);
}

/* Without a batch there are no statistics: the old ones stay. */
static void no_batches(void **state)
{
    (void)state;
    Module *net = make_net();
    fill(net, 1);
    TensorDict before = nn_dict_clone(nn_state_dict(net));
    DataLoader *loader = data_loader(data_tensors(tensor_zeros(SHAPE(0, 3), TENSOR_F64), NULL));
    assert_int_equal(optim_update_bn(loader, net), -1);
    assert_non_null(strstr(tensor_error(), "optim_update_bn: the loader gives no batch"));
    assert_status_error(-1, TENSOR_EVALUE);
    const TensorDict after = nn_state_dict(net);
    for (int i = 0; i < after.count; i++)
        assert_true(tensor_equal(after.item[i].tensor, before.item[i].tensor));
    assert_true(((const NNBatchNormArgs *)nn_get_module(net, "1")->args)->momentum == 0.1 && net->training);
    nn_dict_free(before);
    data_loader_free(loader), nn_free(net);
}

static void failing_memory(void **state)
{
    (void)state;
    Module *net = make_net();
    for (int what = 0; what < 3; what++)
        for (int n = 1, failed = 1; failed; n++) {
            AveragedModel *m = what ? optim_averaged_model(net, 0.5, .use_buffers = true) : NULL;
            if (what) fill(net, 1), optim_averaged_update(m);
            fill(net, 2);
            TensorDict before = { 0 };
            if (what) before = nn_dict_clone(optim_averaged_state_dict(m));
            tensor_debug_fail_allocation(n, false);
            if (!what) m = optim_averaged_model(net);
            const int status = what == 0   ? (m ? 0 : -1)
                               : what == 1 ? optim_averaged_update(m)
                                           : optim_averaged_swap(m);
            failed = tensor_debug_allocation_failed();
            tensor_debug_fail_allocation(0, false);
            assert_true(status == 0 || failed);
            if (status) assert_status_error(status, TENSOR_ENOMEM);
            const TensorDict now = status && what ? optim_averaged_state_dict(m) : (TensorDict){ 0 };
            for (int i = 0; i < now.count; i++)
                assert_true(tensor_equal(now.item[i].tensor, before.item[i].tensor));
            if (what == 2 && !status) assert_int_equal(optim_averaged_swap(m), 0);
            nn_dict_free(before);
            optim_averaged_free(m);
        }
    nn_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCOPED(as_pytorch), SCOPED(turns),           SCOPED(own_function),           SCOPED(save_and_load),
        SCOPED(refusals),   SCOPED(failing_batches), SCOPED(batches_record_nothing), SCOPED(failing_memory),
        SCOPED(no_batches),
    };
    return cmocka_run_group_tests_name("averages of weights", tests, NULL, NULL);
}
