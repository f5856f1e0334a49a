"""corpus.py FOLDER - small good files of each format, from which the fuzzers start."""

import gzip
import os
import struct
import sys
import zlib


def put(kind, name, data):
    folder = os.path.join(sys.argv[1], kind)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def idx(code, values, *sizes):
    return struct.pack(">HBB%dI" % len(sizes), 0, code, len(sizes), *sizes) + values


def png(colour, depth, width, height, *, interlaced=0, extra=b""):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = b"\0" + bytes(range((width * samples * depth + 7) // 8))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))
        + extra
        + chunk(b"IDAT", zlib.compress(row * height * (2 if interlaced else 1)))
        + chunk(b"IEND", b"")
    )


PALETTE = (
    struct.pack(">I", 12)
    + b"PLTE"
    + bytes(range(12))
    + struct.pack(">I", zlib.crc32(b"PLTE" + bytes(range(12))))
)


def safetensors(header, values):
    return struct.pack("<Q", len(header)) + header + values


for code, size in ((8, 1), (9, 1), (11, 2), (12, 4), (13, 4), (14, 8)):
    put("idx", "type%d" % code, idx(code, bytes(range(6 * size)), 2, 3))
    put("idx", "gzip%d" % code, gzip.compress(idx(code, bytes(range(6 * size)), 2, 3), mtime=0))
put("idx", "scalar", idx(8, b"x"))
put("idx", "empty", idx(13, b"", 0, 7))
for colour, depth in ((0, 1), (0, 8), (0, 16), (2, 8), (2, 16), (4, 8), (6, 8), (6, 16)):
    put("png", "colour%d-%d" % (colour, depth), png(colour, depth, 5, 3))
put("png", "palette", png(3, 2, 5, 3, extra=PALETTE))
put("png", "interlaced", png(2, 8, 5, 3, interlaced=1))
put("safetensors", "none", safetensors(b"{}", b""))
put("safetensors", "one", safetensors(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', b"12345678"))
put(
    "safetensors",
    "odd",
    safetensors(
        b'{"__metadata__":{"format":"pt"},"\\ud83d\\ude00\\n":{"dtype":"BOOL","shape":[1,2],"data_offsets":[8,10]},'
        b'"b\xc3\xa9":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"z":{"shape":[0],"data_offsets":[10,10],"dtype":"U8"}}  ',
        b"1234567890",
    ),
)
put(
    "safetensors",
    "checked",
    b"\0" * 7
    + b"\1"
    + b'{"__metadata__":{"crc32c":"00000000","a":"b"},"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}12',
)
