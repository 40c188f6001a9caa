"""Measures how long one turn of the server's loop is, for which everybody else waits, with 7,500 nodes
and 202,500 addresses: while operators list, apply and reserve, all agents report or come back, the cloud
lists and the store fails; each alone, and then all but the last together. The loop, its store and the
operators' service are in one process; agents and cloud are played."""

import json
import os
import subprocess

from harness import BIN, Failure, main

NODES = 7500
RESERVED = 4096
TARGET = "<= 50"
LISTINGS = ("list addresses", "list nodes")
APPLIES = ("apply a team", "apply a pool")


def run(bench):
    nodes, reserved = (300, 160) if bench.quick else (NODES, RESERVED)
    process = bench.start(
        [os.path.join(BIN, "spoke-stalls"), "--directory", bench.directory, "--nodes", str(nodes),
         "--reserved", str(reserved), "--rounds", "1" if bench.quick else "3", "--seconds",
         "2" if bench.quick else "20"],
        stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-stalls ended with code {process.returncode}")
    measured = json.loads(text)
    phases = measured["phases"]

    def worst(names, key="longest_ms"):
        return max(turns[key] for name in names for turns in phases[name])

    bench.figures = {
        "reserve_4096_ms": worst(["reserve"]),
        "worst_turn_ms": worst(phases),
        "listing_ms": worst(LISTINGS),
        "apply_ms": worst(APPLIES),
        "reload_ms": worst(["the store fails"]),
        "worst_turn_cpu_ms": worst(phases, "longest_cpu_ms"),
    }
    bench.row(f"a reservation of 27 for {reserved} of {nodes} nodes, longest turn, ms",
              f"{bench.figures['reserve_4096_ms']:.1f}", TARGET,
              f"{phases['reserve'][0]['all_ms']:.0f} ms in {phases['reserve'][0]['turns']} turns")
    bench.row("longest turn of all, ms", f"{bench.figures['worst_turn_ms']:.1f}", TARGET,
              f"CPU of the loop's thread {bench.figures['worst_turn_cpu_ms']:.1f} ms")
    bench.row("a listing, longest turn, ms", f"{bench.figures['listing_ms']:.1f}", TARGET)
    bench.row("an apply, longest turn, ms", f"{bench.figures['apply_ms']:.1f}", TARGET)
    for name, rounds in phases.items():
        turns = [r["longest_ms"] for r in rounds]
        bench.row(f"  {name}: longest turn, ms", f"{max(turns):.1f}", "",
                  f"{min(turns):.1f} to {max(turns):.1f} in {len(turns)} rounds, CPU "
                  f"{worst([name], 'longest_cpu_ms'):.1f}")
    bench.context.update(n=1 if bench.quick else 3, nodes=nodes,
                         addresses=measured["addresses"], reserved_nodes=reserved)


if __name__ == "__main__":
    main("ipam_stalls", run)
