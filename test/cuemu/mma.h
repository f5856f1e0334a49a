/* mma.h - what src/cuda/mma.cuh has from tensor cores, by the emulator: fragments lie as there, products are
 * summed in f32, and copies into shared memory arrive when they are waited for, and not before. */
#pragma once

namespace cuemu {
/* The sums of a lane, of halves or bf16. */
void product(bool half, float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const char *file,
             int line);

/* One word of a lane: `which` is 32 matrices + the lane. */
template <bool TRANSPOSED> uint64_t matrix_word(const uint64_t *value, uint32_t lanes, int which)
{
    if (lanes != 0xffffffffu) fail("ldmatrix of a warp that lacks lanes (arrived %08x)", lanes);
    const int matrix = which / 32, far = which % 32 / 4, near = which % 4 * 2;
    uint16_t half[2];
    for (int i = 0; i < 2; i++) {
        const int row = TRANSPOSED ? near + i : far, column = TRANSPOSED ? far : near + i;
        memcpy(&half[i], (const char *)value[matrix * 8 + row] + 2 * column, sizeof half[i]);
    }
    return half[0] | (uint32_t)half[1] << 16;
}

template <bool TRANSPOSED> void matrices(unsigned (&r)[4], const void *row, const char *file, int line)
{
    if ((uintptr_t)row % 16) fail("%s:%d: a row of ldmatrix is not aligned to 16 bytes", file, line);
    for (int m = 0; m < 4; m++)
        r[m] = (unsigned)warp(0xffffffffu, (uintptr_t)row, matrix_word<TRANSPOSED>, m * 32 + (int)X.lane,
                              false, file, line);
}

/* Copies that a thread has asked for, and which it waits for before it ends; kept where no sanitizer looks:
 * what they do to memory is done here. */
struct Copy {
    void *to;
    const void *from; /* nullptr: zeros */
};
void ask_for_copy(Copy copy);
void end_of_group();
size_t copies_due(size_t groups_left, const Copy **copy);
void forget_copies(size_t n, size_t groups_left);
} // namespace cuemu

template <class T> void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, CUEMU_AT)
{
    cuemu::product(std::is_same_v<T, __half>, d, a, { b0, b1 }, file, line);
}

static inline void load_matrices(unsigned (&r)[4], const void *row, CUEMU_AT)
{
    cuemu::matrices<false>(r, row, file, line);
}
static inline void load_transposed(unsigned (&r)[4], const void *row, CUEMU_AT)
{
    cuemu::matrices<true>(r, row, file, line);
}

static inline void copy16(void *to, const void *from, bool there, CUEMU_AT)
{
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16)
        cuemu::fail("%s:%d: a copy of 16 bytes is not aligned to them", file, line);
    memset(to, 0xff, 16);
    cuemu::ask_for_copy({ to, there ? from : nullptr });
}
static inline void end_of_copies() { cuemu::end_of_group(); }
template <int N> void wait_for_copies()
{
    const cuemu::Copy *copy;
    const size_t n = cuemu::copies_due(N, &copy);
    for (size_t i = 0; i < n; i++)
        if (copy[i].from) memcpy(copy[i].to, copy[i].from, 16);
        else memset(copy[i].to, 0, 16);
    cuemu::forget_copies(n, N);
}

typedef unsigned __attribute__((may_alias)) PairWord;
static inline unsigned pair_of(__nv_bfloat16, float low, float high)
{
    return __float2bfloat16_rn(low).x | (unsigned)__float2bfloat16_rn(high).x << 16;
}
static inline unsigned pair_of(__half, float low, float high)
{
    return __float2half_rn(low).x | (unsigned)__float2half_rn(high).x << 16;
}
