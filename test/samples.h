/* samples.h - tests over the registry: one cmocka test an op, made of the samples of its descriptor
 * (check/sample.h). */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tapegrad.h>
#include "check/report.h"

/* run_registry - calls check for each op (argv[1]: only ops whose name matches this pattern); one about which
 * check complains fails. */
int run_registry(int argc, char **argv, const char *group, void (*check)(const TensorOp *op));

/* on_test_device - the samples lie on the device that TAPEGRAD_TEST_DEVICE in the environment names, and ops
 * run there; without it, on the CPU.  Ends the program where that device does not open. */
void on_test_device(void);

/* TAPEGRAD_SHARD=k/n in the environment: only the k-th of n parts of the ops, or of another list, is tested.
 */
bool in_shard(int i); /* is the i-th of the list? */
int shards(void);     /* n */

#endif
