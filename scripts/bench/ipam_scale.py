"""Measures what an assignment or a release costs the server, commit included, with 20,000, 200,000 and
2,000,000 addresses: the loop and the store in one process, no network, the sizes turn by turn."""

import json
import os
import subprocess

from harness import BIN, Failure, main, median, spread

SIZES = (20_000, 200_000, 2_000_000)
QUICK_SIZES = (2_000, 4_000, 8_000)


def measure(bench, sizes):
    """What an operation costs with each of the sizes, as spoke-scale says it."""
    process = bench.start(
        [os.path.join(BIN, "spoke-scale"), "--directory", bench.directory, "--addresses",
         ",".join(str(size) for size in sizes), "--rounds", "2" if bench.quick else "7",
         "--operations", "1000" if bench.quick else "20000"],
        stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-scale ended with code {process.returncode}")
    return json.loads(text)


def run(bench):
    sizes = QUICK_SIZES if bench.quick else SIZES
    measured = measure(bench, sizes)
    cpu = [median(size["cpu_us"]) for size in measured["sizes"]]
    wall = [median(size["wall_us"]) for size in measured["sizes"]]
    bench.figures = {"growth": max(cpu[-1] / cpu[0], wall[-1] / wall[0]),
                     "growth_cpu": cpu[-1] / cpu[0], "growth_wall": wall[-1] / wall[0]}
    bench.row(f"cost with {sizes[-1]:,} addresses over {sizes[0]:,}",
              f"{bench.figures['growth']:.2f}", "<= 1.4", "the worse of the next two")
    bench.row("  CPU", f"{bench.figures['growth_cpu']:.2f}")
    bench.row("  wall clock", f"{bench.figures['growth_wall']:.2f}")
    for size in measured["sizes"]:
        for key, what in (("cpu_us", "CPU"), ("wall_us", "wall")):
            bench.row(f"{size['addresses']:,} addresses: {what} an operation, us",
                      f"{median(size[key]):.1f}", "",
                      f"{min(size[key]):.1f} to {max(size[key]):.1f}, "
                      f"spread {100 * spread(size[key]):.0f} %")
            bench.figures[f"{key}_{size['addresses']}"] = median(size[key])
    bench.context.update(n=len(measured["sizes"][0]["cpu_us"]),
                         operations_a_turn=measured["operations"],
                         operations_a_commit=measured["nodes_a_commit"])


if __name__ == "__main__":
    main("ipam_scale", run)
