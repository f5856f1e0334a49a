/* all.h - every rule of the library: what a device may have a kernel for. */
#ifndef OPTIM_RULES_ALL_H
#define OPTIM_RULES_ALL_H

#include "adadelta.h"
#include "adagrad.h"
#include "adam.h"
#include "adamax.h"
#include "asgd.h"
#include "foreach.h"
#include "grad_scaler.h"
#include "lion.h"
#include "nadam.h"
#include "radam.h"
#include "rmsprop.h"
#include "rprop.h"
#include "sgd.h"

/* R(rule) */
#define ALL_RULES(R)     \
    R(foreach_zero)      \
    R(foreach_copy)      \
    R(foreach_mul)       \
    R(foreach_clamp)     \
    R(foreach_add)       \
    R(foreach_lerp)      \
    R(grad_scaler)       \
    R(grad_scaler_found) \
    R(adam)              \
    R(amsgrad)           \
    R(rmsprop)           \
    R(rmsprop_centered)  \
    R(rmsprop_momentum)  \
    R(rmsprop_both)      \
    R(adamax)            \
    R(radam)             \
    R(adagrad)           \
    R(rprop)             \
    R(lion)              \
    R(adadelta)          \
    R(nadam)             \
    R(sgd)               \
    R(sgd_momentum)      \
    R(asgd)

#endif
