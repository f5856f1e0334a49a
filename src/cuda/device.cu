/* device.cu - the plugin's one export: the GPU as a Device, its start, its lock, its errors. */
#include <new>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <ops_digest.h>
#include "cuda/context.cuh"

#ifndef DEVICE_NAME
#define DEVICE_NAME "cuda"
#endif

static thread_local DeviceContext *here; /* whose turn it is in this thread */
static thread_local char sentence[512];
static thread_local bool no_memory; /* this call found none */
static thread_local struct {        /* the fault that the last wait found, until it is told */
    bool there;
    DeviceFault fault;
    char op[sizeof Note::op];
} late;

/* ---- errors ---------------------------------------------------------------------------------- */

int gpu_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return -1;
}

const char *gpu_error() { return sentence; }

int gpu_no_memory(size_t bytes)
{
    no_memory = true;
    return gpu_fail("no memory for %zu bytes", bytes);
}

int gpu_check(cudaError_t status, const char *what)
{
    if (status == cudaSuccess) return 0;
    cudaGetLastError(); /* told here: the next launch is not to blame */
    if (here && cudaGetLastError() != cudaSuccess) here->lost = true; /* it cannot be cleared */
    return gpu_fail("%s: %s (%s, %d)", what, cudaGetErrorString(status), cudaGetErrorName(status),
                    (int)status);
}

bool gpu_waits_always()
{
    static const char *const wait = getenv("TAPEGRAD_CUDA_SYNC");
    return wait && *wait == '1';
}

int gpu_launched(const char *kernel)
{
    if (gpu_check(cudaGetLastError(), kernel)) return -1;
    return gpu_waits_always() ? gpu_check(cudaStreamSynchronize(here->stream), kernel) : 0;
}

int gpu_passed(cudaEvent_t event)
{
    const cudaError_t status = cudaEventQuery(event);
    if (status != cudaErrorNotReady) return gpu_check(status, "asking an event") ? -1 : 1;
    cudaGetLastError(); /* else the next launch is blamed */
    return 0;
}

/* ---- turns: one thread at a time, on the right device ---------------------------------------- */

Turn::Turn(DeviceContext *c) : guard(c->lock)
{
    static thread_local int current = -1; /* a new thread begins on device 0 */
    ready = current == c->index || gpu_check(cudaSetDevice(c->index), "cudaSetDevice") == 0;
    if (ready) current = c->index;
    here = c;
}

DeviceContext *gpu_context() { return here; }
cudaStream_t gpu_stream()
{
    const DeviceGraph *g = gpu_capture();
    return g ? g->stream : here->stream;
}
int64_t *gpu_mailbox() { return here->mailbox; }
bool gpu_must_fail() { return here->must_fail(here); }
void **gpu_blas() { return &here->blas; }
void **gpu_dnn() { return &here->dnn; }
void **gpu_list_tables()
{
    DeviceGraph *g = gpu_capture();
    return g ? &g->tables : &here->tables;
}
void **gpu_rows() { return &here->rows; }
int64_t *gpu_fault_words() { return here->mailbox + FAULT_AT; }

int64_t gpu_note_call(const CallRange &range)
{
    int64_t number = here->calls + 1;
    DeviceGraph *g = gpu_capture();
    Note *note = g ? gpu_graph_note(g, &number) : nullptr;
    if (!note) note = &here->note[++here->calls % NOTES];
    snprintf(note->op, sizeof note->op, "%s", range.op);
    note->range = range;
    here->looked = true;
    return number;
}

bool gpu_fault(DeviceFault *of)
{
    const bool there = late.there;
    late.there = false, late.fault.op = late.fault.op ? late.op : nullptr;
    *of = late.fault;
    return there;
}

/* Behind all that was queued; true: its fault words were asked for. */
static int ask_for_faults(DeviceContext *c, bool *asked)
{
    *asked = c->looked;
    if (c->looked && gpu_check(cudaMemcpyAsync(c->found, gpu_fault_words(), FAULT_WORDS * sizeof *c->found,
                                               cudaMemcpyDeviceToHost, c->stream),
                               "waiting for the device"))
        return -1;
    c->looked = false;
    return 0;
}

