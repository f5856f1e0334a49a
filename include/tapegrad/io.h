/* io.h - files: IDX, PNG, safetensors.
 *
 *     Tensor *images = io_read_idx("train-images-idx3-ubyte.gz");
 *     io_save_png("digit.png", tensor_select(images, 0, 7));
 *     io_save_safetensors("net.safetensors", nn_state_dict(net));
 *
 * Readers take plain files, refuse what they do not understand (EFORMAT) and say where; a missing or
 * unreadable file, a directory, a pipe is EIO.  Before they ask for memory they check that the file can hold
 * what it says.  Writers write a temporary file beside the target, sync it and rename it: a crash or a
 * failure leaves the old file or the new one, never half, and no temporary (but for a crash); permissions of
 * the old one stay.  A target that is no plain file is refused (EIO). */
#ifndef TAPEGRAD_IO_H
#define TAPEGRAD_IO_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* io_read_idx - the format of the MNIST files, plain or gzip: two zero bytes, a type, a rank, the sizes
 * (big-endian), the values.  Types: u8, i32, f32, f64 (i8 and i16 are widened to i32).  EFORMAT: wrong magic,
 * a rank above 16, fewer or more bytes than the sizes say, a checksum that disagrees. */
TAPEGRAD_API Tensor *io_read_idx(const char *path);

/* io_save_png - x [h, w] grey, [1, h, w] grey or [3, h, w] RGB; u8 as it is, floats in [0, 1] (clamped,
 *     rounded to 1/255; NaN is 0).  ESHAPE, EDTYPE; EDEVICE: not on the CPU.
 * io_load_png - u8, [1, h, w] or [3, h, w]; alpha is dropped, palettes become RGB, 16 bits become 8.  A file
 *     that states its gamma is brought to sRGB. */
TAPEGRAD_API int io_save_png(const char *path, const Tensor *x);
TAPEGRAD_API Tensor *io_load_png(const char *path);

/* Texts by name, as a safetensors file may carry them under "__metadata__".  Begin with a zeroed IoMetadata.
 * io_metadata_set - adds a text, or replaces the one of that name.  ENULL, ENOMEM.
 * io_metadata_get - NULL, and no error, when there is none of that name. */
typedef struct IoText {
    char *name, *text;
} IoText;
typedef struct IoMetadata {
    IoText *item; /* in order */
    int count, capacity;
} IoMetadata;
TAPEGRAD_API int io_metadata_set(IoMetadata *metadata, const char *name, const char *text);
TAPEGRAD_API const char *io_metadata_get(IoMetadata metadata, const char *name);
TAPEGRAD_API void io_metadata_free(IoMetadata metadata);

typedef struct IoSaveSafetensorsArgs {
    const char *path;
    TensorDict dict;
    IoMetadata metadata;
    bool checksum; /* the metadata begin with "crc32c": of header and values */
} IoSaveSafetensorsArgs;
#define IO_SAVE_SAFETENSORS_DEFAULTS .checksum = false
TAPEGRAD_API extern const IoSaveSafetensorsArgs io_save_safetensors_defaults;

typedef struct IoLoadSafetensorsArgs {
    const char *path;
    IoMetadata *metadata; /* may be NULL; else becomes the file's, which the caller frees */
} IoLoadSafetensorsArgs;
#define IO_LOAD_SAFETENSORS_DEFAULTS .metadata = NULL
TAPEGRAD_API extern const IoLoadSafetensorsArgs io_load_safetensors_defaults;

/* io_save_safetensors(path, dict, .metadata = m) - every tensor of the dictionary by its name, as the
 *     safetensors format has it: 8 bytes length of the header (little-endian), a JSON header {"name":
 *     {"dtype", "shape", "data_offsets"}}, the bytes, each tensor at a multiple of its element size.  Tensors
 *     may be on any device.  EVALUE: a name that is no UTF-8, or "__metadata__"; metadata of the name
 *     "crc32c".  While an error is pending (tensor_error()) it does nothing and returns -1: the results of a
 *     failed run replace no file.
 * io_load_safetensors(path, .metadata = &m) - a dictionary in the header's order, on the CPU, that the caller
 *     frees by nn_dict_free; its count is -1 after an error.  A file that begins with a checksum of ours is
 *     compared with it, and only then do the metadata have "crc32c".  (Who writes our metadata into a file of
 *     another program leaves that entry out.)  EFORMAT: a wrong checksum; anything the format forbids (a name
 *     twice, a hole or an overlap, bytes that belong to no tensor, ...), another key than those three, a
 *     dtype or a rank that tensors here cannot have. */
#define io_save_safetensors(...)                                                                \
    TENSOR_CALL_(io_save_safetensors_args, IoSaveSafetensorsArgs, IO_SAVE_SAFETENSORS_DEFAULTS, \
                 .path = __VA_ARGS__)
#define io_load_safetensors(...)                                                                \
    TENSOR_CALL_(io_load_safetensors_args, IoLoadSafetensorsArgs, IO_LOAD_SAFETENSORS_DEFAULTS, \
                 .path = __VA_ARGS__)
TAPEGRAD_API int io_save_safetensors_args(IoSaveSafetensorsArgs args);
TAPEGRAD_API TensorDict io_load_safetensors_args(IoLoadSafetensorsArgs args);

/* io_make_folder - makes it and those above it that are missing, as mkdir -p.  0, or -1: EIO, ENULL. */
TAPEGRAD_API int io_make_folder(const char *path);

#ifdef __cplusplus
}
#endif
#endif
