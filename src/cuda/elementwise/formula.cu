/* formula.cu - rows of the program's own: NVRTC compiles their text when one is first asked for, for the chip
 * that is there; the driver loads it.
 *
 *  - A row is compiled once for each dtype that its operands are stored as: two kernels a part, for dense
 *    operands and for any strides and dtypes.
 *  - What NVRTC refuses, or a machine without it, is told once and declined: the host computes the row. */
#include <new>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "cuda/context.cuh"
#include "cuda/library.cuh"
#include "formula_source.cuh"

enum { PARTS = 3, LAYOUTS = 2 };
static_assert(KERNEL_MAX_DIMS == 16 && ROW_OPERANDS == 4, "as tg_Call says");

void **gpu_rows(); /* device.cu: of the GPU whose turn it is; NULL at first */

struct Row {
    Row *next;
    int dtype, operands;
    char *formula[PARTS], *param[2]; /* copies: the program may unload its own */
    bool refused;
    CUfunction kernel[PARTS][LAYOUTS];
};

/* ---- the source ------------------------------------------------------------------------------ */

static char *print(const char *format, ...)
{
    va_list args;
    char *text = nullptr;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    return n < 0 ? nullptr : text;
}

/* A part as a function, by the names that its formula has for its operands. */
static char *part_of(const FormulaArgs *f, int part)
{
    if (!f->formula[part]) return print("");
    return print("struct tg_%d {\n"
                 "static __device__ tg_T of(tg_T %s, tg_T %s, tg_T y, tg_T g, tg_T %s, tg_T %s)\n"
                 "{ return (tg_T)(%s); }\n};\n"
                 "extern \"C\" __global__ void tg_dense_%d(const tg_Call c) { tg_dense<tg_%d>(c); }\n"
                 "extern \"C\" __global__ void tg_strided_%d(const tg_Call c) { tg_strided<tg_%d>(c); }\n",
                 part, f->operands > 1 ? "a" : "x", f->operands > 1 ? "b" : "tg_b",
                 f->param[0] ? f->param[0] : "tg_p", f->param[1] ? f->param[1] : "tg_q", f->formula[part],
                 part, part, part, part);
}