/* When they are there. */
static int read_faults(DeviceContext *c)
{
    const int64_t *found = c->found;
    if (found[0] == 0) return 0;
    const bool recent = found[0] > 0 && c->calls - found[0] < NOTES; /* else its note was written over */
    const Note *note = recent ? &c->note[found[0] % NOTES] : gpu_find_note(c, found[0]);
    late.there = true;
    const CallRange range = note ? note->range : CallRange{};
    late.fault = DeviceFault{ note ? late.op : nullptr,
                              range.what,
                              range.site,
                              range.status,
                              found[3] != 0,
                              found[1],
                              found[2],
                              range.low,
                              range.high,
                              0 };
    memcpy(&late.fault.number, &found[1], sizeof late.fault.number);
    if (note) memcpy(late.op, note->op, sizeof late.op);
    c->found[0] = 0;
    cudaMemsetAsync(gpu_fault_words(), 0, FAULT_WORDS * sizeof *found, c->stream);
    return gpu_fail("an index is out of range");
}

/* Waits, and looks whether an index was bad. */
int gpu_synchronize()
{
    bool asked;
    if (ask_for_faults(here, &asked) ||
        gpu_check(cudaStreamSynchronize(here->stream), "waiting for the device"))
        return -1;
    return asked ? read_faults(here) : 0;
}

/* The same, while other threads have their turns. */
static int wait_for_queue(DeviceContext *c)
{
    bool asked;
    {
        Turn turn(c);
        if (!turn.ready || ask_for_faults(c, &asked)) return -1;
    }
    if (gpu_check(cudaStreamSynchronize(c->stream), "waiting for the device")) return -1;
    if (!asked) return 0;
    Turn turn(c);
    return read_faults(c);
}

int gpu_read_mailbox(int64_t *value)
{
    if (gpu_check(cudaMemcpyAsync(value, here->mailbox, sizeof *value, cudaMemcpyDeviceToHost, here->stream),
                  "reading an answer"))
        return -1;
    return gpu_synchronize();
}

/* ---- start ----------------------------------------------------------------------------------- */

static __global__ void answer(int64_t *to) { *to = 42; }

/* Does a kernel of ours run there?  Not when it was compiled for other chips only. */
static int probe(int index)
{
    int64_t value = 0;
    LAUNCH(answer, 1, 1, here->mailbox);
    if (gpu_launched("a first kernel") || gpu_read_mailbox(&value)) {
        cudaDeviceProp p;
        char why[sizeof sentence];
        snprintf(why, sizeof why, "%s", sentence);
        if (cudaGetDeviceProperties(&p, index) == cudaSuccess)
            gpu_fail("%s does not run this build's kernels (compute capability %d.%d): %s", p.name, p.major,
                     p.minor, why);
        return -1;
    }
    return value == 42 ? 0 : gpu_fail("a first kernel gave a wrong answer");
}

static int no_devices(cudaError_t status)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return gpu_fail("no NVIDIA driver on this machine (the CUDA runtime built in is %d.%d)",
                        runtime / 1000, runtime % 1000 / 10);
    if (driver < runtime)
        return gpu_fail("the NVIDIA driver is for CUDA %d.%d, the runtime built in is %d.%d", driver / 1000,
                        driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return gpu_check(status, "no NVIDIA GPU can be used");
}

static int number_there(int index)
{
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) {
        cudaGetLastError();
        return no_devices(status);
    }
    return index < count ? 0 : gpu_fail("there is no device %d: %d were found", index, count);
}

static int make_ready(DeviceContext *c)
{
    Turn turn(c);
    if (!turn.ready ||
        gpu_check(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "making a stream"))
        return -1;
    if (!gpu_check(cudaMalloc((void **)&c->mailbox, 256), "cudaMalloc") &&
        !gpu_check(cudaMemsetAsync(c->mailbox, 0, 256, c->stream), "cudaMemset") &&
        !gpu_check(cudaMallocHost((void **)&c->found, 256), "cudaMallocHost") && c->staging.open() &&
        !probe(c->index))
        return 0;
    c->staging.close();
    cudaFreeHost(c->found);
    cudaFree(c->mailbox);
    cudaStreamDestroy(c->stream);
    return -1;
}

static DeviceContext *open(int index, bool (*must_fail)(const DeviceContext *))
{
    if (number_there(index)) return nullptr;
    DeviceContext *c = new (std::nothrow) DeviceContext{};
    if (!c) return gpu_fail("out of memory"), nullptr;
    c->index = index, c->must_fail = must_fail;
    if (make_ready(c)) {
        delete c;
        return nullptr;
    }
    return c;
}

/* ---- the rest of Device ---------------------------------------------------------------------- */

static const char *error(DeviceContext *) { return sentence; }

