/* elf_image.h - reads ELF files of this machine's class: sections, and the function that contains an address.
 *
 * The file is mapped, not loaded.  Each read is checked against its size, so that a damaged file gives less,
 * never a crash. */
#ifndef TG_ELF_IMAGE_H
#define TG_ELF_IMAGE_H

#include "dwarf_line.h"
#include "hidden.h"

typedef struct ElfImage {
    Bytes file;            /* the mapping */
    Bytes sections, names; /* section headers; their names */
} ElfImage;

typedef struct ElfSection {
    Bytes bytes;
    bool inflated;
} ElfSection;

HIDDEN_BEGIN

bool elf_open(ElfImage *image, const char *path);
void elf_close(ElfImage *image);

/* elf_segments_digest - a number for the program headers of the file: that of the image in memory (elf_digest
 * over its headers) differs when the file was replaced after the program had begun. */
uint32_t elf_segments_digest(const ElfImage *image);
uint32_t elf_digest(const void *data, size_t size);

/* elf_section - the contents of the section of that name, empty when there is none.  Compressed ones are
 * inflated into memory of their own; give both kinds back with elf_section_done. */
ElfSection elf_section(const ElfImage *image, const char *name);
void elf_section_done(ElfSection section);

/* elf_function - the name of the function that holds address (as linked), NULL when there is no symbol.  It
 * lies in the mapping. */
const char *elf_function(const ElfImage *image, uint64_t address);

HIDDEN_END
#endif
