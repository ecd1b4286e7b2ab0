"""Several units in one build: how many compilers ran at once, and how near the time is to the ideal.

usage: units.py [--cuwright PATH] [--jobs N] [--arch LIST] UNIT ... [-- BUILD OPTION ...]

Builds the units together without the cache. Compilers are counted from outside, fifty times a second: processes that a
stand-in started. The ideal is the work of all compiler calls over the cores, or the longest call if that is more: once by
processor time, and once by the time from their start to their end, which other work on the machine does not falsify.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time


def compilers(program, main):
    """Processes whose parent is a stand-in, a stand-in being any other process of cuwright."""
    parents, stand_ins = {}, set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                parents[int(pid)] = int(file.read().rsplit(")", 1)[1].split()[1])
            if int(pid) != main and os.path.samefile(f"/proc/{pid}/exe", program):
                stand_ins.add(int(pid))
        except (OSError, IndexError):
            continue  # It has ended meanwhile.
    found = [pid for pid, parent in parents.items() if parent in stand_ins and pid not in stand_ins]
    # Reading /proc takes a while, and short calls follow one another: those that are still there ran at once.
    return sum(os.path.exists(f"/proc/{pid}/exe") for pid in found)


def calls(folder):
    for path in glob.glob(os.path.join(folder, "**", "*timings.json"), recursive=True):
        with open(path) as file:
            trace = json.load(file)["traceEvents"]
        yield os.path.basename(path).removesuffix("-timings.json"), [event for event in trace if event["ph"] == "X"]


def main():
    own, extra = sys.argv[1:], []
    if "--" in own:
        own, extra = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuwright", default="cuwright")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--arch", default="9.0")
    parser.add_argument("units", nargs="+")
    options = parser.parse_args(own)
    program = os.path.realpath(options.cuwright)
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "build", *options.units, "--arch", options.arch, "-j", str(options.jobs)]
        command += ["--no-cache", "--timings", "--quiet", "--out", folder, *extra]
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        counts = []
        while child.poll() is None:
            counts.append(compilers(program, child.pid))
            time.sleep(0.02)
        took = time.perf_counter() - start
        print(f"exit {child.returncode}, {took:.1f} s in all")
        work, longest, lasted, slowest, last = 0, 0, 0, 0, 0
        for name, events in calls(folder):
            each = [(event["args"]["user"] + event["args"]["system"]) / 1000 for event in events]
            lasts = [event["dur"] / 1e6 for event in events]
            end = max(event["ts"] + event["dur"] for event in events) / 1e6
            print(f"{name}: {len(events)} calls, {sum(each):.1f} core-s, the longest {max(each):.1f} s, last end {end:.1f} s")
            work, longest = work + sum(each), max(longest, *each)
            lasted, slowest, last = lasted + sum(lasts), max(slowest, *lasts), max(last, end)
        ideal, fair = max(work / options.jobs, longest), max(lasted / options.jobs, slowest)
        print(f"{len(counts)} samples: at most {max(counts)} compilers at once, limit {options.jobs}")
        print(f"work {work:.1f} core-s, ideal {ideal:.1f} s: {took / ideal:.3f} times the ideal")
        print(f"calls lasted {lasted:.1f} s, ideal {fair:.1f} s; the last ended at {last:.1f} s: {last / fair:.3f} times the ideal")


if __name__ == "__main__":
    main()
