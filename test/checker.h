/* checker.h - UNDER_ASAN, UNDER_CHECKER: 1 in a program compiled with AddressSanitizer, with that or another
 * sanitizer of gcc or clang, in which it takes ten times as long; else 0. */
#ifndef CHECKER_H
#define CHECKER_H

#ifndef __has_feature
#define __has_feature(name) 0
#endif

#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif

#if UNDER_ASAN || defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define UNDER_CHECKER 1
#else
#define UNDER_CHECKER 0
#endif

#endif
