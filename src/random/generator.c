/* generator.c - generators: each thread's own, those of the program, and their states as bytes.
 *
 *  - One seed starts both sequences of a generator, PyTorch's (MT19937) and the counter-based one (Philox).
 *  - current.in_use is NULL while the thread's own generator is in use, which is seeded when first asked for.
 */
#include "tensor/core.h"
#include "random_state.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static THREAD_LOCAL struct {
    bool seeded, philox_masks, torch_cuda;
    TensorGenerator own, *in_use;
} current;

static void seed_both(TensorGenerator *g, uint64_t seed)
{
    graph_wait("tensor_manual_seed", "seeds a generator");
    mt_seed(&g->mt, seed);
    g->philox_seed = seed;
    g->philox_offset = 0;
}

/* ---- the thread's generator ------------------------------------------------------------------ */

TensorGenerator *tensor_default_generator(void)
{
    if (unlikely(!current.seeded)) {
        seed_both(&current.own, MT_DEFAULT_SEED);
        current.seeded = true;
    }
    return &current.own;
}

TensorGenerator *random_generator(void)
{
    return current.in_use ? current.in_use : tensor_default_generator();
}

TensorGenerator *tensor_set_generator(TensorGenerator *g)
{
    TensorGenerator *before = random_generator();
    current.in_use = g == &current.own ? NULL : g;
    return before;
}

bool tensor_use_torch_dropout(bool on)
{
    bool before = !current.philox_masks;
    current.philox_masks = !on;
    return before;
}

bool random_torch_masks(void) { return !current.philox_masks; }

bool tensor_use_torch_cuda_random(bool on)
{
    bool before = current.torch_cuda;
    current.torch_cuda = on;
    return before;
}

bool random_torch_cuda(void) { return current.torch_cuda; }

/* Offsets of PyTorch's are multiples of 4. */
int random_as_torch(const char *op, const Place *place, RandomArgs *args)
{
    TensorGenerator *g = random_generator();
    if (graph_wait(op, "PyTorch's numbers are drawn from an offset of the host's")) return -1;
    args->seed = g->philox_seed, args->offset = (g->philox_offset + 3) / 4 * 4;
    if (RUN_KERNEL(op, place, random, args)) return take_decline() ? 1 : -1;
    g->philox_offset = args->offset + args->advance;
    return 0;
}

void random_next_philox(uint64_t *seed, uint64_t *offset, int64_t count)
{
    TensorGenerator *g = random_generator();
    *seed = g->philox_seed;
    *offset = g->philox_offset;
    g->philox_offset += count > 0;
}

void random_save(TensorGenerator *into) { *into = *random_generator(); }

void random_restore(const TensorGenerator *from) { *random_generator() = *from; }

/* ---- generators of the program --------------------------------------------------------------- */

static int check_generator(const TensorGenerator *g, const char *op)
{
    return g ? 0 : fail(TENSOR_ENULL, op, "the generator is NULL");
}

TensorGenerator *tensor_generator(uint64_t seed)
{
    TensorGenerator *g = tg_alloc(sizeof *g);
    if (g) seed_both(g, seed);
    else fail_memory("tensor_generator");
    return g;
}

void tensor_generator_free(TensorGenerator *g)
{
    if (!g || g == &current.own) return;
    if (current.in_use == g) current.in_use = NULL;
    tg_free(g, sizeof *g);
}

int tensor_generator_manual_seed(TensorGenerator *g, uint64_t seed)
{
    if (check_generator(g, "tensor_generator_manual_seed")) return -1;
    seed_both(g, seed);
    return 0;
}

/* From the system, or where that gives none from the clock; PyTorch's, too, have 53 bits. */
static uint64_t fresh_seed(void)
{
    uint64_t seed;
    if (getentropy(&seed, sizeof seed) != 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * UINT64_C(0x9e3779b97f4a7c15) ^
               (uint64_t)getpid();
    }
    return seed & ((UINT64_C(1) << 53) - 1);
}

uint64_t tensor_generator_seed(TensorGenerator *g)
{
    if (check_generator(g, "tensor_generator_seed")) return 0;
    uint64_t seed = fresh_seed();
    seed_both(g, seed);
    return seed;
}

uint64_t tensor_generator_initial_seed(const TensorGenerator *g)
{
    return check_generator(g, "tensor_generator_initial_seed") ? 0 : g->mt.seed;
}

