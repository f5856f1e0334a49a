/* random.h - random tensors and generators: PyTorch's numbers for a seed.
 *
 *     tensor_manual_seed(0);
 *     Tensor *w = tensor_randn(SHAPE(5), TENSOR_F32);      // 1.5410, -0.2934, -2.1788, 0.5684, -1.0845
 *     Tensor *order = tensor_randperm(10);                 // PyTorch's shuffles too
 *     TensorGenerator *g = tensor_generator(7);            // a sequence of its own
 *     TensorGenerator *before = tensor_set_generator(g);
 *     Tensor *noise = tensor_rand(SHAPE(3), TENSOR_F32);   // drawn from g
 *     tensor_set_generator(before);
 *     tensor_generator_free(g);
 *
 * The same calls after the same seed give the values of PyTorch's CPU generator, element by element, even for
 * tensors that are not contiguous, which are filled in the order of memory.  Values are drawn on the CPU and
 * copied to the tensor's device: they depend neither on the device nor on the number of threads, unless a
 * program asks for PyTorch's numbers on a GPU (tensor_use_torch_cuda_random).  Values from
 * libm's log, sin and cos (f64 normals, fewer than 16 normals, exponential) agree to an ulp or two.  Each
 * function states any other difference.
 *
 * Dropout, tensor_rrelu, tensor_gumbel_softmax and fractional pools on the CPU draw PyTorch's numbers from
 * the same sequence.  On another device, or after tensor_use_torch_dropout(false), theirs come from a
 * counter-based generator (Philox) that is seeded along, and are drawn there.
 *
 * Results are outside any graph.  In-place draws (trailing underscore) return x, follow the rules of in-place
 * ops in ops.h, and cut x from its history: no gradient reaches the old value.  A refused call, or one on a
 * tensor without elements, draws nothing.  EDTYPE: dtype is not f32, f64, f16 or bf16, unless the function
 * allows others.
 *
 * C does not fix the order in which arguments are evaluated, and gcc and clang differ: draw in separate
 * statements for repeatable numbers.  tensor_sub(tensor_rand(s, t), tensor_rand(s, t)) may draw either
 * operand first. */
#ifndef TAPEGRAD_RANDOM_H
#define TAPEGRAD_RANDOM_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- generators ---------------------------------------------------------------------------------
 * Each thread has a default generator, which starts from PyTorch's default seed, 67280421310721.  All threads
 * start with that seed: if they must draw different numbers, seed each, or give each its own generator.  A
 * generator may move between threads but serves one at a time. */
typedef struct TensorGenerator TensorGenerator;

/* tensor_manual_seed - restarts this thread's default generator, even if another is in use
 *     (torch.manual_seed).  Only the low 32 bits of a seed count, as in PyTorch; Philox masks use all 64.
 * tensor_seed - the same with a seed from the system's entropy, which it returns (53 bits: exact as a
 *     double).
 * tensor_initial_seed - the last seed. */
TAPEGRAD_API void tensor_manual_seed(uint64_t seed);
TAPEGRAD_API uint64_t tensor_seed(void);
TAPEGRAD_API uint64_t tensor_initial_seed(void);

/* tensor_generator - makes a generator from a seed; NULL on ENOMEM.
 * tensor_generator_free - frees it; NULL is ignored.  If the calling thread uses it, the default generator
 * takes its place; no other thread may be using it. */
TAPEGRAD_API TensorGenerator *tensor_generator(uint64_t seed);
TAPEGRAD_API void tensor_generator_free(TensorGenerator *g);

/* tensor_default_generator - this thread's default generator; do not free it: it lives as long as the thread.
 * tensor_set_generator - sets the generator that this thread draws from; NULL: the default one.  Returns the
 * previous one, never NULL. */
TAPEGRAD_API TensorGenerator *tensor_default_generator(void);
TAPEGRAD_API TensorGenerator *tensor_set_generator(TensorGenerator *g);

/* The same for a given generator.   (torch.Generator's methods.)  ENULL: g is NULL. */
TAPEGRAD_API int tensor_generator_manual_seed(TensorGenerator *g, uint64_t seed);
TAPEGRAD_API uint64_t tensor_generator_seed(TensorGenerator *g);
TAPEGRAD_API uint64_t tensor_generator_initial_seed(const TensorGenerator *g);

