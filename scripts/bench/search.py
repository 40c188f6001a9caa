"""Goes through all states of three nodes with three addresses, in every order of what can happen, and counts
them; nothing may be broken in any."""

import json
import os
import subprocess

from harness import BIN, Failure, main

STATES = 10_000_000
QUICK_STATES = 20_000


def run(bench):
    wanted = QUICK_STATES if bench.quick else STATES
    process = bench.start([os.path.join(BIN, "spoke-search"), "--states", str(wanted)],
                          stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode not in (0, 1):
        raise Failure(f"spoke-search ended with code {process.returncode}")
    found = json.loads(text)
    bench.figures = {"states": found["states"], "worlds": found["worlds"],
                     "transitions": found["transitions"], "violations": len(found["violations"]),
                     "seconds": found["seconds"]}
    bench.row("distinct states", f"{found['states']:,}", f">= {STATES:,}",
              "with what may still happen in them")
    bench.row("  distinct worlds", f"{found['worlds']:,}", "", "whatever may still happen")
    bench.row("violations", f"{len(found['violations'])}", "0")
    bench.row("steps tried", f"{found['transitions']:,}", "",
              f"{found['transitions'] / max(found['seconds'], 1e-9):,.0f} a second")
    for root in found["roots"]:
        bench.row(f"  from: {root['name']}", f"{root['states']:,}", "",
                  f"all within {root['depth']} steps" + (", and no more" if root["complete"] else ""))
    bench.context.update(seconds=round(found["seconds"], 1), overflows=found["overflows"])


if __name__ == "__main__":
    main("search", run)
