/* mma.cpp - tensor cores' products, and copies that arrive when they are waited for.  Compiled with
 * optimisation, which kernels are not. */
#include "runtime.h"
#include "mma.h"

namespace cuemu {
/* ---- products -------------------------------------------------------------------------------- */

namespace {
struct Fragments { /* of a lane */
    float a[4][2], b[2][2], *d;
};

/* The sums of a lane, from the fragments of all: two rows of a by two columns of b. */
uint64_t multiply(const uint64_t *value, uint32_t lanes, int lane)
{
    if (lanes != 0xffffffffu) fail("mma of a warp that lacks lanes (arrived %08x)", lanes);
    float a[16][2], b[16][2], *d = ((const Fragments *)value[lane])->d;
    for (int k = 0; k < 16; k++) {
        const Fragments *rows = (const Fragments *)value[lane / 4 * 4 + k % 8 / 2];
        for (int i = 0; i < 2; i++) {
            const Fragments *column = (const Fragments *)value[(lane % 4 * 2 + i) * 4 + k % 8 / 2];
            a[k][i] = rows->a[i + k / 8 * 2][k % 2];
            b[k][i] = column->b[k / 8][k % 2];
        }
    }
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < 4; i++) d[i] += a[k][i / 2] * b[k][i % 2];
    return 0;
}

float element_of(bool half, unsigned bits)
{
    return half ? __half2float(__half{ (uint16_t)bits }) : __bfloat162float(__nv_bfloat16{ (uint16_t)bits });
}
} // namespace

void product(bool half, float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const char *file,
             int line)
{
    Fragments f;
    for (int i = 0; i < 8; i++) f.a[i / 2][i % 2] = element_of(half, a[i / 2] >> i % 2 * 16);
    for (int i = 0; i < 4; i++) f.b[i / 2][i % 2] = element_of(half, b[i / 2] >> i % 2 * 16);
    f.d = d;
    warp(0xffffffffu, (uint64_t)(uintptr_t)&f, multiply, (int)X.lane, true, file, line);
    warp(0xffffffffu, 0, no_value, 0, true, file, line); /* the others have read f */
}

/* ---- copies ---------------------------------------------------------------------------------- */

namespace {
struct Copies { /* of a thread */
    std::vector<Copy> copy;
    std::vector<size_t> end; /* of each group */
};
Copies &my_copies()
{
    static Copies all[1024];
    return all[X.tidx.x + X.bdim.x * (X.tidx.y + X.bdim.y * X.tidx.z)];
}
} // namespace

void ask_for_copy(Copy copy) { my_copies().copy.push_back(copy); }
void end_of_group() { my_copies().end.push_back(my_copies().copy.size()); }

size_t copies_due(size_t groups_left, const Copy **copy)
{
    const Copies &mine = my_copies();
    *copy = mine.copy.data();
    return mine.end.size() <= groups_left ? 0 : mine.end[mine.end.size() - groups_left - 1];
}

void forget_copies(size_t n, size_t groups_left)
{
    Copies &mine = my_copies();
    if (mine.end.size() <= groups_left) return;
    mine.copy.erase(mine.copy.begin(), mine.copy.begin() + (ptrdiff_t)n);
    mine.end.erase(mine.end.begin(), mine.end.end() - (ptrdiff_t)groups_left);
    for (size_t &end : mine.end) end -= n;
}

} // namespace cuemu
