"""Measures how long 7,500 nodes that join at once keep the taint that the kubelet gave them once they are
fit, and how much is written to the Kubernetes API then and later. The API server is played, over HTTP, with
a latency of 10 ms a call and 200 changes at once, as kube-apiserver's default is; the part of the server
that writes is the real one. Times to hold a verdict are shortened, so that nodes change within seconds.

Then a real server lets as many simulated agents probe each other, with the settings that it has by default; the
NIC of one dies, and it is measured how long it takes until that node is suspected, and who else is. Then 500 of
them probe each other on an operator's word.

Last, a real agent with 110 pods makes all its checks and probes its peers, which are addresses of the namespace at
the other end of its wire: the CPU time of all its threads but that of its loop, which attaches, repairs and counts
and makes no check, and what passes its NIC. The loop's own time is beside it."""

import json
import os
import subprocess
import time

from fleet import Server, Swarm
from harness import BIN, Failure, cpu_seconds, cpu_seconds_exact, main, median, wait_until
from path_node import AgentNode, Inside
from path_rig import enter_private, ip, make_wire, sh

NODES = 7500
CHECKED = 500
# Long enough for all to connect and for two rounds of probes.
DIES_AFTER_S = 75
PODS = 110
PEERS = 20
HUB = "10.99.0.9"
CHECKING_S = 240  # Each check is made several times; so are probes of full size.


def find_dead_nic(bench, nodes):
    """Returns the seconds until a dead NIC is found, how many others are suspected, the seconds of a check of many nodes,
    the server's cores while nodes probe, and the milliseconds that spokectl status takes, its start included."""
    dead = nodes // 3
    server = Server(bench)
    server.start()
    began = time.monotonic()
    swarm = Swarm(bench, server, "steady", agents=nodes, seconds=3600, dead_nic=dead, dead_nic_after=DIES_AFTER_S)
    swarm.event("ready")
    if time.monotonic() - began > DIES_AFTER_S - 25:
        raise Failure("connecting took so long that no round of probes was well")
    checked = min(nodes, CHECKED)
    names = [f"sim-{number:05}" for number in range(checked)]
    asked = time.monotonic()
    found = server.ask("check", *names)
    check_s = time.monotonic() - asked
    if found["small"]["probes"] != checked * (checked - 1) or found["pairs_lost"]:
        raise Failure(f"the check counted {found['small']} and {found['pairs_lost']} pairs")
    time.sleep(max(0.0, began + DIES_AFTER_S - time.monotonic() - 20))
    took = []
    for _ in range(9):
        asked = time.monotonic()
        server.ask("status", codes=(0, 1))
        took.append((time.monotonic() - asked) * 1000)
    before, at = cpu_seconds(server.pid), time.monotonic()
    time.sleep(max(0.0, began + DIES_AFTER_S - time.monotonic()))
    cores = (cpu_seconds(server.pid) - before) / (time.monotonic() - at)
    died = time.monotonic()

    def suspects():
        return [one["node"] for one in server.ask("reachability", "show", codes=(0, 1))["suspects"]]

    if suspects():
        raise Failure(f"{suspects()} are suspected, and nothing is lost")
    wait_until("the dead NIC to be found", 120, suspects, 0.5)
    find_s = time.monotonic() - died
    time.sleep(1 if bench.quick else 60)
    accused = [node for node in suspects() if node != f"sim-{dead:05}"]
    bench.stop(swarm.process)
    server.stop()
    return find_s, len(accused), check_s, cores, median(took)


def nic_bytes(namespace):
    """What has passed a node's NIC, both ways."""
    link = json.loads(sh("ip", "-n", namespace, "-s", "-j", "link", "show", "eth0"))[0]
    return sum(link["stats64"][way]["bytes"] for way in ("rx", "tx"))


