"""Alerts of policy: bandwidth budgets, isolation, shares, and agents that refuse."""

import socket
import subprocess
import sys
import threading

from case import case
from faults import Full
from ha_lab import die_with_parent, eventually, sh

OUTSIDE = "198.51.100.10"  # A host of the Internet.
PORT = 8080
PEER = "10.32.0.1"  # An address of another cluster.
CAPACITY = 8_000_000  # Bits a second of the budget.
SHARE = 16  # Connections that a pod may have.

POLICY = [
    ("ClusterNetwork", "main", {"cluster": ["10.64.0.0/24", "10.99.0.0/24"],
                                "peerSpoke": ["10.32.0.0/11"]}),
    ("DestinationGroup", "datasets", {"cidrs": [f"{OUTSIDE}/32"]}),
    ("EgressPolicy", "default", {"destinationCIDRs": ["0.0.0.0/0"],
                                 "excludedCIDRs": ["10.0.0.0/8"], "mode": "Masquerade",
                                 "priority": 100}),
    ("BandwidthBudget", "datasets", {
        "destinationGroup": "datasets", "direction": "Ingress", "capacity": f"{CAPACITY}bit",
        "grant": {"duration": "10s", "refresh": "1s"},
        "onLoss": {"hold": "5s", "halfLife": "2s", "floor": {"share": "5%", "nodes": 8}},
        "mode": "Enforce"}),
]

# One TCP flow alone backs off too far at each packet that is lost.
READ = f"""
import socket, selectors
ready = selectors.DefaultSelector()
for _ in range(8):
    ready.register(socket.create_connection(("{OUTSIDE}", {PORT})), selectors.EVENT_READ)
while True:
    for key, _ in ready.select():
        key.fileobj.recv(65536)
"""

CONNECT = f"""
import socket, time
ports = range(1024, 9216)
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
while True:
    for port in ports:
        sockets[port % 64].sendto(b"x", ("{OUTSIDE}", port))
    time.sleep(0.2)
"""


def open_outside():
    """A host of the Internet, which sends to whoever connects for as long as he listens."""
    sh("ip", "address", "add", f"{OUTSIDE}/32", "dev", "br0")
    listener = socket.create_server((OUTSIDE, PORT))

    def send(connection):
        try:
            while True:
                connection.sendall(bytes(65536))
        except OSError:
            connection.close()

    def serve():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=send, args=(connection,), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()


def in_pod(pod, *words):
    """Starts a program in a pod."""
    return subprocess.Popen(["ip", "netns", "exec", pod, *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            preexec_fn=die_with_parent)


def pod_that_runs(node, *words):
    """A case's story: a new pod of the node runs a program until the condition is to end."""
    node.add()
    pod = list(node.pods)[-1]
    program = in_pod(pod, *words)
    yield
    program.kill()
    program.wait()
    node.delete(pod)


@case("SpokePolicyRefused")
def policy_refused(lab):
    """The disk of an agent is full, so that it cannot keep the policy that comes; room is made, and the next
    policy comes."""
    full = Full(lab.policed_nodes[1])
    full.begin()
    lab.policed.apply(("Team", "one", {"namespaces": ["one"]}))
    yield
    full.end()
    lab.policed.apply(("Team", "one", {"namespaces": ["one", "two"]}))


@case("SpokeTrafficLeaks")
def traffic_leaks(lab):
    """A pod pings an address of a peer spoke, all the time; then it does not."""
    return pod_that_runs(lab.policed_nodes[0], "ping", "-i", "0.2", PEER)


@case("SpokePodOverShare")
def pod_over_share(lab):
    """A pod begins thousands of connections, where it may have sixteen; then it is deleted."""
    return pod_that_runs(lab.policed_nodes[0], sys.executable, "-c", CONNECT)


@case("SpokeShaperMissing")
def shaper_missing(lab):
    """The name of the device for the packets of limited pods is another device's second name; it is taken
    from that."""
    node = lab.policed_nodes[0]
    node.add()
    pod = f"{node.name}-pod-{node.made}"
    eventually("its pods are limited", lambda: "spoke-in" in node.run("ip", "-o", "link"), 30)
    node.run("ip", "link", "delete", "spoke-in")
    node.run("ip", "link", "property", "add", "dev", "eth0", "altname", "spoke-in")
    yield
    node.run("ip", "link", "property", "del", "dev", "eth0", "altname", "spoke-in")
    node.delete(pod)


@case("SpokeBudgetSaturated")
def budget_saturated(lab):
    """Pods of both nodes read from a budget's destinations as fast as they can; then they are deleted."""
    stories = [pod_that_runs(node, sys.executable, "-c", READ) for node in lab.policed_nodes]
    for story in stories:
        next(story)
    yield
    for story in stories:
        next(story, None)


@case("SpokeBudgetLearning", "SpokeBudgetUnknown")
def budget_unknown(lab):
    """The server is killed with the agent of a node that has a grant, and comes back alone; the agent comes
    back."""
    node = lab.policed_nodes[1]
    node.kill()
    lab.policed.restart()
    yield
    node.start()
