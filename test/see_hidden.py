"""see_hidden.py ARCHIVE - no symbol of an archive of 64-bit ELF objects stays hidden, so that a shared
library of them shows suites what its users do not see (mk/tests.mk)."""

import struct
import sys

SYMTAB, LOCAL = 2, 0


def uncover(file, at):
    """The object that begins at `at`: global symbols get the default visibility."""
    if file[at : at + 6] != b"\x7fELF\x02\x01":
        sys.exit("see_hidden.py: not a 64-bit little-endian object")
    sections, size, count = struct.unpack_from("<Q10xHH", file, at + 40)
    for section in range(at + sections, at + sections + size * count, size):
        kind, offset, length = struct.unpack_from("<4xI16xQQ", file, section)
        for symbol in range(at + offset, at + offset + length, 24) if kind == SYMTAB else ():
            if file[symbol + 4] >> 4 != LOCAL:
                file[symbol + 5] &= ~3


def main():
    with open(sys.argv[1], "rb") as f:
        file = bytearray(f.read())
    at = 8  # behind "!<arch>\n"; a member is a header of 60 bytes and its contents, an even number of bytes
    while at < len(file):
        name, length = bytes(file[at : at + 16]), int(file[at + 48 : at + 58])
        if not name.startswith(b"/ ") and not name.startswith(b"//"):  # those are indices
            uncover(file, at + 60)
        at += 60 + length + length % 2
    with open(sys.argv[1], "wb") as f:
        f.write(file)


main()
