"""Measures how long 7,500 instances take to get 27 addresses each from Azure, on a simulated clock: the
server's own loop and Azure client against the simulated Resource Manager, with the limits Azure
publishes."""

import json
import os
import subprocess

from harness import BIN, Failure, main, median

# Operations of scale-set VMs that only change the network are the short ones; 10 to 40 s is what a
# slow day looks like.
LATENCY = ("10", "20")
SLOW = ("10", "40")
IDENTITIES = 3
# The second in a minute at which Azure refills its buckets: nobody tells. 0 is the worst, a whole
# minute from the start.
PHASES = (0, 20, 40)
FAULTS = ("--failed", "0.01", "--errors", "0.02", "--foreign", "0.05")


def cold_start(bench, phase, latency=LATENCY, identities=IDENTITIES, extra=()):
    nodes = ["--nodes", "200", "--scale-sets", "2"] if bench.quick else ["--nodes", "7500"]
    process = bench.start(
        [os.path.join(BIN, "spoke-azure-bench"), "coldstart", *nodes, "--addresses", "27",
         "--identities", str(identities), "--latency-least", latency[0], "--latency-most",
         latency[1], "--phase", str(phase), *extra],
        stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-azure-bench ended with code {process.returncode}")
    return json.loads(text)


def row(bench, what, runs, target=""):
    minutes = [one["minutes"] for one in runs]
    floors = [one["floor_minutes"] for one in runs]
    bench.row(what, f"{max(minutes):.2f}", target,
              f"{min(minutes):.2f} to {max(minutes):.2f}, n={len(runs)}; floor {max(floors):.2f}; "
              f"{median([one['reads'] / one['puts'] for one in runs]):.1f} reads a write")
    return max(minutes)


def run(bench):
    phases = PHASES[:1] if bench.quick else PHASES
    nodes = 200 if bench.quick else 7500
    plain = [cold_start(bench, phase) for phase in phases]
    faulty = [cold_start(bench, phase, extra=FAULTS) for phase in phases]
    blocks = [cold_start(bench, 0, extra=("--blocks",))]
    alone = [cold_start(bench, 0, identities=1)]
    slow = [cold_start(bench, 0, latency=SLOW)]
    every = plain + faulty + blocks + alone + slow
    bench.figures = {
        "minutes": row(bench, "minutes until the last address can be assigned", plain, "<= 12.5"),
        "minutes_faulty": row(bench, "  1 % failed, 2 % 503, 5 % written by others", faulty, "<= 14"),
        "minutes_blocks": row(bench, "  /28 blocks", blocks, "<= 12.5"),
        "minutes_one_identity": row(bench, "  one identity", alone),
        "minutes_slow": row(bench, "  operations of 10 to 40 s", slow),
        "floor_minutes": max(one["floor_minutes"] for one in plain),
        "puts_ratio": max(one["puts"] for one in plain + blocks) / nodes,
        "throttled": max(one["throttled"] for one in every),
        "into_closed_gate": sum(one["into_closed_gate"] for one in every),
        "missing": sum(one["missing"] + one["not_on_the_wire"] for one in every),
        "doubled": sum(one["doubled"] for one in every),
        "reads_a_write": median([one["reads"] / one["puts"] for one in plain]),
    }
    figures = bench.figures
    bench.row("writes, of one a node", f"{figures['puts_ratio']:.4f}", "<= 1.01")
    bench.row("calls into a closed gate", f"{figures['into_closed_gate']}", "0",
              f"refused at all: {figures['throttled']} a run at most")
    bench.row("addresses missing, or in_use before they work", f"{figures['missing']}", "0")
    bench.row("addresses doubled", f"{figures['doubled']}", "0")
    bench.context.update(n=len(phases), nodes=nodes, identities=IDENTITIES,
                         latency_s="-".join(LATENCY), phases_s=list(phases))


if __name__ == "__main__":
    main("azure_coldstart", run)