static char *source_of(const FormulaArgs *f)
{
    char *part[PARTS], *all = nullptr;
    for (int i = 0; i < PARTS; i++) part[i] = part_of(f, i);
    if (part[0] && part[1] && part[2])
        all = print("%s%s\n%s\n#line 1 \"%s\"\n%s%s%s", formula_begin, formula_call, formula_kernels, f->name,
                    part[0], part[1], part[2]);
    for (char *one : part) free(one);
    return all;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* Told once for each row. */
static void tell(const FormulaArgs *f, const char *why)
{
    fprintf(stderr, "tapegrad: the host computes %s, whose formula does not compile for the device: %s\n",
            f->name, why);
}

/* The newest that NVRTC knows up to the chip's; *exact: it is the chip's. */
static int target(const Nvrtc *nvrtc, bool *exact)
{
    cudaDeviceProp chip;
    int count = 0, known[64], best = 0;
    if (cudaGetDeviceProperties(&chip, gpu_context()->index) || nvrtc->nvrtcGetNumSupportedArchs(&count) ||
        count > (int)(sizeof known / sizeof *known) || nvrtc->nvrtcGetSupportedArchs(known))
        return 0;
    const int is = 10 * chip.major + chip.minor;
    for (int i = 0; i < count; i++)
        if (known[i] <= is && known[i] > best) best = known[i];
    *exact = best == is;
    return best;
}

/* Machine code for the chip, else PTX; NULL: refused, and told. */
static char *result_of(const Nvrtc *nvrtc, nvrtcProgram program, bool exact)
{
    size_t size = 0;
    if (exact ? nvrtc->nvrtcGetCUBINSize(program, &size) : nvrtc->nvrtcGetPTXSize(program, &size))
        return nullptr;
    char *code = (char *)malloc(size);
    if (code && (exact ? nvrtc->nvrtcGetCUBIN(program, code) : nvrtc->nvrtcGetPTX(program, code))) {
        free(code);
        return nullptr;
    }
    return code;
}

static char *compile(const Nvrtc *nvrtc, const FormulaArgs *f, int dtype, const char *source)
{
    static const char *const stored[] = { "float", "double", "tg_f16", "tg_bf16" };
    bool exact = false;
    const int arch = target(nvrtc, &exact);
    char option[8][48] = { "--std=c++17", "--disable-warnings" };
    snprintf(option[2], sizeof *option, "--gpu-architecture=%s_%d", exact ? "sm" : "compute", arch);
    snprintf(option[3], sizeof *option, "-Dtg_E=%s", stored[dtype]);
    snprintf(option[4], sizeof *option, "-Dtg_T=%s", dtype == TENSOR_F64 ? "double" : "float");
    snprintf(option[5], sizeof *option, "-Dtg_F64=%d", TENSOR_F64);
    snprintf(option[6], sizeof *option, "-Dtg_F16=%d", TENSOR_F16);
    snprintf(option[7], sizeof *option, "-Dtg_BF16=%d", TENSOR_BF16);
    const char *options[8];
    for (int i = 0; i < 8; i++) options[i] = option[i];
    nvrtcProgram program;
    nvrtcResult status = nvrtc->nvrtcCreateProgram(&program, source, f->name, 0, nullptr, nullptr);
    if (status) return tell(f, nvrtc->nvrtcGetErrorString(status)), nullptr;
    status = arch ? nvrtc->nvrtcCompileProgram(program, 8, options) : NVRTC_ERROR_INVALID_OPTION;
    char *code = status ? nullptr : result_of(nvrtc, program, exact);
    if (!code) {
        size_t size = 0;
        char *log = nvrtc->nvrtcGetProgramLogSize(program, &size) ? nullptr : (char *)calloc(size + 1, 1);
        const bool logged = log && !nvrtc->nvrtcGetProgramLog(program, log) && *log;
        tell(f, logged ? log : nvrtc->nvrtcGetErrorString(status));
        free(log);
    }
    nvrtc->nvrtcDestroyProgram(&program);
    return code;
}

/* Loading asks the driver for memory, which a capture allows only so. */
static CUresult load(const Driver *driver, const char *code, const FormulaArgs *f, Row *row)
{
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CUmodule module;
    cudaThreadExchangeStreamCaptureMode(&mode);
    CUresult status = driver->cuModuleLoadData(&module, code);
    cudaThreadExchangeStreamCaptureMode(&mode);
    for (int part = 0; part < PARTS && !status; part++) {
        char dense[32], strided[32];
        if (!f->formula[part]) continue;
        snprintf(dense, sizeof dense, "tg_dense_%d", part);
        snprintf(strided, sizeof strided, "tg_strided_%d", part);
        status = driver->cuModuleGetFunction(&row->kernel[part][0], module, dense);
        if (!status) status = driver->cuModuleGetFunction(&row->kernel[part][1], module, strided);
    }
    return status;
}

/* false: it cannot be run here, as was told. */
static bool make(const FormulaArgs *f, Row *row)
{
    const Nvrtc *nvrtc = gpu_nvrtc();
    const Driver *driver = nvrtc ? gpu_driver() : nullptr;
    if (!driver) return tell(f, gpu_error()), false;
    char *source = source_of(f), *code = source ? compile(nvrtc, f, row->dtype, source) : nullptr;
    free(source);
    if (!code) return false;
    const CUresult status = load(driver, code, f, row);
    const char *why = nullptr;
    free(code);
    if (status && driver->cuGetErrorString(status, &why)) why = nullptr;
    if (status) tell(f, why ? why : "the driver does not load it");
    return !status;
}

static bool same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool is_that(const Row *row, const FormulaArgs *f, int dtype)
{
    bool is = row->dtype == dtype && row->operands == f->operands;
    for (int i = 0; i < PARTS; i++) is = is && same(row->formula[i], f->formula[i]);
    for (int i = 0; i < 2; i++) is = is && same(row->param[i], f->param[i]);
    return is;
}

/* Of NULL, NULL. */
static char *copy_of(const char *text, bool *failed)
{
    char *copy = text ? strdup(text) : nullptr;
    if (text && !copy) *failed = true;
    return copy;
}

/* The row, compiled; NULL: no memory. */
static Row *find(const FormulaArgs *f, int dtype)
{
    Row **first = (Row **)gpu_rows();
    bool failed = false;
    for (Row *row = *first; row; row = row->next)
        if (is_that(row, f, dtype)) return row;
    Row *row = new (std::nothrow) Row{};
    if (!row) return nullptr;
    row->next = *first, row->dtype = dtype, row->operands = f->operands;
    for (int i = 0; i < PARTS; i++) row->formula[i] = copy_of(f->formula[i], &failed);
    for (int i = 0; i < 2; i++) row->param[i] = copy_of(f->param[i], &failed);
    if (failed) {
        for (char *text : row->formula) free(text);
        for (char *text : row->param) free(text);
        delete row;
        return nullptr;
    }
    row->refused = !make(f, row);
    return *first = row;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* That of the first operand which is read; -1: not only floats. */
static int stored_as(const MapArgs *m)
{
    int dtype = m->out.dtype;
    if (m->out.dtype > TENSOR_BF16) return -1;
    for (int k = ROW_OPERANDS - 1; k >= 0; k--) {
        if (!m->in[k].data) continue;
        if (m->in[k].dtype > TENSOR_BF16) return -1;
        dtype = m->in[k].dtype;
    }
    return dtype;
}

/* Of one dtype, one behind the other, where 16 bytes may be read at once. */
static bool is_dense(const MapArgs *m, int dtype)
{
    const auto lies_so = [&](const Strided &s) {
        return s.dtype == dtype && s.stride[0] == 1 && (uintptr_t)s.data % 16 == 0;
    };
    bool dense = m->ndim == 1 && lies_so(m->out);
    for (int k = 0; k < ROW_OPERANDS; k++) dense = dense && (!m->in[k].data || lies_so(m->in[k]));
    return dense;
}

static tg_Call call_of(const MapArgs *m)
{
    tg_Call c = {};
    c.count = m->count, c.ndim = m->ndim, c.out = m->out.data, c.out_dtype = m->out.dtype;
    c.p = m->params[0], c.q = m->params[1];
    for (int d = 0; d < m->ndim; d++) c.shape[d] = m->shape[d], c.stride[0][d] = m->out.stride[d];
    for (int k = 0; k < ROW_OPERANDS; k++) {
        c.in[k] = m->in[k].data, c.in_dtype[k] = m->in[k].dtype;
        for (int d = 0; d < m->ndim && c.in[k]; d++) c.stride[1 + k][d] = m->in[k].stride[d];
    }
    return c;
}

int gpu_map_formula(FormulaArgs *f)
{
    const MapArgs *m = f->map;
    const int dtype = stored_as(m);
    if (m->count == 0) return 0;
    if (dtype < 0 || !f->formula[m->part]) return KERNEL_DECLINED;
    const Row *row = find(f, dtype);
    if (!row) return gpu_fail("out of memory");
    if (row->refused) return KERNEL_DECLINED;
    const bool dense = is_dense(m, dtype);
    tg_Call c = call_of(m);
    void *args[] = { &c };
    const unsigned blocks = gpu_blocks(dense ? m->count * (int64_t)gpu_dtype_size(dtype) / 16 : m->count);
    const CUresult status = gpu_driver()->cuLaunchKernel(row->kernel[m->part][!dense], blocks, 1, 1, THREADS,
                                                         1, 1, 0, gpu_stream(), args, nullptr);
    if (status) return gpu_fail("%s: the driver refuses the launch (%d)", f->name, (int)status);
    return gpu_launched(f->name);
}
