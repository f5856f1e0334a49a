/* plans.cuh - what cuBLASLt and cuDNN chose for a call, kept by what it depends on, as choosing takes longer
 * than most calls (plans.cu).
 *
 *  - A table grows up to MOST plans.  For one more, that goes which was not used for longest, if no captured
 *    step uses it and its last call is known to be done: kernels may belong to a plan.  Else it grows on.
 *  - A plan that is found is for a call of the same turn, which is queued, or captured: a graph holds it then
 *    until it is cleared.
 *  - In a capture plans are made in the relaxed mode, and none goes. */
#ifndef TG_CUDA_PLANS_CUH
#define TG_CUDA_PLANS_CUH

#include <new>
#include "cuda/cuda.cuh"

struct Link { /* of the plans in the order of their use */
    Link *older, *newer;
};

struct Plan : Link {
    enum { MOST_KEY = 256 };
    alignas(8) unsigned char key[MOST_KEY];
    size_t key_size;
    Plan *next;   /* of its chain */
    int64_t tick; /* the queue's next mark when it was used, or let go, last */
    int graphs;   /* so many hold it (graph.cu) */
    virtual ~Plan() = default;
};

struct Plans { /* a table */
    enum { MOST = 4096 };
    Plan **chain;
    size_t chains, count;
    Link ends = { &ends, &ends };
};

/* For a key without gaps of unknown bytes.  nullptr: there is none.
 * gpu_keep_plan - sets its key; false, and the plan is deleted: no memory.
 * gpu_use_plan - notes that a call uses it.  false: no memory. */
Plan *gpu_find_plan(const Plans *of, const void *key, size_t size);
bool gpu_keep_plan(Plans *of, Plan *p, const void *key, size_t size);
bool gpu_use_plan(Plans *of, Plan *p);

/* The plan for the key, at need a new one that make(plan) completes.  nullptr, and the sentence recorded: no
 * memory. */
template <class P, class Make> P *gpu_plan(Plans *of, const void *key, size_t size, Make make)
{
    P *p = static_cast<P *>(gpu_find_plan(of, key, size));
    if (!p) {
        const Relaxed relaxed;
        p = new (std::nothrow) P{};
        if (!p) return gpu_fail("out of memory"), nullptr;
        make(p);
        if (!gpu_keep_plan(of, p, key, size)) return nullptr;
    }
    return gpu_use_plan(of, p) ? p : nullptr;
}

#endif
