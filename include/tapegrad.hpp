// tapegrad.hpp - what C++17 needs beside tapegrad.h: shapes and lists, which C writes as compound literals.
//
//     Tensor *x = tensor_randn(SHAPE(2, 3), TENSOR_F32);
//     Tensor *y = tensor_cat_args({ TENSORS(x, x), 0 });
//     TensorHuberArgs options = tensor_huber_defaults;         // copy the defaults, then change them
//     options.input = x, options.target = y, options.delta = 0.5;
//     Tensor *loss = tensor_huber_loss_args(options);
//
// A function with options is called by its name that ends in _args; its macro is C's.  Blocks
// (TENSOR_NO_GRAD, TENSOR_AUTOCAST(TENSOR_BF16) ...) are left in order by an exception, too.  SHAPE, DIMS,
// TENSORS and PER_GROUP live to the end of the full expression that they stand in; functions copy what they
// need.  A member of an options struct lives longer, so name what it holds:
//
//     const tapegrad::Shape rows{ 1 };
//     const tapegrad::List weights(w, b);
//     TensorReduceArgs sum = tensor_reduce_defaults;
//     sum.input = x, sum.dims = rows;                          // not DIMS(1), which is gone at the semicolon
//     OptimSgdArgs sgd = optim_sgd_defaults;
//     sgd.params = weights;
#ifndef TAPEGRAD_HPP
#define TAPEGRAD_HPP

#include <array>
#include <initializer_list>
#include <vector>
#include <tapegrad.h>

namespace tapegrad {

// Sizes or dimensions.
class Shape {
  public:
    Shape(std::initializer_list<int64_t> sizes) : size(sizes) {}
    operator TensorShape() const { return { static_cast<int>(size.size()), size.data() }; }

  private:
    std::vector<int64_t> size;
};

// Tensors in order.  The list does not own them.
template <std::size_t n> class List {
  public:
    template <class... T> explicit List(T *...tensors) : item{ { tensors... } } {}
    operator TensorList() const { return { static_cast<int>(n), item.data() }; }

  private:
    std::array<Tensor *, n> item;
};
template <class... T> List(T *...) -> List<sizeof...(T)>;

// A number for each group of an optimizer.
class PerGroup {
  public:
    PerGroup(std::initializer_list<double> numbers) : number(numbers) {}
    operator OptimPerGroup() const { return { static_cast<int>(number.size()), number.data() }; }

  private:
    std::vector<double> number;
};

// A scope that closes itself.
class Scope {
  public:
    Scope() : scope(tensor_scope_open()) {}
    ~Scope() { tensor_scope_close(scope); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    TensorScope scope;
};

// nn_sequential and nn_module_list of these modules, which they take over.
template <class... M> Module *sequential(M *...modules)
{
    Module *const all[] = { modules..., nullptr };
    return nn_sequential_args(all, sizeof...(M));
}
template <class... M> Module *module_list(M *...modules)
{
    Module *const all[] = { modules..., nullptr };
    return nn_module_list_args(all, sizeof...(M));
}

} // namespace tapegrad

#undef SHAPE
#undef DIMS
#undef TENSORS
#undef PER_GROUP
#undef TENSOR_LIST
#undef nn_sequential
#undef nn_module_list
#define SHAPE(...) (TensorShape)(tapegrad::Shape{ __VA_ARGS__ })
#define DIMS(...) SHAPE(__VA_ARGS__)
#define TENSORS(...) (TensorList)(tapegrad::List(__VA_ARGS__))
#define PER_GROUP(...) (OptimPerGroup)(tapegrad::PerGroup{ __VA_ARGS__ })
#define TENSOR_LIST(array, n) (TensorList{ (n), (array) })
#define nn_sequential(...) tapegrad::sequential(__VA_ARGS__)
#define nn_module_list(...) tapegrad::module_list(__VA_ARGS__)

#endif
