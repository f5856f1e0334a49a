/* test_resume.c - runs that are killed by SIGKILL, at random times and at each call of a save, end in the
 * bits of one that was not.
 *
 * The suite starts itself as the run that is killed.  The run says in shared memory where it is, so that each
 * kill is counted under the instant that it met.  TAPEGRAD_KILLS: how many; 200 if it is not set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include "run.h"
#include "scratch.h"

/* ---- instants -------------------------------------------------------------------------------- */

typedef enum Instant {
    BEGINNING,      /* until the first step: reading, too */
    TRAINING,       /* and collecting what is to be written */
    IN_WRITE,       /* with a part of it in the file */
    BEFORE_SYNC,    /* all of it is written */
    AFTER_SYNC,     /* the file is whole, under its temporary name */
    BEFORE_RENAME,  /* again */
    AFTER_RENAME,   /* it has its name, which the folder may lose yet */
    AFTER_FOLDER,   /* and not now */
    BEFORE_PRUNING, /* one file too many */
    AFTER_PRUNING,
    INSTANTS
} Instant;

static const char *const instant_names[INSTANTS] = { "at the beginning", "in training",
                                                     "in a write",       "before fsync",
                                                     "after fsync",      "before rename",
                                                     "after rename",     "after the folder's fsync",
                                                     "before unlink",    "after unlink" };

typedef struct Shared {
    volatile Instant now;
} Shared;

/* Where a run dies: the count-th time that it is there.  TRAINING: nowhere. */
typedef struct Death {
    Instant at;
    long count;
} Death;

static Shared *shared, unshared;
static Death death;

static void be(Instant now)
{
    if (!shared) return;
    shared->now = now;
    if (death.at == now && death.count > 0 && --death.count == 0) kill(getpid(), SIGKILL);
}

/* ---- the calls of a save --------------------------------------------------------------------- */

/* A write that is to die leaves half of its bytes in the file. */
size_t fwrite(const void *data, size_t size, size_t n, FILE *f)
{
    static size_t (*real)(const void *, size_t, size_t, FILE *);
    if (!real) real = (size_t(*)(const void *, size_t, size_t, FILE *))dlsym(RTLD_NEXT, "fwrite");
    if (!shared || n < 2) return real(data, size, n, f);
    size_t half = real(data, size, n / 2, f);
    if (death.at == IN_WRITE && death.count == 1) fflush(f);
    be(IN_WRITE);
    return half + real((const char *)data + n / 2 * size, size, n - n / 2, f);
}

/* A disk is not waited for: what a killed process has written is in its files. */
int fsync(int fd)
{
    struct stat s;
    const bool folder = fstat(fd, &s) == 0 && S_ISDIR(s.st_mode);
    if (!folder) be(BEFORE_SYNC);
    be(folder ? AFTER_FOLDER : AFTER_SYNC);
    return 0;
}

int rename(const char *from, const char *to)
{
    be(BEFORE_RENAME);
    int status = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    be(AFTER_RENAME);
    return status;
}

int unlink(const char *path)
{
    be(BEFORE_PRUNING);
    int status = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    be(AFTER_PRUNING);
    return status;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void by_hand(Run *r, const char *folder, long every)
{
    Checkpoint *c = every ? run_checkpoint(r, folder) : NULL;
    if (c) io_checkpoint_resume(c);
    while (r->step < RUN_STEPS && !tensor_error()) {
        be(TRAINING);
        run_step(r);
        if (c && r->step % every == 0) io_checkpoint_save(c);
    }
    io_checkpoint_free(c);
}

static void add_parts(Checkpoint *c, void *ctx)
{
    Run *r = ctx;
    io_checkpoint_generator(c, "own", r->own);
    io_checkpoint_double(c, "smoothed", &r->smoothed);
}

static Tensor *forward(Module *net, const Batch *b, Tensor **output, void *ctx)
{
    be(TRAINING);
    return run_forward(net, b, output, ctx);
}

static void by_fit(Run *r, const char *folder, long every)
{
    Metric *metrics[] = { r->metric, NULL };
    nn_fit(r->net, r->loader, NULL, r->opt, .epochs = 7, .step = forward, .ctx = r,
           .parts = every ? add_parts : NULL, .scheduler = r->schedule, .schedule_steps = true,
           .autocast = TENSOR_F16, .scaler = r->scaler, .averaged = r->averaged, .metrics = metrics,
           .monitor = "accuracy", .restore_best = true, .checkpoint = every ? folder : NULL,
           .save_every = every, .keep = 2, .verbose = 0);
}

static Shared *share(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(Shared))) return NULL;
    void *at = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* argv: --loop or --fit, FOLDER EVERY AT COUNT SHARED; EVERY 0: no checkpoints. */
static int child(char **argv)
{
    char final[600];
    snprintf(final, sizeof final, "%s/final", argv[2]);
    Run r = run_begin(2);
    death = (Death){ (Instant)atoi(argv[4]), atol(argv[5]) };
    shared = share(argv[6]);
    if (!shared) return 3;
    (strcmp(argv[1], "--fit") ? by_hand : by_fit)(&r, argv[2], atol(argv[3]));
    shared = NULL;
    run_save(&r, final);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    run_end(&r);
    return tensor_error() != NULL;
}

/* ---- killing it ------------------------------------------------------------------------------ */

typedef enum Kind { LOOP, FIT, KINDS } Kind;

static Shared *seen = &unshared; /* the runs' */

