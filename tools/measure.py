# SPDX-License-Identifier: GPL-2.0-only
"""What tools/demo and tools/bench share: run a load in a guest, read its figures.

All runs are under icount: guest time counts instructions, 2 ns each, of all vCPUs
together. Local shares are the meter's, which sees every access.
"""
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "build/release/arch/x86/boot/bzImage"
PERF = "perf bench numa mem -p 4 -t 2 -P 64 -s 12 -zZ0 -q --thp -1"
GUEST = []                  # options for all guests
NS_PER_INSN = 2
TICK_SECONDS = 0.25


def guest(out, name, options, command):
    """Run a guest under icount; its output, which is also left in out/. Ends us if it failed."""
    start = time.monotonic()
    print(f"{name} ... ", end="", flush=True)
    run = subprocess.run([ROOT / "tools/guest", "--icount", "--kernel", KERNEL, "--timeout", "3600",
                          "--log", out / f"{name}.log", *GUEST, *options, "--", *command],
                         stdout=subprocess.PIPE, text=True)
    (out / f"{name}.out").write_text(run.stdout)
    print(f"{time.monotonic() - start:.0f} s", flush=True)
    if run.returncode:
        sys.exit(f"{name} failed with {run.returncode}: see {out / name}.log and .out")
    return run.stdout


def values(text):
    """The "name value" and "name=value" words of a load's output; the largest of each."""
    found = {}
    for name, value in re.findall(r"^(\w+) (\d+)$", text, re.M):
        found[name] = max(int(value), found.get(name, 0))
    for name, value in re.findall(r"(\w+)=([\d.]+)", text):
        found[name] = max(float(value), found.get(name, 0))
    return found


def meter_rows(path):
    """(mark, local, remote, seconds) of each user-mode line."""
    for line in path.read_text().splitlines():
        word = dict(w.split("=", 1) for w in line.split() if "=" in w)
        if line.startswith("meter ") and word.get("mode") == "user":
            yield (word["mark"], int(word["local"]), int(word["remote"]),
                   int(word["insns"]) * NS_PER_INSN / 1e9)


def range_counts(path, functions, mark):
    """(local, remote) of the functions' accesses in the phase that a mark ended."""
    found = [0, 0]
    for line in path.read_text().splitlines():
        word = dict(w.split("=", 1) for w in line.split() if "=" in w)
        if line.startswith("meter ") and word.get("mode") in functions and word["mark"] == mark:
            found[0] += int(word["local"])
            found[1] += int(word["remote"])
    return found


def share(local, remote):
    return 100 * local / (local + remote) if local + remote else 0.0


def read_meter(path):
    """(shares over time since mark 1, share between marks 2 and 3)."""
    start = end = second_half = None
    ticks = []
    for mark, local, remote, seconds in meter_rows(path):
        if mark == "1":
            start = seconds
        elif mark == "3":
            end, second_half = seconds, share(local, remote)
        elif mark == "tick":
            ticks.append((seconds, share(local, remote)))
    if start is None or end is None:
        sys.exit(f"no marks in {path}")
    return [(t - start, s) for t, s in ticks if start + TICK_SECONDS <= t <= end], second_half


def seconds_to(series, level):
    """When the share rose to the level for good; None: it did not."""
    since = None
    for t, s in series:
        if s < level:
            since = None
        elif since is None:
            since = t
    return since


def run_load(out, name, words, meter=True, options=()):
    """Run tools/load/loads.sh with these words; its values, and with the meter
    "series" (share over time) and "share" (in the second half)."""
    options = ["--add", ROOT / "build/meter/memwalk", "--add", ROOT / "tools/load/loads.sh", *options]
    rows = out / f"{name}.meter"
    if meter:
        options += ["--meter", "--meter-every", str(int(TICK_SECONDS * 1e9 / NS_PER_INSN)),
                    "--meter-out", rows]
    found = values(guest(out, name, options, ["/loads.sh", *(str(w) for w in words)]))
    if meter:
        found["series"], found["share"] = read_meter(rows)
    return found


def perf_bench(out, name, mode, turns="on"):
    """GB/s of `perf bench numa mem`, all threads together, in a mode, and pages migrated."""
    text = guest(out, name, [], [f"turns {turns}; echo {mode} > /proc/sys/kernel/numa_balancing; {PERF}; "
                                 "grep numa_pages_migrated /proc/vmstat"])
    speed = re.search(r"([\d.]+) GB/sec total speed", text)
    if not speed:
        sys.exit(f"perf bench printed no speed: {out}/{name}.out")
    return float(speed.group(1)), int(re.search(r"numa_pages_migrated (\d+)", text).group(1))
