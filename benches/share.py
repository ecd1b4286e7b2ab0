"""How much of a build's processor time cuwright itself takes: its own, and that of its stand-ins, beside everything.

usage: share.py [--cuwright PATH] [--tree DIR] [--arch LIST] [BUILD OPTION ...]

Builds once without the cache. cuwright's own time is read from /proc until it ends; a stand-in's is its life less that of
the compiler it runs, of which `benches/launcher.rs` tells the processor part, so here each call counts as 3 ms at most.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuwright", default="cuwright")
    parser.add_argument("--arch", default="9.0")
    parser.add_argument("--tree", default=os.path.join(os.path.dirname(__file__), "..", "examples", "hello_ext"))
    options, extra = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "t.html")
        command = [options.cuwright, "build", os.path.abspath(options.tree), "--arch", options.arch, "--no-cache", "--quiet"]
        command += [f"--timings={page}", "--out", folder, *extra]
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        own = 0
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            with open(f"/proc/{child.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            time.sleep(0.05)
        took = time.perf_counter() - start
        with open(os.path.join(folder, "t.json")) as file:
            calls = sum(event["ph"] == "X" for event in json.load(file)["traceEvents"])
    total = usage.ru_utime + usage.ru_stime
    share = (own + calls * 0.003) / total * 100
    print(f"exit {os.waitstatus_to_exitcode(status)}, {took:.1f} s, {total:.1f} s of processor time in all")
    print(f"cuwright itself {own:.2f} s, {calls} compiler calls: {share:.2f} % of all at most")


if __name__ == "__main__":
    main()
