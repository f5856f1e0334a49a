/* answers.h - what a function answers when one thing of a call that works is another: an option, a size, a
 * rank, a dtype.  The answers are lines of a committed file: each limit is held from both sides, and each
 * error's text to the letter.  SUITE --write writes the file anew; what is new in the registry is written by
 * the suite itself, for there is nothing yet to hold it to. */
#ifndef ANSWERS_H
#define ANSWERS_H

#include <tapegrad/autograd.h>

/* answers_begin - main's arguments, and the file.  answers_end - what main returns. */
void answers_begin(int argc, char **argv, const char *path);
int answers_end(void);

/* answers_about - what the next answers are about: a line of its own. */
void answers_about(const char *format, ...) TAPEGRAD_PRINTF(1, 2);

/* answer - one value of one thing, and the answer.  Neighbouring values with one answer share a line; where
 * the answer repeats the value, it shows # there. */
void answer(const char *thing, const char *value, const char *text);

/* answers_error - "! " and the first line of the error's text, less the name that it should begin with;
 * clears the error. */
const char *answers_error(const char *name);

/* answers_result - "[2, 3] f32", and of integers a checksum. */
size_t answers_result(char *to, size_t room, const Tensor *y);

/* ANSWER - a line: a call as it is written here, and the code and first line of its error, or "fine".
 * answers_of - calls() in a scope of its own, below a line `about`.  answers_hide - a folder, which the lines
 * show as FOLDER. */
#define ANSWER(...) ((void)(__VA_ARGS__), answer_call(#__VA_ARGS__))
void answer_call(const char *call);
void answers_of(const char *about, void (*calls)(void));
void answers_hide(const char *folder);

/* answers_options - call(params, ctx) gives the answer to the options of `fields` in base, each of them with
 * other values. */
void answers_options(const OpField *fields, const void *base, size_t size,
                     const char *(*call)(const void *params, void *ctx), void *ctx);

#endif
