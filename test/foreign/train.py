"""train.py LIBRARY - a net and its training through ctypes: every name is called without C's macros,
options by a copy of
the constant that holds their defaults.  train.c is the same program in C."""

import ctypes as c
import sys

lib = c.CDLL(sys.argv[1])
F32 = 0


class Shape(c.Structure):
    _fields_ = [("ndim", c.c_int), ("dim", c.POINTER(c.c_int64))]


class List(c.Structure):
    _fields_ = [("count", c.c_int), ("item", c.POINTER(c.c_void_p))]


class Scope(c.Structure):
    _fields_ = [("mark", c.c_size_t), ("depth", c.c_uint64)]


BY_NAME = ("by_name", c.c_void_p)
FROM_DEFAULTS = ("from_defaults", c.c_void_p)  # the last member, where defaults are not all zeros


class Linear(c.Structure):
    _fields_ = [
        ("in_features", c.c_int64),
        ("out_features", c.c_int64),
        ("bias", c.c_bool),
        BY_NAME,
        ("dtype", c.c_int),
        FROM_DEFAULTS,
    ]


class Sgd(c.Structure):
    _fields_ = [("params", List)]
    _fields_ += [(name, c.c_double) for name in ("lr", "momentum", "dampening", "weight_decay")]
    _fields_ += [("nesterov", c.c_bool), ("maximize", c.c_bool), FROM_DEFAULTS]


class Reduce(c.Structure):
    _fields_ = [
        ("input", c.c_void_p),
        ("dim", c.c_int),
        ("keepdim", c.c_bool),
        ("dims", Shape),
        BY_NAME,
        ("dtype", c.c_int),
        FROM_DEFAULTS,
    ]


class Huber(c.Structure):
    _fields_ = [
        ("input", c.c_void_p),
        ("target", c.c_void_p),
        BY_NAME,
        ("reduction", c.c_int),
        ("delta", c.c_double),
        ("weight", c.c_void_p),
        FROM_DEFAULTS,
    ]


class Backward(c.Structure):
    _fields_ = [
        ("tensor", c.c_void_p),
        ("gradient", c.c_void_p),
        ("retain_graph", c.c_bool),
        ("create_graph", c.c_bool),
        ("inputs", List),
    ]


class ZeroGrad(c.Structure):
    _fields_ = [("optimizer", c.c_void_p), ("set_to_none", c.c_bool), FROM_DEFAULTS]


def function(name, result, *arguments):
    f = getattr(lib, name)
    f.restype, f.argtypes = result, arguments
    return f


def options(struct, constant, **given):
    """A copy of the defaults, changed."""
    value = struct.from_buffer_copy(struct.in_dll(lib, constant))
    for name, v in given.items():
        setattr(value, name, v)
    return value


def shape(*sizes):
    return Shape(len(sizes), (c.c_int64 * len(sizes))(*sizes))


tensor = c.c_void_p
linear = function("nn_linear_args", tensor, Linear)
sequential = function("nn_sequential_args", tensor, c.POINTER(tensor), c.c_int)
forward = function("nn_forward", tensor, tensor, tensor)
backward = function("tensor_backward_args", c.c_int, Backward)
huber = function("tensor_huber_loss_args", tensor, Huber)
item = function("tensor_item", c.c_double, tensor)
zero_grad = function("optim_zero_grad_args", c.c_int, ZeroGrad)
step = function("optim_step", c.c_int, tensor)
scope_open = function("tensor_scope_open", Scope)
scope_close = function("tensor_scope_close", None, Scope)
error = function("tensor_error", c.c_char_p)

function("tensor_manual_seed", None, c.c_uint64)(1)
layers = (tensor * 3)(
    linear(options(Linear, "nn_linear_defaults", in_features=2, out_features=8)),
    function("nn_tanh", tensor)(),
    linear(options(Linear, "nn_linear_defaults", in_features=8, out_features=1, bias=False)),
)
net = sequential(layers, 3)
parameters = function("nn_parameters", List, tensor)(net)
sgd = options(Sgd, "optim_sgd_defaults", params=parameters, lr=0.1, momentum=0.9)
opt = function("optim_sgd_args", tensor, Sgd)(sgd)
x = function("tensor_randn", tensor, Shape, c.c_int)(shape(16, 2), F32)
square = function("tensor_square", tensor, tensor)(x)
target = function("tensor_sum_args", tensor, Reduce)(
    options(Reduce, "tensor_reduce_defaults", input=square, dim=1, keepdim=True)
)
for _ in range(20):
    scope = scope_open()
    loss = huber(options(Huber, "tensor_huber_defaults", input=forward(net, x), target=target, delta=0.5))
    zero_grad(options(ZeroGrad, "optim_zero_grad_defaults", optimizer=opt))
    backward(options(Backward, "tensor_backward_defaults", tensor=loss))
    step(opt)
    print("%.17g" % item(loss))
    scope_close(scope)
if error():
    sys.exit(error().decode())
if function("tensor_sum_args", tensor, Reduce)(Reduce(input=x)) or b"defaults" not in error():
    sys.exit("options of zeros, which are not the defaults, are taken")