static const char *describe(DeviceContext *c)
{
    static thread_local char line[512];
    cudaDeviceProp p;
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (gpu_check(cudaGetDeviceProperties(&p, c->index), "cudaGetDeviceProperties")) return sentence;
    snprintf(line, sizeof line,
             "%s, compute capability %d.%d, %d multiprocessors, %.1f GiB; CUDA runtime %d.%d, driver %d.%d",
             p.name, p.major, p.minor, p.multiProcessorCount, (double)p.totalGlobalMem / (1 << 30),
             runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10);
    return line;
}

static void *alloc(DeviceContext *c, size_t bytes)
{
    Turn turn(c);
    void *data = !turn.ready ? nullptr : gpu_beside(c) ? gpu_alloc_beside(bytes) : gpu_alloc(bytes);
    no_memory = false;
    return data;
}

static void release(DeviceContext *c, void *data, size_t bytes)
{
    Turn turn(c);
    gpu_land(c, data, bytes);
    gpu_free(data, bytes);
}

/* Sets the device of this thread; what follows is queued beside the calls of other threads. */
static int pass(DeviceContext *c)
{
    Turn turn(c);
    return turn.ready ? 0 : -1;
}

/* The library ends a capture first. */
static bool must_not_wait(const DeviceContext *c)
{
    return gpu_capture_on(c) && gpu_fail("it would wait for the device, while its step is captured");
}

static int to_device(DeviceContext *c, void *dst, const void *src, size_t bytes)
{
    if (must_not_wait(c)) return -1;
    if (gpu_beside(c)) return gpu_to_device_beside(c, dst, src, bytes);
    std::lock_guard<std::mutex> alone(c->copies);
    return pass(c) ? -1 : c->staging.send(dst, src, bytes, c->stream);
}

static int to_host(DeviceContext *c, void *dst, const void *src, size_t bytes)
{
    if (must_not_wait(c)) return -1;
    if (gpu_beside(c)) return gpu_to_host_beside(c, dst, src, bytes);
    if (pass(c) || gpu_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, c->stream),
                             "copying from the device"))
        return -1;
    return wait_for_queue(c);
}

static int synchronize(DeviceContext *c)
{
    if (must_not_wait(c)) return -1;
    const int copies = gpu_synchronize_beside(c);
    return wait_for_queue(c) ? -1 : copies;
}

static bool fault(DeviceContext *, DeviceFault *of) { return gpu_fault(of); }

static void *stream(DeviceContext *c) { return gpu_stream_of(c); }

static void memory(DeviceContext *c, DeviceMemory *m)
{
    Turn turn(c);
    size_t unused = 0, total = 0;
    m->cached = c->cache.reserved - c->cache.in_use, m->reserved = c->cache.reserved;
    if (cudaMemGetInfo(&unused, &total)) cudaGetLastError();
    m->free = (int64_t)unused, m->total = (int64_t)total;
}

static void release_cached(DeviceContext *c)
{
    Turn turn(c);
    gpu_release_cached();
}

static bool lost(DeviceContext *c) { return c->lost; }

/* What a call of the program's own left behind, a bad launch shape say, is not blamed on ours. */
static bool others_failed()
{
    if (cudaPeekAtLastError() == cudaSuccess) return false;
    const cudaError_t status = cudaGetLastError();
    if (cudaPeekAtLastError() != cudaSuccess) return false; /* the device is lost, as ours will say */
    gpu_check(status, "a CUDA call of the program's own before this one");
    return true;
}

/* Kernels of a thread that copies beside the queue wait for its copies. */
static bool begin(DeviceContext *c, const Turn &turn)
{
    return turn.ready && !others_failed() && !(gpu_beside(c) && gpu_land(c, nullptr, 0));
}

static int finish(int status)
{
    const bool none = no_memory;
    no_memory = false;
    return status == KERNEL_FAILED && none ? KERNEL_NO_MEMORY : status;
}

