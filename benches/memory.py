"""Builds an extension whose sources need about 3 GiB each in a control group of 6 GiB: by pip, then by cuwright.

usage: memory.py [--cuwright PATH] [--limit BYTES] [--sources N] [--arch LIST] [--memory-per-job SIZE] [--only WHICH]

Needs root, to make a control group (either version), and a toolchain that is installed. By pip means `pip wheel` with
MAX_JOBS=8 and the environment that `cuwright plan` prints. Prints how each ended, how long it took, how many processes
the kernel killed in the group, and the group's largest use.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

# A string literal of 640 MiB, of which g++ holds several copies, and some seconds of work while it holds them.
HEAVY = """#define A0 "{filler}"
{doubling}
constexpr unsigned long held = sizeof(A6 A6 A5 A5 A5 A5);
constexpr unsigned spin(unsigned n) {{
  unsigned x = {number};
  for (unsigned i = 0; i < 250000; ++i)
    for (unsigned j = 0; j < n; ++j) x = x * 1664525u + 1013904223u;
  return x;
}}
constexpr unsigned spun = spin(8);
unsigned long heavy{number}() {{ return held + spun; }}
"""
BIND = """#include <Python.h>
extern "C" void launch();
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
"""
KERNEL = """__global__ void one(float* x) { x[threadIdx.x] += 1; }
extern "C" void launch() { one<<<1, 1>>>(nullptr); }
"""
SETUP = """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
heavy = [f"heavy{n}.cpp" for n in range(@N@)]
flags = {"cxx": ["-O0", "-fconstexpr-ops-limit=4000000000"], "nvcc": ["-O2"]}
setup(name="heavy-ext", version="1.0", packages=["heavy_ext"], cmdclass={"build_ext": BuildExtension},
      ext_modules=[CUDAExtension("heavy_ext._C", ["bind.cpp", "one.cu", *heavy], extra_compile_args=flags)])
"""
RECIPE = """schema = 1
[package]
name = "heavy-ext"
[source]
path = "."
[toolchain]
torch = ">=2.6"
[build]
memory-per-job = "@MEMORY@"
"""


def write(folder, sources, memory):
    os.makedirs(os.path.join(folder, "heavy_ext"))
    doubling = "\n".join(f"#define A{n} " + " ".join([f"A{n - 1}"] * 8) for n in range(1, 7))
    files = {f"heavy{n}.cpp": HEAVY.format(filler="x" * 1023, doubling=doubling, number=n) for n in range(sources)}
    files |= {"bind.cpp": BIND, "one.cu": KERNEL, "setup.py": SETUP.replace("@N@", str(sources)), "heavy_ext/__init__.py": ""}
    files["cuwright.toml"] = RECIPE.replace("@MEMORY@", memory)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


class Group:
    """A control group with a limit, for both versions of the interface."""

    def __init__(self, limit):
        with open("/proc/self/cgroup") as file:
            lines = [line.strip().split(":", 2) for line in file]
        own = next((path for _, names, path in lines if "memory" in names.split(",")), None)
        self.old = own is not None
        base = "/sys/fs/cgroup/memory" + os.path.dirname(own) if self.old else "/sys/fs/cgroup"
        self.path = os.path.join(base, f"cuwright-{os.getpid()}")
        os.mkdir(self.path)
        self.write("memory.limit_in_bytes" if self.old else "memory.max", limit)
        if not self.old:
            self.write("memory.swap.max", 0)

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(str(value))

    def read(self, name):
        with open(os.path.join(self.path, name)) as file:
            return file.read()

    def enter(self):
        self.write("cgroup.procs", os.getpid())

    def told(self):
        events = self.read("memory.oom_control" if self.old else "memory.events")
        killed = next((line.split()[1] for line in events.splitlines() if line.startswith("oom_kill ")), "?")
        peak = int(self.read("memory.max_usage_in_bytes" if self.old else "memory.peak"))
        return f"{killed} killed for memory, largest use {peak / 2**30:.1f} GiB"

    def remove(self):
        os.rmdir(self.path)


def run(name, command, environment, folder, limit):
    group = Group(limit)
    start = time.perf_counter()
    with open(os.path.join(folder, f"{name}.log"), "w") as log:
        child = subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log, preexec_fn=group.enter, check=False)
    took = time.perf_counter() - start
    print(f"{name}: exit {child.returncode} after {took:.0f} s, {group.told()}", flush=True)
    time.sleep(1)
    group.remove()
    with open(os.path.join(folder, f"{name}.log")) as log:
        lines = log.read().splitlines()
    marks = ("error", "Error", "Killed", "killed", "Verified", "memory", "effective", "found", "compilers on")
    for line in [line for line in lines if any(mark in line for mark in marks)][-12:]:
        print("   ", line[:200])
    return child.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuwright", default="cuwright")
    parser.add_argument("--limit", type=int, default=6 << 30)
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--arch", default="9.0")
    parser.add_argument("--memory-per-job", default="3 GiB")
    parser.add_argument("--only", choices=["pip", "cuwright"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        write(tree, options.sources, options.memory_per_job)
        choice = [tree, "--arch", options.arch]
        asked = [options.cuwright, "plan", "--json", *choice]
        plan = json.loads(subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
        ready = plan[0]["ready"] or sys.exit("the toolchain is not installed yet: run `cuwright toolchain install` first")
        if options.only != "cuwright":
            by_pip = os.path.join(folder, "by-pip")
            shutil.copytree(tree, by_pip)
            # A provisioned environment has no pip: it borrows the one of the Python that runs this.
            borrowed = os.path.join(folder, "borrowed")
            os.mkdir(borrowed)
            os.symlink(os.path.dirname(importlib.util.find_spec("pip").origin), os.path.join(borrowed, "pip"))
            environment = {**os.environ, **ready["environment"], "MAX_JOBS": "8", "PYTHONNOUSERSITE": "1", "PYTHONPATH": borrowed}
            command = [ready["python"], "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "."]
            run("pip", command, environment, by_pip, options.limit)
        if options.only != "pip":
            out = os.path.join(folder, "dist")
            command = [options.cuwright, "build", *choice, "-j", "8", "--no-cache", "--timings", "--out", out]
            run("cuwright", command, os.environ, folder, options.limit)


if __name__ == "__main__":
    main()
