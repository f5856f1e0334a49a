"""safetensors_file.py - a file by the safetensors package, printed as the C header safetensors_golden.h.

python safetensors_file.py > safetensors_golden.h            (needs torch, numpy and safetensors)
python safetensors_file.py check FILE                        loads a file that test_safetensors wrote
(TAPEGRAD_KEEP=FILE)
"""

import sys

import safetensors
import torch
from safetensors.torch import load_file, save

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
    "bool": torch.bool,
}


def tensors():
    """Element i of each is i % 2 (bool), else i."""
    made = {}
    for name, dtype in DTYPES.items():
        x = torch.arange(6)
        made[name] = (x % 2 if dtype == torch.bool else x).to(dtype).reshape(2, 3)
    made["scalar"] = torch.tensor(1.5)
    made["empty"] = torch.zeros(0, 3)
    made['a "quote", a \\backslash\\, \n, \u00e9\u20ac\U0001f600'] = torch.tensor([7], dtype=torch.uint8)
    return made


def check(path):
    loaded, wanted = load_file(path), tensors()
    assert set(loaded) == set(wanted), set(loaded) ^ set(wanted)
    for name, x in wanted.items():
        assert loaded[name].dtype == x.dtype and torch.equal(loaded[name], x), name
    print("%d tensors as expected" % len(wanted))


def golden():
    data = save(tensors(), metadata={"format": "pt", "note": 'a "text"'})
    print(
        "/* safetensors_golden.h - printed by safetensors_file.py with safetensors %s; do not edit. */"
        % safetensors.__version__
    )
    print("#ifndef TAPEGRAD_TEST_SAFETENSORS_GOLDEN_H\n#define TAPEGRAD_TEST_SAFETENSORS_GOLDEN_H\n")
    print("static const unsigned char golden_safetensors[%d] = {" % len(data))
    for i in range(0, len(data), 24):
        print("    " + ", ".join("%d" % b for b in data[i : i + 24]) + ",")
    print("};\n\n#endif")


if len(sys.argv) == 3 and sys.argv[1] == "check":
    check(sys.argv[2])
else:
    golden()
