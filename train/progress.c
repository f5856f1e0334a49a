/* progress.c - a progress line on a terminal. */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "train.h"

const IoProgressArgs io_progress_defaults = { IO_PROGRESS_DEFAULTS };

enum { BAR = 24 };

struct Progress {
    int64_t total, done;
    double began, drawn, interval;
    FILE *file;
    bool terminal, leave;
    char desc[64], unit[16], more[128];
};

double train_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Progress *io_progress_args(IoProgressArgs args)
{
    static const char op[] = "io_progress";
    if (TENSOR_CHECK_OPTIONS(op, args, io_progress_defaults)) return NULL;
    if (!args.desc || !args.unit) return tensor_fail(TENSOR_ENULL, op, "desc or unit is NULL"), NULL;
    if (args.total < 0) return tensor_fail(TENSOR_EVALUE, op, "total %lld", (long long)args.total), NULL;
    Progress *p = calloc(1, sizeof *p);
    if (!p) return tensor_fail(TENSOR_ENOMEM, op, "out of memory"), NULL;
    p->total = args.total, p->interval = args.interval, p->leave = args.leave, p->began = train_now();
    p->file = args.file ? args.file : stderr;
    p->terminal = isatty(fileno(p->file));
    snprintf(p->desc, sizeof p->desc, "%s%s", args.desc, *args.desc ? ": " : "");
    snprintf(p->unit, sizeof p->unit, "%s", args.unit);
    return p;
}

/* 75 -> "01:15", 3675 -> "1:01:15". */
static const char *clock_text(double seconds, char text[32])
{
    const long s = seconds < 0 || !(seconds < 1e9) ? 0 : (long)(seconds + 0.5);
    if (s < 3600) snprintf(text, 32, "%02ld:%02ld", s / 60, s % 60);
    else snprintf(text, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

static void draw(Progress *p, double time)
{
    const double spent = time - p->began, rate = spent > 0 ? (double)p->done / spent : 0;
    char gone[32], left[32], bar[BAR + 1];
    clock_text(spent, gone);
    fprintf(p->file, "\r%s", p->desc);
    if (p->total) {
        const double part = p->done < p->total ? (double)p->done / (double)p->total : 1;
        memset(bar, '.', BAR), memset(bar, '#', (size_t)(part * BAR)), bar[BAR] = 0;
        clock_text((double)(p->total - p->done) / rate, left);
        fprintf(p->file, "%3d%%|%s| %lld/%lld [%s<%s", (int)(part * 100), bar, (long long)p->done,
                (long long)p->total, gone, p->done ? left : "?");
    } else fprintf(p->file, "%lld%s [%s", (long long)p->done, p->unit, gone);
    fprintf(p->file, ", %.4g%s/s%s%s]\033[K", rate, p->unit, *p->more ? ", " : "", p->more);
    fflush(p->file);
    p->drawn = time;
}

bool io_progress_due(const Progress *p) { return p && p->terminal && train_now() - p->drawn >= p->interval; }

void io_progress_update(Progress *p, int64_t n, const char *format, ...)
{
    if (!p) return;
    p->done += n;
    if (!p->terminal) return;
    if (format) { /* also where it is not drawn: the last one is, by io_progress_free */
        va_list args;
        va_start(args, format);
        vsnprintf(p->more, sizeof p->more, format, args);
        va_end(args);
    }
    const double time = train_now();
    if (time - p->drawn >= p->interval) draw(p, time);
}

void io_progress_free(Progress *p)
{
    if (!p) return;
    if (p->terminal) {
        if (p->leave) draw(p, train_now());
        fputs(p->leave ? "\n" : "\r\033[K", p->file);
        fflush(p->file);
    }
    free(p);
}
