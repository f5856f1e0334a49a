/* random_state.h - the thread's random state, for the rest of the library.
 *
 * All functions work on the generator that the thread draws from (tensor_set_generator). */
#ifndef TG_RANDOM_STATE_H
#define TG_RANDOM_STATE_H

#include <tapegrad/random.h>
#include "engine.h"
#include "hidden.h"
#include "tensor/core.h"

struct TensorGenerator {
    Mt19937 mt;             /* PyTorch's sequence */
    uint64_t philox_seed;   /* the counter-based one: random/philox.h */
    uint64_t philox_offset; /* of the next tensor */
};

HIDDEN_BEGIN

TensorGenerator *random_generator(void);

/* random_next_philox - seed and offset under which the next count elements are to be made; they are given out
 * once. count 0 takes nothing. */
void random_next_philox(uint64_t *seed, uint64_t *offset, int64_t count);

/* random_torch_masks - are dropout masks on the CPU to be PyTorch's (tensor_use_torch_dropout)? */
bool random_torch_masks(void);

/* random_torch_cuda - are draws on a device to be PyTorch's (tensor_use_torch_cuda_random)?
 * random_as_torch - runs the kernel from where this thread's generator is, which moves on as PyTorch's does;
 * 1: the device has none. */
bool random_torch_cuda(void);
int random_as_torch(const char *op, const Place *place, RandomArgs *args);

/* random_save, random_restore - the whole state, by value: what is drawn between the two is drawn again. */
void random_save(TensorGenerator *into);
void random_restore(const TensorGenerator *from);

/* random_set_state - tensor_generator_set_state, under the name op. */
int random_set_state(const char *op, TensorGenerator *g, const Tensor *state);

HIDDEN_END

#endif
