"""Measures what the agent pays to delete the tracked connections of released addresses from a table of
100,000 entries, over reading a dump of the same table to its end; in one process, turn by turn."""

import json
import os
import subprocess

from harness import BIN, Failure, main, median


def run(bench):
    entries = 5_000 if bench.quick else 100_000
    process = bench.start(
        [os.path.join(BIN, "spoke-conntrack-bench"), "--entries", str(entries), "--rounds",
         "3" if bench.quick else "11"], stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-conntrack-bench ended with code {process.returncode}")
    measured = json.loads(text)
    for name, what in (("dump", "the kernel's dump, read to its end"),
                       ("pass_none", "a pass that finds nothing"),
                       ("pass", f"a pass that deletes {measured['deleted']:,} of {entries:,}")):
        for kind, unit in (("wall_ms", "wall clock"), ("cpu_ms", "CPU")):
            values = measured[name][kind]
            bench.figures[f"{name}_{kind}"] = median(values)
            bench.row(f"{what}: {unit}, ms", f"{median(values):.1f}", "",
                      f"{min(values):.1f} to {max(values):.1f}")
    bench.figures["ratio_dump"] = median(measured["pass_none"]["cpu_ms"]) / median(
        measured["dump"]["cpu_ms"])
    bench.row("a pass that finds nothing over the dump, CPU", f"{bench.figures['ratio_dump']:.2f}")
    bench.context.update(n=len(measured["dump"]["cpu_ms"]), entries=entries,
                         released=measured["released"])


if __name__ == "__main__":
    main("conntrack_pass", run)
