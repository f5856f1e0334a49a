/* io.h - files: IDX, PNG, safetensors.
 *
 *     Tensor *images = io_read_idx("train-images-idx3-ubyte.gz");
 *     io_save_png("digit.png", tensor_select(images, 0, 7));
 *     io_save_safetensors("net.safetensors", nn_state_dict(net));
 *
 * Readers read regular files.  EIO: the file is missing, unreadable, a directory or a pipe.  EFORMAT: its
 * content is not valid; the error says where.  They check the file's length against its header before they
 * allocate.  Writers write a temporary file beside the target, sync it and rename it: a crash or a failure
 * leaves the old file or the new one, never a part, and only a crash leaves the temporary.  The target keeps
 * its permissions.  EIO: the target is not a regular file. */
#ifndef TAPEGRAD_IO_H
#define TAPEGRAD_IO_H

#include <tapegrad/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* io_read_idx - the format of the MNIST files, plain or gzip: two zero bytes, a type, a rank, the sizes
 * (big-endian), the values.  Types: u8, i32, f32, f64 (i8 and i16 are widened to i32).  EFORMAT: a wrong
 * magic, a rank above 16, a length other than the sizes say, a wrong checksum. */
TAPEGRAD_API Tensor *io_read_idx(const char *path);

/* io_save_png - x [h, w] grey, [1, h, w] grey or [3, h, w] RGB; u8 values as they are, floats as 255 x, with
 *     x clamped to [0, 1] and the product rounded (NaN is 0).  ESHAPE, EDTYPE; EDEVICE: not on the CPU.
 * io_load_png - u8 [1, h, w] or [3, h, w].  Drops alpha, converts palettes to RGB, 16 bits to 8, and a stated
 *     gamma to sRGB. */
TAPEGRAD_API int io_save_png(const char *path, const Tensor *x);
TAPEGRAD_API Tensor *io_load_png(const char *path);

/* Texts by name: the "__metadata__" of a safetensors file.  Begin with a zeroed IoMetadata.
 * io_metadata_set - adds a text, or replaces the one with that name.  ENULL, ENOMEM.
 * io_metadata_get - NULL, without an error, if no text has that name. */
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
    bool checksum; /* begin the metadata with "crc32c", of header and values */
} IoSaveSafetensorsArgs;
#define IO_SAVE_SAFETENSORS_DEFAULTS .checksum = false
TAPEGRAD_API extern const IoSaveSafetensorsArgs io_save_safetensors_defaults;

typedef struct IoLoadSafetensorsArgs {
    const char *path;
    IoMetadata *metadata; /* NULL, or receives the file's metadata, which the caller frees */
} IoLoadSafetensorsArgs;
#define IO_LOAD_SAFETENSORS_DEFAULTS .metadata = NULL
TAPEGRAD_API extern const IoLoadSafetensorsArgs io_load_safetensors_defaults;

/* io_save_safetensors(path, dict, .metadata = m) - writes every tensor of the dictionary in the safetensors
 *     format: the header's length (8 bytes, little-endian), a JSON header {"name": {"dtype", "shape",
 *     "data_offsets"}}, then the values, each tensor aligned to its element size.  Tensors may be on any
 *     device.  EVALUE: a name that is not UTF-8, or is "__metadata__"; metadata with the name "crc32c".
 *     While an error is recorded (tensor_error()) it does nothing and returns -1, so a failed run replaces no
 *     file.
 * io_load_safetensors(path, .metadata = &m) - a dictionary in the header's order, on the CPU; the caller
 *     frees it with nn_dict_free.  Its count is -1 after an error.  Verifies the checksum if the metadata
 *     begin with "crc32c"; an entry of that name anywhere else, which another program copied, is left out.
 *     EFORMAT: a wrong checksum; anything the format forbids (a duplicate name, a hole or an overlap, bytes
 *     that belong to no tensor, ...), another key than those three, a dtype or a rank that a Tensor cannot
 *     have. */
#define io_save_safetensors(...)                                                                \
    TENSOR_CALL_(io_save_safetensors_args, IoSaveSafetensorsArgs, IO_SAVE_SAFETENSORS_DEFAULTS, \
                 .path = __VA_ARGS__)
#define io_load_safetensors(...)                                                                \
    TENSOR_CALL_(io_load_safetensors_args, IoLoadSafetensorsArgs, IO_LOAD_SAFETENSORS_DEFAULTS, \
                 .path = __VA_ARGS__)
TAPEGRAD_API int io_save_safetensors_args(IoSaveSafetensorsArgs args);
TAPEGRAD_API TensorDict io_load_safetensors_args(IoLoadSafetensorsArgs args);

/* io_make_folder - creates the folder and its missing parents, as mkdir -p.  0, or -1: EIO, ENULL. */
TAPEGRAD_API int io_make_folder(const char *path);

#ifdef __cplusplus
}
#endif
#endif
