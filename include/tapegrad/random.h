/* random.h - random tensors and generators: PyTorch's numbers for a seed.
 *
 *     tensor_manual_seed(0);
 *     Tensor *w = tensor_randn(SHAPE(5), TENSOR_F32);      // 1.5410, -0.2934, -2.1788, 0.5684, -1.0845
 *     Tensor *order = tensor_randperm(10);                 // PyTorch's shuffles too
 *     TensorGenerator *g = tensor_generator(7);            // a sequence apart
 *     TensorGenerator *before = tensor_set_generator(g);
 *     Tensor *noise = tensor_rand(SHAPE(3), TENSOR_F32);   // drawn from g
 *     tensor_set_generator(before);
 *     tensor_generator_free(g);
 *
 * The same calls after the same seed give the values of PyTorch's CPU generator, element by element, also for
 * tensors that are not contiguous (those are filled in the order of memory).  Values are drawn on the CPU and
 * copied to where the tensor lives: they depend neither on the device nor on the number of threads.  What
 * goes through libm's log, sin and cos (f64 normals, fewer than 16 normals, exponential) agrees to an ulp or
 * two; where else the values differ, the function says so.
 *
 * Dropout on the CPU draws PyTorch's masks from the same sequence.  On another device, or after
 * tensor_use_torch_dropout(false), masks come from a counter-based generator (Philox) that is seeded along.
 *
 * Results are outside any graph.  In-place draws (trailing underscore) return x, keep to the rules of
 * in-place ops in ops.h, and cut x from its history: no gradient reaches the old value.  Operands that are
 * refused, and tensors of no elements, draw nothing.  dtype is f32, f64, f16 or bf16 unless it says more
 * (EDTYPE).
 *
 * C leaves open in which order the arguments of a call are evaluated, and gcc and clang differ: draw in
 * statements of their own what must repeat.  tensor_sub(tensor_rand(s, t), tensor_rand(s, t)) may draw either
 * operand first. */
#ifndef TAPEGRAD_RANDOM_H
#define TAPEGRAD_RANDOM_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- generators ---------------------------------------------------------------------------------
 * Each thread has a default generator, which starts from PyTorch's default seed, 67280421310721 - the same in
 * every thread: seed it, or give each thread a generator of its own, where threads shall draw different
 * numbers. A generator may move between threads but serves one at a time. */
typedef struct TensorGenerator TensorGenerator;

/* tensor_manual_seed - restarts this thread's default generator, whichever is in use.   (torch.manual_seed)
 *     Of a seed the low 32 bits count, as in PyTorch; masks by Philox take all 64.
 * tensor_seed - the same with a seed from the system's entropy; returns it (53 bits: a double can hold it).
 * tensor_initial_seed - the last seed. */
TAPEGRAD_API void tensor_manual_seed(uint64_t seed);
TAPEGRAD_API uint64_t tensor_seed(void);
TAPEGRAD_API uint64_t tensor_initial_seed(void);

/* tensor_generator - a new one, seeded; NULL and ENOMEM without memory.  The caller frees it (NULL: nothing
 * is done); if it is in use on the calling thread, the default generator takes its place; on another thread
 * it must not be in use. */
TAPEGRAD_API TensorGenerator *tensor_generator(uint64_t seed);
TAPEGRAD_API void tensor_generator_free(TensorGenerator *g);

/* tensor_default_generator - this thread's own; lives as long as the thread, and is not to be freed.
 * tensor_set_generator - what this thread draws from, from now on; NULL: the default one.  Returns what it
 * was, never NULL, to be set again later. */
TAPEGRAD_API TensorGenerator *tensor_default_generator(void);
TAPEGRAD_API TensorGenerator *tensor_set_generator(TensorGenerator *g);

/* The same for a given generator.   (torch.Generator's methods.)  ENULL: g is NULL. */
TAPEGRAD_API int tensor_generator_manual_seed(TensorGenerator *g, uint64_t seed);
TAPEGRAD_API uint64_t tensor_generator_seed(TensorGenerator *g);
TAPEGRAD_API uint64_t tensor_generator_initial_seed(const TensorGenerator *g);

/* tensor_generator_get_state - all that decides the numbers to come, as a u8 tensor [5072] on the CPU: the
 *     5056 bytes of torch.Generator().get_state(), then seed and position of the Philox sequence, 8 bytes
 *     each, little-endian.
 * tensor_generator_set_state - continues from such a state; one of 5056 bytes is PyTorch's own, and starts
 *     the Philox sequence of its seed.  EDTYPE: not u8.  ESHAPE: another length.  EFORMAT: no state.
 * tensor_get_rng_state, tensor_set_rng_state - of the thread's default generator. */
TAPEGRAD_API Tensor *tensor_generator_get_state(const TensorGenerator *g);
TAPEGRAD_API int tensor_generator_set_state(TensorGenerator *g, const Tensor *state);
TAPEGRAD_API Tensor *tensor_get_rng_state(void);
TAPEGRAD_API int tensor_set_rng_state(const Tensor *state);

/* tensor_use_torch_dropout - where this thread's dropout on the CPU takes its masks from: true, as at first,
 * from the generator, as PyTorch does; false, from Philox: in parallel, and the same masks as on other
 * devices. Returns what it was. */
