"""Three servers on three members of etcd, 7,500 agents over mutual TLS: what it costs, and what happens
when a server or a member is killed or stands still.

An interruption is measured from the signal to the first write of any agent that is acknowledged and was
sent after it; the figure is the 99th percentile over the repetitions. Beside it, over all agents and
repetitions: how long what an agent had to say waited (`waits`), from the signal on or since it came
up; and until each agent was back (`agents`), with something to say or without. When a member of etcd
is killed agents stay connected, so there the figure is over the agents: the longest wait of each.

What agents were told of every address goes to the judgement in tests/ha/history, with readings of what
each leader has left in etcd.
"""

import math
import os
import shutil
import signal
import time

from etcd import ELECTION_MS, HEARTBEAT_MS, MEMBERS, Etcd
from fleet import ADDRESSES_A_NODE, AGENTS, Server, Swarm, agents_tls, make_certificates
from harness import Failure, cpu_seconds_exact, low_port, main, median, memory_kib, say, wait_until

SERVERS = 3
LEASE_S = 2
# How long a member's loss is watched, and a server that stands still.
WATCH_S = 5
STOPPED_S = 10
# How long standbys have been connected to a leader, by whose end they notice that it has gone; for a
# second or two after it took over, its loss takes the lease's time.
SETTLE_S = 3
# A deposed leader that goes on has to notice and end.
DEPOSED_S = 20


class Size:
    """How much is measured. SPOKE_HA_REPEATS: repetitions of each disturbance, which take hours at 100; 0: none."""

    def __init__(self, quick):
        self.agents = 100 if quick else AGENTS
        self.in_use = 400 if quick else 100_000
        self.repeats = int(os.environ.get("SPOKE_HA_REPEATS", "2" if quick else "100"))
        self.pods_a_second = 50 if quick else 200
        self.storms = 1 if quick else 3
        self.steady_s = 5 if quick else 60
        self.lends_a_second = 100 if quick else 2000
        self.lending_s = 10 if quick else 600


class Cluster:
    """Members of etcd and servers on it, of which one leads."""

    def __init__(self, bench, name, certificates=None):
        self.bench = bench
        self.etcd = Etcd(bench, f"{name}.etcd")
        self.servers = []
        for i in range(SERVERS):
            os.makedirs(self.files(f"{name}{i}"))
            store = (f"{{etcd: {{endpoints: [{', '.join(self.etcd.endpoints)}], name: {name}{i}, "
                     f"lease: {LEASE_S}s, directory: {self.files(f'{name}{i}')}, "
                     f'listen_standbys: "127.0.0.1:{low_port()}"}}}}')
            self.servers.append(Server(bench, f"{name}{i}", store=store, certificates=certificates))
        self.servers[0].start()
        for server in self.servers[1:]:
            # They sign what nodes keep with one key.
            shutil.copy(os.path.join(self.files(self.servers[0].name), "store.key"),
                        self.files(server.name))
            self.launch_standby(server)

    def files(self, name):
        return self.bench.path(f"{name}.files")

    def launch_standby(self, server):
        """Until it stands by, and in case it ends instead."""
        log = self.bench.path(f"{server.name}.log")
        begin = os.path.getsize(log) if os.path.exists(log) else 0
        server.launch()

        def stands_by():
            if server.process.poll() is not None:
                raise Failure(f"{server.name} ended with code {server.process.returncode}")
            with open(log, "rb") as lines:
                lines.seek(begin)
                return b"standing_by" in lines.read()

        wait_until(f"{server.name} stands by", 60, stands_by, 0.1)

    def leader(self):
        """The server that leads, once one does."""
        def find():
            record = self.etcd.ctl("get", "/spoke/leader", "--print-value-only", fail=False)
            # The leader's name, and in a line of its own what standbys need.
            return record and [s for s in self.servers if s.name == record.split("\n")[0]]

        return wait_until("a server that leads", 60, find)[0]

    def stop(self):
        """Ends the standbys first, so that none takes over."""
        leader = self.leader()
        for server in [s for s in self.servers if s is not leader] + [leader]:
            self.bench.stop(server.process)
        self.etcd.stop()


