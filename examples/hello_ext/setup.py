"""Builds the extension; like many real projects it falls back to a CPU-only build when it sees no GPU."""

import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

with_cuda = torch.cuda.is_available() or os.environ.get("FORCE_CUDA") == "1"
sources = ["csrc/bind.cpp"]
if with_cuda:
    extension = CUDAExtension(
        "hello_ext._C",
        sources + ["csrc/square.cu"],
        extra_compile_args={"cxx": ["-O2", "-DWITH_CUDA"], "nvcc": ["-O2"]},
    )
else:
    extension = CppExtension("hello_ext._C", sources, extra_compile_args=["-O2"])

setup(
    name="hello-ext",
    version="0.1.0",
    packages=["hello_ext"],
    ext_modules=[extension],
    cmdclass={"build_ext": BuildExtension},
)
