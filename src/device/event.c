/* event.c - events in a device's queue, copies in a second stream. */
#define _GNU_SOURCE
#include <math.h>
#include <time.h>
#include <tapegrad/device.h>
#include "place.h"

struct TensorEvent {
    const Place *place;
    DeviceEvent *there; /* NULL: the device queues nothing */
    bool timed, recorded;
    double time; /* of such a one, in ms */
};

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

TensorEvent *tensor_event(const char *device, bool enable_timing)
{
    const Place *place = find_place(device, "tensor_event");
    if (!place) return NULL;
    TensorEvent *e = tg_calloc(sizeof *e);
    if (!e) return fail_memory("tensor_event"), NULL;
    e->place = place, e->timed = enable_timing;
    if (!place->device->event || (e->there = place->device->event(place->context, enable_timing))) return e;
    kernel_status(KERNEL_FAILED, "tensor_event", place, "event");
    tg_free(e, sizeof *e);
    return NULL;
}

void tensor_event_free(TensorEvent *e)
{
    if (!e) return;
    if (e->there) e->place->device->event_free(e->place->context, e->there);
    tg_free(e, sizeof *e);
}

/* 0, or -1 and an error recorded: ENULL; EVALUE, where it must have been recorded. */
static int check(const TensorEvent *e, const char *name, bool recorded)
{
    if (!e) return tensor_error_code() ? -1 : fail(TENSOR_ENULL, name, "the event is NULL");
    if (!e->recorded && recorded) return fail(TENSOR_EVALUE, name, "the event was never recorded");
    return e->there ? graph_wait(name, "uses an event") : 0;
}

/* The device's failure, reported under the function's name. */
static int told(const TensorEvent *e, const char *name, int status)
{
    return kernel_status(status < 0 ? KERNEL_FAILED : KERNEL_DONE, name, e->place, "event");
}

int tensor_event_record(TensorEvent *e)
{
    static const char name[] = "tensor_event_record";
    if (check(e, name, false)) return -1;
    if (!e->there) e->time = milliseconds();
    else if (told(e, name, e->place->device->event_record(e->place->context, e->there))) return -1;
    e->recorded = true;
    return 0;
}

int tensor_event_query(TensorEvent *e)
{
    static const char name[] = "tensor_event_query";
    if (check(e, name, false)) return -1;
    if (!e->there || !e->recorded) return 1;
    const int done = e->place->device->event_done(e->place->context, e->there);
    return told(e, name, done) ? -1 : done;
}

int tensor_event_synchronize(TensorEvent *e)
{
    static const char name[] = "tensor_event_synchronize";
    if (check(e, name, false)) return -1;
    if (!e->there || !e->recorded) return 0;
    return told(e, name, e->place->device->event_synchronize(e->place->context, e->there));
}

int tensor_event_wait(TensorEvent *e)
{
    static const char name[] = "tensor_event_wait";
    if (check(e, name, false)) return -1;
    if (!e->there || !e->recorded) return 0;
    return told(e, name, e->place->device->event_wait(e->place->context, e->there));
}

double tensor_event_elapsed_time(TensorEvent *start, TensorEvent *end)
{
    static const char name[] = "tensor_event_elapsed_time";
    if (check(start, name, true) || check(end, name, true)) return NAN;
    if (start->place != end->place)
        return fail(TENSOR_EDEVICE, name, "events of %s and %s", start->place->name, end->place->name), NAN;
    if (!start->timed || !end->timed)
        return fail(TENSOR_EVALUE, name, "an event was made without enable_timing"), NAN;
    if (!start->there) return end->time - start->time;
    const int done = tensor_event_query(start) & tensor_event_query(end);
    if (done < 1) {
        if (done == 0) fail(TENSOR_EVALUE, name, "the events have not passed yet");
        return NAN;
    }
    const double ms = start->place->device->event_elapsed(start->place->context, start->there, end->there);
    return told(end, name, isnan(ms) ? -1 : 0) ? NAN : ms;
}

/* ---- copies beside the queue ----------------------------------------------------------------- */

TensorCopyStream tensor_copy_stream_begin(const char *device)
{
    const Place *place = find_place(device, "tensor_copy_stream_begin");
    if (!place || !place->device->beside || graph_wait("tensor_copy_stream_begin", "copies"))
        return (TensorCopyStream){ NULL, false };
    return (TensorCopyStream){ place, place->device->beside(place->context, true) };
}

void tensor_copy_stream_end(TensorCopyStream before)
{
    const Place *place = before.device;
    if (place) place->device->beside(place->context, before.was);
}
