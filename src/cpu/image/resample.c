/* resample.c - planes resampled axis by axis; each thread has planes, and memory between two passes, of its
 * own. */
#include "device/host.h"
#include "cpu/product/gemm.h"
#include "resample_kernel.h"

typedef struct Plan {
    const ResampleArgs *a;
    ResampleKernel *pass;
    int passes, order[3];
    int64_t in, out, between; /* bytes: of planes, and of the largest result of a pass but the last */
    char *scratch;            /* two of `between` for each thread */
} Plan;

/* Axes that shrink come first, from the first to the last; then those that grow, from the last to the first:
 * the innermost axis, whose loop is the slowest, is passed over when the plane is small. */
static void choose_order(Plan *plan)
{
    const ResampleAxis *axis = plan->a->axis;
    for (int i = 0; i < 3; i++)
        if (axis[i].start && axis[i].out < axis[i].in) plan->order[plan->passes++] = i;
    for (int i = 2; i >= 0; i--)
        if (axis[i].start && axis[i].out >= axis[i].in) plan->order[plan->passes++] = i;
}

static void measure(Plan *plan)
{
    const ResampleAxis *axis = plan->a->axis;
    const int64_t size = (int64_t)dtype_size(plan->a->dtype);
    int64_t now[3] = { axis[0].in, axis[1].in, axis[2].in };
    plan->in = plan->out = now[0] * now[1] * now[2] * size;
    for (int k = 0; k < plan->passes; k++) {
        now[plan->order[k]] = axis[plan->order[k]].out;
        plan->out = now[0] * now[1] * now[2] * size;
        if (k < plan->passes - 1 && plan->out > plan->between) plan->between = plan->out;
    }
}

static void plane(void *ctx, int64_t i)
{
    const Plan *plan = ctx;
    const ResampleAxis *axis = plan->a->axis;
    const char *x = (const char *)plan->a->x + i * plan->in;
    char *y = (char *)plan->a->y + i * plan->out,
         *scratch = plan->scratch ? plan->scratch + 2 * plan->between * parallel_slot() : NULL;
    int64_t now[3] = { axis[0].in, axis[1].in, axis[2].in };
    if (plan->passes == 0) memcpy(y, x, (size_t)plan->in);
    for (int k = 0; k < plan->passes; k++) {
        const int d = plan->order[k];
        char *to = k == plan->passes - 1 ? y : scratch + (k % 2) * plan->between;
        plan->pass(&axis[d], x, to,
                   d == 0   ? 1
                   : d == 1 ? now[0]
                            : now[0] * now[1],
                   d == 2   ? 1
                   : d == 1 ? now[2]
                            : now[1] * now[2]);
        now[d] = axis[d].out;
        x = to;
    }
}

int cpu_resample(ResampleArgs *a)
{
    Plan plan = { .a = a, .pass = ISA_PICK(resample_kernel)[a->dtype == TENSOR_F64] };
    choose_order(&plan);
    measure(&plan);
    enum { COST = 4 }; /* of an element, in elementary operations */
    int threads = cpu_threads(a->planes * COST * (plan.in + plan.out) / (int64_t)dtype_size(a->dtype));
    if (plan.between && !(plan.scratch = gemm_scratch((size_t)(2 * plan.between * threads))))
        return fail_memory("resample");
    parallel_for(a->planes, threads, plane, &plan);
    gemm_scratch_free(plan.scratch);
    return 0;
}
