"""Measures how much of a fleet's time the simulation of tests/sim lives through in a minute of CPU time, with
all faults at 7,500 nodes, and with fewer of them; how many seeds it holds the laws with; and how many of the seeded defects its runs
find."""

import os
import re
import subprocess

from harness import BIN, Failure, main


def simulate(*options):
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "sim.sh")
    done = subprocess.run([script, *options], stdout=subprocess.PIPE, text=True, env={**os.environ, "SPOKE_BIN": BIN})
    if done.returncode not in (0, 1):
        raise Failure(f"spoke-sim ended with code {done.returncode}")
    return done.stdout


def numbers(pattern, text):
    found = re.search(pattern, text)
    if found is None:
        raise Failure("spoke-sim does not say what it has measured:\n" + text[-1000:])
    return [float(number) for number in found.groups()]


def run(bench):
    total = r"(\d+) seeds, (\d+) failed, [\d.]+ node-hours, (\d+) node-hours a CPU minute"
    nodes, minutes, seeds = (200, 2, 5) if bench.quick else (7500, 30, 2000)
    large = ["--nodes", str(nodes), "--until", str(minutes * 60), "--seed", "1"]
    _, large_failed, speed = numbers(total, simulate(*large))
    for events in (4, 1, 0):
        _, sparse_failed, sparse = numbers(total, simulate(*large, "--events", str(events)))
        large_failed += sparse_failed
        bench.row(f"the same, {events} events a node and hour", f"{sparse:.0f}")
    count, failed, _ = numbers(total, simulate("--seeds", str(seeds)))
    killed, mutants = numbers(r"(\d+) of (\d+) mutants killed",
                              simulate("--mutants", "--seeds", "0" if bench.quick else "20"))
    bench.figures = {
        "node_hours_per_cpu_minute": speed,
        "seeds": count,
        "violations": failed + large_failed,
        "mutants_killed": killed,
    }
    bench.row("node-hours a CPU minute", f"{speed:.0f}", ">= 20000", f"{nodes} nodes, 40 events a node and hour, one run")
    bench.row("seeds", f"{count:.0f}", ">= 2000")
    bench.row("seeds that break a law", f"{failed + large_failed:.0f}", "0")
    bench.row("mutants killed", f"{killed:.0f}", f"{mutants:.0f}")
    bench.context.update(n=1, nodes=nodes, mutants=mutants)


if __name__ == "__main__":
    main("sim", run)