def percentile(values, share):
    """The least value that so great a share of them does not exceed."""
    if not values:
        raise Failure("there is nothing to take a percentile of")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class Waits:
    """What was measured of one kind of disturbance."""

    def __init__(self, kind):
        self.kind = kind
        self.first = []    # Of each repetition: until any agent was answered.
        self.agents = []   # Of each agent in each: until it was.
        self.back = []     # Of each repetition: until the last agent was back.
        self.longest = []  # Of each agent in each: the longest that something new waited.

    def add(self, event):
        self.first.append(event["first_s"])
        self.agents += event["next_s"]
        self.back.append(max(event["next_s"]))
        self.longest += event["longest_s"]
        say(f"  {self.kind} {len(self.first)}: first {self.first[-1]:.3f} s, agents p99 "
            f"{percentile(event['next_s'], 0.99):.2f} s, {event['answered']} of {event['agents']}")


def strike(cluster, swarm, leader, how):
    """Sends the leader a signal, and waits until the next one has answered somebody."""
    swarm.tell(f"strike {leader.pid} {int(how)}")
    swarm.tell("await 0")
    swarm.event("answered")
    swarm.tell("read")
    if swarm.event("read")["records"] == 0:
        raise Failure("the leader has left no record of any node")
    if cluster.leader() is leader:
        raise Failure(f"{leader.name} still leads")


def start_again(cluster, server):
    """It stands by from now on."""
    cluster.bench.stop(server.process)
    cluster.launch_standby(server)
    time.sleep(SETTLE_S)


def kill_leaders(cluster, swarm, repeats):
    waits = Waits("kill")
    for _ in range(repeats):
        leader = cluster.leader()
        strike(cluster, swarm, leader, signal.SIGKILL)
        swarm.tell("await 1")
        waits.add(swarm.event("answered"))
        start_again(cluster, leader)
    return waits


def pause_leaders(cluster, swarm, repeats):
    """Agents with nothing to say stay with the server that stands still until it goes on and ends."""
    waits = Waits("pause")
    for _ in range(repeats):
        leader = cluster.leader()
        strike(cluster, swarm, leader, signal.SIGSTOP)
        swarm.tell(f"watch {STOPPED_S}")
        waits.add(swarm.event("answered"))
        leader.process.send_signal(signal.SIGCONT)
        wait_until(f"the end of {leader.name}, which was deposed while it stood still", DEPOSED_S,
                   lambda server=leader: server.process.poll() is not None)
        if leader.process.returncode == 0:
            raise Failure(f"{leader.name} was deposed, and ended as though it had been asked to")
        swarm.tell("await 1")
        swarm.event("answered")
        start_again(cluster, leader)
    return waits


def kill_members(cluster, swarm, repeats):
    """etcd's leader and another member in turn."""
    waits = Waits("member")
    for i in range(repeats):
        member = (cluster.etcd.leader() + i % 2) % MEMBERS
        server = cluster.leader()
        swarm.tell(f"strike {cluster.etcd.processes[member].pid} {int(signal.SIGKILL)}")
        swarm.tell(f"watch {WATCH_S}")
        waits.add(swarm.event("answered"))
        if cluster.leader() is not server:
            raise Failure("a member of etcd that was killed cost the server its leadership")
        cluster.etcd.forget(member)
        cluster.etcd.start(member)
        cluster.etcd.await_health()
    return waits


def judge(bench, result):
    """Counts what the history shows; other complaints of agents are failures."""
    known = {"twice", "lost", "taken"}  # The history has these, one by one.
    others = {kind: n for kind, n in result["violations_by_kind"].items() if kind not in known}
    if others:
        raise Failure(f"agents complain: {others}: {result['first_violations'][:3]}")
    if result["holds"] == 0 or result["uses"] == 0:
        raise Failure("the history is empty: nothing was judged")
    for text in result["first_faults"]:
        say(f"  {text}")
    bench.figures["doubled"] = bench.figures.get("doubled", 0) + result["doubled"]
    bench.figures["lost"] = bench.figures.get("lost", 0) + result["lost"]
    bench.figures["adds_failed"] = (bench.figures.get("adds_failed", 0)
                                    + result["pods_without_address"])


