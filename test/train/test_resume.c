/* test_resume.c - runs that are killed by SIGKILL at random instants, and at each call of a save, end in the
 * bits of one that was not.
 *
 * The suite starts itself as the run that is killed.  TAPEGRAD_KILLS: how often (make kills: 200). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include "run.h"
#include "scratch.h"

/* ---- the run --------------------------------------------------------------------------------- */

static long kill_at; /* the call, counted from 1, at which the process dies; 0: none */

static void die_here(void)
{
    if (kill_at && --kill_at == 0) kill(getpid(), SIGKILL);
}

/* Saves call these.  The one that is to die in fsync has written half of the file. */
int fsync(int fd)
{
    struct stat s;
    if (kill_at == 1 && fstat(fd, &s) == 0 && ftruncate(fd, s.st_size / 2) == 0) die_here();
    else if (kill_at) die_here();
    int status = (int)syscall(SYS_fsync, fd);
    die_here();
    return status;
}

int rename(const char *from, const char *to)
{
    die_here();
    int status = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    die_here();
    return status;
}

int unlink(const char *path)
{
    die_here();
    int status = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    die_here();
    return status;
}

static void by_hand(Run *r, const char *folder, long every, long at)
{
    Checkpoint *c = every ? run_checkpoint(r, folder) : NULL;
    if (c) io_checkpoint_resume(c);
    kill_at = at;
    while (r->step < RUN_STEPS && !tensor_error()) {
        run_step(r);
        if (c && r->step % every == 0) io_checkpoint_save(c);
    }
    io_checkpoint_free(c);
}

static void by_fit(Run *r, const char *folder, long every, long at)
{
    kill_at = at;
    nn_fit(r->net, r->loader, nn_cross_entropy_loss(), r->opt, .epochs = 7, .scheduler = r->schedule,
           .schedule_steps = true, .restore_best = true, .checkpoint = every ? folder : NULL,
           .save_every = every, .keep = 2, .verbose = 0);
}

/* argv: --loop or --fit, FOLDER EVERY KILL_AT; EVERY 0: no checkpoints. */
static int child(char **argv)
{
    char final[600];
    snprintf(final, sizeof final, "%s/final", argv[2]);
    Run r = run_begin(2);
    (strcmp(argv[1], "--fit") ? by_hand : by_fit)(&r, argv[2], atol(argv[3]), atol(argv[4]));
    kill_at = 0;
    run_save(&r, final);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    run_end(&r);
    return tensor_error() != NULL;
}

/* ---- killing it ------------------------------------------------------------------------------ */

typedef enum Kind { LOOP, FIT, KINDS } Kind;

static pid_t start(Kind kind, const char *folder, long every, long at)
{
    char text[2][24];
    snprintf(text[0], 24, "%ld", every), snprintf(text[1], 24, "%ld", at);
    pid_t pid = fork();
    if (pid) return pid;
    execl("/proc/self/exe", "test_resume", kind ? "--fit" : "--loop", folder, text[0], text[1], (char *)NULL);
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

static void empty_folder(const char *folder)
{
    char path[1200];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') remove(path);
    }
    if (d) closedir(d);
    rmdir(folder);
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

/* What the runs come to that nobody kills. */
static int begin(void **state)
{
    if (scratch_begin(state)) return -1;
    for (Kind kind = LOOP; kind < KINDS; kind++) {
        char path[700];
        const char *folder = folder_of(0);
        if (!finished(start(kind, folder, 0, 0))) return -1;
        snprintf(path, sizeof path, "%s/final", folder);
        want[kind] = get_file(path, &want_bytes[kind]);
        empty_folder(folder);
    }
    return 0;
}

static int end(void **state)
{
    for (Kind kind = LOOP; kind < KINDS; kind++) free(want[kind]);
    return scratch_end(state);
}

static void test_saving_changes_nothing(void **state)
{
    (void)state;
    for (Kind kind = LOOP; kind < KINDS; kind++) {
        const char *folder = folder_of(1);
        assert_true(finished(start(kind, folder, 1, 0)));
        assert_final(kind, folder);
        empty_folder(folder);
    }
}

/* Each save makes the calls of one file, so every instant between two of them is met. */
static void test_each_call(void **state)
{
    (void)state;
    for (long at = 1; at <= 16; at++) {
        const char *folder = folder_of(2);
        int kills = 0;
        const Kind kind = at % 2 ? LOOP : FIT;
        while (!finished(start(kind, folder, 3, kills < 4 ? at : 0))) kills++;
        assert_true(kills > 0);
        assert_final(kind, folder);
        empty_folder(folder);
    }
}

/* Waits are drawn below a bound that follows how fast the machine is: about half of them end in a kill. */
static void test_random_instants(void **state)
{
    (void)state;
    const char *given = getenv("TAPEGRAD_KILLS");
    int kills = 0, most = given ? atoi(given) : 12, runs = 0;
    unsigned seed = (unsigned)getpid();
    double bound = 0.05;
    for (; kills < most; runs++) {
        const char *folder = folder_of(3);
        for (bool over = false; !over;) {
            pid_t pid = start(runs % KINDS, folder, 1 + rand_r(&seed) % 3, 0);
            double wait = bound * (double)rand_r(&seed) / RAND_MAX;
            nanosleep(&(struct timespec){ (time_t)wait, (long)(1e9 * (wait - (double)(time_t)wait)) }, NULL);
            if (kills < most) kill(pid, SIGKILL);
            over = finished(pid);
            kills += !over;
            bound *= over ? 0.9 : 1.1;
        }
        assert_final(runs % KINDS, folder);
        empty_folder(folder);
    }
    print_message("%d kills in %d runs\n", kills, runs);
}

int main(int argc, char **argv)
{
    if (argc == 5) return child(argv);
    const struct CMUnitTest tests[] = {
        TEST(test_saving_changes_nothing),
        TEST(test_each_call),
        TEST(test_random_instants),
    };
    return cmocka_run_group_tests_name("resume", tests, begin, end);
}
