/* dnn.h - what the stand-in for cuDNN shares: descriptors, and what they say. */
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <vector>
#include "blas.h"
#include "cuda/cudnn.cuh"

namespace cuemu {

struct Descriptor {
    cudnnBackendDescriptorType_t type;
    std::map<int, std::vector<char>> attribute;
    bool final = false;
    int engine = 0;
    Descriptor *graph = nullptr;
    std::shared_ptr<void> life = std::make_shared<char>(); /* work that names it notices its end */

    template <class T> T one(int name) const
    {
        const auto at = attribute.find(name);
        T value = {};
        if (at != attribute.end() && at->second.size() >= sizeof value)
            memcpy(&value, at->second.data(), sizeof value);
        return value;
    }
    template <class T> std::vector<T> all(int name) const
    {
        const auto at = attribute.find(name);
        std::vector<T> values(at == attribute.end() ? 0 : at->second.size() / sizeof(T));
        if (!values.empty()) memcpy(values.data(), at->second.data(), values.size() * sizeof(T));
        return values;
    }
};

inline cudaDataType_t type_of(int type)
{
    return type == CUDNN_DATA_DOUBLE     ? CUDA_R_64F
           : type == CUDNN_DATA_HALF     ? CUDA_R_16F
           : type == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF
                                         : CUDA_R_32F;
}

/* cudnn_fused.cpp: of the operations of a graph, in their order.  Are they sound, does an engine take them,
 * and what runs them on the memory of a pack; empty: not there, or misaligned. */
bool fused_sound(const std::vector<Descriptor *> &ops);
bool fused_taken(const std::vector<Descriptor *> &ops);
std::function<void()> fused_call(const std::vector<Descriptor *> &ops, const Descriptor *pack);

} // namespace cuemu
