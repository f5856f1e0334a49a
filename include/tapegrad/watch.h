/* watch.h - output of a run: progress bar, CSV, TensorBoard, curves and image grids.
 *
 *     CsvLog *csv = io_csv_log("runs/1/log.csv", "step,loss");
 *     SummaryWriter *board = io_summary_writer("runs/1");            // tensorboard --logdir runs
 *     Progress *bar = io_progress(steps, .desc = "training");
 *     for (int64_t step = 0; step < steps && !tensor_error(); step++) {
 *         double loss = train();
 *         io_csv_log_row(csv, (double)step, loss);
 *         io_summary_add_scalar(board, "loss/train", loss, step);
 *         io_progress_update(bar, 1, "loss %.4f", loss);
 *     }
 *     io_progress_free(bar), io_csv_log_free(csv), io_summary_free(board);
 *
 * Functions on a NULL bar, log or writer do nothing and return 0. */
#ifndef TAPEGRAD_WATCH_H
#define TAPEGRAD_WATCH_H

#include <tapegrad/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- progress ------------------------------------------------------------------------------------ */

typedef struct Progress Progress;

typedef struct IoProgressArgs {
    int64_t total; /* 0: unknown */
    const char *desc, *unit;
    FILE *file;      /* NULL: stderr */
    double interval; /* least number of seconds between two updates of the line */
    bool leave;      /* keep the last state; false: clear the line */
    TensorFromDefaults from_defaults;
} IoProgressArgs;
#define IO_PROGRESS_DEFAULTS .desc = "", .unit = "it", .interval = 0.1, .leave = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoProgressArgs io_progress_defaults;

/* io_progress(938, .desc = "epoch 1/5") - a progress line as tqdm's: percentage, count, time elapsed and
 * left, rate.  Drawn only on a terminal.
 * io_progress_update - counts n more; the rest are printf arguments for a text at the end, or NULL.
 * io_progress_due - would an update draw now?  To compute costly values only when they are shown.
 * io_progress_free - draws the last state and ends the line, or clears it. */
#define io_progress(...) \
    TENSOR_CALL_(io_progress_args, IoProgressArgs, IO_PROGRESS_DEFAULTS, .total = __VA_ARGS__)
TAPEGRAD_API Progress *io_progress_args(IoProgressArgs args);
TAPEGRAD_API void io_progress_update(Progress *bar, int64_t n, const char *format, ...) TAPEGRAD_PRINTF(3, 4);
TAPEGRAD_API bool io_progress_due(const Progress *bar);
TAPEGRAD_API void io_progress_free(Progress *bar);

/* ---- CSV ----------------------------------------------------------------------------------------- */

typedef struct CsvLog CsvLog;

typedef struct IoCsvLogArgs {
    const char *path, *columns; /* "step,loss,accuracy" */
    bool resume;                /* continue an existing file */
    double before;              /* with resume: keep only rows whose first number is below this */
    TensorFromDefaults from_defaults;
} IoCsvLogArgs;
#define IO_CSV_LOG_DEFAULTS .before = __builtin_inf(), TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoCsvLogArgs io_csv_log_defaults;

/* io_csv_log("log.csv", "step,loss", .resume = true, .before = step) - a file with a row of names, then rows
 *     of numbers, written exactly (they read back to the same bits) and with a decimal point in any locale.
 *     A run resumed from step s keeps the rows before s only; an incomplete last row is removed.  EIO;
 *     EFORMAT: the existing file has other columns.
 * io_csv_log_row(log, 12, 0.25) - appends a row, which is in the file when the call returns.  EVALUE: not as
 *     many numbers as columns.  0 or -1. */
#define io_csv_log(...) TENSOR_CALL_(io_csv_log_args, IoCsvLogArgs, IO_CSV_LOG_DEFAULTS, .path = __VA_ARGS__)
TAPEGRAD_API CsvLog *io_csv_log_args(IoCsvLogArgs args);
#define io_csv_log_row(log, ...)                           \
    io_csv_log_write(log, (const double[]){ __VA_ARGS__ }, \
                     (int)(sizeof(double[]){ __VA_ARGS__ } / sizeof(double)))
TAPEGRAD_API int io_csv_log_write(CsvLog *log, const double *values, int count);
TAPEGRAD_API void io_csv_log_free(CsvLog *log);

/* ---- TensorBoard --------------------------------------------------------------------------------- */

typedef struct SummaryWriter SummaryWriter;

typedef struct IoSummaryWriterArgs {
    const char *log_dir;
    int64_t purge_step; /* for a resumed run: TensorBoard drops events from this step on; -1: none */
    TensorFromDefaults from_defaults;
} IoSummaryWriterArgs;
#define IO_SUMMARY_WRITER_DEFAULTS .purge_step = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoSummaryWriterArgs io_summary_writer_defaults;

/* io_summary_writer("runs/1") - creates the folder and in it an event file, as torch.utils.tensorboard writes
 * it.  NULL: EIO.
 * io_summary_add_scalar, _histogram, _image, _text - add an event at a step; the tag groups events:
 *     "loss/train".  A histogram counts all elements of x in PyTorch's bins (bins="tensorflow"); images are
 *     as in io_save_png; texts are Markdown.  0 or -1: EIO, and the errors of x.
 * io_summary_flush - writes the events in memory, as happens every two seconds and in io_summary_free.  If
 *     the disk is full, these events are lost, the file stays valid, and later events are written again. */
