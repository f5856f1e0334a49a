/* mnist.c - the main job: trains a small convolutional network on MNIST, shows how it goes, and says how good
 * it is. `make demo` runs it; mnist --help lists its options. */
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include "example.h"

typedef struct Options {
    int64_t epochs, batch, seed;
    double lr;
    const char *data, *device, *save, *load;
} Options;

/* ---- the command line ------------------------------------------------------------------------ */

static const char usage[] =
    "usage: mnist [options]      trains a small CNN on MNIST\n"
    "  --epochs N     passes over the training images (1)\n"
    "  --lr X         highest learning rate; it falls to 0 along the run (0.003)\n"
    "  --batch N      images in a step (64)\n"
    "  --seed N       of weights and order (1)\n"
    "  --data FOLDER  with the four IDX files, plain or .gz (default: $TAPEGRAD_DATA/mnist, data/mnist, "
    "download)\n"
    "  --device NAME  cpu, cuda:0 (cpu)\n"
    "  --save FILE    writes the weights (safetensors)\n"
    "  --load FILE    starts from saved weights; with --epochs 0 only tests them\n"
    "Ctrl-C ends the training and tests what there is.  Pictures: mnist_curve.png, mnist_misread.png\n";

static int bad_value(const char *name, const char *value)
{
    fprintf(stderr, "mnist: --%s %s: not a value for it\n%s", name, value, usage);
    return -1;
}

static int parse_number(const char *name, const char *value, double low, double *out)
{
    char *end;
    *out = strtod(value, &end);
    return *value && !*end && *out >= low && *out < 1e15 ? 0 : bad_value(name, value);
}

static int parse_count(const char *name, const char *value, double low, int64_t *out)
{
    double number;
    if (parse_number(name, value, low, &number)) return -1;
    *out = (int64_t)number;
    return number == (double)*out ? 0 : bad_value(name, value);
}

static int parse(int argc, char **argv, Options *o)
{
    static const struct option names[] = {
        { "epochs", required_argument, NULL, 'e' }, { "lr", required_argument, NULL, 'l' },
        { "batch", required_argument, NULL, 'b' },  { "seed", required_argument, NULL, 's' },
        { "data", required_argument, NULL, 'd' },   { "device", required_argument, NULL, 'v' },
        { "save", required_argument, NULL, 'w' },   { "load", required_argument, NULL, 'r' },
        { "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 },
    };
    int status = 0;
    for (int c; !status && (c = getopt_long(argc, argv, "", names, NULL)) != -1;) switch (c) {
        case 'e': status = parse_count("epochs", optarg, 0, &o->epochs); break;
        case 'b': status = parse_count("batch", optarg, 1, &o->batch); break;
        case 's': status = parse_count("seed", optarg, 0, &o->seed); break;
        case 'l': status = parse_number("lr", optarg, 0, &o->lr); break;
        case 'd': o->data = optarg; break;
        case 'v': o->device = optarg; break;
        case 'w': o->save = optarg; break;
        case 'r': o->load = optarg; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); return -1; /* getopt_long said why */
        }
    if (status || optind == argc) return status;
    fprintf(stderr, "mnist: %s: not an option\n%s", argv[optind], usage);
    return -1;
}

/* ---- the network, training and testing ------------------------------------------------------- */

static Module *network(void)
{
    return nn_sequential(nn_conv2d(1, 16, 3, .padding = 1), nn_relu(), nn_max_pool2d(2),
                         nn_conv2d(16, 32, 3, .padding = 1), nn_relu(), nn_max_pool2d(2), nn_flatten(),
                         nn_linear(32 * 7 * 7, 128), nn_relu(), nn_linear(128, 10));
}

/* The smoothed loss of each batch. */
typedef struct Curve {
    double *loss;
    int64_t count, steps;
} Curve;

static int note_loss(NNFit *fit, NNEvent event, void *ctx)
{
    Curve *c = ctx;
    if (event != NN_BATCH_END) return 0;
    const double loss = nn_fit_batch_loss(fit);
    c->loss[c->count] = c->count ? 0.95 * c->loss[c->count - 1] + 0.05 * loss : loss;
    c->count++;
    return 0;
}

/* Up to the highest rate in a twentieth of the steps, then down to 0. */
static double rate(int64_t step, int group, void *ctx)
{
    const double steps = (double)((Curve *)ctx)->steps;
    (void)group;
    return fmin((double)(step + 1) / (0.05 * steps + 1), 1 - (double)step / steps);
}

static void train(Module *net, DataLoader *loader, const Options *o, Curve *curve)
{
    NNHistory history;
    curve->steps = o->epochs * data_batches(loader);
    Optimizer *opt = optim_adam(nn_parameters(net), .lr = o->lr);
    Scheduler *schedule = optim_lambda_lr(opt, rate, curve);
    nn_fit(net, loader, nn_cross_entropy_loss(), opt, .epochs = o->epochs, .scheduler = schedule,
           .schedule_steps = true, .callbacks = (NNCallback[]){ { note_loss, curve }, { NULL } },
           .history = &history);
    if (history.interrupted) puts("interrupted: testing what there is");
    nn_history_free(&history), optim_scheduler_free(schedule), optim_free(opt);
}

