/* png.c - pictures, through libpng's simplified interface. */
#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <tapegrad/io.h>
#include "../core.h"
#include "atomic_file.h"

/* One byte of a pixel from an element. */
static int byte_of(double value)
{
    return value <= 0 || value != value ? 0 : value >= 1 ? 255 : (int)(value * 255 + 0.5);
}

/* Channels last, one byte each: what libpng takes. */
static uint8_t *pixels_of(const Tensor *x, int channels, int64_t h, int64_t w)
{
    Tensor *dense = raw_cast(x, TENSOR_F64);
    uint8_t *pixels = dense ? tg_alloc((size_t)(h * w * channels) + 1) : NULL;
    if (dense && !pixels) fail_memory("io_save_png");
    const double *v = dense ? dense->data : NULL;
    for (int64_t c = 0; pixels && c < channels; c++)
        for (int64_t i = 0; i < h * w; i++) {
            double value = v[c * h * w + i];
            pixels[i * channels + c] = (uint8_t)(x->dtype == TENSOR_U8 ? value : byte_of(value));
        }
    tensor_release(dense);
    return pixels;
}

int io_save_png(const char *path, const Tensor *x)
{
    if (check_null(x, "io_save_png", 2)) return -1;
    int channels = x->ndim == 3 ? (int)x->shape[0] : 1;
    if (x->ndim < 2 || x->ndim > 3 || (channels != 1 && channels != 3) || x->numel == 0 || x->shape[x->ndim - 1] > 65535 || x->shape[x->ndim - 2] > 65535)
        return fail(TENSOR_ESHAPE, "io_save_png", "%s: wants [h, w], [1, h, w] or [3, h, w]", S(x));
    if (x->dtype != TENSOR_U8 && !dtype_is_float(x->dtype))
        return fail(TENSOR_EDTYPE, "io_save_png", "%s: wants u8, or floats in [0, 1]", tensor_dtype_name((TensorDtype)x->dtype));
    if (x->place != &cpu_place) return fail(TENSOR_EDEVICE, "io_save_png", "%s is on %s: move it to the CPU first", S(x), x->place->name);
    int64_t h = x->shape[x->ndim - 2], w = x->shape[x->ndim - 1];
    AtomicFile file;
    uint8_t *pixels = pixels_of(x, channels, h, w);
    if (!pixels) return -1;
    int status = atomic_open(&file, path, "io_save_png");
    if (!status) {
        png_image image = { .version = PNG_IMAGE_VERSION, .width = (png_uint_32)w, .height = (png_uint_32)h,
                            .format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY };
        bool good = png_image_write_to_stdio(&image, file.file, 0, pixels, 0, NULL);
        if (!good) fail(TENSOR_EIO, "io_save_png", "%s: %s", path, image.message);
        status = atomic_close(&file, good, "io_save_png");
    }
    tg_free(pixels, (size_t)(h * w * channels) + 1);
    return status;
}

Tensor *io_load_png(const char *path)
{
    if (!path) return fail(TENSOR_ENULL, "io_load_png", "the path is NULL"), NULL;
    png_image image = { .version = PNG_IMAGE_VERSION };
    FILE *file = fopen(path, "rb");
    if (!file) return fail(TENSOR_EIO, "io_load_png", "%s cannot be opened: %s", path, strerror(errno)), NULL;
    Tensor *x = NULL;
    if (!png_image_begin_read_from_stdio(&image, file)) {
        fail(TENSOR_EFORMAT, "io_load_png", "%s: %s", path, image.message);
    } else {
        int channels = image.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
        int64_t h = image.height, w = image.width;
        image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
        uint8_t *pixels = tg_alloc((size_t)(h * w * channels) + 1);
        if (!pixels) fail_memory("io_load_png");
        else if (!png_image_finish_read(&image, &(png_color){ 0, 0, 0 }, pixels, 0, NULL)) fail(TENSOR_EFORMAT, "io_load_png", "%s: %s", path, image.message);
        else x = new_tensor(SHAPE(channels, h, w), TENSOR_U8, &cpu_place);
        for (int64_t i = 0; x && i < h * w; i++)
            for (int c = 0; c < channels; c++) ((uint8_t *)x->data)[c * h * w + i] = pixels[i * channels + c];
        tg_free(pixels, (size_t)(h * w * channels) + 1);
    }
    png_image_free(&image);
    fclose(file);
    return own(x);
}
