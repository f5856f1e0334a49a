/* elf_image.c - ELF sections and symbols, every offset checked.
 *
 * Structs are copied out of the file before use: in a damaged file they may lie at any offset. */
#define _GNU_SOURCE
#include "elf_image.h"

#if defined(__linux__) && defined(__ELF__)

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

typedef ElfW(Ehdr) Header;
typedef ElfW(Shdr) SectionHeader;
typedef ElfW(Sym) Symbol;
typedef ElfW(Chdr) CompressionHeader;

enum {
    OWN_CLASS = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32,
    OWN_ORDER = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB,
    MOST_INFLATED = 1032 /* deflate makes no byte into more */
};

static Bytes part(Bytes of, uint64_t offset, uint64_t size)
{
    if (offset > of.size || size > of.size - offset || !size) return (Bytes){ NULL, 0 };
    return (Bytes){ of.data + offset, (size_t)size };
}

static bool copy(void *to, Bytes from, uint64_t index, size_t size)
{
    if (index >= from.size / size) return false;
    memcpy(to, from.data + index * size, size);
    return true;
}

static const char *text_at(Bytes texts, uint64_t offset)
{
    if (offset >= texts.size || !memchr(texts.data + offset, 0, texts.size - offset)) return NULL;
    return (const char *)texts.data + offset;
}

static bool read_header(const ElfImage *image, Header *h)
{
    return copy(h, image->file, 0, sizeof *h) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
           h->e_ident[EI_CLASS] == OWN_CLASS && h->e_ident[EI_DATA] == OWN_ORDER;
}

/* More than 65279 sections: the first header, which is no section, holds their number and the one of the
 * names. */
static bool find_sections(ElfImage *image)
{
    Header h;
    SectionHeader first, names;
    if (!read_header(image, &h) || h.e_shentsize != sizeof first) return false;
    if (!copy(&first, part(image->file, h.e_shoff, sizeof first), 0, sizeof first)) return false;
    uint64_t count = h.e_shnum ? h.e_shnum : first.sh_size;
    uint64_t names_index = h.e_shstrndx == SHN_XINDEX ? first.sh_link : h.e_shstrndx;
    if (count > image->file.size / sizeof first) return false;
    image->sections = part(image->file, h.e_shoff, count * sizeof first);
    if (!copy(&names, image->sections, names_index, sizeof names)) return false;
    image->names = part(image->file, names.sh_offset, names.sh_size);
    return true;
}

bool elf_open(ElfImage *image, const char *path)
{
    *image = (ElfImage){ .file = { NULL, 0 } };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat st;
    void *map = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return false;
    image->file = (Bytes){ map, (size_t)st.st_size };
    if (find_sections(image)) return true;
    elf_close(image);
    return false;
}

void elf_close(ElfImage *image)
{
    if (image->file.size) munmap((void *)(uintptr_t)image->file.data, image->file.size);
    *image = (ElfImage){ .file = { NULL, 0 } };
}

uint32_t elf_digest(const void *data, size_t size)
{
    const uint8_t *byte = data;
    uint32_t digest = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++) digest = (digest ^ byte[i]) * 16777619u;
    return digest;
}

uint32_t elf_segments_digest(const ElfImage *image)
{
    Header h;
    if (!read_header(image, &h)) return 0;
    Bytes segments = part(image->file, h.e_phoff, (uint64_t)h.e_phnum * sizeof(ElfW(Phdr)));
    return elf_digest(segments.data, segments.size);
}

static bool section_header(const ElfImage *image, const char *name, SectionHeader *s)
{
    for (uint64_t i = 1; copy(s, image->sections, i, sizeof *s); i++) {
        const char *text = text_at(image->names, s->sh_name);
        if (text && strcmp(text, name) == 0) return s->sh_type != SHT_NOBITS;
    }
    return false;
}

static ElfSection inflate_section(Bytes packed)
{
    ElfSection none = { { NULL, 0 }, false };
    CompressionHeader h;
    if (!copy(&h, packed, 0, sizeof h) || h.ch_type != ELFCOMPRESS_ZLIB) return none;
    packed = part(packed, sizeof h, packed.size - sizeof h);
    if (!packed.size || !h.ch_size || h.ch_size / MOST_INFLATED > packed.size) return none;
    void *room = mmap(NULL, h.ch_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return none;
    uLongf size = h.ch_size;
    if (uncompress(room, &size, packed.data, (uLong)packed.size) == Z_OK && size == h.ch_size)
        return (ElfSection){ { room, size }, true };
    munmap(room, h.ch_size);
    return none;
}

ElfSection elf_section(const ElfImage *image, const char *name)
{
    SectionHeader s;
    if (!section_header(image, name, &s)) return (ElfSection){ { NULL, 0 }, false };
    Bytes bytes = part(image->file, s.sh_offset, s.sh_size);
    return s.sh_flags & SHF_COMPRESSED ? inflate_section(bytes) : (ElfSection){ bytes, false };
}

void elf_section_done(ElfSection section)
{
    if (section.inflated) munmap((void *)(uintptr_t)section.bytes.data, section.bytes.size);
}

static const char *function_in(const ElfImage *image, const char *table, uint64_t address)
{
    SectionHeader s, texts;
    if (!section_header(image, table, &s) || !copy(&texts, image->sections, s.sh_link, sizeof texts))
        return NULL;
    Bytes names = part(image->file, texts.sh_offset, texts.sh_size);
    Bytes symbols = part(image->file, s.sh_offset, s.sh_size);
    Symbol symbol;
    for (uint64_t i = 0; copy(&symbol, symbols, i, sizeof symbol); i++) {
        unsigned type = symbol.st_info & 0xf;
        if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
        if (symbol.st_shndx == SHN_UNDEF || address < symbol.st_value ||
            address - symbol.st_value >= symbol.st_size)
            continue;
        const char *name = text_at(names, symbol.st_name);
        if (name && *name) return name;
    }
    return NULL;
}

const char *elf_function(const ElfImage *image, uint64_t address)
{
    const char *name = function_in(image, ".symtab", address);
    return name ? name : function_in(image, ".dynsym", address);
}

#endif
