"""Squares a CUDA tensor with a hand-made kernel."""

import torch  # noqa: F401  (loads the libraries that _C links against)

from hello_ext._C import cuda_version, square

__all__ = ["cuda_version", "square"]
