/* crc32c.h - the checksum of Castagnoli, polynomial 0x1edc6f41, as RFC 3720 (appendix B.4) has it. */
#ifndef TG_CRC32C_H
#define TG_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include "hidden.h"

HIDDEN_BEGIN
/* Of n more bytes after those whose checksum is crc; 0 at first. */
uint32_t crc32c(uint32_t crc, const void *data, size_t n);
/* The same of the complements, without SSE4.2. */
uint32_t crc32c_plain(uint32_t crc, const unsigned char *p, size_t n);
HIDDEN_END

#endif
