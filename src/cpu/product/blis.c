/* blis.c - everything that touches BLIS.
 *
 * BLIS picks its kernels by the model of the CPU, once, at its first use; it knows the Intel models by their
 * features, but AMD's by their family.  Version 0.9.0 (Debian's) and later ones run a newer family on
 * `generic` kernels, at a sixth of its speed.  Where that is to be expected, we name the sub-configuration
 * through the one way there is: the environment variable BLIS_ARCH_TYPE, read during initialisation.  It
 * holds the number of a name in an enum that differs between versions; the number is looked up in the library
 * that runs, by name.  A value that the user has set stays, as does any choice that is not generic.
 *
 * BLIS aborts on bad arguments: gemm.c calls it with sizes above zero and nothing else. */
#include "gemm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITHOUT_BLIS

int blis_ready(void) { return 0; }
void blis_gemm(const GemmCall *call, int threads)
{
    (void)call;
    (void)threads;
}
const char *blis_version(void) { return "absent"; }
const char *blis_config(void) { return "absent"; }

#else

#include <stdatomic.h>
#include <stdio.h>
#if defined __x86_64__
#include <cpuid.h>
#endif
#include <blis.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int whole_cpu; /* the chosen kernels use the widest vectors there are */

/* Will BLIS fail to recognise this CPU?  Intel is told by features, and AMD in the families 15h, 17h and 19h.
 */
static int unknown_cpu(void)
{
#if defined __x86_64__
    unsigned a, b, c, d;
    char vendor[13] = "";
    if (!__get_cpuid(0, &a, &b, &c, &d)) return 0;
    memcpy(vendor, &b, 4), memcpy(vendor + 4, &d, 4), memcpy(vendor + 8, &c, 4);
    if (strcmp(vendor, "GenuineIntel") == 0)
        return cpu_isa() == 2; /* where the model name is masked it picks haswell: measured
                                * 117 GF/s against 180 with skx on such a Xeon */
    if (strcmp(vendor, "AuthenticAMD") != 0 || !__get_cpuid(1, &a, &b, &c, &d)) return 1;
    const unsigned base = a >> 8 & 15, family = base == 15 ? base + (a >> 20 & 255) : base;
    return family != 0x15 && family != 0x17 && family != 0x19;
#else
    return 0;
#endif
}

/* The best of the compiled-in sub-configurations for this CPU's features, NULL if none; never knl, whose
 * kernels need instructions that no other CPU has. */
static const char *best_config(void)
{
#if defined BLIS_FAMILY_X86_64 || defined BLIS_FAMILY_INTEL64 || defined BLIS_FAMILY_AMD64
#ifdef BLIS_CONFIG_SKX
    if (cpu_isa() == 2) return "skx";
#endif
#ifdef BLIS_CONFIG_HASWELL
    if (cpu_isa() >= 1) return "haswell";
#endif
#ifdef BLIS_CONFIG_ZEN3
    if (cpu_isa() >= 1) return "zen3";
#endif
#endif
    return NULL;
}

static void start(void)
{
    const char *want = NULL;
    if (!getenv("BLIS_ARCH_TYPE") && unknown_cpu()) want = best_config();
    for (int id = 0; want && id < BLIS_NUM_ARCHS; id++)
        if (strcmp(bli_arch_string((arch_t)id), want) == 0) {
            char number[16];
            snprintf(number, sizeof number, "%d", id);
            setenv("BLIS_ARCH_TYPE", number, 0);
            bli_init();
            unsetenv("BLIS_ARCH_TYPE"); /* it was meant for this library, not for child processes */
            break;
        }
    bli_init(); /* before bli_arch_query_id: the check of a set value needs it */
    const char *config = bli_arch_string(bli_arch_query_id());
    const int wide = strcmp(config, "skx") == 0 || strcmp(config, "knl") == 0 ||
                     strncmp(config, "zen4", 4) == 0 || strncmp(config, "zen5", 4) == 0;
    whole_cpu = strcmp(config, "generic") != 0 && (cpu_isa() < 2 || wide);
}

/* BLIS ends the program where it has no memory to start with; our own kernels then serve until there is. */
static bool has_room(void)
{
    enum { ROOM = 4 << 20 };
    void *volatile room = malloc(ROOM);
    const bool there = room != NULL;
    free(room);
    return there;
}

int blis_ready(void)
{
    static atomic_bool started;
    if (!atomic_load(&started) && !has_room()) return 0;
    pthread_once(&once, start);
    atomic_store(&started, true);
    return whole_cpu;
}

/* The switch for small products stays off: its kernels sum in an order that depends on the strides. */
void blis_gemm(const GemmCall *g, int threads)
{
    rntm_t runtime = BLIS_RNTM_INITIALIZER;
    bli_rntm_set_num_threads(threads, &runtime);
    bli_rntm_disable_l3_sup(&runtime);
    void *a = (void *)(uintptr_t)g->a, *b = (void *)(uintptr_t)g->b;
    if (g->dtype == GEMM_F64) {
        double alpha = g->alpha, beta = g->beta;
        bli_dgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, g->m, g->n, g->k, &alpha, a, g->a_row, g->a_col, b,
                     g->b_row, g->b_col, &beta, g->c, g->c_row, g->c_col, NULL, &runtime);
    } else {
        float alpha = (float)g->alpha, beta = (float)g->beta;
        bli_sgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, g->m, g->n, g->k, &alpha, a, g->a_row, g->a_col, b,
                     g->b_row, g->b_col, &beta, g->c, g->c_row, g->c_col, NULL, &runtime);
    }
}

const char *blis_version(void) { return bli_info_get_version_str(); }

const char *blis_config(void)
{
    pthread_once(&once, start);
    return bli_arch_string(bli_arch_query_id());
}

#endif