def loop_seconds(pid):
    """The CPU time of a process's first thread, which is the one of an agent's loop."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as text:
        return int(text.read().split()[0]) / 1e9


def watch_agent(bench):
    """The number of pods; the shares of a core of an agent's threads that check and probe, gRPC's among them, and of its loop; the bits
    a second at its NIC; how its probes went."""
    pods, seconds = (5, 25) if bench.quick else (PODS, CHECKING_S)
    enter_private()
    make_wire("c")
    node = AgentNode(bench, "c-a", "a", pods + 2)
    node.attach(pods)
    # What a node connects to of the hub; nobody listens, and a refusal is an answer, too.
    node.apply("probes", f"""\
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {{name: main}}
spec:
  cluster: [10.16.0.0/12, 10.32.0.0/11, 10.250.0.0/16]
  hub: [{HUB}/32]
  probes: {{hub: ["{HUB}:443"]}}
""")
    with Inside(node.namespace):
        swarm = Swarm(bench, node.server, "steady", agents=PEERS, seconds=3600)
        swarm.event("ready")
    # What spoke-swarm's nodes say to be their NIC's addresses.
    ip("c-b", *(f"address add {address}/32 dev lo" for address in [HUB, *(f"100.64.0.{n}" for n in range(PEERS))]))
    time.sleep(1 if bench.quick else 45)
    pid = node.agent.pid
    used, loop, passed, began = cpu_seconds_exact(pid), loop_seconds(pid), nic_bytes("c-a"), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    loop = (loop_seconds(pid) - loop) / took
    checks = (cpu_seconds_exact(pid) - used) / took - loop
    bits = (nic_bytes("c-a") - passed) * 8 / took
    with Inside(node.namespace):
        probed = node.server.ask("reachability", "node", "c-a", codes=(0, 1))
    bench.stop(swarm.process)
    if not bench.quick and (probed["probes"] < 20 or probed["lost"]):
        raise Failure(f"{probed['lost']} of {probed['probes']} probes of a node without a fault were lost")
    return pods, checks, loop, bits, probed


def run(bench):
    nodes, seconds = (300, 5) if bench.quick else (NODES, 60)
    process = bench.start([os.path.join(BIN, "spoke-nodes-bench"), "--nodes", str(nodes), "--seconds", str(seconds)],
                          stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-nodes-bench ended with code {process.returncode}")
    measured = json.loads(text)
    if measured["left"] != 0:
        raise Failure(f"{measured['left']} nodes have kept their taint: {measured['problem']}")
    bench.figures = {key: measured[key] for key in
                     ("fit_s", "told_s", "writes_per_join", "api_writes_per_s", "most_writes_in_a_second")}
    bench.row(f"{nodes} nodes join at once: the last is lifted, s", f"{measured['fit_s']:.1f}", "<= 60",
              f"and has its condition after {measured['told_s']:.1f} s")
    bench.row("writes a node that joins", f"{measured['writes_per_join']:.2f}", "<= 2")
    bench.row("writes a second while nodes come and go", f"{measured['api_writes_per_s']:.1f}", "<= 20",
              f"at most {measured['most_writes_in_a_second']} in one second")
    find_s, accused, check_s, cores, status_ms = find_dead_nic(bench, nodes)
    bench.figures.update(find_s=find_s, accused=accused, check_s=check_s, probing_cores=cores,
                         status_ms=round(status_ms, 1))
    bench.row(f"a dead NIC among {nodes} is found, s", f"{find_s:.1f}", "<= 60")
    bench.row("others that are suspected meanwhile and a minute later", f"{accused}", "0")
    bench.row(f"{min(nodes, CHECKED)} nodes probe each other, s", f"{check_s:.1f}", "<= 30")
    bench.row("cores of the server while nodes probe each other", f"{cores:.3f}", "")
    bench.row("spokectl status, ms", f"{status_ms:.0f}", "<= 100", "from its start to its end, the median of 9")
    pods, checks, loop, bits, probed = watch_agent(bench)
    bench.figures.update(agent_cpu=round(checks, 5), agent_loop_cpu=round(loop, 5), agent_bits_per_s=round(bits))
    bench.row("an agent's checks and probes, cores", f"{checks:.4f}", "<= 0.003",
              f"all threads but its loop's, which took {loop:.4f} with {pods} pods")
    bench.row("and at its NIC, bit/s", f"{bits:.0f}", "<= 2000",
              f"{probed['probes']} probes of late, {probed['lost']} lost")
    bench.context.update(n=1, nodes=nodes, seconds=seconds, refused=measured["refused"])


if __name__ == "__main__":
    main("nodes", run)
