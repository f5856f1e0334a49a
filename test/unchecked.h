/* unchecked.h - UNCHECKED: a function of a test's reference is compiled without sanitizers. It is slow and
 * obvious, and what is to be checked is the library. */
#ifndef TEST_UNCHECKED_H
#define TEST_UNCHECKED_H
#define UNCHECKED __attribute__((no_sanitize("address", "undefined", "thread")))
#endif