def measure_disturbances(bench, size, certificates):
    cluster = Cluster(bench, "s", certificates)
    swarm = Swarm(bench, cluster.servers, "ha", agents=size.agents, addresses=ADDRESSES_A_NODE,
                  assign=size.in_use, deadline=300, etcd=",".join(cluster.etcd.endpoints),
                  **agents_tls(certificates))
    swarm.event("ready")
    swarm.tell(f"pods {size.pods_a_second}")
    time.sleep(2)
    kills = kill_leaders(cluster, swarm, size.repeats)
    pauses = pause_leaders(cluster, swarm, size.repeats)
    members = kill_members(cluster, swarm, size.repeats)
    swarm.tell("pods 0")
    result = swarm.verdict()
    judge(bench, result)
    bench.context["etcd"] = cluster.etcd.version()
    cluster.stop()
    bench.figures.update(
        kill_p99_s=percentile(kills.first, 0.99), pause_p99_s=percentile(pauses.first, 0.99),
        member_p99_s=percentile(members.longest, 0.99), tls_reconnect_s=median(kills.back),
        member_p50_s=percentile(members.longest, 0.5), member_max_s=max(members.longest))
    for waits in (kills, pauses):
        for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            bench.figures[f"{waits.kind}_waits_{name}_s"] = percentile(waits.longest, share)
            bench.figures[f"{waits.kind}_agents_{name}_s"] = percentile(waits.agents, share)
    for what, key, target, note in (
            ("leader killed, any agent's next write, p99, s", "kill_p99_s", "<= 1.0", kills),
            ("leader stopped, the same, s", "pause_p99_s", "<= 3.5", pauses)):
        bench.row(what, f"{bench.figures[key]:.3f}", target,
                  f"n = {size.repeats}, median {median(note.first):.3f}")
        for about, values in (("who had something to say", note.longest), ("all", note.agents)):
            bench.row(f"  agents, {about}: p50, p99, most, s", ", ".join(
                f"{percentile(values, share):.2f}" for share in (0.5, 0.99, 1.0)))
    bench.row("member of etcd killed, the longest a write of an agent waited, p99, s",
              f"{bench.figures['member_p99_s']:.3f}", "<= 1.5",
              f"n = {size.repeats}, etcd's leader every other time; median "
              f"{bench.figures['member_p50_s']:.3f}, most {bench.figures['member_max_s']:.3f}")
    bench.row(f"killed until all {size.agents} agents are back, s",
              f"{bench.figures['tls_reconnect_s']:.2f}", "<= 20", "median")
    bench.row("acknowledged, and lost", bench.figures["lost"], "0",
              f"{result['uses']} assignments, {result['compared']} addresses in "
              f"{result['readings']} readings")
    bench.row("addresses doubled", bench.figures["doubled"], "0",
              f"{result['holds']} holds, {result['moves']} moves")
    bench.row("pods that found no address on their node", bench.figures["adds_failed"], "0",
              f"of {result['pods']}")


def measure_storms(bench, size, certificates):
    def storm(name, files):
        cluster = Cluster(bench, name, files)
        result = Swarm(bench, cluster.servers, "storm", agents=size.agents,
                       addresses=ADDRESSES_A_NODE, **agents_tls(files)).result()
        if result["timeouts"]:
            raise Failure(f"{result['timeouts']} agents timed out")
        result["server_mib"] = memory_kib(cluster.servers[0].pid, "VmHWM") / 1024
        cluster.stop()
        return result

    plain = [storm(f"p{i}.", None) for i in range(size.storms)]
    secure = storm("t.", certificates)
    bench.figures["storm_s"] = median([r["seconds"] for r in plain])
    bench.figures["storm_tls_s"] = secure["seconds"]
    bench.row(f"{size.agents} agents x {ADDRESSES_A_NODE} on three members, s",
              f"{bench.figures['storm_s']:.2f}", "<= 25",
              f"n = {size.storms}; server's peak {plain[0]['server_mib']:.0f} MiB")
    bench.row("  the same over mutual TLS, s", f"{secure['seconds']:.2f}", "",
              f"n = 1; server's peak {secure['server_mib']:.0f} MiB")


