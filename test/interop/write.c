/* write.c FOLDER - files that other programs read in `make interop`: see read.py. */
#include <math.h>
#include <stdlib.h>
#include <tapegrad.h>

static const char *in(const char *folder, const char *name)
{
    static char path[4][512];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof *path, "%s/%s", folder, name);
    return p;
}

/* A net, what it answers, and a checkpoint of its training. */
static void write_training(const char *folder)
{
    tensor_manual_seed(1);
    Module *net = nn_sequential(nn_conv2d(3, 4, 3, .padding = 1), nn_batch_norm2d(4), nn_relu(), nn_flatten(),
                                nn_linear(4 * 6 * 6, 5));
    Optimizer *opt = optim_adamw(nn_parameters(net), .lr = 1e-3);
    DataLoader *loader = data_loader(
        data_tensors(tensor_randn(SHAPE(32, 3, 6, 6), TENSOR_F32), tensor_randint(0, 5, SHAPE(32))),
        .batch_size = 8, .shuffle = true);
    int64_t step = 0;
    Checkpoint *run = io_checkpoint(in(folder, "run"), .module = net, .optimizer = opt, .loader = loader);
    io_checkpoint_int(run, "step", &step);
    for (Batch *b; step < 6 && !tensor_error();) {
        if (!(b = data_next(loader))) continue;
        Tensor *loss = tensor_cross_entropy(nn_forward(net, b->x), b->y);
        optim_zero_grad(opt);
        tensor_backward(loss);
        optim_step(opt);
        step++;
    }
    io_checkpoint_save(run);
    nn_eval(net);
    TensorDict dict = { 0 };
    Tensor *x = tensor_randn(SHAPE(2, 3, 6, 6), TENSOR_F32);
    nn_dict_set(&dict, "x", x);
    nn_dict_set(&dict, "y", nn_forward(net, x));
    io_save_safetensors(in(folder, "answer.safetensors"), dict);
    nn_dict_free(dict), io_checkpoint_free(run), data_loader_free(loader), optim_free(opt), nn_free(net);
}

static void write_dtypes(const char *folder)
{
    TensorDict dict = { 0 };
    IoMetadata texts = { 0 };
    for (int d = 0; d < TENSOR_DTYPES; d++)
        nn_dict_set(&dict, tensor_dtype_name((TensorDtype)d),
                    tensor_reshape(tensor_arange(0, 6, 1, (TensorDtype)(d == TENSOR_BOOL ? TENSOR_U8 : d)),
                                   SHAPE(2, 3)));
    nn_dict_set(&dict, "empty", tensor_zeros(SHAPE(0, 3), TENSOR_F32));
    nn_dict_set(&dict, "scalar", tensor_scalar(-0.5, TENSOR_F64));
    io_metadata_set(&texts, "note", "a \"quoted\" \xc3\xa4");
    io_save_safetensors(in(folder, "dtypes.safetensors"), dict, .metadata = texts, .checksum = true);
    io_metadata_free(texts), nn_dict_free(dict);
}

/* x of the histogram is in dtypes' neighbour, for PyTorch to make the same of it. */
static void write_board(const char *folder)
{
    SummaryWriter *w = io_summary_writer(in(folder, "board"));
    for (int step = 0; step < 5; step++) io_summary_add_scalar(w, "loss/train", exp(-step), step);
    Tensor *x =
        tensor_cat(TENSORS(tensor_randn(SHAPE(1000), TENSOR_F32), tensor_zeros(SHAPE(7), TENSOR_F32)), 0);
    io_summary_add_histogram(w, "weights", x, 3);
    io_summary_add_image(w, "image", tensor_rand(SHAPE(3, 8, 10), TENSOR_F32), 3);
    io_summary_add_text(w, "words", "one **two** \xc3\xa4", 2);
    io_summary_free(w);
    SummaryWriter *again = io_summary_writer(in(folder, "board"), .purge_step = 4);
    io_summary_add_scalar(again, "loss/train", 42, 4);
    io_summary_free(again);
    TensorDict dict = { 0 };
    nn_dict_set(&dict, "histogram", x);
    io_save_safetensors(in(folder, "histogram.safetensors"), dict);
    nn_dict_free(dict);
}

static void write_grids(const char *folder)
{
    TensorDict dict = { 0 };
    Tensor *x = tensor_sub_scalar(tensor_mul_scalar(tensor_rand(SHAPE(7, 3, 5, 4), TENSOR_F32), 3), 1);
    Tensor *grey = tensor_contiguous(tensor_narrow(x, 1, 0, 1));
    nn_dict_set(&dict, "x", x);
    nn_dict_set(&dict, "plain", io_make_grid(x));
    nn_dict_set(&dict, "options", io_make_grid(x, 3, 1, .normalize = true, .pad_value = 0.5));
    nn_dict_set(&dict, "each", io_make_grid(x, 4, .normalize = true, .scale_each = true));
    nn_dict_set(&dict, "range", io_make_grid(grey, .normalize = true, .value_range = { -0.5, 1 }));
    nn_dict_set(&dict, "one", io_make_grid(tensor_select(grey, 0, 2)));
    io_save_image(x, in(folder, "image.png"), .nrow = 4, .normalize = true);
    nn_dict_set(&dict, "image", io_load_png(in(folder, "image.png")));
    io_save_safetensors(in(folder, "grids.safetensors"), dict);
    nn_dict_free(dict);
    io_save_curves(in(folder, "curves.png"),
                   (IoCurve[]){ { (double[]){ 3, 2, 1.5, NAN, 1.1 }, 5, .name = "train" },
                                { (double[]){ 3.2, 2.1 }, 2, (double[]){ 1, 4 }, "test" } },
                   2, .title = "Training", .x_label = "epoch", .y_label = "loss");
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    TensorScope scope = tensor_scope_open();
    write_training(argv[1]);
    write_dtypes(argv[1]);
    write_board(argv[1]);
    write_grids(argv[1]);
    tensor_scope_close(scope);
    if (tensor_error()) fprintf(stderr, "interop: %s\n", tensor_error());
    return tensor_error() != NULL;
}