/* tensor_generator_get_state - the generator's state, u8 [5072] on the CPU: the 5056 bytes of
 *     torch.Generator().get_state(), then seed and position of the Philox sequence, 8 bytes each,
 *     little-endian.
 * tensor_generator_set_state - continues from such a state, or from PyTorch's u8 [5056], which starts the
 *     Philox sequence of its seed.  EDTYPE: not u8.  ESHAPE: another length.  EFORMAT: not a state.
 * tensor_get_rng_state, tensor_set_rng_state - the same for the thread's default generator. */
TAPEGRAD_API Tensor *tensor_generator_get_state(const TensorGenerator *g);
TAPEGRAD_API int tensor_generator_set_state(TensorGenerator *g, const Tensor *state);
TAPEGRAD_API Tensor *tensor_get_rng_state(void);
TAPEGRAD_API int tensor_set_rng_state(const Tensor *state);

/* tensor_use_torch_dropout - sets the source of what ops draw on the CPU in this thread: true (the default):
 * the generator, as in PyTorch; false: Philox, which draws in parallel and gives the masks of other devices.
 * Returns the previous setting. */
TAPEGRAD_API bool tensor_use_torch_dropout(bool on);

/* tensor_use_torch_cuda_random - true: this thread's draws on a CUDA device are those of PyTorch's generator
 * there, in place of the CPU's: after tensor_manual_seed(s) the numbers that PyTorch draws on that device
 * after torch.manual_seed(s), for the same calls in the same order.  false is the default.  Returns the
 * previous setting.
 *   alike        tensor_rand, tensor_randn, tensor_normal, tensor_randint and their forms _like, normals of
 *                tensors; tensor_uniform_, normal_, exponential_, random_, and bernoulli_ with a number as
 *                parameter; tensor_bernoulli and tensor_multinomial, whose weights a device may add up in
 *                another order (those of halves in f32); dropout, and that of features.
 *   as before    permutations, other distributions; dropout inside attention, whose order in PyTorch follows
 *                the tiles of its kernels.
 * Probabilities, weights and deviations that are refused are found at the device's next wait then.
 * Of more elements than the GPU has threads at once, which one gets which number depends on how many
 * multiprocessors it has, as in PyTorch.  Normals of f32 and narrower use the GPU's fast sine, exponentials
 * its fast logarithm; masks of dropout are PyTorch's for tensors that begin at 16 bytes, as new ones do. */
TAPEGRAD_API bool tensor_use_torch_cuda_random(bool on);

/* ---- new tensors --------------------------------------------------------------------------------
 * All are on the default device.  ESHAPE, EDTYPE, ENOMEM as tensor_empty. */

/* tensor_rand - uniform on [0, 1).
 * tensor_randn - normal, mean 0, variance 1.
 * tensor_normal - mean + std * randn.  EVALUE: std < 0 or NaN. */
