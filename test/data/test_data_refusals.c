/* test_data_refusals.c - what datasets, MNIST's files and loaders refuse (answers.h). */
#include <fcntl.h>
#include <math.h>
#include <tapegrad/data.h>
#include <tapegrad/random.h>
#include "answers.h"
#include "scratch.h"

static void datasets(void)
{
    Tensor *three = tensor_ones(SHAPE(3, 2), TENSOR_F32), *two = tensor_ones(SHAPE(2), TENSOR_I64),
           *scalar = tensor_scalar(1, TENSOR_F32);
    ANSWER(data_tensors(NULL, three));
    ANSWER(data_tensors(three, two));
    ANSWER(data_tensors(scalar, NULL));
    ANSWER(data_tensors(three, scalar));
    ANSWER(data_custom(3, NULL, NULL, NULL));
    ANSWER(data_mnist("nowhere", .mean = INFINITY));
    ANSWER(data_mnist("nowhere", .std = 0));
    ANSWER(data_mnist("nowhere", .std = INFINITY));
    ANSWER(data_mnist("nowhere", (DataSplit)2));
    ANSWER(data_mnist("nowhere"));
    ANSWER(data_mnist("nowhere", DATA_TEST));
    const int here = open(".", O_RDONLY);
    if (here < 0 || chdir(scratch_)) exit(2);
    setenv("TAPEGRAD_DATA", "nowhere", 1);
    ANSWER(data_mnist(NULL, DATA_TEST));
    unsetenv("TAPEGRAD_DATA");
    ANSWER(data_mnist(NULL));
    if (fchdir(here) || close(here)) exit(2);
}

/* Files that are right for themselves, and wrong together. */
static void files(void)
{
    static const unsigned char images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 5, 6 },
                               plane[] = { 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 5, 6 },
                               wide[] = { 0, 0, 12, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7 },
                               three[] = { 0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3 },
                               two[] = { 0, 0, 8, 1, 0, 0, 0, 2, 1, 2 };
    put_file("train-images-idx3-ubyte", images, sizeof images);
    ANSWER(data_mnist(scratch_));
    put_file("train-labels-idx1-ubyte", three, sizeof three);
    ANSWER(data_mnist(scratch_));
    put_file("train-labels-idx1-ubyte", plane, sizeof plane);
    ANSWER(data_mnist(scratch_));
    put_file("train-labels-idx1-ubyte", two, sizeof two);
    put_file("train-images-idx3-ubyte", plane, sizeof plane);
    ANSWER(data_mnist(scratch_));
    put_file("train-images-idx3-ubyte", wide, sizeof wide);
    ANSWER(data_mnist(scratch_));
    put_file("train-images-idx3-ubyte", images, sizeof images);
    Dataset *whole = NULL;
    ANSWER(whole = data_mnist(scratch_));
    data_free(whole);
}

/* Sample i: what the letters at i of x and y say. */
typedef struct Letters {
    const char *x, *y;
} Letters;

static Tensor *made(char letter)
{
    static const int64_t none[TENSOR_MAX_DIMS];
    switch (letter) {
    case '1': return tensor_ones(SHAPE(2), TENSOR_F32);
    case '3': return tensor_ones(SHAPE(3), TENSOR_F32);
    case 'i': return tensor_ones(SHAPE(2), TENSOR_I64);
    case 'f': return tensor_ones((TensorShape){ TENSOR_MAX_DIMS - 1, none }, TENSOR_F32);
    case 'F': return tensor_ones((TensorShape){ TENSOR_MAX_DIMS, none }, TENSOR_F32);
    case 'e': return tensor_ones(SHAPE(-1), TENSOR_F32);
    default: return NULL;
    }
}

static int get(void *ctx, int64_t i, Tensor **x, Tensor **y)
{
    const Letters *letters = ctx;
    *x = made(letters->x[i]), *y = made(letters->y[i]);
    return letters->x[i] == '-' ? -1 : 0;
}

static void batch(const char *x, const char *y)
{
    Letters letters = { x, y };
    DataLoader *l = data_loader(data_custom((int64_t)strlen(x), get, NULL, &letters), .batch_size = 64);
    data_next(l);
    data_loader_free(l);
}

