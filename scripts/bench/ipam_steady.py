"""7,500 agents that have nothing to say: what the server uses for them, over mutual TLS and without."""

import time

from fleet import ADDRESSES_A_NODE, AGENTS, Server, Swarm, agents_tls, make_certificates
from harness import Failure, cpu_seconds, main, memory_kib

SETTLE_S = 5


def watch(bench, agents, seconds, name, certificates=None):
    """Cores, and KiB of resident memory, of a server whose agents are idle."""
    server = Server(bench, name, certificates=certificates)
    server.start()
    swarm = Swarm(bench, server, "steady", agents=agents, addresses=ADDRESSES_A_NODE,
                  seconds=seconds + SETTLE_S + 5, **agents_tls(certificates))
    swarm.event("ready")
    time.sleep(SETTLE_S)
    before, started = cpu_seconds(server.pid), time.monotonic()
    time.sleep(seconds)
    used, took = cpu_seconds(server.pid) - before, time.monotonic() - started
    rss = memory_kib(server.pid, "VmRSS")
    status = server.ask("status")
    if status["nodes_connected"] != agents:
        raise Failure(f"{status['nodes_connected']} of {agents} agents are connected")
    result = swarm.result()
    if result["reconnects"]:
        raise Failure(f"{result['reconnects']} streams were opened again: that is not idle")
    server.stop()
    return used / took, rss


def run(bench):
    agents = 300 if bench.quick else AGENTS
    seconds = 5 if bench.quick else 60
    plain_cores, plain_rss = watch(bench, agents, seconds, "plain")
    cores, rss = watch(bench, agents, seconds, "secure", make_certificates(bench, agents))
    bench.figures = {"cores": cores, "rss_kib_per_agent": rss / agents, "rss_mib": rss / 1024,
                     "plain_cores": plain_cores, "plain_rss_kib_per_agent": plain_rss / agents}
    bench.context.update(n=1, agents=agents, seconds=seconds, keepalive_s=30, tls=True)
    bench.row(f"cores for {agents} idle agents over mutual TLS", f"{cores:.4f}", "<= 0.2",
              f"in {seconds} s; {plain_cores:.4f} without TLS")
    bench.row("resident memory an agent, KiB", f"{rss / agents:.1f}", "<= 24",
              f"{rss / 1024:.0f} MiB in all, {ADDRESSES_A_NODE} addresses each; "
              f"{plain_rss / agents:.1f} without TLS")


if __name__ == "__main__":
    main("ipam_steady", run)