TAPEGRAD_API Tensor *tensor_rand(TensorShape shape, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_randn(TensorShape shape, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_normal(double mean, double std, TensorShape shape, TensorDtype dtype);

/* tensor_normal_tensor - mean_i + std_i z_i, z_i standard normal; mean and std broadcast (ESHAPE) and have
 *     one dtype and device (EDTYPE, EDEVICE).  EVALUE: an std_i is negative or NaN.
 * tensor_normal_tensor_scalar, tensor_normal_scalar_tensor - the same with a number as std, or as mean. */
TAPEGRAD_API Tensor *tensor_normal_tensor(Tensor *mean, Tensor *std);
TAPEGRAD_API Tensor *tensor_normal_tensor_scalar(Tensor *mean, double std);
TAPEGRAD_API Tensor *tensor_normal_scalar_tensor(double mean, Tensor *std);

/* tensor_rand_like, tensor_randn_like - the same with x's shape, dtype and device; contiguous, but drawn in
 * the order of x's memory, as in PyTorch. */
TAPEGRAD_API Tensor *tensor_rand_like(const Tensor *x);
TAPEGRAD_API Tensor *tensor_randn_like(const Tensor *x);

/* tensor_randint - i64, uniform on [low, high).  EVALUE: low >= high.
 * tensor_randint_like - the same with x's shape, dtype and device.  EVALUE: low >= high, or the dtype does
 *     not hold all of [low, high).
 * tensor_randperm - i64 [n]: 0 .. n - 1 in random order.  EVALUE: n < 0. */
TAPEGRAD_API Tensor *tensor_randint(int64_t low, int64_t high, TensorShape shape);
TAPEGRAD_API Tensor *tensor_randint_like(const Tensor *x, int64_t low, int64_t high);
TAPEGRAD_API Tensor *tensor_randperm(int64_t n);

/* tensor_bernoulli - 1 with probability p_i, else 0, with p's shape, dtype and device; contiguous.
 * EVALUE: a p_i is outside [0, 1], or NaN. */
TAPEGRAD_API Tensor *tensor_bernoulli(const Tensor *p);

/* tensor_multinomial(p, n, .replacement = true) - draws n indices from weights p [m], or from each row of p
 * [rows, m]; i64 [n] or [rows, n].  Weights need not sum to 1.  With replacement an index may repeat.
 * Without it n <= m, and indices come in decreasing order of p_i / e_i, e_i exponential, those of weight 0
 * last; of equal quotients, common in f16 and bf16 only, the lower index comes first, which PyTorch leaves
 * open.  ESHAPE: p is not of rank 1 or 2.  EVALUE: n < 1, n > m without replacement, m = 0, m > 2^24, a
 * weight is negative or not finite, a row sums to 0. */
typedef struct TensorMultinomialArgs {
    const Tensor *input;
    int64_t num_samples;
    bool replacement;
} TensorMultinomialArgs;
#define TENSOR_MULTINOMIAL_DEFAULTS .replacement = false
TAPEGRAD_API extern const TensorMultinomialArgs tensor_multinomial_defaults;
#define tensor_multinomial(...)                                                               \
    TENSOR_CALL_(tensor_multinomial_args, TensorMultinomialArgs, TENSOR_MULTINOMIAL_DEFAULTS, \
                 .input = __VA_ARGS__)
TAPEGRAD_API Tensor *tensor_multinomial_args(TensorMultinomialArgs args);

/* ---- in place -------------------------------------------------------------------------------- */

/* tensor_uniform_ - x_i uniform on [lo, hi).  EVALUE: lo > hi, NaN, or lo, hi or hi - lo is out of the
 * dtype's range. */
TAPEGRAD_API Tensor *tensor_uniform_(Tensor *x, double lo, double hi);

/* tensor_normal_ - x_i = mean + std z_i, z_i standard normal.  EVALUE: std < 0 or NaN.
 * A tensor that is not contiguous gets other numbers than a contiguous one, as in PyTorch. */
TAPEGRAD_API Tensor *tensor_normal_(Tensor *x, double mean, double std);

/* tensor_random_ - integers uniform on [0, 2^63) (i64), [0, 2^31) (i32), [0, 255] (u8), [0, 1] (bool), or
 * from 0 to the largest n such that the dtype holds 0 to n exactly: 2^24 (f32), 2^53 (f64), 2^11 (f16), 2^8
 * (bf16). */
TAPEGRAD_API Tensor *tensor_random_(Tensor *x);

/* tensor_bernoulli_ - x_i = 1 with probability p, else 0; any dtype.  EVALUE: p outside [0, 1], or NaN. */
TAPEGRAD_API Tensor *tensor_bernoulli_(Tensor *x, double p);

/* tensor_exponential_ - x_i with the density rate e^(-rate x) on [0, inf).  EVALUE: rate <= 0 or NaN. */
TAPEGRAD_API Tensor *tensor_exponential_(Tensor *x, double rate);

/* tensor_trunc_normal_ - x_i normal with mean and std, restricted to [a, b] by rejection
 * (torch.nn.init.trunc_normal_).  f16 and bf16 (f32's numbers, rounded) and tensors that are not contiguous
 * differ from PyTorch's.
 * EVALUE: std <= 0, a >= b, or mean or std is not finite; std < 10^-6 |mean| (f64: 10^-14 |mean|), where the
 * dtype has too few numbers; [a, b] lies so far in the tail that almost no draw would be accepted. */
TAPEGRAD_API Tensor *tensor_trunc_normal_(Tensor *x, double mean, double std, double a, double b);

#ifdef __cplusplus
}
#endif
#endif
