/* entered.c - linked into the library that mutants.py has without a mutant: the file that $ENTERED names gets
 * a 1 at the offset of each function that the suite, or a child of it, enters. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden"))), etext[];

static unsigned char *marks;
static size_t length;

__attribute__((constructor(101), no_instrument_function)) static void map_marks(void)
{
    const char *path = getenv("ENTERED");
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    length = (size_t)(etext - __ehdr_start);
    void *at = ftruncate(file, (off_t)length)
                   ? MAP_FAILED
                   : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) marks = at;
    close(file);
}

__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function, void *site)
{
    const size_t at = (size_t)((const char *)function - __ehdr_start);
    (void)site;
    if (marks && at < length && !marks[at]) marks[at] = 1;
}

__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function, (void)site;
}
