/* crc32c.c - by SSE4.2's instruction if the CPU has it, else four bits at a time. */
#include <string.h>
#include "crc32c.h"

/* table[i]: i times x^28, modulo the reflected polynomial. */
uint32_t crc32c_plain(uint32_t crc, const unsigned char *p, size_t n)
{
    static const uint32_t table[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                        0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t fast(uint32_t crc, const unsigned char *p, size_t n)
{
    uint64_t wide = crc, word;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&word, p, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; n; n--, p++) crc = __builtin_ia32_crc32qi(crc, *p);
    return crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~fast(~crc, data, n);
#endif
    return ~crc32c_plain(~crc, data, n);
}