TAPEGRAD_API bool tensor_use_torch_dropout(bool on);

/* ---- new tensors --------------------------------------------------------------------------------
 * On the default device.  ESHAPE, EDTYPE, ENOMEM as tensor_empty. */

/* tensor_rand - uniform on [0, 1).
 * tensor_randn - normal, mean 0, variance 1.
 * tensor_normal - mean + std * randn.  EVALUE: std < 0 or NaN. */
TAPEGRAD_API Tensor *tensor_rand(TensorShape shape, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_randn(TensorShape shape, TensorDtype dtype);
TAPEGRAD_API Tensor *tensor_normal(double mean, double std, TensorShape shape, TensorDtype dtype);

/* tensor_normal_tensor - mean_i + std_i z_i, z normal; mean and std broadcast, of one dtype and device
 *     (EDTYPE, EDEVICE, ESHAPE).  EVALUE: an std_i that is negative or NaN.
 * tensor_normal_tensor_scalar, tensor_normal_scalar_tensor - the same where one of them is a number. */
TAPEGRAD_API Tensor *tensor_normal_tensor(Tensor *mean, Tensor *std);
TAPEGRAD_API Tensor *tensor_normal_tensor_scalar(Tensor *mean, double std);
TAPEGRAD_API Tensor *tensor_normal_scalar_tensor(double mean, Tensor *std);

/* tensor_rand_like, tensor_randn_like - of x's shape, dtype and device; drawn in the order of x's memory, as
 * PyTorch does, but contiguous. */
TAPEGRAD_API Tensor *tensor_rand_like(const Tensor *x);
TAPEGRAD_API Tensor *tensor_randn_like(const Tensor *x);

/* tensor_randint - i64 on [low, high).  EVALUE: low >= high.
 * tensor_randint_like - the same, of x's shape, dtype and device.  EVALUE: low >= high, or numbers between
 *     them that the dtype does not hold.
 * tensor_randperm - i64 [n]: 0 .. n - 1 in random order.  EVALUE: n < 0. */
TAPEGRAD_API Tensor *tensor_randint(int64_t low, int64_t high, TensorShape shape);
TAPEGRAD_API Tensor *tensor_randint_like(const Tensor *x, int64_t low, int64_t high);
TAPEGRAD_API Tensor *tensor_randperm(int64_t n);

/* tensor_bernoulli - 1 with probability p_i, else 0; of p's shape, dtype and device, contiguous.
 * EVALUE: a p_i outside [0, 1], or NaN. */
TAPEGRAD_API Tensor *tensor_bernoulli(const Tensor *p);

/* tensor_multinomial(p, n, .replacement = true) - n indices drawn from weights p [m] or, row by row, [rows,
 * m]; i64 [n] or [rows, n].  Weights are not negative and need no sum of 1.  With replacement an index may
 * come again; without it indices come in decreasing order of p_i / e_i, e_i exponential (those of weight 0
 * last), and n <= m.  Among equal quotients, frequent in halves only, the lower index comes first; PyTorch
 * leaves that open.  ESHAPE: p is not of rank 1 or 2.  EVALUE: n < 1, n > m without replacement, m = 0, m >
 * 2^24, a weight that is negative or not finite, a row that sums to 0. */
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

/* tensor_uniform_ - x_i uniform on [lo, hi).  EVALUE: lo > hi, NaN, or bounds or hi - lo beyond the dtype's
 * range. */
TAPEGRAD_API Tensor *tensor_uniform_(Tensor *x, double lo, double hi);

/* tensor_normal_ - x_i = mean + std z_i, z_i normal.  EVALUE: std < 0 or NaN.
 * A tensor that is not contiguous gets other numbers than a contiguous one, as in PyTorch. */
TAPEGRAD_API Tensor *tensor_normal_(Tensor *x, double mean, double std);

/* tensor_random_ - integers on [0, 2^63) (i64), [0, 2^31) (i32), [0, 255] (u8), [0, 1] (bool), or from 0 to
 * the last below which the dtype holds all integers, inclusive: 2^24 (f32), 2^53 (f64), 2^11 (f16), 2^8
 * (bf16). */
TAPEGRAD_API Tensor *tensor_random_(Tensor *x);

/* tensor_bernoulli_ - 1 with probability p, else 0; any dtype.  EVALUE: p outside [0, 1], or NaN. */
TAPEGRAD_API Tensor *tensor_bernoulli_(Tensor *x, double p);

/* tensor_exponential_ - density rate e^(-rate x) on [0, inf).  EVALUE: rate <= 0 or NaN. */
TAPEGRAD_API Tensor *tensor_exponential_(Tensor *x, double rate);

/* tensor_trunc_normal_ - normal, but cut to [a, b], by rejection.   (torch.nn.init.trunc_normal_)
 * f16 and bf16 (the numbers of f32, rounded) and tensors that are not contiguous get other numbers than in
 * PyTorch. EVALUE: unless std > 0 and a < b, and mean and std are finite; std below a millionth of |mean|
 * (f64: 10^-14), where the dtype holds too few numbers; [a, b] in the tail of the bell and so wide that
 * hardly a draw would be accepted. */
TAPEGRAD_API Tensor *tensor_trunc_normal_(Tensor *x, double mean, double std, double a, double b);

#ifdef __cplusplus
}
#endif
#endif