#define io_summary_writer(...)                                                            \
    TENSOR_CALL_(io_summary_writer_args, IoSummaryWriterArgs, IO_SUMMARY_WRITER_DEFAULTS, \
                 .log_dir = __VA_ARGS__)
TAPEGRAD_API SummaryWriter *io_summary_writer_args(IoSummaryWriterArgs args);
TAPEGRAD_API int io_summary_add_scalar(SummaryWriter *writer, const char *tag, double value, int64_t step);
TAPEGRAD_API int io_summary_add_histogram(SummaryWriter *writer, const char *tag, const Tensor *x,
                                          int64_t step);
TAPEGRAD_API int io_summary_add_image(SummaryWriter *writer, const char *tag, const Tensor *x, int64_t step);
TAPEGRAD_API int io_summary_add_text(SummaryWriter *writer, const char *tag, const char *text, int64_t step);
TAPEGRAD_API int io_summary_flush(SummaryWriter *writer);
TAPEGRAD_API void io_summary_free(SummaryWriter *writer);

/* ---- pictures ------------------------------------------------------------------------------------ */

typedef struct IoGridArgs {
    Tensor *tensor;
    int64_t nrow, padding; /* images in a row; pixels between and around them */
    bool normalize;        /* to [0, 1], from value_range or from the smallest and largest value */
    double value_range[2]; /* low, high; 0, 0: the images' range */
    bool scale_each;       /* normalize each image by its own range */
    double pad_value;
    const char *path; /* of io_save_image */
    TensorFromDefaults from_defaults;
} IoGridArgs;
#define IO_GRID_DEFAULTS .nrow = 8, .padding = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoGridArgs io_grid_defaults;

/* io_make_grid(x, .nrow = 10, .normalize = true) - one image [c, H, W] of the images [n, c, h, w], laid out
 *     as torchvision.utils.make_grid: grey images become RGB, a single one is unchanged.  Takes one image [c,
 *     h, w] or [h, w] too.  ESHAPE, EVALUE.
 * io_save_image(x, "samples.png", .nrow = 10) - writes the grid to a PNG file; floats are clamped to [0, 1].
 *     EVALUE: a name that does not end in .png.   (torchvision.utils.save_image) */
#define io_make_grid(...) TENSOR_CALL_(io_make_grid_args, IoGridArgs, IO_GRID_DEFAULTS, .tensor = __VA_ARGS__)
#define io_save_image(tensor_, ...) \
    TENSOR_CALL_(io_save_image_args, IoGridArgs, IO_GRID_DEFAULTS, .tensor = tensor_, .path = __VA_ARGS__)
TAPEGRAD_API Tensor *io_make_grid_args(IoGridArgs args);
TAPEGRAD_API int io_save_image_args(IoGridArgs args);

/* io_canvas - an image of one colour, f32 [3, height, width] on the CPU; colours are 0xRRGGBB.
 * io_draw_dot, io_draw_line, io_draw_text - draw on a canvas, in pixels, row first, clipped to it.  Letters
 *     are 5 by 7 dots of size by size pixels, 6 dots apart: a to z, digits and . , : % + - _ = / ( ); others
 *     are blank.  0, or -1: ESHAPE, EVALUE. */
TAPEGRAD_API Tensor *io_canvas(int64_t height, int64_t width, unsigned colour);
TAPEGRAD_API int io_draw_dot(Tensor *canvas, double row, double column, double radius, unsigned colour);
TAPEGRAD_API int io_draw_line(Tensor *canvas, double row0, double column0, double row1, double column1,
                              unsigned colour);
TAPEGRAD_API int io_draw_text(Tensor *canvas, int64_t row, int64_t column, int size, unsigned colour,
                              const char *text);

typedef struct IoCurve {
    const double *y;
    int64_t count;
    const double *x;  /* NULL: 0, 1, 2, ... */
    const char *name; /* in the legend; may be NULL */
} IoCurve;

typedef struct IoSaveCurvesArgs {
    const char *path;
    const IoCurve *curves;
    int count;
    const char *title, *x_label, *y_label;
    int width, height;
    TensorFromDefaults from_defaults;
} IoSaveCurvesArgs;
#define IO_SAVE_CURVES_DEFAULTS \
    .title = "", .x_label = "", .y_label = "", .width = 640, .height = 360, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoSaveCurvesArgs io_save_curves_defaults;

/* io_save_curves("loss.png", &(IoCurve){ losses, n }, 1, .title = "training", .x_label = "step") - plots
 * curves over labelled axes in a PNG file.  Points that are not finite are gaps.  ENULL; EVALUE: smaller than
 * 160 x 120 or a side above 10000 pixels, no curve, a name that does not end in .png. */
#define io_save_curves(...) \
    TENSOR_CALL_(io_save_curves_args, IoSaveCurvesArgs, IO_SAVE_CURVES_DEFAULTS, .path = __VA_ARGS__)
TAPEGRAD_API int io_save_curves_args(IoSaveCurvesArgs args);

#ifdef __cplusplus
}
#endif
#endif
