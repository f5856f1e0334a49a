"""names.py - the names of PyTorch's tensor functions, for docs/ops.md.

    python names.py > torch_names.txt        (needs torch)

One line a name space: the public functions that PyTorch lists as its tensor operations (torch.overrides),
and UNLISTED ones.  Left out: in-place forms (they count with the function), attributes, operators, and
words that name other engines or kinds of tensors (AWAY).
"""

import re
import types

import torch
import torch.nn.functional
import torch.overrides

SPACES = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.special": torch.special,
    "torch.fft": torch.fft,
}
AWAY = re.compile(
    "cudnn|mkldnn|miopen|fbgemm|quantiz|fake_quant|q_|int_repr|sparse|_csr|_csc|_bsr|_bsc|_indices$|coalesce|dense_dim|nested|named|names|refine|"
    "align_|xpu|hpu|ipu|mtia|is_|vmap|autocast|_copy$|storage|dim_order|module_load|native_|sym_|unsafe_|_with_indices$|"
    "fused_moving|_cast$|boxed|handle_torch|has_torch|assert_|grid_sampler_|^(indices|values|cdouble|cfloat|chalf)$"
)
UNLISTED = (
    "arange blackman_window empty eye full hamming_window hann_window kaiser_window linspace logspace normal ones rand rand_like randint "
    "randint_like randn randn_like randperm tril_indices triu_indices zeros hardsigmoid hardswish logsigmoid"
).split()


def main():
    listed = set(UNLISTED) | {
        getattr(f, "__name__", "") for fs in torch.overrides.get_overridable_functions().values() for f in fs
    }
    print("torch %s" % torch.__version__.split("+")[0])
    seen = set()
    for space, where in SPACES.items():
        names = set()
        for name in dir(where):
            f = getattr(where, name, None)
            known = name in listed or any(p + name in listed for p in ("linalg_", "special_", "fft_"))
            if (
                name.startswith("_")
                or not callable(f)
                or isinstance(f, (type, types.ModuleType))
                or not known
                or AWAY.search(name)
            ):
                continue
            names.add(name.rstrip("_"))
        print("%s: %s" % (space, " ".join(sorted(names - seen if space != "torch.linalg" else names))))
        seen |= names


if __name__ == "__main__":
    main()
