"""How fast `cuwright explain` reads logs of 100 MB, as a whole process, and how much memory it takes at its peak.

usage: explain.py [--cuwright PATH] [--megabytes N] [--runs N]

Three logs are made in a temporary folder: a real shape (ninja's steps with long compiler lines, warnings, one cause in the
middle), short lines that hold nothing, and errors in every line, which is the worst case. GNU time measures the peak.
"""

import argparse
import os
import subprocess
import tempfile
import time

STEP = (
    "[{n}/9000] /usr/local/cuda-10.2/bin/nvcc -I/opt/venv/lib/python3.8/site-packages/torch/include"
    " -I/opt/venv/lib/python3.8/site-packages/torch/include/torch/csrc/api/include -I/usr/local/cuda-10.2/include"
    " -I/usr/include/python3.8 -c -c /work/src/kernels/kernel_{n}.cu -o /work/build/kernel_{n}.o"
    " -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ --expt-relaxed-constexpr -O3"
    " -gencode=arch=compute_75,code=sm_75 -std=c++14\n"
    "/work/src/kernels/kernel_{n}.cu(77): warning #177-D: variable \"tid\" was declared but never referenced\n"
    "      const int tid = threadIdx.x;\n                ^\n\n"
)
CAUSE = (
    "FAILED: /work/build/the_one.o\nnvcc fatal   : Unsupported gpu architecture 'compute_86'\n"
)


def write(path, size, piece):
    number = written = 0
    told = False
    with open(path, "w", encoding="utf-8") as file:
        while written < size:
            number += 1
            text = piece.replace("{n}", str(number))
            if not told and written > size / 2:
                text += CAUSE
                told = True
            written += file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuwright", default="cuwright")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    size = options.megabytes * 1_000_000
    pieces = {
        "ninja's steps and warnings": STEP,
        "short lines": "copying package/module_{n}.py -> build/lib\n",
        "an error in every line": "a.cpp:{n}:5: error: 'x_{n}' was not declared in this scope\n",
    }
    print("| log | MB/s, median | peak MiB |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, piece in pieces.items():
            path = os.path.join(folder, "log")
            write(path, size, piece)
            took, peaks = [], []
            for _ in range(options.runs):
                start = time.perf_counter()
                done = subprocess.run(
                    ["/usr/bin/env", "time", "-f", "%M", options.cuwright, "explain", path, "--json"],
                    capture_output=True, text=True, check=True,
                )
                took.append(time.perf_counter() - start)
                peaks.append(int(done.stderr.split()[-1]) / 1024)
                assert "toolkit-too-old-for-arch" in done.stdout, done.stdout
            speed = os.path.getsize(path) / 1e6 / sorted(took)[len(took) // 2]
            print(f"| {name} | {speed:.0f} | {max(peaks):.0f} |", flush=True)


if __name__ == "__main__":
    main()
