/* wolfe.c - a line search for the strong Wolfe conditions, as PyTorch's: bracket a point, then zoom in.
 *
 *   f(t) <= f(0) + c1 t f'(0)   and   |f'(t)| <= c2 |f'(0)| */
#include <math.h>
#include "lbfgs.h"

static const double C1 = 1e-4, C2 = 0.9;

/* The minimum of the cubic through two points and their slopes, held to [least, most]. */
static double interpolate(const LbfgsPoint *a, const LbfgsPoint *b, double least, double most)
{
    const double d1 = a->slope + b->slope - 3 * (a->f - b->f) / (a->t - b->t);
    const double square = d1 * d1 - a->slope * b->slope;
    if (!(square >= 0)) return (least + most) / 2;
    const double d2 = sqrt(square);
    const LbfgsPoint *low = a->t <= b->t ? a : b, *high = a->t <= b->t ? b : a;
    const double at =
        high->t - (high->t - low->t) * ((high->slope + d2 - d1) / (high->slope - low->slope + 2 * d2));
    const double held = least > at ? least : at;
    return most < held ? most : held;
}

typedef struct Wolfe {
    Lbfgs *l;
    Tensor *d;
    LbfgsPoint start, bracket[2];
    double most; /* |d|, its largest element */
    int points, low, evaluations, left;
    bool found;
} Wolfe;

static bool too_high(const Wolfe *w, const LbfgsPoint *p)
{
    return p->f > w->start.f + C1 * p->t * w->start.slope;
}
static bool flat_enough(const Wolfe *w, const LbfgsPoint *p)
{
    return fabs(p->slope) <= -C2 * w->start.slope;
}

static void bracketed(Wolfe *w, LbfgsPoint a, LbfgsPoint b, int points)
{
    w->bracket[0] = a, w->bracket[1] = b, w->points = points;
}

static int find_bracket(Wolfe *w, double t)
{
    LbfgsPoint before = w->start, now;
    if (lbfgs_try(w->l, w->d, t, &now)) return -1;
    for (w->evaluations = 1; w->left > 0; w->left--, w->evaluations++) {
        const int round = w->evaluations - 1;
        if (too_high(w, &now) || (round > 1 && now.f >= before.f)) return bracketed(w, before, now, 2), 0;
        if (flat_enough(w, &now)) return w->found = true, bracketed(w, now, now, 1), 0;
        if (now.slope >= 0) return bracketed(w, before, now, 2), 0;
        const double next = interpolate(&before, &now, now.t + 0.01 * (now.t - before.t), now.t * 10);
        before = now;
        if (lbfgs_try(w->l, w->d, next, &now)) return -1;
    }
    bracketed(w, w->start, now, 2);
    return 0;
}

/* Where to look next; a trial that is close to the bracket's end for the second time is moved inwards. */
static double next_trial(const Wolfe *w, bool *slow)
{
    const LbfgsPoint *b = w->bracket;
    const double least = fmin(b[0].t, b[1].t), most = fmax(b[0].t, b[1].t), margin = 0.1 * (most - least);
    const double t = interpolate(&b[0], &b[1], least, most);
    const bool close = fmin(most - t, t - least) < margin;
    const bool move = close && (*slow || t >= most || t <= least);
    *slow = close && !move;
    return !move ? t : fabs(t - most) < fabs(t - least) ? most - margin : least + margin;
}

static int lower(const LbfgsPoint *b) { return b[0].f <= b[1].f ? 0 : 1; }

static void narrow(Wolfe *w, LbfgsPoint now)
{
    LbfgsPoint *b = w->bracket, *low = &b[w->low], *high = &b[1 - w->low];
    if (too_high(w, &now) || now.f >= low->f) {
        *high = now;
        w->low = lower(b);
        return;
    }
    if (flat_enough(w, &now)) w->found = true;
    else if (now.slope * (high->t - low->t) >= 0) *high = *low;
    *low = now;
}

int lbfgs_strong_wolfe(Lbfgs *l, Tensor *d, double t, double most, int tries, LbfgsPoint *point,
                       int *evaluations)
{
    Wolfe w = { .l = l, .d = d, .start = *point, .most = most, .left = tries };
    bool slow = false;
    if (find_bracket(&w, t)) return -1;
    w.low = w.points == 1 ? 0 : lower(w.bracket);
    while (!w.found && w.left > 0) {
        if (fabs(w.bracket[1].t - w.bracket[0].t) * w.most < l->options->tolerance_change) break;
        LbfgsPoint now;
        if (lbfgs_try(l, d, next_trial(&w, &slow), &now)) return -1;
        w.evaluations++, w.left--;
        narrow(&w, now);
    }
    *point = w.bracket[w.low];
    *evaluations = w.evaluations;
    return 0;
}
