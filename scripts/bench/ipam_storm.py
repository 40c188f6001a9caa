"""7,500 agents connect at once and each obtains 27 addresses: without TLS, where the time is the
server's, and once over mutual TLS, whose memory counts."""

from fleet import ADDRESSES_A_NODE, AGENTS, Server, Swarm, agents_tls, make_certificates
from harness import Failure, cpu_seconds, main, median, memory_kib

ROUNDS = 3


def storm(bench, agents, name, certificates=None):
    server = Server(bench, name, certificates=certificates)
    server.start()
    result = Swarm(bench, server, "storm", agents=agents, addresses=ADDRESSES_A_NODE,
                   **agents_tls(certificates)).result()
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
    rounds = [storm(bench, agents, f"server{i}") for i in range(1 if bench.quick else ROUNDS)]
    secure = storm(bench, agents, "secure", make_certificates(bench, agents))

    def middle(key):
        return median([r[key] for r in rounds])

    def note(key):
        return f"{min(r[key] for r in rounds):.2f} to {max(r[key] for r in rounds):.2f}"

    bench.figures = {
        "seconds": middle("seconds"),
        "timeouts": sum(r["timeouts"] for r in rounds),
        "rss_mib": secure["peak_mib"],
        "plain_rss_mib": max(r["peak_mib"] for r in rounds),
        "tls_seconds": secure["seconds"],
        "p99_last100_s": middle("p99_last100_s"),
        "p50_s": middle("p50_s"),
        "p99_s": middle("p99_s"),
        "server_cpu_s": middle("server_cpu_s"),
        "swarm_cpu_s": middle("swarm_cpu_s"),
        "start_lag_s": max(r["start_lag_s"] for r in rounds),
    }
    bench.context.update(n=len(rounds), agents=agents, addresses=agents * ADDRESSES_A_NODE,
                         generator="1 process, 1 connection an agent",
                         tls="rss_mib, tls_seconds", spread_s=0)
    bench.row(f"{agents} agents x {ADDRESSES_A_NODE}: all acknowledged, s",
              f"{middle('seconds'):.2f}", "<= 15", note("seconds"))
    bench.row("agents that timed out (20 s)", bench.figures["timeouts"], "0")
    bench.row("server's peak memory over mutual TLS, MiB", f"{bench.figures['rss_mib']:.0f}", "<= 300",
              f"n = 1, {secure['rss_mib']:.0f} at the end; {secure['seconds']:.1f} s")
    bench.row("  without TLS", f"{bench.figures['plain_rss_mib']:.0f}", "",
              f"{middle('rss_mib'):.0f} at the end")
    bench.row("99th percentile of the last hundred, s", f"{middle('p99_last100_s'):.2f}", "<= 2",
              note("p99_last100_s"))
    bench.row("an agent's time, median, s", f"{middle('p50_s'):.2f}", "", note("p50_s"))
    bench.row("CPU: server, generator, s",
              f"{middle('server_cpu_s'):.1f}, {middle('swarm_cpu_s'):.1f}", "",
              "on the same CPUs")
    bench.row("first attempts begun late by, s", f"{bench.figures['start_lag_s']:.2f}", "",
              "all are due at once; the generator takes this long to open them")


if __name__ == "__main__":
    main("ipam_storm", run)
