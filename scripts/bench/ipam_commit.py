"""Durable assignments and releases a second through gRPC, and Kea's leases a second, turn by turn."""

from fleet import ADDRESSES_A_NODE, Server, Swarm
from harness import Failure, cpu_seconds, main, median, say, spread
from kea import SETTINGS, Kea, describe

ROUNDS = 5
SECONDS = 6
AGENTS = 1000
PODS = 4
COALESCED_PODS = 8
START_RATE = 1000
STEP = 1.3


def ours(bench, agents, seconds, name, **options):
    """One run against a new server with an empty store."""
    server = Server(bench, name)
    server.start()
    swarm = Swarm(bench, server, "churn", agents=agents, addresses=ADDRESSES_A_NODE,
                  seconds=seconds, warm_up=1, **options)
    swarm.event("ready")
    before = cpu_seconds(server.pid)
    swarm.event("measured")
    used = cpu_seconds(server.pid) - before
    result = swarm.result()
    result["server_us_per_op"] = used * 1e6 / max(1, result["operations"])
    server.stop()
    return result


def calibrate(kea, quick):
    """Each setting with the most it can do, best first."""
    ladder = [START_RATE * STEP ** i for i in range(3 if quick else 14)]
    found = []
    for setting in SETTINGS[:1] if quick else SETTINGS:
        best = kea.best(setting, ladder, 2 if quick else 4)
        say(f"  Kea, {describe(setting)}: {best:.0f} leases/s")
        found.append((best, setting))
    found.sort(reverse=True)
    if not found[0][0]:
        raise Failure(f"Kea does not even manage {START_RATE} leases/s here")
    return found


def peer(kea, found, seconds):
    """One turn of Kea's: its two best settings around what they can do, and the best of all."""
    best = 0.0
    for rate, setting in found[:2]:
        best = max(best, kea.best(setting, [rate * share for share in (0.9, 1.05, 1.2, 1.4)],
                                  seconds))
    for share in (0.75, 0.6, 0.45, 0.3, 0.2):
        if not best:
            best = kea.best(found[0][1], [found[0][0] * share], seconds)
    if not best:
        raise Failure("Kea no longer manages a fifth of what it did: the machine is too busy")
    return best


def run(bench):
    agents = 50 if bench.quick else AGENTS
    seconds = 2 if bench.quick else SECONDS
    rounds = 1 if bench.quick else ROUNDS
    kea = Kea(bench)
    found = calibrate(kea, bench.quick)
    single, coalesced, theirs = [], [], []
    for i in range(rounds):
        single.append(ours(bench, agents, seconds, f"single{i}", pods=PODS))
        theirs.append(peer(kea, found, seconds))
        coalesced.append(ours(bench, agents, seconds, f"coalesced{i}", pods=COALESCED_PODS,
                              coalesce=True))
        say(f"  round {i + 1}: {single[-1]['ops_per_s']:.0f} operations/s one a message, "
            f"{coalesced[-1]['ops_per_s']:.0f} coalesced; Kea {theirs[-1]:.0f} leases/s")

    report(bench, [[r["ops_per_s"] for r in single], [r["ops_per_s"] for r in coalesced], theirs],
           single, coalesced)
    bench.context.update(
        n=rounds, agents=agents, outstanding_an_agent=PODS, tls=False,
        peer=f"kea-dhcp4 2.2 memfile, persist, no LFC, {describe(found[0][1])}, udp, not synced")


def report(bench, rates, single, coalesced):
    """Figures and table. `rates`: ours one by one, ours coalesced, theirs."""
    middle = [median(values) for values in rates]
    bench.figures = {
        # The load is as agents report: what comes up while a report is not acknowledged goes into the
        # next.
        "ratio_kea": middle[1] / middle[2],
        "ratio_kea_one_a_message": middle[0] / middle[2],
        "ops_per_s": middle[0],
        "ops_per_s_coalesced": middle[1],
        "kea_leases_per_s": middle[2],
        "op_p50_ms": median([r["op_p50_ms"] for r in single]),
        "op_p99_ms": median([r["op_p99_ms"] for r in single]),
        "server_us_per_op": median([r["server_us_per_op"] for r in single]),
        "server_us_per_op_coalesced": median([r["server_us_per_op"] for r in coalesced]),
    }
    bench.row("durable operations over Kea's leases", f"{bench.figures['ratio_kea']:.2f}", ">= 5",
              f"as agents report: up to {COALESCED_PODS} operations a message")
    bench.row("the same, one operation a message",
              f"{bench.figures['ratio_kea_one_a_message']:.2f}", ">= 3")
    for what, values in zip(("operations/s, one a message", "operations/s, coalesced",
                             "Kea's leases/s"), rates):
        bench.row(what, f"{median(values):.0f}", "",
                  f"{min(values):.0f} to {max(values):.0f}, spread {100 * spread(values):.0f} %")
    bench.row("an operation's time, p50 and p99, ms",
              f"{bench.figures['op_p50_ms']:.0f}, {bench.figures['op_p99_ms']:.0f}")
    bench.row("server's CPU an operation, us", f"{bench.figures['server_us_per_op']:.0f}", "",
              f"coalesced {bench.figures['server_us_per_op_coalesced']:.0f}")


if __name__ == "__main__":
    main("ipam_commit", run)
