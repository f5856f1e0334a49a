#!/bin/sh
# valgrind.sh PROGRAM... - runs each under valgrind; what it finds, or what is lost for good, is a failure.
for program in "$@"; do
    TAPEGRAD_NO_CACHE=1 OMP_NUM_THREADS=1 valgrind -q --error-exitcode=1 --leak-check=full \
        --show-leak-kinds=definite --errors-for-leak-kinds=definite "$program" || exit 1
done
