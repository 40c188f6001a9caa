"""A budget is shared by 7,500 nodes and 100 teams: on a simulated clock with all that goes wrong, and
with real gRPC, what it costs the server."""

import json
import os
import subprocess
import time

from fleet import ADDRESSES_A_NODE, AGENTS, Server, Swarm
from harness import BIN, Failure, cpu_seconds, main, median

TEAMS = 100
REFRESH_S = 5
# The time until all first reports have been answered.
SETTLE_S = 15
# What a message takes at most between machines of one region; in the first simulation it is 500 ms.
NEAR_MS = 100
WINDOWS = 3
TEAM = """\
apiVersion: spoke/v1
kind: Team
metadata: {{name: {name}}}
spec: {{namespaces: [{name}]}}
---
"""
BUDGET = """\
apiVersion: spoke/v1
kind: BandwidthBudget
metadata: {{name: internet}}
spec:
  direction: Ingress
  capacity: 150Gbit
  teams:
    - {{name: "*", weight: 1}}
{teams}
"""


def policy_text():
    """A budget of TEAMS teams; those that it does not name count as one of them."""
    names = [f"team{number:02}" for number in range(1, TEAMS)]
    rows = "\n".join(f"    - {{name: {name}, weight: {1 + number % 4}}}"
                     for number, name in enumerate(names))
    return "".join(TEAM.format(name=name) for name in names) + BUDGET.format(teams=rows)


def simulate(bench, *more):
    sizes = ["--agents", "200"] if bench.quick else ["--agents", str(AGENTS)]
    process = bench.start([os.path.join(BIN, "spoke-bench-budget"), *sizes, "--teams", str(TEAMS), *more],
                          stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-bench-budget ended with code {process.returncode}")
    return json.loads(text)


def serve(bench):
    """Cores that the server uses while all agents report and get grants: one figure a window."""
    agents = 100 if bench.quick else AGENTS
    seconds = 5 if bench.quick else 60
    server = Server(bench)
    server.start()
    policy = bench.path("budget.yaml")
    with open(policy, "w", encoding="utf-8") as out:
        out.write(policy_text())
    server.ask("apply", "-f", policy)
    whole = seconds * WINDOWS + SETTLE_S + 5
    swarm = Swarm(bench, server, "steady", agents=agents, addresses=ADDRESSES_A_NODE,
                  seconds=whole, budget_refresh=f"{REFRESH_S}s")
    swarm.event("ready")
    time.sleep(SETTLE_S)
    cores = []
    for _ in range(WINDOWS):
        before, started = cpu_seconds(server.pid), time.monotonic()
        time.sleep(seconds)
        cores.append((cpu_seconds(server.pid) - before) / (time.monotonic() - started))
    status = server.ask("status")
    if status["nodes_connected"] != agents:
        raise Failure(f"{status['nodes_connected']} of {agents} agents are connected")
    result = swarm.result()
    if result["reconnects"]:
        raise Failure(f"{result['reconnects']} streams were opened again")
    # A server looks cheap that is asked less than it should be.
    expected = agents * whole / REFRESH_S
    if result["budget_reports"] < expected * 0.95:
        raise Failure(f"the swarm sent {result['budget_reports']} reports, not {expected:.0f}")
    server.stop()
    return cores, f"{agents} agents, {result['budget_reports']} reports"


def run(bench):
    simulated = simulate(bench)
    near = simulate(bench, "--delay-ms", str(NEAR_MS))
    cores, how = serve(bench)
    one = simulated["runs"][0]
    alloc = simulated["alloc_ms"]
    bench.figures = {
        "over_capacity_ticks": simulated["over_capacity_ticks"],
        "over_committed_ticks": simulated["over_committed_ticks"],
        "use95_s": simulated["use95_s"],
        "use95_near_s": near["use95_s"],
        "fairness_error": simulated["fairness_error"],
        "alloc_ms": alloc["median"],
        "decide_ms": one["decide_ms"],
        "server_cores": median(cores),
    }
    bench.row("ticks with more usable than the capacity", simulated["over_capacity_ticks"], "0",
              f"of {one['ticks']} of 100 ms; {one['streams']} streams, {one['reports']} reports, "
              f"{one['messages']} answers; seed {simulated['seed']}")
    bench.row("ticks with more given than the capacity", simulated["over_committed_ticks"], "0")
    bench.row("95 % of what could be used is, s", f"{simulated['use95_s']:.1f}", "<= 5",
              f"the worst of {sum(not shift['in_faults'] for shift in one['shifts'])} shifts")
    bench.row(f"the same, with messages of at most {NEAR_MS} ms, s", f"{near['use95_s']:.1f}")
    bench.row("worst team against its exact share", f"{simulated['fairness_error']:.3f}", "<= 0.05")
    bench.row("one allocation, ms", f"{alloc['median']:.2f}", "<= 5",
              f"n={alloc['n']}, quartiles {alloc['lower_quartile']:.2f} and "
              f"{alloc['upper_quartile']:.2f}")
    bench.row("one decision in the simulation, ms", f"{one['decide_ms']:.2f}", "",
              f"n={one['decisions']}, worst {one['decide_worst_ms']:.1f}")
    bench.row(f"cores of the server, refresh {REFRESH_S} s", f"{median(cores):.3f}", "<= 0.3",
              f"n={len(cores)}, {min(cores):.3f} to {max(cores):.3f}; {how}")
    bench.context.update(n=1, agents=simulated["agents"], teams=TEAMS, tls=False,
                         refresh_s=REFRESH_S)


if __name__ == "__main__":
    main("budget", run)
