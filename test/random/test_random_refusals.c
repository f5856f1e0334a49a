/* test_random_refusals.c - what the functions of random.h refuse, each limit from both sides (answers.h). */
#include <float.h>
#include <math.h>
#include <tapegrad.h>
#include <tapegrad/random.h>
#include "answers.h"

static void whole_numbers(void)
{
    Tensor *f32 = tensor_ones(SHAPE(2, 3), TENSOR_F32), *f64 = tensor_ones(SHAPE(2), TENSOR_F64),
           *f16 = tensor_ones(SHAPE(2), TENSOR_F16), *bf16 = tensor_ones(SHAPE(2), TENSOR_BF16),
           *i64 = tensor_ones(SHAPE(2), TENSOR_I64), *i32 = tensor_ones(SHAPE(2), TENSOR_I32),
           *u8 = tensor_ones(SHAPE(2), TENSOR_U8), *truth = tensor_ones(SHAPE(2), TENSOR_BOOL);
    ANSWER(tensor_randint(3, 3, SHAPE(2)));
    ANSWER(tensor_randint(3, 4, SHAPE(2)));
    ANSWER(tensor_randint_like(f32, 3, 3));
    ANSWER(tensor_randint_like(f32, -16777217, 0));
    ANSWER(tensor_randint_like(f32, -16777216, 0));
    ANSWER(tensor_randint_like(f32, 0, 16777217));
    ANSWER(tensor_randint_like(f32, 0, 16777218));
    ANSWER(tensor_randint_like(f64, -9007199254740993, 0));
    ANSWER(tensor_randint_like(f64, -9007199254740992, 9007199254740993));
    ANSWER(tensor_randint_like(f64, 0, 9007199254740994));
    ANSWER(tensor_randint_like(f16, -2049, 0));
    ANSWER(tensor_randint_like(f16, -2048, 2049));
    ANSWER(tensor_randint_like(f16, 0, 2050));
    ANSWER(tensor_randint_like(bf16, -257, 0));
    ANSWER(tensor_randint_like(bf16, -256, 257));
    ANSWER(tensor_randint_like(bf16, 0, 258));
    ANSWER(tensor_randint_like(i64, INT64_MIN, INT64_MAX));
    ANSWER(tensor_randint_like(i32, -2147483649, 0));
    ANSWER(tensor_randint_like(i32, -2147483648, 2147483648));
    ANSWER(tensor_randint_like(i32, 0, 2147483649));
    ANSWER(tensor_randint_like(u8, -1, 2));
    ANSWER(tensor_randint_like(u8, 0, 256));
    ANSWER(tensor_randint_like(u8, 0, 257));
    ANSWER(tensor_randint_like(truth, -1, 2));
    ANSWER(tensor_randint_like(truth, 0, 2));
    ANSWER(tensor_randint_like(truth, 0, 3));
    ANSWER(tensor_randperm(-1));
    ANSWER(tensor_randperm(0));
}

