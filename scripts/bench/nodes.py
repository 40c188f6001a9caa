"""Measures how long 7,500 nodes that join at once keep the taint that the kubelet gave them once they are
fit, and how much is written to the Kubernetes API then and later. The API server is played, over HTTP, with
a latency of 10 ms a call and 200 changes at once, as kube-apiserver's default is; the part of the server
that writes is the real one. Times to hold a verdict are shortened, so that nodes change within seconds.

Then a real server lets as many simulated agents probe each other, with the settings that it has by default; the
NIC of one dies, and it is measured how long it takes until that node is suspected, and who else is. Then 500 of
them probe each other on an operator's word.

Last, a real agent with 110 pods makes all its checks and probes its peers, which are addresses of the namespace at
the other end of its wire: its whole CPU time, and what passes its NIC."""

import json
import os
import subprocess
import time

from fleet import Server, Swarm
from harness import BIN, Failure, cpu_seconds, main, median, wait_until
from path_node import AgentNode, Inside
from path_rig import NODE, enter_private, ip, make_wire, sh

NODES = 7500
CHECKED = 500
# Long enough for all to connect and for two rounds of probes.
DIES_AFTER_S = 75
PODS = 110
PEERS = 20
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


def watch_agent(bench):
    """The share of a core of an agent that checks and probes, the bits a second at its NIC, and the probes that
    were answered."""
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
  cluster: [10.0.0.0/8]
  hub: [{NODE["b"]}/32]
  probes: {{hub: ["{NODE["b"]}:443"]}}
""")
    with Inside(node.namespace):
        swarm = Swarm(bench, node.server, "steady", agents=PEERS, seconds=3600)
        swarm.event("ready")
        peers = [one["address"] for one in node.server.ask("ip", "list") if one["node"].startswith("sim-")]
    ip("c-b", *(f"address add {address}/32 dev lo" for address in peers))
    time.sleep(1 if bench.quick else 45)
    used, passed, began = cpu_seconds(node.agent.pid), nic_bytes("c-a"), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    share = (cpu_seconds(node.agent.pid) - used) / took
    bits = (nic_bytes("c-a") - passed) * 8 / took
    with Inside(node.namespace):
        probed = node.server.ask("reachability", "node", "c-a", codes=(0, 1))
    bench.stop(swarm.process)
    return share, bits, probed


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
    share, bits, probed = watch_agent(bench)
    bench.figures.update(agent_cpu=round(share, 5), agent_bits_per_s=round(bits))
    bench.row("an agent with 110 pods, checks and all, cores", f"{share:.4f}", "<= 0.003", "its whole CPU time")
    bench.row("and at its NIC, bit/s", f"{bits:.0f}", "<= 2000", f"{probed}")
    bench.context.update(n=1, nodes=nodes, seconds=seconds, refused=measured["refused"])


if __name__ == "__main__":
    main("nodes", run)