enum { SHOWN = 24, ACROSS = 8, CELL = 64 };

/* A misread digit, twice its size, with what it is and what the network read. */
static void draw_misread(Tensor *picture, int64_t i, Tensor *image, int64_t label, int64_t guess)
{
    char text[16];
    int64_t top = i / ACROSS * (CELL + 12), left = i % ACROSS * CELL;
    Tensor *grey = tensor_add_scalar(tensor_mul_scalar(tensor_to_device(image, "cpu"), 0.3081), 0.1307);
    for (int64_t r = 0; r < 56; r++)
        for (int64_t c = 0; c < 56; c++) {
            unsigned v = (unsigned)(255 * tensor_get(grey, DIMS(0, r / 2, c / 2)) + 0.5);
            io_draw_dot(picture, (double)(top + r), (double)(left + 4 + c), 0, v << 16 | v << 8 | v);
        }
    snprintf(text, sizeof text, "%lld:%lld", (long long)label, (long long)guess);
    io_draw_text(picture, top + 60, left + 20, 1, 0xffd040, text);
}

static double test(Module *net, DataLoader *loader, const char *path)
{
    int64_t right = 0, wrong = 0;
    TensorScope all = tensor_scope_open();
    Tensor *picture = io_canvas((CELL + 12) * SHOWN / ACROSS, CELL * ACROSS, 0x202020);
    bool was = tensor_set_grad_enabled(false);
    nn_eval(net);
    for (Batch *b; (b = data_next(loader)) != NULL && !tensor_error();) {
        TensorScope scope = tensor_scope_open();
        Tensor *guess = tensor_to_device(tensor_argmax(nn_forward(net, b->x), 1), "cpu"),
               *truth = tensor_to_device(b->y, "cpu");
        for (int64_t i = 0; guess && i < b->size; i++) {
            int64_t label = ((int64_t *)tensor_data(truth))[i], read = ((int64_t *)tensor_data(guess))[i];
            right += label == read;
            if (label != read && wrong++ < SHOWN)
                draw_misread(picture, wrong - 1, tensor_select(b->x, 0, i), label, read);
        }
        tensor_scope_close(scope);
    }
    tensor_set_grad_enabled(was);
    if (!tensor_error()) io_save_png(path, picture);
    tensor_scope_close(all);
    return (double)right / (double)data_samples(loader);
}

static int load_weights(Module *net, const char *path)
{
    TensorDict dict = io_load_safetensors(path);
    int status = dict.count < 0 ? -1 : nn_load_state_dict(net, dict);
    nn_dict_free(dict);
    return status;
}

static int run(const Options *o)
{
    tensor_manual_seed((uint64_t)o->seed);
    if (o->device && tensor_set_default_device(o->device)) return -1;
    Module *net = network();
    DataLoader *training = o->epochs ? data_loader(example_mnist(o->data, DATA_TRAIN), .batch_size = o->batch,
                                                   .shuffle = true, .device = o->device)
                                     : NULL;
    DataLoader *testing =
        data_loader(example_mnist(o->data, DATA_TEST), .batch_size = 500, .device = o->device);
    Curve curve = { .loss = calloc((size_t)(o->epochs * data_batches(training) + 1), sizeof(double)) };
    double began = seconds();
    if (!tensor_error() && curve.loss && (!o->load || load_weights(net, o->load) == 0)) {
        if (training) train(net, training, o, &curve);
        double accuracy = test(net, testing, "mnist_misread.png"), spent = seconds() - began;
        if (curve.count > 1)
            io_save_curves("mnist_curve.png", &(IoCurve){ .y = curve.loss, .count = curve.count }, 1,
                           .title = "training", .x_label = "step", .y_label = "loss");
        if (o->save) io_save_safetensors(o->save, nn_state_dict(net));
        if (!tensor_error())
            printf("%sdigits misread (truth:read): mnist_misread.png\n",
                   curve.count > 1 ? "learning curve: mnist_curve.png\n" : "");
        if (!tensor_error())
            printf("test accuracy %.4f (%lld images), %.1f s%s\n", accuracy, (long long)data_samples(testing),
                   spent, example_mnist_note());
    }
    if (!curve.loss) fputs("mnist: no memory for the learning curve of so many epochs\n", stderr);
    bool failed = !curve.loss || tensor_error();
    free(curve.loss);
    data_loader_free(training), data_loader_free(testing), nn_free(net);
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    Options o = { .epochs = 1, .batch = 64, .lr = 0.003, .seed = 1 };
    if (parse(argc, argv, &o)) return 2;
    signal(SIGINT, SIG_DFL); /* a shell's background jobs ignore it, and nn_fit takes it only so */
    int status = run(&o);
    if (tensor_error()) fprintf(stderr, "mnist: %s\n", tensor_error());
    return status ? 1 : 0;
}
