/* runtime.h - what the files of the runtime share.  All under one lock, HOLD, but the work of streams. */
#pragma once
#include "cuemu.h"
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

struct Mark { /* what an event is; work that names it may outlive the event */
    cuemuStream *stream = nullptr;
    unsigned recorded = 0, done = 0;
    double time = 0; /* in ms */
};
namespace cuemu {
enum { DEVICES = 2 };
extern thread_local int current; /* the device that the thread has set */
} // namespace cuemu
struct cuemuEvent {
    std::shared_ptr<Mark> mark = std::make_shared<Mark>();
    cuemuGraph *capture = nullptr; /* it was recorded in this one, by: */
    cuemuStream *from = nullptr;
    int captured = 0; /* what that stream had put into it */
    int device = cuemu::current;
};
struct Op { /* work, an event that is waited for, or one that is done */
    std::function<void()> work = nullptr;
    int64_t *tally = nullptr; /* counts the work once done */
    std::shared_ptr<Mark> wait = nullptr, done = nullptr;
    unsigned version = 0;
    int device = cuemu::current;
};
struct cuemuGraph {
    std::vector<Op> ops;
    cudaStreamCaptureMode mode;
    std::thread::id thread; /* who captures */
    bool bad;
};
struct cuemuStream {
    std::deque<Op> q;
    unsigned flags = 0;
    std::thread::id runner;        /* who runs its work now */
    cuemuGraph *capture = nullptr; /* takes what is queued, instead */
    bool origin = false;           /* the capture began here */
    int captured = 0;              /* what it put into a capture; */
    bool joined = false;           /* and another stream waits for all of that */
    int device = cuemu::current;
};

namespace cuemu {
struct Alloc {
    uintptr_t p;
    size_t n;
    bool pinned; /* host memory */
    int device = current;
};
extern std::mutex big; /* host threads come one at a time, but work of streams runs without it */
#define HOLD std::lock_guard<std::mutex> hold(big)
extern cudaError_t lost_on[DEVICES];
static inline cudaError_t &lost() { return lost_on[current]; }
extern CuemuCounts counts;
extern int64_t failing_allocation;
extern bool dry; /* work is counted and left undone */
extern std::vector<cuemuStream *> streams;

cudaError_t err(cudaError_t e); /* becomes the last error */
void forget(void *p, size_t n); /* TSan: this memory starts a new life */
void begin_shared();            /* a kernel begins; */
void poison_shared();           /* a block of it does; */
void end_shared();              /* it has ended */
cuemuStream *S(cudaStream_t s);
bool elsewhere(cudaStream_t s); /* the stream belongs to another device than the thread's */
void push(cuemuStream *s, Op op);
void drain_all();
/* memory.cpp: the block that holds p; may the host's view of device memory change? */
const Alloc *find(const void *p);
void expose(bool on);
void set_guard(unsigned of); /* CUEMU_GUARD */
/* graphs.cpp: is this a call that a capture forbids?  It ends the capture, then.  of: the stream that is
 * waited for; NULL: a call that some captures allow. */
bool forbidden(const cuemuStream *of);
void joins(cuemuStream *s, cudaEvent_t e); /* the capture that e was recorded in */
} // namespace cuemu
