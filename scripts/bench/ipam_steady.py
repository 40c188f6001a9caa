"""7,500 agents that have nothing to say: what the server uses for them."""

import time

from fleet import ADDRESSES_A_NODE, AGENTS, Server, Swarm
from harness import Failure, cpu_seconds, main, memory_kib

SETTLE_S = 5


def run(bench):
    agents = 300 if bench.quick else AGENTS
    seconds = 5 if bench.quick else 60
    server = Server(bench)
    server.start()
    swarm = Swarm(bench, server, "steady", agents=agents, addresses=ADDRESSES_A_NODE,
                  seconds=seconds + SETTLE_S + 5)
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
    bench.figures = {"cores": used / took, "rss_kib_per_agent": rss / agents, "rss_mib": rss / 1024}
    bench.context.update(n=1, agents=agents, seconds=round(took, 1), keepalive_s=30, tls=False)
    bench.row(f"cores for {agents} idle agents", f"{used / took:.4f}", "<= 0.2",
              f"{used:.2f} s of CPU in {took:.0f} s")
    bench.row("resident memory an agent, KiB", f"{rss / agents:.1f}", "<= 64",
              f"{rss / 1024:.0f} MiB in all, {ADDRESSES_A_NODE} addresses each")


if __name__ == "__main__":
    main("ipam_steady", run)