static void in_place(void)
{
    Tensor *f32 = tensor_ones(SHAPE(2), TENSOR_F32), *f64 = tensor_ones(SHAPE(2), TENSOR_F64),
           *f16 = tensor_ones(SHAPE(2), TENSOR_F16), *bf16 = tensor_ones(SHAPE(2), TENSOR_BF16),
           *i64 = tensor_ones(SHAPE(2), TENSOR_I64);
    ANSWER(tensor_uniform_(f32, 1, 0.5));
    ANSWER(tensor_uniform_(f32, 1, NAN));
    ANSWER(tensor_uniform_(f32, 1, 1));
    ANSWER(tensor_uniform_(f32, -FLT_MAX, 0));
    ANSWER(tensor_uniform_(f32, -FLT_MAX, 1e32));
    ANSWER(tensor_uniform_(f32, -1e39, -1e39));
    ANSWER(tensor_uniform_(f32, 0, FLT_MAX));
    ANSWER(tensor_uniform_(f32, 1e39, 1e39));
    ANSWER(tensor_uniform_(f64, 0, DBL_MAX));
    ANSWER(tensor_uniform_(f64, -1e300, DBL_MAX));
    ANSWER(tensor_uniform_(f16, 0, 65504));
    ANSWER(tensor_uniform_(f16, 0, 65505));
    ANSWER(tensor_uniform_(bf16, 0, 0x1.fep127));
    ANSWER(tensor_uniform_(bf16, 0, FLT_MAX));
    ANSWER(tensor_uniform_(i64, 0, 1));
    ANSWER(tensor_normal_(f32, 0, -1e-300));
    ANSWER(tensor_normal_(f32, 0, NAN));
    ANSWER(tensor_normal_(f32, 0, 0));
    ANSWER(tensor_normal_(i64, 0, 1));
    ANSWER(tensor_bernoulli_(i64, -1e-300));
    ANSWER(tensor_bernoulli_(i64, 0));
    ANSWER(tensor_bernoulli_(i64, 1));
    ANSWER(tensor_bernoulli_(i64, 1.5));
    ANSWER(tensor_bernoulli_(i64, NAN));
    ANSWER(tensor_exponential_(f32, 0));
    ANSWER(tensor_exponential_(f32, NAN));
    ANSWER(tensor_exponential_(f32, 1e-300));
    ANSWER(tensor_exponential_(i64, 1));
    ANSWER(tensor_random_(NULL));
    ANSWER(tensor_random_(i64));
    ANSWER(tensor_uniform_(NULL, 0, 1));
    ANSWER(tensor_normal_(NULL, 0, 1));
    ANSWER(tensor_bernoulli_(NULL, 0.5));
    ANSWER(tensor_exponential_(NULL, 1));
    ANSWER(tensor_trunc_normal_(NULL, 0, 1, -1, 1));
    ANSWER(tensor_rand_like(NULL));
    ANSWER(tensor_randn_like(NULL));
}

static void cut_normals(void)
{
    Tensor *f32 = tensor_ones(SHAPE(2), TENSOR_F32), *f64 = tensor_ones(SHAPE(2), TENSOR_F64),
           *i64 = tensor_ones(SHAPE(2), TENSOR_I64);
    ANSWER(tensor_trunc_normal_(f32, 0, 0, -1, 1));
    ANSWER(tensor_trunc_normal_(f32, 0, INFINITY, -1, 1));
    ANSWER(tensor_trunc_normal_(f32, -INFINITY, 1, -1, 1));
    ANSWER(tensor_trunc_normal_(f32, 0, 1, 1, 1));
    ANSWER(tensor_trunc_normal_(f32, 0, 1, 2, 3));
    ANSWER(tensor_trunc_normal_(f32, 1, 0.9e-6, 0, 2));
    ANSWER(tensor_trunc_normal_(f32, 1, 1.1e-6, 0, 2));
    ANSWER(tensor_trunc_normal_(f64, -1, 0.9e-14, -2, 0));
    ANSWER(tensor_trunc_normal_(f64, -1, 1.1e-14, -2, 0));
    ANSWER(tensor_trunc_normal_(f32, 0, 1, 4, 20003));
    ANSWER(tensor_trunc_normal_(f32, 0, 1, 4, 20005));
    ANSWER(tensor_trunc_normal_(f32, 0, 2, -40008, -8));
    ANSWER(tensor_trunc_normal_(f32, 0, 2, -40006, -8));
    ANSWER(tensor_trunc_normal_(i64, 0, 1, -1, 1));
}

static void normals_of_tensors(void)
{
    Tensor *f32 = tensor_ones(SHAPE(2, 3), TENSOR_F32), *f64 = tensor_ones(SHAPE(3), TENSOR_F64),
           *four = tensor_ones(SHAPE(4), TENSOR_F64), *i64 = tensor_ones(SHAPE(3), TENSOR_I64),
           *some = tensor_from_data((double[]){ 1, 0, -0.5 }, SHAPE(3), TENSOR_F64);
    ANSWER(tensor_normal_tensor(f64, NULL));
    ANSWER(tensor_normal_tensor(f64, f32));
    ANSWER(tensor_normal_tensor(i64, i64));
    ANSWER(tensor_normal_tensor(f64, four));
    ANSWER(tensor_normal_tensor(f64, some));
    ANSWER(tensor_normal_tensor(f64, tensor_mul_scalar(some, NAN)));
    ANSWER(tensor_normal_tensor(some, f64));
    ANSWER(tensor_normal_tensor_scalar(f64, -1));
    ANSWER(tensor_normal_tensor_scalar(f64, 0));
    ANSWER(tensor_normal_tensor_scalar(i64, 1));
    ANSWER(tensor_normal_scalar_tensor(0, some));
    ANSWER(tensor_normal_scalar_tensor(0, i64));
    ANSWER(tensor_normal(0, -1, SHAPE(2), TENSOR_F32));
    ANSWER(tensor_normal(0, 0, SHAPE(2), TENSOR_F32));
    ANSWER(tensor_normal(0, 1, SHAPE(2), TENSOR_I64));
    ANSWER(tensor_rand_like(i64));
    ANSWER(tensor_randn_like(i64));
    ANSWER(tensor_randn(SHAPE(2), TENSOR_BOOL));
}

