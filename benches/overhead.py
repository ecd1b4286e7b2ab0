"""What a cold `cuwright build` costs over running setup.py by hand, in pairs within one run.

usage: overhead.py [--cuwright PATH] [--pairs N] [--arch LIST] [--tree DIR] [BUILD OPTION ...]

By hand means: a copy of the tree, the variables and the command that `cuwright plan --json` prints, and a wheel at the
end. cuwright does that too, and verifies the wheel's device code and import. Prints every pair and the median ratio.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def by_hand(tree, ready, folder):
    source = os.path.join(folder, "by-hand")
    start = time.perf_counter()
    shutil.copytree(tree, source)
    environment = {**os.environ, **ready["environment"], "PYTHONUNBUFFERED": "1", "PYTHONNOUSERSITE": "1"}
    python = ready["python"]
    command = [python, "setup.py", "bdist_wheel", "--dist-dir", os.path.join(folder, "dist")]
    with open(os.path.join(folder, "log"), "w") as log:
        subprocess.run(command, cwd=source, env=environment, stdout=log, stderr=log, check=True)
    return time.perf_counter() - start


def by_cuwright(arguments, folder):
    start = time.perf_counter()
    command = [*arguments, "--no-cache", "--quiet", "--out", os.path.join(folder, "out")]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuwright", default="cuwright")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--arch", default="9.0")
    parser.add_argument("--tree", default=os.path.join(os.path.dirname(__file__), "..", "examples", "hello_ext"))
    options, extra = parser.parse_known_args()
    tree = os.path.abspath(options.tree)
    choice = [tree, "--arch", options.arch, *extra]
    plan = json.loads(subprocess.run([options.cuwright, "plan", "--json", *choice], stdout=subprocess.PIPE, check=True).stdout)
    ready = plan[0]["ready"]
    if ready is None:
        sys.exit("the toolchain is not installed yet: run `cuwright toolchain install` first")
    ratios = []
    for number in range(-1, options.pairs):
        with tempfile.TemporaryDirectory() as folder:
            hand = by_hand(tree, ready, folder)
            ours = by_cuwright([options.cuwright, "build", *choice], folder)
        if number >= 0:
            ratios.append(ours / hand)
            print(f"pair {number + 1}: by hand {hand:.2f} s, cuwright {ours:.2f} s, ratio {ours / hand:.3f}", flush=True)
        else:
            print(f"warm-up: by hand {hand:.2f} s, cuwright {ours:.2f} s", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