static pid_t start(Kind kind, const char *folder, long every, Death d)
{
    char text[3][24];
    snprintf(text[0], 24, "%ld", every), snprintf(text[1], 24, "%d", d.at);
    snprintf(text[2], 24, "%ld", d.count);
    seen->now = BEGINNING;
    pid_t pid = fork();
    if (pid) return pid;
    execl("/proc/self/exe", "test_resume", kind ? "--fit" : "--loop", folder, text[0], text[1], text[2],
          scratch("shared"), (char *)NULL);
    _exit(127);
}

/* Has it ended by itself, and well?  False: it was killed. */
static bool finished(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) FAILS("the run failed with status %d", status);
    return true;
}

static const char *folder_of(int i)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%d", scratch_, i);
    mkdir(path, 0777);
    return path;
}

/* Returns how many temporary files there were. */
static int empty_folder(const char *folder)
{
    char path[1200];
    int temporary = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        temporary += strstr(e->d_name, ".tmp") != NULL;
        if (e->d_name[0] != '.') remove(path);
    }
    if (d) closedir(d);
    rmdir(folder);
    return temporary;
}

static unsigned char *want[KINDS];
static size_t want_bytes[KINDS];

static void assert_final(Kind kind, const char *folder)
{
    char path[700];
    size_t n;
    snprintf(path, sizeof path, "%s/final", folder);
    unsigned char *found = get_file(path, &n);
    assert_int_equal(n, want_bytes[kind]);
    assert_memory_equal(found, want[kind], n);
    free(found);
}

static const Death never = { TRAINING, 0 };

/* What the runs come to that nobody kills. */
static int begin(void **state)
{
    if (scratch_begin(state) || !(seen = share(scratch("shared")))) return -1;
    for (Kind kind = LOOP; kind < KINDS; kind++) {
        char path[700];
        const char *folder = folder_of(0);
        if (!finished(start(kind, folder, 0, never))) return -1;
        snprintf(path, sizeof path, "%s/final", folder);
        want[kind] = get_file(path, &want_bytes[kind]);
        empty_folder(folder);
    }
    return 0;
}

static int end(void **state)
{
    for (Kind kind = LOOP; kind < KINDS; kind++) free(want[kind]);
    munmap(seen, sizeof *seen);
    return scratch_end(state);
}

static void test_saving_changes_nothing(void **state)
{
    (void)state;
    for (Kind kind = LOOP; kind < KINDS; kind++) {
        const char *folder = folder_of(1);
        assert_true(finished(start(kind, folder, 1, never)));
        assert_final(kind, folder);
        assert_int_equal(empty_folder(folder), 0);
    }
}

/* Every other kill is at a call that is drawn, the others after a time that is drawn.  Waits are below a
 * bound that follows how fast the machine is: about half of them end in a kill.  Calls: each instant has its
 * turn, in one of the first saves of a run, so that all are met, whatever is drawn. */
typedef struct Kills {
    int done, most, runs, met[INSTANTS], turn;
    unsigned seed;
    double bound;
} Kills;

static double draw(Kills *k) { return (double)rand_r(&k->seed) / RAND_MAX; }

/* Returns whether the run ended. */
static bool kill_once(Kills *k, Kind kind, const char *folder)
{
    const bool calls = k->done % 2 && k->done < k->most;
    Death d = never;
    if (calls) d.at = IN_WRITE + k->turn % (INSTANTS - IN_WRITE);
    if (calls) d.count = 1 + (long)(draw(k) * (d.at == IN_WRITE ? 200 : 3));
    pid_t pid = start(kind, folder, 1 + rand_r(&k->seed) % 3, d);
    if (!calls && k->done < k->most) {
        const double wait = k->bound * draw(k);
        nanosleep(&(struct timespec){ (time_t)wait, (long)(1e9 * (wait - (double)(time_t)wait)) }, NULL);
        kill(pid, SIGKILL);
    }
    const bool over = finished(pid);
    if (!calls) k->bound *= over ? 0.9 : 1.1;
    if (over) return true;
    if (calls) assert_int_equal(seen->now, d.at);
    k->met[seen->now]++, k->done++, k->turn += calls;
    return false;
}

static void test_kills(void **state)
{
    (void)state;
    const char *given = getenv("TAPEGRAD_KILLS");
    Kills k = { .most = given ? atoi(given) : 200, .seed = (unsigned)getpid(), .bound = 0.05 };
    for (; k.done < k.most; k.runs++) {
        const Kind kind = k.runs % KINDS;
        const char *folder = folder_of(3);
        while (!kill_once(&k, kind, folder)) continue;
        assert_final(kind, folder);
        assert_int_equal(empty_folder(folder), 0); /* a resumed run cleans up behind the killed one */
    }
    print_message("seed %u: %d kills in %d runs:", (unsigned)getpid(), k.done, k.runs);
    for (int i = 0; i < INSTANTS; i++)
        print_message(" %d %s%s", k.met[i], instant_names[i], i < INSTANTS - 1 ? "," : "\n");
    for (int i = IN_WRITE; i < INSTANTS; i++) assert_true(k.met[i] >= k.most / 2 / (INSTANTS - IN_WRITE));
}

int main(int argc, char **argv)
{
    if (argc == 7) return child(argv);
    const struct CMUnitTest tests[] = {
        TEST(test_saving_changes_nothing),
        TEST(test_kills),
    };
    return cmocka_run_group_tests_name("resume", tests, begin, end);
}
