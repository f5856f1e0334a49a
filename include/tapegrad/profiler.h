/* profiler.h - time spent by op and by module, and a timeline.
 *
 *     tensor_profile_begin();
 *     for (int i = 0; i < 10; i++) step();
 *     tensor_profile_end();
 *     tensor_profile_print(stdout);                 // a table by op, and one by module
 *     tensor_profile_save("trace.json");            // for chrome://tracing and ui.perfetto.dev
 *
 * TAPEGRAD_PROFILE=1 in the environment profiles a whole program: at exit the table goes to stderr and the
 * trace to tapegrad_trace.json; any value but 0 and 1 is the path of the trace.
 *
 * The profiler measures the ops of all threads, forward and backward.  "total" includes the ops that an op is
 * composed of, "self" does not.  On a device that queues work it measures the time to queue.  While off, it
 * and the other modes cost a small op 1 % of its instructions (docs/performance.md). */
#ifndef TAPEGRAD_PROFILER_H
#define TAPEGRAD_PROFILER_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor_profile_begin - discards earlier measurements and starts the profiler.
 * tensor_profile_end - stops it; the measurements stay until the next begin.
 * tensor_profiling - is it on? */
TAPEGRAD_API void tensor_profile_begin(void);
TAPEGRAD_API void tensor_profile_end(void);
TAPEGRAD_API bool tensor_profiling(void);

/* tensor_profile_push, tensor_profile_pop - the ops of this thread between the two, and their backward, count
 * under this name. Names nest to paths: "net.0.attn".  nn_forward pushes each module's name, optim_step the
 * optimizer's: "AdamW".  Cheap while the profiler is off; a pop without a push does nothing.
 * TENSOR_PROFILE("data") { ... } - the same for a block, which ends however it is left. */
TAPEGRAD_API void tensor_profile_push(const char *name);
TAPEGRAD_API void tensor_profile_pop(void);
static inline bool tensor_profile_push_(const char *name) { return tensor_profile_push(name), true; }
static inline void tensor_profile_pop_(const bool *unused) { (void)unused, tensor_profile_pop(); }
#define TENSOR_PROFILE_NAMED_(n, name)                                                   \
    for (bool TENSOR_PROFILE_PASTE_(tensor_go_, n)                                       \
             __attribute__((cleanup(tensor_profile_pop_))) = tensor_profile_push_(name); \
         TENSOR_PROFILE_PASTE_(tensor_go_, n); TENSOR_PROFILE_PASTE_(tensor_go_, n) = false)
#define TENSOR_PROFILE_PASTE_(a, b) TENSOR_PROFILE_PASTE__(a, b)
#define TENSOR_PROFILE_PASTE__(a, b) a##b
#define TENSOR_PROFILE(name) TENSOR_PROFILE_NAMED_(__COUNTER__, name)

/* The measurements of one op in one direction. */
typedef struct TensorProfile {
    const char *name; /* valid until the next begin */
    bool backward;
    int64_t calls;
    double seconds, self_seconds; /* with and without the ops it is composed of */
    int64_t allocations, bytes;   /* its own requests for memory (self), and their bytes */
} TensorProfile;

/* tensor_profile_rows - returns the number of rows and copies the first `room`, by decreasing self_seconds,
 *     to rows, which may be NULL if room is 0.
 * tensor_profile_print - prints the tables: ops by self time, modules by path.
 * tensor_profile_save - writes the timeline as JSON trace events, at most 2^20 calls; the file states how
 *     many are missing (droppedEvents), the tables count all.  EIO: it cannot be written; ENULL. */
TAPEGRAD_API int tensor_profile_rows(TensorProfile *rows, int room);
TAPEGRAD_API int tensor_profile_print(FILE *file);
TAPEGRAD_API int tensor_profile_save(const char *path);

#ifdef __cplusplus
}
#endif
#endif
