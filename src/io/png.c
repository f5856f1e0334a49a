/* png.c - pictures, through libpng's simplified interface. */
#include <errno.h>
#include <png.h>
#include <strings.h>
#include <tapegrad/io.h>
#include "atomic_file.h"
#include "input.h"
#include "png_encode.h"

enum { SIDE = 1000000, DEFLATE_MOST = 1032 }; /* libpng's own limit; what deflate packs into a byte at most */

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct Picture {
    int channels;
    int64_t h, w;
    size_t bytes;
} Picture;

static int check_picture(const Tensor *x, Picture *p, const char *op)
{
    if (check_null(x, op, 2)) return -1;
    int64_t channels = x->ndim == 3 ? x->shape[0] : 1, h = x->ndim < 2 ? 0 : x->shape[x->ndim - 2],
            w = x->ndim < 2 ? 0 : x->shape[x->ndim - 1];
    if (x->ndim > 3 || (channels != 1 && channels != 3) || h < 1 || w < 1)
        return fail(TENSOR_ESHAPE, op, "%s: wants [h, w], [1, h, w] or [3, h, w]", S(x));
    if (h > SIDE || w > SIDE || h * w * channels > UINT32_MAX)
        return fail(TENSOR_ESHAPE, op, "%s: sides are at most %d, and at most 2^32 bytes", S(x), SIDE);
    if (x->dtype != TENSOR_U8 && !dtype_is_float(x->dtype))
        return fail(TENSOR_EDTYPE, op, "%s: wants u8, or floats in [0, 1]",
                    tensor_dtype_name((TensorDtype)x->dtype));
    if (x->place != &cpu_place)
        return fail(TENSOR_EDEVICE, op, "%s is on %s: move it to the CPU first", S(x), x->place->name);
    *p = (Picture){ (int)channels, h, w, (size_t)(h * w * channels) };
    return 0;
}

/* One byte of a pixel from an element; NaN is black. */
static int byte_of(double value)
{
    return value <= 0 || value != value ? 0 : value >= 1 ? 255 : (int)(value * 255 + 0.5);
}

/* Channels last, one byte each: what libpng takes. */
static uint8_t *pixels_of(const Tensor *x, const Picture *p, const char *op)
{
    Tensor *dense = raw_cast(x, TENSOR_F64);
    uint8_t *pixels = dense ? tg_alloc(p->bytes) : NULL;
    if (dense && !pixels) fail_memory(op);
    const double *v = dense ? dense->data : NULL;
    for (int c = 0; pixels && c < p->channels; c++)
        for (int64_t i = 0, n = p->h * p->w; i < n; i++) {
            double value = v[c * n + i];
            pixels[i * p->channels + c] = (uint8_t)(x->dtype == TENSOR_U8 ? (int)value : byte_of(value));
        }
    tensor_release(dense);
    return pixels;
}

static png_image image_of(const Picture *p)
{
    return (png_image){ .version = PNG_IMAGE_VERSION,
                        .width = (png_uint_32)p->w,
                        .height = (png_uint_32)p->h,
                        .format = p->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY };
}

static int write_pixels(const char *path, const Picture *p, const uint8_t *pixels)
{
    AtomicFile file;
    if (atomic_open(&file, path, "io_save_png")) return -1;
    png_image image = image_of(p);
    errno = 0;
    bool good = png_image_write_to_stdio(&image, file.file, 0, pixels, 0, NULL);
    if (!good)
        fail(TENSOR_EIO, "io_save_png", "%s cannot be written: %s", path,
             errno && ferror(file.file) ? strerror(errno) : image.message);
    return atomic_close(&file, good, "io_save_png");
}

int io_save_png(const char *path, const Tensor *x)
{
    Picture p = { 0 };
    if (check_picture(x, &p, "io_save_png")) return -1;
    uint8_t *pixels = pixels_of(x, &p, "io_save_png");
    int status = pixels ? write_pixels(path, &p, pixels) : -1;
    tg_free(pixels, p.bytes);
    return status;
}

int png_check_name(const char *path, const char *op)
{
    if (!path) return fail(TENSOR_ENULL, op, "the path is NULL");
    const size_t n = strlen(path);
    if (n > 4 && strcasecmp(path + n - 4, ".png") == 0) return 0;
    return fail(TENSOR_EVALUE, op, "%s: only PNG is written, to a name that ends in .png", path);
}

int png_encode(const Tensor *x, const char *op, Png *out)
{
    Picture p = { 0 };
    if (check_picture(x, &p, op)) return -1;
    png_image image = image_of(&p);
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *pixels = pixels_of(x, &p, op);
    *out = (Png){
        .bytes = pixels ? tg_alloc(n) : NULL, .capacity = n, .h = p.h, .w = p.w, .channels = p.channels
    };
    if (pixels && !out->bytes) fail_memory(op);
    bool good = out->bytes && png_image_write_to_memory(&image, out->bytes, &n, 0, pixels, 0, NULL);
    if (out->bytes && !good) {
        fail(TENSOR_EIO, op, "%s", image.message);
        tg_free(out->bytes, out->capacity);
    }
    tg_free(pixels, p.bytes);
    out->n = n;
    return good ? 0 : -1;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int not_png(const char *path, const char *what)
{
    return fail(TENSOR_EFORMAT, "io_load_png", "%s: %s", path, what);
}

static Tensor *read_pixels(png_image *image, const char *path)
{
    bool alpha = image->format & PNG_FORMAT_FLAG_ALPHA;
    int channels = image->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1, step = channels + alpha;
    int64_t h = image->height, w = image->width, n = h * w;
    image->format = (channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0);
    image->flags |= PNG_IMAGE_FLAG_16BIT_sRGB; /* 16 bits are not light, but finer steps of the same scale */
    uint8_t *pixels = tg_alloc((size_t)(n * step));
    Tensor *x = NULL;
    if (!pixels) fail_memory("io_load_png");
    else if (!png_image_finish_read(image, NULL, pixels, 0, NULL)) not_png(path, image->message);
    else x = new_tensor(SHAPE(channels, h, w), TENSOR_U8, &cpu_place);
    for (int c = 0; x && c < channels; c++)
        for (int64_t i = 0; i < n; i++) ((uint8_t *)x->data)[c * n + i] = pixels[i * step + c];
    tg_free(pixels, (size_t)(n * step));
    return x;
}

Tensor *io_load_png(const char *path)
{
    int64_t size;
    FILE *file = input_stream(path, "io_load_png", &size);
    if (!file) return NULL;
    png_image image = { .version = PNG_IMAGE_VERSION };
    Tensor *x = NULL;
    if (!png_image_begin_read_from_stdio(&image, file)) not_png(path, image.message);
    else if ((int64_t)image.width * image.height / 8 > size * DEFLATE_MOST) /* a pixel takes at least a bit */
        fail(TENSOR_EFORMAT, "io_load_png", "%s: says %u x %u pixels, more than its %lld bytes can hold",
             path, image.width, image.height, (long long)size);
    else x = read_pixels(&image, path);
    png_image_free(&image);
    fclose(file);
    return own(x);
}