#define TAKE_TURN(slot, Args)                                                    \
    static int turn_##slot(DeviceContext *c, Args *args)                         \
    {                                                                            \
        Turn turn(c);                                                            \
        return finish(begin(c, turn) && gpu_hold(args) ? gpu_##slot(args) : -1); \
    }

/* What has kernels, and for which dtypes; the rest is done by the host. */
enum { FLOATS = 1 << TENSOR_F32 | 1 << TENSOR_F64, HALVES = 1 << TENSOR_F16 | 1 << TENSOR_BF16 };
enum { WIDE = 1 << TENSOR_F64 | 1 << TENSOR_I64, ALL = (1 << TENSOR_DTYPES) - 1 };
#define KERNELS_HERE(K)                                          \
    K(map, MapArgs, ALL)                                         \
    K(copy, CopyArgs, ALL)                                       \
    K(fill, FillArgs, ALL)                                       \
    K(list_rule, ListRuleArgs, FLOATS | HALVES)                  \
    K(list_cast, ListCastArgs, 1 << TENSOR_F32)                  \
    K(list_norm, ListNormArgs, FLOATS | HALVES)                  \
    K(map_formula, FormulaArgs, FLOATS | HALVES)                 \
    K(select, SelectArgs, ALL)                                   \
    K(reduce, ReduceArgs, ALL)                                   \
    K(gemm, GemmArgs, ALL)                                       \
    K(softmax, SoftmaxArgs, FLOATS | HALVES)                     \
    K(softmax_grad, SoftmaxGradArgs, FLOATS | HALVES)            \
    K(cross_entropy, CrossEntropyArgs, FLOATS | HALVES)          \
    K(cross_entropy_grad, CrossEntropyGradArgs, FLOATS | HALVES) \
    K(scan, ScanArgs, ALL)                                       \
    K(scan_grad, ScanArgs, FLOATS)                               \
    K(order, OrderArgs, ALL)                                     \
    K(search, SearchArgs, WIDE)                                  \
    K(gather, GatherArgs, ALL)                                   \
    K(scatter_add, GatherArgs, ALL)                              \
    K(scatter_fold, GatherArgs, WIDE)                            \
    K(check_range, CheckArgs, WIDE)                              \
    K(index_join, IndexJoinArgs, 1 << TENSOR_I64)                \
    K(conv2d, ConvArgs, ALL)                                     \
    K(conv2d_grad_input, ConvArgs, ALL)                          \
    K(conv2d_grad_weight, ConvArgs, ALL)                         \
    K(max_pool, PoolArgs, ALL)                                   \
    K(max_pool_grad, PoolArgs, FLOATS | HALVES)                  \
    K(avg_pool, PoolArgs, ALL)                                   \
    K(avg_pool_grad, PoolArgs, FLOATS | HALVES)                  \
    K(norm, NormArgs, FLOATS | HALVES)                           \
    K(norm_grad, NormArgs, FLOATS | HALVES)                      \
    K(random, RandomArgs, ALL)                                   \
    K(attention, AttentionArgs, 1 << TENSOR_F32 | HALVES)        \
    K(attention_grad, AttentionArgs, 1 << TENSOR_F32 | HALVES)   \
    K(rnn_step, RnnArgs, FLOATS | HALVES)                        \
    K(rnn_step_grad, RnnArgs, FLOATS | HALVES)                   \
    K(resample, ResampleArgs, FLOATS)                            \
    K(resample_table, ResampleTableArgs, FLOATS)                 \
    K(taps, TapsArgs, FLOATS | HALVES)                           \
    K(pairs, PairsArgs, FLOATS)                                  \
    K(pairs_grad, PairsArgs, FLOATS)                             \
    K(special, SpecialArgs, 1 << TENSOR_F64)                     \
    K(ctc, CtcArgs, 1 << TENSOR_F64)                             \
    K(class_margin, ClassMarginArgs, 1 << TENSOR_F64)
#define T(slot, Args, dtypes) TAKE_TURN(slot, Args)
KERNELS_HERE(T)
#undef T

static Device table()
{
    Device d{};
    d.abi = DEVICE_ABI, d.size = sizeof d, d.name = DEVICE_NAME, d.ops_digest = TAPEGRAD_OPS_DIGEST;
    d.open = open, d.error = error, d.describe = describe;
    d.alloc = alloc, d.free = release;
    d.to_device = to_device, d.to_host = to_host, d.synchronize = synchronize, d.fault = fault, d.lost = lost,
    d.memory = memory, d.release = release_cached, d.stream = stream;
    d.beside = gpu_set_beside, d.pin = gpu_pin, d.unpin = gpu_unpin;
    d.event = gpu_event, d.event_free = gpu_event_free, d.event_record = gpu_event_record;
    d.event_done = gpu_event_done, d.event_synchronize = gpu_event_synchronize;
    d.event_wait = gpu_event_wait, d.event_elapsed = gpu_event_elapsed;
    d.graphs = &gpu_graphs;
#define SET(slot_, Args, dtypes) d.slot_ = turn_##slot_, d.takes[SLOT_##slot_] = dtypes;
    KERNELS_HERE(SET)
#undef SET
    return d;
}

static const Device device = table();

extern "C" __attribute__((visibility("default"))) const Device *tensor_device_plugin(void);
const Device *tensor_device_plugin(void) { return &device; }