static void samples(void)
{
    ANSWER(batch("11", "11"));
    ANSWER(batch("11", "  "));
    ANSWER(batch("1-", "11"));
    ANSWER(batch("1 ", "11"));
    ANSWER(batch("11", "1 "));
    ANSWER(batch("11", " 1"));
    ANSWER(batch("13", "11"));
    ANSWER(batch("11", "1i"));
    ANSWER(batch("1e", "11"));
    ANSWER(batch("11", "e1"));
    ANSWER(batch("ff", "11"));
    ANSWER(batch("FF", "11"));
    ANSWER(batch("11", "FF"));
}

static void loader(int64_t batch_size, int prefetch)
{
    Dataset *d = data_tensors(tensor_ones(SHAPE(4), TENSOR_F32), NULL);
    data_loader_free(data_loader(d, .batch_size = batch_size, .prefetch = prefetch));
}

static void loaders(void)
{
    ANSWER(data_loader(NULL));
    ANSWER(loader(0, 0));
    ANSWER(loader(1, -1));
    ANSWER(loader(1, 1025));
    ANSWER(loader(1, 1024));
    ANSWER(data_next(NULL));
    ANSWER(data_loader_state_dict(NULL));
}

/* Loads the state of a loader in its second batch with one entry changed. */
static void load(const char *name, Tensor *entry)
{
    DataLoader *l =
        data_loader(data_tensors(tensor_ones(SHAPE(4), TENSOR_F32), NULL), .batch_size = 2, .shuffle = true);
    data_next(l);
    TensorDict d = data_loader_state_dict(l), other = { 0 };
    for (int i = 0; i < d.count; i++)
        if (entry || strcmp(d.item[i].name, name) != 0) nn_dict_set(&other, d.item[i].name, d.item[i].tensor);
    if (entry) nn_dict_set(&other, name, entry);
    data_loader_load_state_dict(l, other);
    nn_dict_free(other);
    data_loader_free(l);
}

static Tensor *number(int64_t i) { return tensor_from_data(&i, SHAPE(), TENSOR_I64); }

static void states(void)
{
    DataLoader *l = data_loader(data_tensors(tensor_ones(SHAPE(4), TENSOR_F32), NULL));
    TensorDictItem nothing = { .name = (char[]){ "epoch" } };
    ANSWER(data_loader_load_state_dict(NULL, (TensorDict){ 0 }));
    ANSWER(data_loader_load_state_dict(l, (TensorDict){ .count = -1 }));
    ANSWER(data_loader_load_state_dict(l, (TensorDict){ .count = 1 }));
    ANSWER(data_loader_load_state_dict(l, (TensorDict){ .count = 1, .item = &nothing }));
    ANSWER(load("epoch", number(0)));
    ANSWER(load("epoch", number(-1)));
    ANSWER(load("epoch", NULL));
    ANSWER(load("epoch", tensor_ones(SHAPE(2), TENSOR_I64)));
    ANSWER(load("epoch", tensor_ones(SHAPE(), TENSOR_I32)));
    ANSWER(load("_num_yielded", number(-1)));
    ANSWER(load("_num_yielded", number(0)));
    ANSWER(load("_num_yielded", number(2)));
    ANSWER(load("_num_yielded", number(3)));
    ANSWER(load("_iterator_finished", number(-1)));
    ANSWER(load("_iterator_finished", number(2)));
    ANSWER(load("_iterator_finished", number(1)));
    ANSWER(load("samples", number(5)));
    ANSWER(load("batch_size", number(1)));
    ANSWER(load("shuffle", number(0)));
    ANSWER(load("drop_last", number(1)));
    ANSWER(load("drop_last", NULL));
    ANSWER(load("another", number(0)));
    ANSWER(load("_sampler_iter_state.generator", NULL));
    ANSWER(load("_sampler_iter_state.generator", number(0)));
    ANSWER(load("_worker_snapshots.worker_0.generator", tensor_ones(SHAPE(3), TENSOR_U8)));
    data_loader_free(l);
}

int main(int argc, char **argv)
{
    if (scratch_begin(NULL)) return 1;
    answers_begin(argc, argv, "test/data/refusals.golden");
    answers_hide(scratch_);
    answers_of("datasets", datasets);
    answers_of("files", files);
    answers_of("samples", samples);
    answers_of("loaders", loaders);
    answers_of("states", states);
    return scratch_end(NULL) || answers_end();
}
