/* segments.cuh - what adds up elements by an index without atomics: for each value of the index the places
 * that name it, in their order. */
#ifndef TG_CUDA_SEGMENTS_CUH
#define TG_CUDA_SEGMENTS_CUH

#include "cuda/cuda.cuh"

/* Of dense lists [lists][m] of indices: the places of list l that name v are order[l m + k], k from
 * start[l (n + 1) + v] to start[l (n + 1) + v + 1].  Values outside [0, n) are left out. */
class Segments {
    Scratch places, starts;
    const int64_t lists, m, n;

  public:
    Segments(int64_t lists_, int64_t m_, int64_t n_)
        : places((size_t)(lists_ * m_) * 8), starts((size_t)(lists_ * (n_ + 1)) * 8), lists(lists_), m(m_),
          n(n_)
    {
    }
    int build(const int64_t *index); /* 0, or -1 */
    const int64_t *order() const { return (const int64_t *)places.data; }
    const int64_t *start() const { return (const int64_t *)starts.data; }
};

#endif
