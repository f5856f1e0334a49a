/* omp.h - for blis.h, which includes it and uses nothing of it, where the compiler has none of its own. */
