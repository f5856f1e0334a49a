/* graphs.cpp - capture and graphs of cuemu.h.  A graph is the list of what was queued, in that order, by the
 * stream where the capture began and by those that joined it. */
#include "runtime.h"

namespace cuemu {
static thread_local cudaStreamCaptureMode own_mode = cudaStreamCaptureModeGlobal;

/* A call that may wait is refused by a capture of the same thread, or, in the global mode, of any; not where
 * the capture or the thread is relaxed. */
static bool minds(const cuemuGraph *c)
{
    if (c->mode == cudaStreamCaptureModeRelaxed || own_mode == cudaStreamCaptureModeRelaxed) return false;
    return c->mode == cudaStreamCaptureModeGlobal || c->thread == std::this_thread::get_id();
}

bool forbidden(const cuemuStream *of)
{
    bool any = false;
    for (const cuemuStream *s : streams)
        if (s->capture && (of ? of == s : minds(s->capture))) any = s->capture->bad = true;
    return any;
}

void joins(cuemuStream *s, cudaEvent_t e)
{
    if (!s->capture) s->capture = e->capture, s->joined = false;
    if (e->from != s && e->from->captured == e->captured) e->from->joined = true;
}
} // namespace cuemu
using namespace cuemu;

extern "C" {
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    std::swap(own_mode, *mode);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode)
{
    HOLD;
    if (!s || s->capture) return err(cudaErrorStreamCaptureUnsupported);
    s->capture = new cuemuGraph{ {}, mode, std::this_thread::get_id(), false };
    s->origin = true;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status)
{
    HOLD;
    const cuemuGraph *c = S(s)->capture;
    *status = !c       ? cudaStreamCaptureStatusNone
              : c->bad ? cudaStreamCaptureStatusInvalidated
                       : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    HOLD;
    *graph = nullptr;
    if (!s || !s->capture || !s->origin) return err(cudaErrorInvalidValue);
    cuemuGraph *c = s->capture;
    bool loose = false;
    for (cuemuStream *o : streams) {
        if (o->capture != c) continue;
        loose = loose || (o != s && !o->joined);
        o->capture = nullptr, o->origin = false;
    }
    if (!c->bad && !loose) {
        *graph = c;
        return cudaSuccess;
    }
    const bool bad = c->bad;
    delete c;
    return err(bad ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    *exec = new cuemuGraph(*graph);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    HOLD;
    if (lost()) return err(lost());
    if (elsewhere(s)) return err(cudaErrorInvalidResourceHandle);
    counts.launches++;
    for (const Op &op : exec->ops) push(S(s), op);
    return err(lost());
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return cudaGraphDestroy(exec); }
}
