/* test_checkpoint_disk.c - folders that refuse, calls that fail or are interrupted, links, and two processes:
 * a save is whole or leaves what there was. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "run.h"
#include "scratch.h"

/* ---- calls that fail ------------------------------------------------------------------------- */

typedef enum Call { NONE, OPEN, SYNC, RENAME, CALLS, MODE } Call;

static struct {
    Call call;
    int why, times;
    const char *gone; /* a folder that is renamed to this before the call */
} fault;

static bool fails(Call call)
{
    if (fault.call != call || fault.times == 0) return false;
    fault.times--;
    if (fault.gone)
        assert_int_equal(syscall(SYS_renameat, AT_FDCWD, scratch("folder"), AT_FDCWD, fault.gone), 0);
    errno = fault.why;
    return fault.why != 0;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
    va_end(rest);
    return strstr(path, ".tmp") && fails(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static int folders_synced;

int fsync(int fd)
{
    struct stat s;
    folders_synced += fstat(fd, &s) == 0 && S_ISDIR(s.st_mode);
    return fails(SYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fchmod(int fd, mode_t mode) { return fails(MODE) ? -1 : (int)syscall(SYS_fchmod, fd, mode); }

int rename(const char *from, const char *to)
{
    return fails(RENAME) ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

/* ---- help ------------------------------------------------------------------------------------ */

/* Files in the folder of this name, and its removal. */
static int files_in(const char *name, bool removed)
{
    char path[900];
    int n = 0;
    DIR *d = opendir(scratch(name));
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", scratch(name), e->d_name);
        if (removed) unlink(path);
        n++;
    }
    if (d) closedir(d);
    if (removed) rmdir(scratch(name));
    return n;
}

static int64_t step;

static Checkpoint *begin(int keep)
{
    Checkpoint *c = io_checkpoint(scratch("folder"), .keep = keep);
    fault.call = NONE;
    step = 1;
    DONE(io_checkpoint_int(c, "step", &step) | io_checkpoint_save(c));
    step = 2;
    return c;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_calls_that_fail(void **state)
{
    static const int why[] = { ENOSPC, EIO, EROFS, EDQUOT, EACCES };
    (void)state;
    for (Call call = OPEN; call < CALLS; call++)
        for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
            Checkpoint *c = begin(3);
            fault.call = call, fault.why = why[i], fault.times = 1;
            assert_int_equal(io_checkpoint_save(c), -1);
            assert_int_equal(fault.times, 0);
            if (strncmp(tensor_error(), "io_checkpoint_save: ", 20) != 0 ||
                !strstr(tensor_error(), "checkpoint-00000002.safetensors cannot be written: ") ||
                !strstr(tensor_error(), strerror(why[i])))
                FAILS("%d: %s", call, tensor_error());
            assert_says(TENSOR_EIO, "");
            assert_int_equal(files_in("folder", false), 1); /* and no temporary */
            step = 0;
            assert_int_equal(io_checkpoint_resume(c), 1);
            assert_int_equal(step, 1);
            DONE(io_checkpoint_save(c)); /* it was the disk, not the run */
            assert_int_equal(files_in("folder", true), 2);
            io_checkpoint_free(c);
        }
}

/* A file that takes another one's place has its mode, or takes it not. */
static void test_a_mode_that_cannot_be_kept(void **state)
{
    (void)state;
    const char *path = scratch("folder");
    TensorDict old = { 0 }, new = { 0 };
    DONE(nn_dict_set(&old, "x", VEC(1, 2)) | nn_dict_set(&new, "x", VEC(3)));
    DONE(io_save_safetensors(path, old));
    fault.call = MODE, fault.why = EPERM, fault.times = 1;
    assert_int_equal(io_save_safetensors(path, new), -1);
    assert_int_equal(fault.times, 0);
    assert_says(TENSOR_EIO, strerror(EPERM));
    fault.call = NONE;
    TensorDict found = io_load_safetensors(path);
    assert_values(nn_dict_get(found, "x"), 1, 2);
    assert_int_equal(access(scratch("folder.tmp"), F_OK), -1);
    unlink(path);
    nn_dict_free(old), nn_dict_free(new), nn_dict_free(found);
}

static void test_interrupted(void **state)
{
    (void)state;
    Checkpoint *c = begin(3);
    fault.call = SYNC, fault.why = EINTR, fault.times = 3;
    DONE(io_checkpoint_save(c));
    assert_int_equal(fault.times, 0);
    step = 0;
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_int_equal(step, 2);
    assert_int_equal(files_in("folder", true), 2);
    io_checkpoint_free(c);
}

/* Between two saves: it is made again.  In the middle of one: an error, and the next one makes it. */
static void test_a_folder_that_disappears(void **state)
{
    (void)state;
    const Call calls[] = { NONE, SYNC, RENAME };
    for (int i = 0; i < 3; i++) {
        Checkpoint *c = begin(3);
        if (i == 0) files_in("folder", true);
        fault.call = calls[i], fault.why = 0, fault.times = 1, fault.gone = scratch("elsewhere");
        if (i) {
            assert_int_equal(io_checkpoint_save(c), -1);
            assert_says(TENSOR_EIO, "folder/checkpoint-00000002.safetensors cannot be written: ");
        }
        fault.call = NONE, fault.gone = NULL;
        DONE(io_checkpoint_save(c));
        step = 0;
        assert_int_equal(io_checkpoint_resume(c), 1);
        assert_int_equal(step, 2);
        assert_int_equal(files_in("folder", true), 1);
        files_in("elsewhere", true);
        io_checkpoint_free(c);
    }
}

/* Who may write everywhere is somebody else for a while. */
static void test_a_folder_that_is_read_only(void **state)
{
    (void)state;
    const bool root = geteuid() == 0;
    Checkpoint *c = begin(3);
    chmod(scratch_, 0755), chmod(scratch("folder"), 0555);
    if (root) assert_int_equal(seteuid(65534), 0);
    const int saved = io_checkpoint_save(c);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_int_equal(saved, -1);
    assert_says(TENSOR_EIO, "folder/checkpoint-00000002.safetensors cannot be written: ");
    chmod(scratch("folder"), 0755);
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_int_equal(step, 1);
    assert_int_equal(files_in("folder", true), 1);
    io_checkpoint_free(c);
}

/* The folder is a link, and so is a file in it: what they lead to is read, and only the link is removed. */
static void test_links(void **state)
{
    (void)state;
    Checkpoint *c = begin(2);
    DONE(rename(scratch("folder"), scratch("real")) | symlink("real", scratch("folder")));
    DONE(io_checkpoint_save(c));
    DONE(rename(scratch("real/checkpoint-00000002.safetensors"), scratch("kept")));
    DONE(symlink("../kept", scratch("real/checkpoint-00000002.safetensors")));
    step = 0;
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_int_equal(step, 2);
    for (int i = 0; i < 3; i++) DONE(io_checkpoint_save(c));
    assert_int_equal(files_in("real", true), 2);
    assert_int_equal(access(scratch("kept"), F_OK), 0);
    unlink(scratch("folder")), unlink(scratch("kept"));
    io_checkpoint_free(c);
}

/* Where standard input is closed, descriptor 0 is one as any other: of the file, of what a killed save left,
 * of the folder, which is synced after the file has its name. */
static void test_without_standard_input(void **state)
{
    (void)state;
    Checkpoint *c = begin(3);
    put_file("folder/checkpoint-00000002.safetensors.tmp", "left over", 9);
    const int input = dup(0);
    close(0);
    folders_synced = 0;
    DONE(io_checkpoint_save(c));
    assert_int_equal(folders_synced, 1);
    step = 0;
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_int_equal(step, 2);
    assert_int_equal(fcntl(0, F_GETFD), -1); /* and each is closed */
    dup2(input, 0);
    close(input);
    assert_int_equal(files_in("folder", true), 2);
    io_checkpoint_free(c);
}

/* Files of others under such names are neither removed nor counted as whole. */
static void test_foreign_files_stay(void **state)
{
    (void)state;
    Checkpoint *c = begin(2);
    put_file("folder/checkpoint-00000002.safetensors", "a text of somebody's", 20);
    DONE(io_save_safetensors(scratch("folder/checkpoint-00000003.safetensors"), (TensorDict){ 0 }));
    for (int i = 0; i < 5; i++) DONE(io_checkpoint_save(c));
    assert_int_equal(files_in("folder", false), 4);
    assert_int_equal(access(scratch("folder/checkpoint-00000002.safetensors"), F_OK), 0);
    assert_int_equal(access(scratch("folder/checkpoint-00000003.safetensors"), F_OK), 0);
    step = 0;
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_int_equal(step, 2);
    files_in("folder", true);
    io_checkpoint_free(c);
}

static int save_often(int64_t from)
{
    Checkpoint *c = io_checkpoint(scratch("folder"), .keep = 4);
    io_checkpoint_int(c, "step", &step);
    for (step = from; step < from + 50; step++) io_checkpoint_save(c);
    io_checkpoint_free(c);
    return tensor_error_code() != TENSOR_OK;
}

/* Against the rule; yet each file is whole, and no temporary stays. */
static void test_two_processes(void **state)
{
    (void)state;
    Checkpoint *c = begin(4);
    pid_t pid = fork();
    if (pid == 0) _exit(save_often(1000));
    const int mine = save_often(2000);
    int his;
    assert_int_equal(waitpid(pid, &his, 0), pid);
    assert_true(mine == 0 && WIFEXITED(his) && WEXITSTATUS(his) == 0);
    assert_int_equal(io_checkpoint_resume(c), 1);
    assert_string_equal(io_checkpoint_note(c), "");
    assert_true(step == 1049 || step == 2049);
    DIR *d = opendir(scratch("folder"));
    for (struct dirent *e; (e = readdir(d)) != NULL;) assert_null(strstr(e->d_name, ".tmp"));
    closedir(d);
    files_in("folder", true);
    io_checkpoint_free(c);
}

#define CLEAN(f) cmocka_unit_test_setup_teardown(f, scratch_empty, sane_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_calls_that_fail),
        CLEAN(test_a_mode_that_cannot_be_kept),
        CLEAN(test_interrupted),
        CLEAN(test_a_folder_that_disappears),
        CLEAN(test_a_folder_that_is_read_only),
        CLEAN(test_links),
        CLEAN(test_without_standard_input),
        CLEAN(test_foreign_files_stay),
        CLEAN(test_two_processes),
    };
    return cmocka_run_group_tests_name("checkpoint_disk", tests, scratch_begin, scratch_end);
}
