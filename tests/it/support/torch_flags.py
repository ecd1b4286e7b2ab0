"""Runs one torch release's own arch function over lists, a list a line, and answers a line each.

Takes the function out of cpp_extension.py as text, so that neither torch nor its libraries are needed.
"""

import ast
import collections
import logging
import os
import re
import sys
import types
import typing

source = open(sys.argv[1], encoding="utf-8").read()
tree = ast.parse(source)
function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "_get_cuda_arch_flags")
names = {
    "collections": collections, "os": os, "re": re, "List": typing.List, "Optional": typing.Optional,
    "logger": logging.getLogger("torch"), "torch": types.SimpleNamespace(),
}
exec(compile(ast.Module([function], []), sys.argv[1], "exec"), names)
for line in sys.stdin:
    os.environ["TORCH_CUDA_ARCH_LIST"] = line.rstrip("\n")
    try:
        print(" ".join(names["_get_cuda_arch_flags"]()))
    except ValueError as error:
        print(f"error: {error}")
