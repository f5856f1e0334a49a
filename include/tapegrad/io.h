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
 * the old one stay.  A target that is a device is written itself. */
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

/* io_save_safetensors - every tensor of the dictionary by its name, as the safetensors format has it: 8 bytes
 *     length of the header (little-endian), a JSON header {"name": {"dtype", "shape", "data_offsets"}}, the
 *     bytes, each tensor at a multiple of its element size.  Tensors may be on any device.  EVALUE: a name
 *     that is no UTF-8, or "__metadata__".  While an error is pending (tensor_error()) it does nothing and
 *     returns -1: the results of a failed run replace no file.
 * io_load_safetensors - a dictionary in the header's order, on the CPU, that the caller frees by
 *     nn_dict_free; its count is -1 after an error.  EFORMAT: anything the format forbids (a name twice, a
 *     hole or an overlap, bytes that belong to no tensor, ...), another key than those three, a dtype or a
 *     rank that tensors here cannot have. */
TAPEGRAD_API int io_save_safetensors(const char *path, TensorDict dict);
TAPEGRAD_API TensorDict io_load_safetensors(const char *path);

#ifdef __cplusplus
}
#endif
#endif