static void samples(void)
{
    Tensor *weights = tensor_from_data((float[]){ 1, 0, 2, 0, 3, 1 }, SHAPE(2, 3), TENSOR_F32),
           *none = tensor_from_data((double[]){ 1, 2, 0, 0 }, SHAPE(2, 2), TENSOR_F64),
           *below = tensor_from_data((double[]){ 1, 2, 0, -0.25 }, SHAPE(2, 2), TENSOR_F64),
           *far = tensor_from_data((float[]){ 1, INFINITY }, SHAPE(2), TENSOR_F32),
           *i64 = tensor_ones(SHAPE(3), TENSOR_I64), *most = tensor_ones(SHAPE(1 << 24), TENSOR_F16);
    ANSWER(tensor_multinomial(i64, 1));
    ANSWER(tensor_multinomial(tensor_ones(SHAPE(1, 1, 2), TENSOR_F32), 1));
    ANSWER(tensor_multinomial(tensor_ones(SHAPE(), TENSOR_F32), 1));
    ANSWER(tensor_multinomial(tensor_ones(SHAPE(2, 0), TENSOR_F32), 1));
    ANSWER(tensor_multinomial(most, 1));
    ANSWER(tensor_multinomial(tensor_ones(SHAPE((1 << 24) + 1), TENSOR_F16), 1));
    ANSWER(tensor_multinomial(weights, 0));
    ANSWER(tensor_multinomial(weights, 1));
    ANSWER(tensor_multinomial(weights, 3));
    ANSWER(tensor_multinomial(weights, 4));
    ANSWER(tensor_multinomial(weights, 4, .replacement = true));
    ANSWER(tensor_multinomial(none, 1));
    ANSWER(tensor_multinomial(below, 1));
    ANSWER(tensor_multinomial(far, 1));
    ANSWER(tensor_multinomial(tensor_sub(far, far), 1));
    ANSWER(tensor_bernoulli(i64));
    ANSWER(tensor_bernoulli(below));
    ANSWER(tensor_bernoulli(far));
    ANSWER(tensor_bernoulli(tensor_clamp(none, 0, 1)));
}

static void generators(void)
{
    TensorGenerator *g = tensor_generator(1);
    Tensor *state = tensor_generator_get_state(g);
    const int64_t n = tensor_numel(state);
    ANSWER(tensor_generator_manual_seed(NULL, 1));
    ANSWER(tensor_generator_seed(NULL));
    ANSWER(tensor_generator_initial_seed(NULL));
    ANSWER(tensor_generator_get_state(NULL));
    ANSWER(tensor_generator_set_state(NULL, state));
    ANSWER(tensor_generator_set_state(g, NULL));
    ANSWER(tensor_generator_set_state(g, tensor_to(state, TENSOR_I32)));
    ANSWER(tensor_generator_set_state(g, tensor_narrow(state, 0, 0, n - 1)));
    ANSWER(tensor_generator_set_state(g, tensor_zeros(SHAPE(n), TENSOR_U8)));
    ANSWER(tensor_generator_set_state(g, state));
    ANSWER(tensor_set_rng_state(tensor_zeros(SHAPE(n), TENSOR_U8)));
    ANSWER(tensor_set_rng_state(tensor_zeros(SHAPE(1), TENSOR_U8)));
    tensor_generator_free(g);
}

int main(int argc, char **argv)
{
    answers_begin(argc, argv, "test/random/refusals.golden");
    answers_of("whole numbers", whole_numbers);
    answers_of("in place", in_place);
    answers_of("cut normals", cut_normals);
    answers_of("normals of tensors", normals_of_tensors);
    answers_of("samples", samples);
    answers_of("generators", generators);
    return answers_end();
}
