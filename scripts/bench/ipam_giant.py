"""18,000 agents hold 1,000,000 addresses: until all are acknowledged, after `kill -9` until the server
serves again, and what an operation costs with so many addresses over what it costs with 202,500.

The agents live in two processes, since one may have 20,000 files open here. The server has one for
each of them: where that leaves room for fewer than 18,000, there are as many as fit, and each has
more addresses.
"""

import resource

from fleet import Server, Swarm, count_lost
from harness import Failure, cpu_seconds, main, median, memory_kib, spread
from ipam_scale import measure

AGENTS = 18_000
ADDRESSES = 1_000_000
FILES_FOR_AGENTS = 0.92  # The part of its files that the server has for agents.
GENERATORS = 2
POOLS = ("10.16.0.0/12",)
SIZES = (202_500, 1_000_000)


def agents_that_fit():
    """An even number."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(AGENTS, int(files * FILES_FOR_AGENTS) // 2 * 2)


def start_swarms(bench, server, agents, addresses, in_use):
    """The generators, begun at once; each has its own part of the nodes, and what of the processors
    the server leaves, which would run on a machine that is not the agents'."""
    part = agents // GENERATORS
    return [Swarm(bench, server, "recover", agents=part, first=i * part, addresses=addresses,
                  assign=in_use // GENERATORS, coalesce=True, deadline=600, agent_timeout=120,
                  apart=True)
            for i in range(GENERATORS)]


def crash(bench, server, swarms):
    """Kills the server and starts it anew; seconds until it serves, and until all agents are synced,
    and how much of what was acknowledged it or its agents do not know."""
    server.kill()
    copy = server.copy_store("copy")
    files = []
    for number, swarm in enumerate(swarms):
        swarm.tell("killed")
        files.append(bench.path(f"holdings{number}"))
        swarm.tell(f"holdings {files[-1]}")
        swarm.event("written")
    serving = server.start()
    for swarm in swarms:
        swarm.tell("wait")
    synced = [swarm.event("synced") for swarm in swarms]
    resync = max(each["synced_unix"] for each in synced) - server.executed
    lost = sum(each["violations"] for each in synced)
    copy.start()
    listed = copy.ask("ip", "list")
    lost += sum(count_lost(each, listed) for each in files)
    copy.stop()
    return serving, resync, lost


def run(bench):
    agents = 400 if bench.quick else agents_that_fit()
    each = 56 if bench.quick else -(-ADDRESSES // agents)
    in_use = agents * 10
    want = agents * each
    server = Server(bench, addresses=each, pools=POOLS)
    server.start()
    swarms = start_swarms(bench, server, agents, each, in_use)
    for swarm in swarms:
        swarm.event("ready")
    peak = memory_kib(server.pid, "VmHWM") / 1024
    cpu = cpu_seconds(server.pid)
    status = server.ask("status")
    if status["addresses_attached"] != want:
        raise Failure(f"{status['addresses_attached']} addresses are attached, not {want}")
    serving, resync, lost = crash(bench, server, swarms)
    results = [swarm.result() for swarm in swarms]
    server.stop()
    small, large = measure(bench, (2_000, 8_000) if bench.quick else SIZES)["sizes"]
    grown = [median(large[key]) / median(small[key]) for key in ("cpu_us", "wall_us")]

    storm = max(result["seconds"] for result in results)
    bench.figures = {"storm_s": storm, "recover_s": serving, "growth": max(grown),
                     "growth_cpu": grown[0], "growth_wall": grown[1], "resync_s": resync,
                     "lost": lost, "timeouts": sum(result["timeouts"] for result in results),
                     "p99_s": max(result["p99_s"] for result in results), "rss_mib": peak,
                     "server_cpu_s": cpu}
    bench.row(f"{agents} agents x {each}: all acknowledged, s", f"{storm:.2f}", "<= 60",
              f"an agent's p99 {bench.figures['p99_s']:.2f}; CPU of the server {cpu:.1f} s, "
              f"{in_use} assignments included")
    bench.row("exec to serving after kill -9, s", f"{serving:.2f}", "<= 5")
    bench.row("exec to all agents synced, s", f"{resync:.2f}")
    bench.row("acknowledged, and lost", lost, "0")
    bench.row("server's peak memory, MiB", f"{peak:.0f}")
    bench.row("cost of an operation, over that with 202,500", f"{max(grown):.2f}", "<= 1.3",
              f"CPU {grown[0]:.2f}, spread {spread(large['cpu_us']):.2f}; wall {grown[1]:.2f}")
    bench.row("agents", agents, AGENTS, "one file of the server's for each")
    bench.context.update(n=1, agents=agents, addresses=want, in_use=in_use, tls=False,
                         generator=f"{GENERATORS} processes, 1 connection an agent")


if __name__ == "__main__":
    main("ipam_giant", run)
