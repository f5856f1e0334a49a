/* watch.h - watching a run: progress bar, CSV, TensorBoard, curves and image grids.
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
 * Functions on a NULL bar, log or writer do nothing (0). */
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
    double interval; /* seconds between two drawings, at least */
    bool leave;      /* the last state stays; false: the line is cleared */
    TensorFromDefaults from_defaults;
} IoProgressArgs;
#define IO_PROGRESS_DEFAULTS .desc = "", .unit = "it", .interval = 0.1, .leave = true, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoProgressArgs io_progress_defaults;

/* io_progress(938, .desc = "epoch 1/5") - a line that is drawn anew, with tqdm's words: part done, count,
 *     time spent and left, rate; on a terminal.  Anything else than a terminal stays quiet.
 * io_progress_update - n more are done; the rest is a printf of what else to show, NULL for nothing.
 * io_progress_due - would an update draw now?  For what costs something to show.
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
    bool resume;                /* goes on with the file that is there */
    double before;              /* of that one only rows whose first number is below stay */
    TensorFromDefaults from_defaults;
} IoCsvLogArgs;
#define IO_CSV_LOG_DEFAULTS .before = __builtin_inf(), TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoCsvLogArgs io_csv_log_defaults;

/* io_csv_log("log.csv", "step,loss", .resume = true, .before = step) - a file of one row of names and rows of
 *     numbers, written so that they read back as they were, with a point whatever the locale says.  A run
 *     that goes on from a checkpoint of step s keeps the rows before s, and those alone; a row that a kill
 *     cut off goes.  EIO; EFORMAT: the file to go on with has other columns.
 * io_csv_log_row(log, 12, 0.25) - one row, in the file when the call returns.  EVALUE: another count of
 *     numbers than of columns.  0 or -1. */
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
    int64_t
        purge_step; /* of a run that goes on: TensorBoard drops what it had from this step on; -1: nothing */
    TensorFromDefaults from_defaults;
} IoSummaryWriterArgs;
#define IO_SUMMARY_WRITER_DEFAULTS .purge_step = -1, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoSummaryWriterArgs io_summary_writer_defaults;

/* io_summary_writer("runs/1") - an event file in that folder, which is made; as torch.utils.tensorboard
 *     writes it.  EIO.
 * io_summary_add_scalar, _histogram, _image, _text - at a step; the tag groups them: "loss/train".
 *     Histograms have PyTorch's bins (bins="tensorflow"), of all elements of x; images are as io_save_png
 *     takes them; texts are Markdown.  0 or -1: EIO, what x is refused for.
 * io_summary_flush - writes what is in memory, as happens every two seconds and in io_summary_free.  Where
 *     the disk is full, what was in memory is lost, the file stays whole, and later events are tried again.
 */
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
    int64_t nrow, padding; /* images in a row; pixels between two and around all */
    bool normalize;        /* to [0, 1], from value_range or from the least and the greatest value */
    double value_range[2]; /* low, high; 0, 0: those of the images */
    bool scale_each;       /* each by its own */
    double pad_value;
    const char *path; /* of io_save_image */
    TensorFromDefaults from_defaults;
} IoGridArgs;
#define IO_GRID_DEFAULTS .nrow = 8, .padding = 2, TENSOR_FROM_DEFAULTS
TAPEGRAD_API extern const IoGridArgs io_grid_defaults;

/* io_make_grid(x, .nrow = 10, .normalize = true) - images [n, c, h, w] as one, [c, H, W], as
 *     torchvision.utils.make_grid lays them out: grey ones become RGB, a single one stays as it is.  Also one
 *     image [c, h, w] or [h, w].  ESHAPE, EVALUE.
 * io_save_image(x, "samples.png", .nrow = 10) - the grid as a PNG file; floats in [0, 1] (clamped).
 *     EVALUE: another name than *.png.   (torchvision.utils.save_image) */
#define io_make_grid(...) TENSOR_CALL_(io_make_grid_args, IoGridArgs, IO_GRID_DEFAULTS, .tensor = __VA_ARGS__)
#define io_save_image(tensor_, ...) \
    TENSOR_CALL_(io_save_image_args, IoGridArgs, IO_GRID_DEFAULTS, .tensor = tensor_, .path = __VA_ARGS__)
TAPEGRAD_API Tensor *io_make_grid_args(IoGridArgs args);
TAPEGRAD_API int io_save_image_args(IoGridArgs args);

/* io_canvas - a picture of one colour, f32 [3, height, width] on the CPU; colours are 0xRRGGBB.
 * io_draw_dot, io_draw_line, io_draw_text - onto one, in pixels, row first; what lies outside is cut off.
 *     Letters are 5 by 7 dots of size by size pixels, 6 apart: a to z, digits and . , : % + - _ = / ( );
 *     others are blanks.  0, or -1: ESHAPE, EVALUE. */
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

/* io_save_curves("loss.png", &(IoCurve){ losses, n }, 1, .title = "training", .x_label = "step") - curves
 * over labelled axes as a PNG file.  Points that are not finite are gaps.  ENULL; EVALUE: sides below 160 x
 * 120 or above 10000, no curve, another name than *.png. */
#define io_save_curves(...) \
    TENSOR_CALL_(io_save_curves_args, IoSaveCurvesArgs, IO_SAVE_CURVES_DEFAULTS, .path = __VA_ARGS__)
TAPEGRAD_API int io_save_curves_args(IoSaveCurvesArgs args);

#ifdef __cplusplus
}
#endif
#endif
