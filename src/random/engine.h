/* engine.h - random numbers on raw pointers: PyTorch's sequence for a seed.
 *
 * A Mt19937 is plain data without pointers: copy it to keep a state, write its fields to save it.
 * Every draw below repeats PyTorch 2.15 on the CPU for the same seed and the same sequence of calls, with
 * two reservations:
 *   - PyTorch is an x86-64 wheel on a processor with AVX2 (other builds round a x + b twice, and take log,
 *     sin and cos of f32 normals from libm: an ulp or two apart);
 *   - draws that go through libm (f64 normals, normals of fewer than 16 elements, exponential) agree bit for
 *     bit with glibc's log, log1p, sin and cos, and as closely as other libraries' agree with those.
 * All else (uniform, integer and boolean draws, f32 and half normals of 16 and more elements) agrees bit for
 * bit.  Values do not depend on the machine: where PyTorch's wheel contracts a product and a sum, so do we,
 * by fma.
 *
 *     Mt19937 g;
 *     float x[100];
 *     mt_seed(&g, 0);
 *     mt_uniform_f32(&g, x, 100, 0, 1);          // torch.manual_seed(0); torch.rand(100)
 *     mt_normal_f32(&g, x, 100, 0, 1);           // torch.randn(100)
 *
 * Counts may be 0, and then nothing is drawn.  Nothing here fails: arguments are checked by the caller.
 * A generator belongs to one thread at a time. */
#ifndef TAPEGRAD_RANDOM_ENGINE_H
#define TAPEGRAD_RANDOM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { MT_WORDS = 624 };

typedef struct Mt19937 {
    uint32_t mt[MT_WORDS]; /* state words, as the recurrence left them */
    int32_t index;         /* next word to hand out; MT_WORDS: make new ones first */
    bool has_normal;       /* next_normal holds the second half of a pair */
    double next_normal;    /* standard normal; used by draws of fewer than 16 normals */
    uint64_t seed;         /* as given, for reports */
} Mt19937;

/* What a generator that nobody seeded starts from (torch.Generator().initial_seed()). */
#define MT_DEFAULT_SEED UINT64_C(67280421310721)

/* mt_seed - start the sequence of `seed`; only its low 32 bits count.  Forgets a kept normal. */
void mt_seed(Mt19937 *g, uint64_t seed);

/* mt_valid - whether a state that came from a file can be drawn from. */
bool mt_valid(const Mt19937 *g);

uint32_t mt_u32(Mt19937 *g);    /* next word of the sequence */
uint64_t mt_u64(Mt19937 *g);    /* two words, the first one the high half */
double mt_unit_f64(Mt19937 *g); /* [0, 1), 53 bits of two words */

/* mt_uniform - x_i = u (hi - lo) + lo on [lo, hi).   (torch.rand, Tensor.uniform_)
 * Product and sum are one rounding (fma); a result that rounded up to hi becomes lo.
 * half: the f32 recipe (24 bits of a word), rounded to nearest even to `bits` significant bits (8: bfloat16,
 * 11: half) and handed out as float; here too what rounds to hi becomes lo. */
void mt_uniform_f32(Mt19937 *g, float *x, int64_t n, double lo, double hi);
void mt_uniform_f64(Mt19937 *g, double *x, int64_t n, double lo, double hi);
void mt_uniform_half(Mt19937 *g, float *x, int64_t n, double lo, double hi, int bits);

/* mt_normal - Gaussian samples by Box and Muller.   (torch.randn, Tensor.normal_)
 * n >= 16: n uniforms are transformed in blocks of 16; where 16 does not divide n, 16 more are drawn for the
 * last 16 elements, over the block before.  n < 16: pair by pair in f64; the second of a pair is kept in the
 * generator for the next draw of fewer than 16. f32 blocks use Cephes' polynomials for log, sin and cos, as
 * PyTorch's AVX2 code does: within 2e-6 of the exact sample of N(0, 1), and the same on every machine. half:
 * the f32 blocks, rounded as in mt_uniform_half; unlike f32, n mod 16 uniforms fewer are drawn. */
void mt_normal_f32(Mt19937 *g, float *x, int64_t n, double mean, double std);
void mt_normal_f64(Mt19937 *g, double *x, int64_t n, double mean, double std);
void mt_normal_half(Mt19937 *g, float *x, int64_t n, double mean, double std, int bits);

/* mt_normal_each - n samples by the recipe for fewer than 16, whatever n: what PyTorch does for tensors that
 * are not contiguous, in the order of memory. */
void mt_normal_each(Mt19937 *g, double *x, int64_t n, double mean, double std);

/* mt_randint - integers on [lo, hi), lo < hi.   (torch.randint, Tensor.random_(lo, hi))
 * One word modulo hi - lo where that is below 2^28, else two words.  The skew is that of the modulo. */
void mt_randint(Mt19937 *g, int64_t *x, int64_t n, int64_t lo, int64_t hi);

/* mt_random_i64 - one integer on [0, 2^63).   (torch.empty((), dtype=torch.int64).random_().item())
 * DataLoader draws its base seed and its sampler's seed by it. */
int64_t mt_random_i64(Mt19937 *g);

/* mt_randperm - a random permutation of 0 .. n-1.   (torch.randperm) */
void mt_randperm(Mt19937 *g, int64_t *x, int64_t n);

/* mt_bernoulli - 1 with probability p, else 0.   (Tensor.bernoulli_(p); dropout's mask has p = keep)
 * each_f32, each_f64 - element i has its own probability.   (torch.bernoulli(p))
 * f32 draws use one word each, the others two. */
void mt_bernoulli(Mt19937 *g, uint8_t *x, int64_t n, double p);
void mt_bernoulli_each_f32(Mt19937 *g, float *x, const float *p, int64_t n);
void mt_bernoulli_each_f64(Mt19937 *g, double *x, const double *p, int64_t n);

/* mt_exponential - x_i = -ln(1 - u) / rate, rate > 0, computed in f64.   (Tensor.exponential_) */
void mt_exponential_f32(Mt19937 *g, float *x, int64_t n, double rate);
void mt_exponential_f64(Mt19937 *g, double *x, int64_t n, double rate);

/* mt_trunc_normal - N(mean, std^2) cut to [a, b], a < b, std > 0, by rejection.   (nn.init.trunc_normal_)
 * Where [a, b] holds more than 0.3 of the bell, normals are drawn until each lies inside, a whole tensor a
 * round; else uniforms on [a, b] are drawn and kept with the probability of the density.  Each round draws
 * for every element, also for those that are settled, as PyTorch does. scratch: room for n elements; pending:
 * for n bytes; both may hold anything before and after. The second branch compares with ln u by libm: an
 * element in about 10^7 may be decided otherwise than by PyTorch. */
void mt_trunc_normal_f32(Mt19937 *g, float *x, int64_t n, double mean, double std, double a, double b,
                         float *scratch, uint8_t *pending);
void mt_trunc_normal_f64(Mt19937 *g, double *x, int64_t n, double mean, double std, double a, double b,
                         double *scratch, uint8_t *pending);

#endif
