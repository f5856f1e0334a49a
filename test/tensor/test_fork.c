/* test_fork.c - a child of fork computes what its parent does, alone: it has none of the threads. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tapegrad/device.h>
#include "sane.h"

/* A product for BLIS, one of halves, a long elementwise loop and a reduction, all on several threads. */
static double computed(void)
{
    TensorScope scope = tensor_scope_open();
    Tensor *a = tensor_reshape(tensor_linspace(-1, 1, 512 * 512, TENSOR_F32), SHAPE(512, 512));
    Tensor *h = tensor_to(a, TENSOR_BF16), *product = tensor_matmul(a, tensor_transpose(a, 0, 1));
    Tensor *sum =
        tensor_add(tensor_sum(tensor_tanh(product)), tensor_sum(tensor_to(tensor_matmul(h, h), TENSOR_F32)));
    double value = tensor_item(sum);
    tensor_scope_close(scope);
    return value;
}

static void *computes(void *ctx)
{
    *(double *)ctx = computed();
    return NULL;
}

/* In the thread that forked, and in one that the child starts. */
static void child(double want)
{
    pthread_t thread;
    double other = 0;
    alarm(60);
    bool same = computed() == want && pthread_create(&thread, NULL, computes, &other) == 0 &&
                pthread_join(thread, NULL) == 0 && other == want;
    _exit(same && !tensor_error() ? 0 : 1);
}

static void check_child(double want)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) child(want);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) FAILS("the child was ended by signal %d (14: it hung)", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void child_computes_before_and_after_its_parent(void **state)
{
    (void)state;
    int before = tensor_num_threads();
    double want = computed();
    tensor_set_num_threads(4);
    for (int i = 0; i < 3; i++) {
        check_child(want);
        assert_true(computed() == want);
    }
    tensor_set_num_threads(before);
}

static atomic_bool stop;
static void *allocates(void *ctx)
{
    while (!stop) {
        TensorScope scope = tensor_scope_open();
        for (int i = 0; i < 50; i++) tensor_zeros(SHAPE(1 << 15), TENSOR_F32);
        tensor_scope_close(scope);
    }
    return ctx;
}

/* The lists of memory are not in the midst of a change when the process forks. */
static void child_of_a_process_that_allocates(void **state)
{
    (void)state;
    pthread_t thread;
    stop = false;
    assert_int_equal(pthread_create(&thread, NULL, allocates, NULL), 0);
    for (int i = 0; i < 100; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            for (int k = 0; k < 100; k++) tensor_zeros(SHAPE(1 << 15), TENSOR_F32);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        if (!WIFEXITED(status)) FAILS("the child was ended by signal %d", WTERMSIG(status));
    }
    stop = true;
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(child_computes_before_and_after_its_parent),
        TEST(child_of_a_process_that_allocates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
