"""A stand-in for PyTorch, for the dry run: there, and with a GPU; STANDIN_TORCH=cpu: without."""

import os
from types import SimpleNamespace

__version__ = "stand-in"
cuda = SimpleNamespace(is_available=lambda: os.environ.get("STANDIN_TORCH") != "cpu")
