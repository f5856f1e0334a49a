/* test_mnist.c - the files of MNIST: made here, found, refused; with TAPEGRAD_DATA set the real ones, too. */
#include <tapegrad/debug.h>
#include "mnist_images.h"
#include "scratch.h"

static Dataset *mnist_of(const char *images, size_t n, const char *labels, size_t m)
{
    put_file("t10k-images-idx3-ubyte", images, n);
    put_file("t10k-labels-idx1-ubyte", labels, m);
    return data_mnist(scratch_, DATA_TEST, .mean = 0.1307, .std = 0.3081);
}

static void test_mnist_made(void **state)
{
    (void)state;
    Dataset *d = mnist_of(IMAGES, sizeof IMAGES - 1, "\0\0\x08\x01\0\0\0\x03\5\0\4", 11);
    assert_int_equal(data_size(d), 3);
    DataLoader *l = data_loader(data_retain(d), .batch_size = 2),
               *plain = data_loader(data_mnist(scratch_, DATA_TEST));
    Batch *b = data_next(l);
    assert_true(shape_equal(shape_of(b->x), SHAPE(2, 1, 2, 2)));
    static const float want[8] = { -0.424212962f, -0.411484718f, 1.19227266f,   2.82148671f,
                                   2.12143397f,   2.8087585f,    -0.424212962f, -0.424212962f };
    assert_memory_equal(b->x->data, want, sizeof want); /* PyTorch's numbers */
    assert_values(b->y, 5, 0);
    b = data_next(plain);
    assert_true(((float *)b->x->data)[1] == 0.00392156886f && ((float *)b->x->data)[3] == 1);
    data_loader_free(l), data_loader_free(plain), data_free(d);
}

static void test_mnist_found(void **state)
{
    (void)state;
    char *given = getenv("TAPEGRAD_DATA"), *was = given ? strdup(given) : NULL;
    for (int below = 0; below < 2; below++) {
        data_free(mnist_of(IMAGES, sizeof IMAGES - 1, "\0\0\x08\x01\0\0\0\x03\5\0\4", 11));
        if (below) { /* as the demo keeps them: in the folder mnist of that one */
            mkdir(scratch("mnist"), 0700);
            rename(scratch("t10k-images-idx3-ubyte"), scratch("mnist/t10k-images-idx3-ubyte"));
            rename(scratch("t10k-labels-idx1-ubyte"), scratch("mnist/t10k-labels-idx1-ubyte"));
        }
        setenv("TAPEGRAD_DATA", scratch_, 1);
        Dataset *d = data_mnist(NULL, DATA_TEST);
        assert_int_equal(data_size(d), 3);
        data_free(d);
    }
    remove(scratch("mnist/t10k-images-idx3-ubyte")), remove(scratch("mnist/t10k-labels-idx1-ubyte"));
    rmdir(scratch("mnist"));
    if (was) setenv("TAPEGRAD_DATA", was, 1);
    else unsetenv("TAPEGRAD_DATA");
    free(was);
}

static void test_mnist_refusals(void **state)
{
    (void)state;
    assert_null(data_mnist(scratch_, DATA_TRAIN));
    assert_says(TENSOR_EIO, "train-images-idx3-ubyte");
    char *given = getenv("TAPEGRAD_DATA"), *was = given ? strdup(given) : NULL;
    setenv("TAPEGRAD_DATA", "/nowhere", 1);
    assert_null(data_mnist(NULL, DATA_TEST, .std = 0)); /* looked for only when the rest is right */
    assert_says(TENSOR_EVALUE, "std 0");
    if (access("data/mnist", R_OK) && access("data", R_OK)) {
        assert_null(data_mnist(NULL, DATA_TEST));
        assert_says(TENSOR_EIO, "$TAPEGRAD_DATA (/nowhere)");
    }
    if (was) setenv("TAPEGRAD_DATA", was, 1);
    else unsetenv("TAPEGRAD_DATA");
    free(was);
    assert_null(data_mnist(scratch_, DATA_TEST, .std = 0));
    assert_says(TENSOR_EVALUE, "std 0");
    assert_null(data_mnist(scratch_, DATA_TEST, .mean = NAN));
    assert_says(TENSOR_EVALUE, "mean nan");
    assert_null(mnist_of(IMAGES, sizeof IMAGES - 1, "\0\0\x08\x01\0\0\0\x02\5\0", 10));
    assert_says(TENSOR_EFORMAT, "images u8 [3, 2, 2] and labels u8 [2] do not belong together");
    assert_null(mnist_of(IMAGES, sizeof IMAGES - 2, "\0\0\x08\x01\0\0\0\x03\5\0\4", 11));
    assert_says(TENSOR_EFORMAT, "t10k-images-idx3-ubyte");
    assert_null(mnist_of("\0\0\x08\x01\0\0\0\x01\5", 9, "\0\0\x08\x01\0\0\0\x01\5", 9));
    assert_says(TENSOR_EFORMAT, "do not belong together");
    remove(scratch("t10k-labels-idx1-ubyte"));
    put_file("t10k-images-idx3-ubyte", IMAGES, sizeof IMAGES - 1);
    assert_null(data_mnist(scratch_, DATA_TEST));
    assert_says(TENSOR_EIO, "t10k-labels-idx1-ubyte");
}

static void test_mnist_real(void **state)
{
    (void)state;
    static const int first[5] = { 5, 0, 4, 1, 9 };
    char folder[4096];
    const char *data = getenv("TAPEGRAD_DATA");
    snprintf(folder, sizeof folder, "%s/mnist", data ? data : ".");
    if (!data || access(folder, R_OK)) return;
    Dataset *train = data_mnist(folder, DATA_TRAIN), *test = data_mnist(folder, DATA_TEST);
    if (!train || !test) FAILS("%s", tensor_error());
    assert_int_equal(data_size(train), 60000);
    assert_int_equal(data_size(test), 10000);
    data_free(test);
    DataLoader *l = data_loader(train, .batch_size = 500);
    double sum = 0;
    for (Batch *b; (b = data_next(l)) != NULL;) {
        if (b->index == 0)
            for (int i = 0; i < 5; i++) assert_int_equal(((int64_t *)b->y->data)[i], first[i]);
        for (int64_t i = 0; i < b->x->numel; i++) sum += ((float *)b->x->data)[i];
    }
    assert_near(sum / (60000 * 784), 0.1306604762738429, 1e-7);
    data_loader_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_mnist_made),
        TEST(test_mnist_found),
        TEST(test_mnist_refusals),
        TEST(test_mnist_real),
    };
    return cmocka_run_group_tests_name("mnist", tests, scratch_begin, scratch_end);
}