def measure_tls(bench, size, certificates):
    """Two servers side by side, with all their agents idle."""
    servers, swarms = [], []
    for name, files in (("plain", None), ("secure", certificates)):
        servers.append(Server(bench, name, certificates=files))
        servers[-1].start()
        swarms.append(Swarm(bench, servers[-1], "steady", agents=size.agents,
                            addresses=ADDRESSES_A_NODE, seconds=size.steady_s + 60,
                            **agents_tls(files)))
        swarms[-1].event("ready")
    time.sleep(5)
    before = [cpu_seconds_exact(server.pid) for server in servers]
    time.sleep(size.steady_s)
    used = [cpu_seconds_exact(server.pid) - then for server, then in zip(servers, before)]
    for server in servers:
        connected = server.ask("status")["nodes_connected"]
        if connected != size.agents:
            raise Failure(f"{connected} of {size.agents} agents are connected to {server.name}")
    for server, swarm in zip(servers, swarms):
        bench.stop(swarm.process)
        server.stop()
    bench.figures["tls_cpu_ratio"] = used[1] / used[0]
    bench.row(f"CPU for {size.agents} idle agents, mutual TLS over plain",
              f"{bench.figures['tls_cpu_ratio']:.3f}", "<= 1.15",
              f"{used[1]:.3f} s over {used[0]:.3f} s, side by side for {size.steady_s} s")


def measure_database(bench, size, certificates):
    cluster = Cluster(bench, "d.", certificates)
    swarm = Swarm(bench, cluster.servers, "ha", agents=size.agents, addresses=ADDRESSES_A_NODE,
                  deadline=300, **agents_tls(certificates))
    swarm.event("ready")
    swarm.tell(f"pods {size.lends_a_second}")
    end = time.monotonic() + size.lending_s
    sizes = []
    while time.monotonic() < end:
        time.sleep(min(5, size.lending_s / 5))
        sizes.append(cluster.etcd.database_mib())
    swarm.tell("pods 0")
    result = swarm.verdict()
    cluster.stop()
    judge(bench, result)
    lent = result["uses"] / size.lending_s
    if lent < 0.95 * size.lends_a_second:
        raise Failure(f"{lent:.0f} assignments a second were acknowledged, not {size.lends_a_second}: "
                      f"the database's size at that rate cannot be measured here")
    bench.figures["db_mib"] = max(sizes)
    bench.row(f"database after {size.lending_s} s at {size.lends_a_second} assignments a second, MiB",
              f"{max(sizes):.0f}", "<= 1024", f"the most; {sizes[-1]:.0f} at the end")


def run(bench):
    size = Size(bench.quick)
    bench.context.update(n=size.repeats, agents=size.agents, servers=SERVERS, members=MEMBERS,
                         heartbeat_ms=HEARTBEAT_MS, election_ms=ELECTION_MS, lease_s=LEASE_S,
                         pods_a_second=size.pods_a_second, in_use=size.in_use, tls=True,
                         certificates="one an agent, files on P-256")
    say(f"ha: etcd's heartbeat {HEARTBEAT_MS} ms, election {ELECTION_MS} ms; the leader's lease "
        f"{LEASE_S} s; {size.repeats} repetitions")
    certificates = make_certificates(bench, size.agents)
    if size.repeats:
        measure_disturbances(bench, size, certificates)
    measure_storms(bench, size, certificates)
    measure_tls(bench, size, certificates)
    measure_database(bench, size, certificates)


if __name__ == "__main__":
    main("ha", run)
