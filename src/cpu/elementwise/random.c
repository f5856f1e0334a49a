/* random.c - the counter-based generator on the CPU: masks, uniforms, normals by element number.
 *
 * With w the Philox word of an element (random/philox.h):
 *   mask      1 where w is below the threshold of probability 1 - p
 *   uniform   on [0, 1): the upper bits of w, as many as the dtype holds exactly (f64: all 32)
 *   normal    elements 2k and 2k + 1 are r cos t and r sin t, from their words v and w:
 *             r = sqrt(-2 ln((v + 1) / 2^32)), t = 2 pi w / 2^32, in f64, rounded once to the dtype
 * Work is cut at multiples of BLOCK elements; element i does not depend on the cut. */
#include "device/half.h"
#include "random/philox.h"
#include "cpu/cpu.h"

#include <math.h>

enum { BLOCK = 16384 };

typedef struct Part { /* elements first .. first + n - 1 of a call */
    const RandomArgs *args;
    int64_t first, n;
} Part;

static uint32_t word_of(const Part *p, int64_t i)
{
    return philox_u32(p->args->seed, p->args->offset, (uint64_t)i);
}

static void uniform(const Part *p)
{
    int64_t end = p->first + p->n;
    float *f32 = p->args->out;
    double *f64 = p->args->out;
    uint16_t *half = p->args->out;
    switch (p->args->dtype) {
    case TENSOR_F32:
        philox_uniform_f32(f32 + p->first, p->first, p->n, p->args->seed, p->args->offset);
        break;
    case TENSOR_F64:
        for (int64_t i = p->first; i < end; i++) f64[i] = word_of(p, i) * 0x1p-32;
        break;
    case TENSOR_F16:
        for (int64_t i = p->first; i < end; i++)
            half[i] = f16_from_f32((float)(word_of(p, i) >> 21) * 0x1p-11f);
        break;
    default:
        for (int64_t i = p->first; i < end; i++)
            half[i] = bf16_from_f32((float)(word_of(p, i) >> 24) * 0x1p-8f);
    }
}

static void store(void *out, int dtype, int64_t i, double value)
{
    switch (dtype) {
    case TENSOR_F32: ((float *)out)[i] = (float)value; break;
    case TENSOR_F64: ((double *)out)[i] = value; break;
    case TENSOR_F16: ((uint16_t *)out)[i] = f16_from_f64(value); break;
    default: ((uint16_t *)out)[i] = bf16_from_f64(value);
    }
}

static void normal(const Part *p)
{
    for (int64_t i = 0; i < p->n; i += 2) {
        int64_t at = p->first + i; /* even: BLOCK is */
        PhiloxBlock b = philox_block(p->args->seed, p->args->offset, (uint64_t)at / 4);
        uint32_t v = b.word[at % 4], w = b.word[at % 4 + 1];
        double r = sqrt(-2 * log((v + 1.0) * 0x1p-32)), t = 2 * 3.14159265358979323846 * (w * 0x1p-32);
        store(p->args->out, p->args->dtype, at, r * cos(t));
        if (i + 1 < p->n) store(p->args->out, p->args->dtype, at + 1, r * sin(t));
    }
}

static void fill_part(const Part *p)
{
    const RandomArgs *args = p->args;
    if (args->kind == RANDOM_UNIFORM) uniform(p);
    else if (args->kind == RANDOM_NORMAL) normal(p);
    else philox_mask((uint8_t *)args->out + p->first, p->first, p->n, args->seed, args->offset, 1 - args->p);
}

static void fill_block(void *ctx, int64_t b)
{
    const RandomArgs *args = ctx;
    int64_t left = args->count - b * BLOCK;
    fill_part(&(Part){ args, b * BLOCK, left < BLOCK ? left : BLOCK });
}

int cpu_random(RandomArgs *args)
{
    if (args->kind > RANDOM_NORMAL || args->x) return KERNEL_DECLINED;
    int64_t blocks = (args->count + BLOCK - 1) / BLOCK;
    int64_t cost = args->kind == RANDOM_NORMAL ? 40 : 2; /* of an element, in simple operations */
    if (args->kind != RANDOM_DROPOUT_MASK && !dtype_is_float(args->dtype))
        return cpu_fail("random numbers of an integer dtype");
    parallel_for(blocks, cpu_threads(args->count * cost), fill_block, args);
    return 0;
}
