/* conv_bf16.c - convolution of bf16: sums of its products in f32 (direct.h) where shape and CPU allow, else
 * through f32 copies.  Each result is rounded once. */
#include "conv_kernel.h"
#include "direct.h"

typedef enum Role { X, WEIGHT, BIAS, Y, ROLES } Role;

/* An operand: its place in the call, and what it is. */
typedef struct Operand {
    void **at, *own;
    int64_t count;
    bool wide, result; /* wide: f32 in the call */
} Operand;

static void cast(void *to, int to_dtype, void *from, int from_dtype, int64_t n)
{
    CopyArgs c = { .ndim = 1, .count = n, .shape = { n } };
    c.dst = (Strided){ .data = to, .dtype = to_dtype, .stride = { 1 } };
    c.src = (Strided){ .data = from, .dtype = from_dtype, .stride = { 1 } };
    cpu_copy(&c);
}

static void list_operands(ConvArgs *f, DirectPass pass, bool direct, Operand to[ROLES])
{
    const int64_t taps = f->kd * f->kh * f->kw, out = pass == DIRECT_GRAD_INPUT ? f->in : f->out;
    const bool forward = pass == DIRECT_FORWARD, of_weight = pass == DIRECT_GRAD_WEIGHT;
    to[X] = (Operand){ .at = &f->x, .count = f->batch * f->in * f->d * f->h * f->w };
    to[X].result = pass == DIRECT_GRAD_INPUT;
    to[WEIGHT] = (Operand){ .at = &f->weight, .count = f->out * (f->in / f->groups) * taps };
    to[BIAS] = (Operand){ .at = &f->bias, .count = f->bias ? out : 0 };
    to[WEIGHT].result = to[BIAS].result = of_weight;
    to[Y] = (Operand){ .at = &f->y, .count = f->batch * f->out * f->od * f->oh * f->ow, .result = forward };
    for (int i = 0; i < ROLES; i++)
        to[i].own = *to[i].at, to[i].wide = !direct || i == BIAS || (i == WEIGHT && of_weight);
}

static int64_t room_of(const Operand *o) { return o->wide ? (o->count + 15) / 16 * 16 : 0; }

static void bias_sum(void *ctx, int64_t o)
{
    enum { AT_ONCE = 256 };
    const ConvArgs *a = ctx;
    const int64_t n = a->od * a->oh * a->ow;
    float part[AT_ONCE];
    double sum = 0;
    for (int64_t image = 0; image < a->batch; image++)
        for (int64_t i = 0; i < n; i += AT_ONCE) {
            const int64_t here = n - i < AT_ONCE ? n - i : AT_ONCE;
            cast(part, TENSOR_F32, (uint16_t *)a->y + (image * a->out + o) * n + i, TENSOR_BF16, here);
            sum += ISA_PICK_AVX2(conv_kernel)[0].sum(part, here);
        }
    ((float *)a->bias)[o] = (float)sum;
}

static int run_direct(ConvArgs *f, DirectPass pass)
{
    const int threads = conv_threads(f);
    if (pass == DIRECT_FORWARD) return direct_forward(f, threads);
    if (pass == DIRECT_GRAD_INPUT) return direct_grad_input(f, threads);
    if (f->bias) parallel_for(f->out, threads, bias_sum, f);
    return direct_grad_weight(f, threads);
}

static int run_f32(ConvArgs *f, DirectPass pass)
{
    f->dtype = TENSOR_F32;
    return pass == DIRECT_FORWARD      ? cpu_conv2d(f)
           : pass == DIRECT_GRAD_INPUT ? cpu_conv2d_grad_input(f)
                                       : cpu_conv2d_grad_weight(f);
}

int conv_bf16(ConvArgs *a, DirectPass pass)
{
    static const char *const name[] = { "conv2d", "conv2d_grad_input", "conv2d_grad_weight" };
    const bool direct = direct_takes(a, pass);
    ConvArgs f = *a;
    Operand all[ROLES];
    int64_t floats = 0;
    list_operands(&f, pass, direct, all);
    for (int i = 0; i < ROLES; i++) floats += room_of(&all[i]);
    const size_t bytes = (size_t)floats * sizeof(float);
    float *room = bytes ? tg_alloc(bytes) : NULL, *next = room;
    if (bytes && !room) return fail_memory(name[pass]);
    for (int i = 0; i < ROLES; next += room_of(&all[i]), i++) {
        if (!all[i].wide || !all[i].count) continue;
        *all[i].at = next;
        if (!all[i].result) cast(next, TENSOR_F32, all[i].own, TENSOR_BF16, all[i].count);
    }
    int status = direct ? run_direct(&f, pass) : run_f32(&f, pass);
    if (direct && status) status = fail_memory(name[pass]);
    for (int i = 0; i < ROLES && !status; i++)
        if (all[i].wide && all[i].result && all[i].count)
            cast(all[i].own, TENSOR_BF16, *all[i].at, TENSOR_F32, all[i].count);
    tg_free(room, bytes);
    return status;
}
