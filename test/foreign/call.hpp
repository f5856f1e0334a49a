// call.hpp - calls any function of the library with the plainest arguments: NULL, 0 and the defaults; and,
// where it returns a tensor, once more with a tensor wherever one is taken.  What counts is that it can be
// called, fails with words and does not crash.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

template <class T> struct Options { // what is no options struct: zeros
    static constexpr bool is = false, of_tensor = false;
    static T get() { return T{}; }
};

static bool with_tensors, zeroed; // zeroed: options are {} but for their tensors
static int called, failed;

static Tensor *tensor()
{
    static const float ones[4] = { 1, 1, 1, 1 };
    return with_tensors ? tensor_from_data(ones, SHAPE(2, 2), TENSOR_F32) : nullptr;
}

template <class T> T argument()
{
    if constexpr (std::is_same_v<T, Tensor *> || std::is_same_v<T, const Tensor *>) return tensor();
    else {
        T value = Options<T>::get();
        if constexpr (Options<T>::is) {
            if (zeroed) return value = T{}, Options<T>::fill(value, tensor()), value;
        }
        if constexpr (Options<T>::of_tensor) { // the first member
            Tensor *x = tensor();
            std::memcpy(static_cast<void *>(&value), &x, sizeof x);
        }
        return value;
    }
}

// Does the error begin with the function's name, as the user writes it: without _args?
static bool names(const char *error, std::string name)
{
    static const char *const macros[][2] = { { "nn_new_size", "nn_new" },
                                             { "nn_new_call", "nn_new" },
                                             { "optim_group_options", "optim_options" },
                                             { "tensor_checkpoint_list", "tensor_checkpoint" },
                                             { "tensor_from_data_sized", "tensor_from_data" },
                                             { "tensor_gradcheck_args", "gradcheck function" } };
    for (auto &macro : macros)
        if (name == macro[0]) name = macro[1];
    const std::size_t args = name.rfind("_args");
    if (args != std::string::npos && args + 6 >= name.size()) name.erase(args, 5);
    const std::size_t n = name.size();
    return std::strncmp(error, name.c_str(), n) == 0 && error[error[n] == '_' ? n + 1 : n] == ':';
}

template <class R, class... A> void call_once(const char *name, R (*function)(A...))
{
    tapegrad::Scope scope;
    (void)function(argument<A>()...);
    const char *error = tensor_error();
    if (error && !names(error, name)) std::fprintf(stderr, "%s fails as %s\n", name, error), failed++;
    tensor_error_clear();
}

template <class T> bool has_defaults() // that are not all zeros
{
    if constexpr (!Options<T>::is) return false;
    else {
        const T &defaults = Options<T>::get(); // the constant itself: a copy may differ in its padding
        const char *byte = reinterpret_cast<const char *>(&defaults);
        for (std::size_t i = 0; i < sizeof defaults; i++)
            if (byte[i]) return true;
        return false;
    }
}

// Options that are zeros are not the defaults: they are refused, not taken at their word.
template <class R, class... A> void call_zeroed(const char *name, R (*function)(A...))
{
    if (!(has_defaults<A>() || ...)) return;
    tapegrad::Scope scope;
    zeroed = true;
    (void)function(argument<A>()...);
    zeroed = false;
    const char *error = tensor_error();
    if (!error || !std::strstr(error, "do not start from the defaults"))
        std::fprintf(stderr, "%s takes zeroed options: %s\n", name, error ? error : "no error"), failed++;
    tensor_error_clear();
}

// What an op asks of its call belongs to ops: a user's op in user_op() below calls some of it.
template <class First, class... Rest>
constexpr bool of_a_call = std::is_same_v<First, OpCall *> || std::is_same_v<First, const OpCall *>;

template <class R, class... A> void call(const char *name, R (*function)(A...))
{
    if constexpr (sizeof...(A) > 0) {
        if constexpr (of_a_call<A...>) {
            called += function != nullptr;
            return;
        }
    }
    const char *before = std::getenv("TAPEGRAD_TRACE");
    if (before) std::fprintf(stderr, "%s\n", name);
    with_tensors = false;
    call_once(name, function);
    with_tensors = true;
    if constexpr (std::is_same_v<R, Tensor *>) call_once(name, function);
    call_zeroed(name, function);
    called++;
}

// printf's kin
template <class R, class... A> void call(const char *name, R (*function)(A..., ...))
{
    (void)name, (void)function;
    called++;
}

static int cube_forward(OpCall *call)
{
    const double *x = op_input_f64(call, 0);
    double *y = op_output_f64(call, 0);
    for (int64_t i = 0; i < op_count(call, 0); i++) y[i] = x[i] * x[i] * x[i];
    return 0;
}

static int cube_backward(OpCall *call, Tensor *dy, Tensor **dx)
{
    Tensor *x = op_saved(call, 0);
    dx[0] = tensor_mul(dy, tensor_mul_scalar(tensor_mul(x, x), 3));
    return 0;
}

// An op of a C++ program, and its gradient.
static int user_op()
{
    TensorOp cube{};
    cube.name = "cube", cube.arity = 1, cube.keep = KEEP_INPUT(0);
    cube.shape = op_same_shape, cube.forward = cube_forward, cube.backward = cube_backward;
    const double two = 2;
    Tensor *x = tensor_requires_grad_(tensor_from_data(&two, SHAPE(), TENSOR_F64), true), *inputs[] = { x };
    TensorBackwardArgs backward = tensor_backward_defaults;
    backward.tensor = tensor_apply(&cube, inputs, 1, nullptr);
    const bool right = tensor_item(backward.tensor) == 8 && tensor_backward_args(backward) == 0 &&
                       tensor_item(tensor_grad(x)) == 12;
    if (!right) std::fprintf(stderr, "an op of C++: %s\n", tensor_error() ? tensor_error() : "wrong numbers");
    return !right;
}

static int finish(int functions)
{
    tapegrad::Scope scope;
    tensor_set_grad_enabled(true); // which one of the calls has switched off
    failed += user_op();
    if (called != functions) std::fprintf(stderr, "%d of %d functions were called\n", called, functions);
    std::printf("C++ calls %d functions\n", called);
    return failed || called != functions;
}
