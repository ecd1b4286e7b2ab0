"""Scales numbers on a GPU; the kernel is in the extension `_C`."""

from ._C import cuda_version, scale

__all__ = ["cuda_version", "scale"]