void tensor_manual_seed(uint64_t seed) { seed_both(tensor_default_generator(), seed); }

uint64_t tensor_seed(void) { return tensor_generator_seed(tensor_default_generator()); }

uint64_t tensor_initial_seed(void) { return tensor_default_generator()->mt.seed; }

/* ---- states as bytes ------------------------------------------------------------------------- */

/* What PyTorch saves, in its order, and our two words after it.  `left` counts the words left of a batch of
 * 624, and is 1 when the next draw makes a new batch; `next` follows from it. */
typedef struct State {
    uint64_t seed;
    int32_t left, seeded;
    uint64_t next, word[MT_WORDS];
    double unused_x, normal, unused_rho;
    int32_t has_normal, pad;
    uint64_t unused_float;
    uint64_t philox_seed, philox_offset;
} State;

enum { TORCH_BYTES = 5056, STATE_BYTES = 5072 };
_Static_assert(offsetof(State, philox_seed) == TORCH_BYTES && sizeof(State) == STATE_BYTES,
               "states are files: their layout stays");

static State pack(const TensorGenerator *g)
{
    const Mt19937 *mt = &g->mt;
    State s = { .seed = mt->seed,
                .left = MT_WORDS + 1 - mt->index,
                .seeded = 1,
                .next = (uint64_t)mt->index,
                .normal = mt->has_normal ? mt->next_normal : 0,
                .has_normal = mt->has_normal,
                .philox_seed = g->philox_seed,
                .philox_offset = g->philox_offset };
    for (int i = 0; i < MT_WORDS; i++) s.word[i] = mt->mt[i];
    return s;
}

static bool unpack(TensorGenerator *g, const State *s)
{
    Mt19937 *mt = &g->mt;
    if (s->seeded != 1 || s->left < 1 || s->left > MT_WORDS || s->has_normal < 0 || s->has_normal > 1)
        return false;
    for (int i = 0; i < MT_WORDS; i++) {
        if (s->word[i] > UINT32_MAX) return false;
        mt->mt[i] = (uint32_t)s->word[i];
    }
    mt->index = MT_WORDS + 1 - s->left;
    mt->seed = s->seed;
    mt->has_normal = s->has_normal;
    mt->next_normal = s->normal;
    g->philox_seed = s->philox_seed;
    g->philox_offset = s->philox_offset;
    return mt_valid(mt);
}

static Tensor *get_state(const TensorGenerator *g)
{
    Tensor *state = new_tensor(SHAPE(STATE_BYTES), TENSOR_U8, &cpu_place);
    if (!state) return NULL;
    State s = pack(g);
    memcpy(state->data, &s, sizeof s);
    return own(state);
}

int random_set_state(const char *op, TensorGenerator *g, const Tensor *state)
{
    if (check_null(state, op, 1)) return -1;
    if (state->dtype != TENSOR_U8)
        return fail(TENSOR_EDTYPE, op, "the state is %s %s: want u8",
                    tensor_dtype_name((TensorDtype)state->dtype), S(state));
    if (state->numel != TORCH_BYTES && state->numel != STATE_BYTES)
        return fail(TENSOR_ESHAPE, op, "the state is %s: want [%d], or [%d] from PyTorch", S(state),
                    STATE_BYTES, TORCH_BYTES);
    State s = { 0 };
    TensorGenerator parsed;
    if (tensor_copy_to(state, &s, (size_t)state->numel)) return -1;
    if (state->numel == TORCH_BYTES) s.philox_seed = s.seed;
    if (!unpack(&parsed, &s)) return fail(TENSOR_EFORMAT, op, "these bytes are no generator's state");
    if (graph_wait(op, "sets a generator's state")) return -1;
    *g = parsed;
    return 0;
}

Tensor *tensor_generator_get_state(const TensorGenerator *g)
{
    return check_generator(g, "tensor_generator_get_state") ? NULL : get_state(g);
}

int tensor_generator_set_state(TensorGenerator *g, const Tensor *state)
{
    return check_generator(g, "tensor_generator_set_state")
               ? -1
               : random_set_state("tensor_generator_set_state", g, state);
}

Tensor *tensor_get_rng_state(void) { return get_state(tensor_default_generator()); }

int tensor_set_rng_state(const Tensor *state)
{
    return random_set_state("tensor_set_rng_state", tensor_default_generator(), state);
}
