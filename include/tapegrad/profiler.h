/* profiler.h - where the time of a program goes: by op, by module, and along a time line.
 *
 *     tensor_profile_begin();
 *     for (int i = 0; i < 10; i++) step();
 *     tensor_profile_end();
 *     tensor_profile_print(stdout);                 // a table by op, and one by module
 *     tensor_profile_save("trace.json");            // for chrome://tracing and ui.perfetto.dev
 *
 * TAPEGRAD_PROFILE=1 in the environment does it for a whole program: the table goes to stderr at exit, the
 * trace to tapegrad_trace.json; another value than 0 and 1 is the path of the trace.
 *
 * All threads' ops are measured, in the forward direction and in sweeps; what an op is made of counts as its
 * own time ("total") and not as its "self".  On a device that queues work the time is that of queuing.  While
 * it is off a small op spends 1 % of its instructions on asking for modes (docs/performance.md). */
#ifndef TAPEGRAD_PROFILER_H
#define TAPEGRAD_PROFILER_H

#include <tapegrad/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tensor_profile_begin - forgets what was measured, and begins.
 * tensor_profile_end - what was measured stays until the next begin.
 * tensor_profiling - is it on? */
TAPEGRAD_API void tensor_profile_begin(void);
TAPEGRAD_API void tensor_profile_end(void);
TAPEGRAD_API bool tensor_profiling(void);

/* tensor_profile_push, tensor_profile_pop - what this thread does between the two belongs to this name, and
 *     so does the backward of what it records.  Names nest to paths: "net.0.attn".  nn_forward does it for
 *     each module, optim_step for the optimizer: "AdamW".  Cheap while the profiler is off; a pop without a
 *     push does nothing.
 * TENSOR_PROFILE("data") { ... } - the same for a block, however it is left. */
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

/* What one op took, in one direction. */
typedef struct TensorProfile {
    const char *name; /* valid until the next begin */
    bool backward;
    int64_t calls;
    double seconds, self_seconds; /* with and without the ops that it is made of */
    int64_t allocations, bytes;   /* requests for memory of its own (self), and their bytes */
} TensorProfile;

/* tensor_profile_rows - how many of them there are; the first `room` of them, by falling self_seconds, go to
 *     rows, which may be NULL when room is 0.
 * tensor_profile_print - the tables: ops by their own time, modules by path.
 * tensor_profile_save - the time line as JSON trace events.  Beyond 2^20 calls only the tables go on; the
 *     file says how many it lacks (droppedEvents).  EIO: it cannot be written; ENULL. */
TAPEGRAD_API int tensor_profile_rows(TensorProfile *rows, int room);
TAPEGRAD_API int tensor_profile_print(FILE *file);
TAPEGRAD_API int tensor_profile_save(const char *path);

#ifdef __cplusplus
}
#endif
#endif
