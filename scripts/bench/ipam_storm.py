"""7,500 agents connect and each obtains 27 addresses: spread as agents are, and all at once."""

from fleet import ADDRESSES_A_NODE, AGENTS, Server, Swarm
from harness import Failure, cpu_seconds, main, median, memory_kib

ROUNDS = 3
# As `connect_jitter` spreads the first attempts of agents that start in one moment.
SPREAD_S = 5


def storm(bench, agents, spread_s, name):
    server = Server(bench, name)
    server.start()
    result = Swarm(bench, server, "storm", agents=agents, addresses=ADDRESSES_A_NODE,
                   spread=spread_s).result()
    result["server_cpu_s"] = cpu_seconds(server.pid)
    result["peak_mib"] = memory_kib(server.pid, "VmHWM") / 1024
    result["rss_mib"] = memory_kib(server.pid, "VmRSS") / 1024
    status = server.ask("status")
    want = agents * ADDRESSES_A_NODE
    if status["addresses_attached"] != want:
        raise Failure(f"{status['addresses_attached']} addresses are attached, not {want}")
    server.stop()
    return result


def run(bench):
    agents = 300 if bench.quick else AGENTS
    count = 1 if bench.quick else ROUNDS
    rounds, at_once = [], []
    for i in range(count):
        rounds.append(storm(bench, agents, SPREAD_S, f"spread{i}"))
        at_once.append(storm(bench, agents, 0, f"at-once{i}"))

    def middle(key, runs=rounds):
        return median([r[key] for r in runs])

    def note(key, runs=rounds):
        return f"{min(r[key] for r in runs):.2f} to {max(r[key] for r in runs):.2f}"

    everything = rounds + at_once
    bench.figures = {
        "seconds": middle("seconds"),
        "timeouts": sum(r["timeouts"] for r in everything),
        "rss_mib": max(r["peak_mib"] for r in everything),
        "p99_last100_s": middle("p99_last100_s"),
        "p50_s": middle("p50_s"),
        "p99_s": middle("p99_s"),
        "at_once_seconds": middle("seconds", at_once),
        "at_once_p99_last100_s": middle("p99_last100_s", at_once),
        "server_cpu_s": middle("server_cpu_s"),
        "swarm_cpu_s": middle("swarm_cpu_s"),
        "start_lag_s": max(r["start_lag_s"] for r in everything),
    }
    bench.context.update(n=count, agents=agents, addresses=agents * ADDRESSES_A_NODE,
                         generator="1 process, 1 connection an agent", tls=False,
                         spread_s=SPREAD_S)
    bench.row(f"{agents} agents x {ADDRESSES_A_NODE}: all acknowledged, s",
              f"{middle('seconds'):.2f}", "<= 15",
              f"{note('seconds')}; first attempts spread over {SPREAD_S} s")
    bench.row("the same, all first attempts due at once, s",
              f"{middle('seconds', at_once):.2f}", "<= 15", note("seconds", at_once))
    bench.row("agents that timed out (20 s)", bench.figures["timeouts"], "0")
    bench.row("server's peak memory, MiB", f"{bench.figures['rss_mib']:.0f}", "<= 450",
              f"{middle('rss_mib'):.0f} at the end")
    bench.row("99th percentile of the last hundred, s", f"{middle('p99_last100_s'):.2f}", "<= 2",
              note("p99_last100_s"))
    bench.row("the same, all at once, s", f"{middle('p99_last100_s', at_once):.2f}", "",
              note("p99_last100_s", at_once))
    bench.row("an agent's time, median, s", f"{middle('p50_s'):.2f}", "", note("p50_s"))
    bench.row("CPU: server, generator, s",
              f"{middle('server_cpu_s'):.1f}, {middle('swarm_cpu_s'):.1f}", "",
              "on the same CPUs")
    bench.row("first attempts begun late by, s", f"{bench.figures['start_lag_s']:.2f}", "",
              "the generator takes this long to open them when all are due at once")


if __name__ == "__main__":
    main("ipam_storm", run)
