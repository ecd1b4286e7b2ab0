"""How long cuwright takes from start to end where it has next to nothing to do: medians over many runs.

usage: startup.py [--cuwright PATH] [--runs N] [--tree DIR] [--arch LIST] [--no-build]

Each command runs once unmeasured. The warm build restores a wheel that the cache holds: it is built first if it is not
there, which needs a toolchain. `/bin/true` shows what starting any process costs on this machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time


def milliseconds(command, runs):
    times = []
    for number in range(runs + 1):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if number:
            times.append((time.perf_counter() - start) * 1000)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuwright", default="cuwright")
    parser.add_argument("--runs", type=int, default=41)
    parser.add_argument("--arch", default="9.0")
    parser.add_argument("--tree", default=os.path.join(os.path.dirname(__file__), "..", "examples", "hello_ext"))
    parser.add_argument("--no-build", action="store_true")
    options = parser.parse_args()
    program = options.cuwright
    commands = [
        ["/bin/true"],
        [program, "--version"],
        [program, "arch", "7.5;8.6+PTX"],
        [program, "arch", "7.5;8.6+PTX", "--explain", "--cuda", "12.8", "--torch", "2.9"],
        [program, "arch", "--gpu", "RTX 4090"],
        [program, "env", "--arch", "8.6", "--toolchain", "none"],
        [program, "detect"],
    ]
    with tempfile.TemporaryDirectory() as out:
        if not options.no_build:
            build = [program, "build", os.path.abspath(options.tree), "--arch", options.arch, "--quiet", "--out", out]
            if subprocess.run(build, stdout=subprocess.DEVNULL, check=False).returncode:
                sys.exit("the build failed: mend it, or leave it out with --no-build")
            commands.append(build)
        print("| command | median ms | fastest ms |\n|---|---|---|")
        for command in commands:
            times = milliseconds(command, options.runs)
            words = [os.path.basename(command[0]), *command[1:]]
            shown = f"{words[0]} build (restored)" if "build" in words[1:2] else " ".join(words)
            print(f"| `{shown}` | {statistics.median(times):.1f} | {min(times):.1f} |", flush=True)


if __name__ == "__main__":
    main()
