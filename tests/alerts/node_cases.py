"""Alerts of what somebody else does to a node: to its firewall, and to its table of connections."""

import fcntl
import itertools
import socket
import struct
import subprocess
import threading

from case import case
from ha_lab import expect
from private_node import CLONE_NEWNET, LIBC, sh

IPTABLES_LOCK = "/run/xtables.lock"
PORT = b"\xa5\x5a"  # In the place of a port of a connection that is not made yet.
LAST = 0xC6130000  # 198.19.0.0; connections lead to addresses from there on.
# With these rules the kernel tracks what the node sends and receives.
TRACK = """table inet tracked {
  chain in { type filter hook input priority 0; ct state new counter; }
  chain out { type filter hook output priority 0; ct state new counter; }
}"""


@case("SpokeRulesDrift")
def rules_drift(lab):
    """Somebody deletes the agent's table again and again, each time when it is back; then he does not."""
    node = lab.checked_node
    over = threading.Event()

    def delete():
        while not over.wait(0.2):
            subprocess.run(["ip", "netns", "exec", node.name, "nft", "delete", "table", "inet",
                            "spoke"], check=False, capture_output=True)
    thread = threading.Thread(target=delete, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


@case("SpokeNodeWarned", labels={"job": "cluster", "check": "dns-node"}, patience=300)
def node_warned(lab):
    """A firewall on a node drops what it asks its resolver, at two looks; it is removed."""
    node = lab.legacy_node
    node.run("nft", "-f", "-", input="""table inet mute {
      chain out { type filter hook output priority 0; udp dport 53 drop; }
    }""")
    yield
    node.run("nft", "delete", "table", "inet", "mute")


def drop_echoes(node, which):
    node.run("nft", "-f", "-", input=f"""table inet lossy {{
      chain in {{ type filter hook input priority 0;
        meta l4proto {{ icmp, ipv6-icmp }} {which} drop; }}
    }}""")


@case("SpokeNodeLosesPackets", labels={"job": "stored"})
def node_loses_packets(lab):
    """A node drops four of ten echoes that come; it drops none any more."""
    drop_echoes(lab.third_node, "numgen random mod 10 < 4")
    yield
    lab.third_node.run("nft", "delete", "table", "inet", "lossy")


@case("SpokeProbesLost", labels={"job": "stored"})
def probes_lost(lab):
    """Two of three nodes drop all echoes that come; they drop none any more."""
    nodes = lab.stored_nodes
    for node in nodes:
        drop_echoes(node, "")
    yield
    for node in nodes:
        node.run("nft", "delete", "table", "inet", "lossy")


@case("SpokeTrafficUnreadable")
def traffic_unreadable(lab):
    """The thread of an agent that reads the kernel's counters stands still; it goes on."""
    node = lab.checked_node
    node.stop_thread(node.process.pid)  # Its loop is its first thread.
    yield
    node.resume_thread()


@case("SpokeAddErrors")
def add_errors(lab):
    """Pods come whose namespaces have an eth0 already; then one without."""
    node = lab.checked_node
    pods = [f"{node.name}-taken-{number}" for number in range(8)]
    for pod in pods:
        sh("ip", "netns", "add", pod)
        sh("ip", "-n", pod, "link", "add", "eth0", "type", "veth", "peer", "name", "other")
    added = [node.cni("ADD", pod)[0] for pod in pods]
    expect(not any(added), "pods are attached in spite of the device that is there")
    yield
    for pod in pods:
        node.cni("DEL", pod)
        sh("ip", "netns", "delete", pod)
    node.add()


@case("SpokePublishedRulesMissing")
def published_rules_missing(lab):
    """Somebody flushes the published rules of iptables-legacy, and holds its lock; he lets it go."""
    node = lab.legacy_node
    node.run("iptables-legacy", "-A", "INPUT", "-s", "192.0.2.1")
    node.restart()  # It looks anew which back end is used.
    with open(IPTABLES_LOCK, "ab") as lock:
        node.run("iptables-legacy", "-t", "mangle", "-F")
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@case("SpokeIptablesMixed")
def iptables_mixed(lab):
    """Somebody adds a rule with iptables-nft where others are in iptables-legacy; he takes it away."""
    node = lab.legacy_node
    node.run("iptables-nft", "-A", "INPUT", "-s", "192.0.2.2")
    yield
    node.run("iptables-nft", "-D", "INPUT", "-s", "192.0.2.2")


def limit():
    with open("/proc/sys/net/netfilter/nf_conntrack_max", encoding="ascii") as file:
        return int(file.read())


def attribute(kind, value, nested=False):
    """A netlink attribute (netlink(7))."""
    return struct.pack("=HH", len(value) + 4, kind | (0x8000 if nested else 0)) + value.ljust(
        (len(value) + 3) // 4 * 4, b"\0")


def new_connection(destination):
    """The request for a TCP connection from PORT that nothing removes for ten minutes
    (linux/netfilter/nfnetlink_conntrack.h)."""
    source, http = socket.inet_aton("198.18.0.1"), struct.pack("!H", 80)

    def way(kind, from_address, to_address, from_port, to_port):
        ip = attribute(1, attribute(1, from_address) + attribute(2, to_address), nested=True)
        proto = attribute(2, attribute(1, b"\x06") + attribute(2, from_port) +
                          attribute(3, to_port), nested=True)
        return attribute(kind, ip + proto, nested=True)
    body = (way(1, source, destination, PORT, http) + way(2, destination, source, http, PORT) +
            attribute(3, struct.pack("!I", 0x0E)) +  # Seen in both ways, assured, confirmed.
            attribute(4, attribute(1, attribute(1, b"\x03"), nested=True), nested=True) +
            attribute(7, struct.pack("!I", 600)))
    header = struct.pack("=BBH", socket.AF_INET, 0, 0)
    # IPCTNL_MSG_CT_NEW of NFNL_SUBSYS_CTNETLINK; NLM_F_REQUEST, NLM_F_CREATE.
    return struct.pack("=IHHII", 16 + len(header) + len(body), 0x100, 0x401, 0, 0) + header + body


def new_connections(count):
    """The requests for so many connections."""
    ports = [struct.pack("!H", port) for port in range(1024, 61024)]
    for number in range(0, count, len(ports)):
        parts = new_connection(struct.pack("!I", LAST + number // len(ports))).split(PORT)
        for port in ports[:count - number]:
            yield port.join(parts)


def in_network(node, call):
    """What `call` returns with a netlink socket to the node's netfilter; on a thread of its own, which
    alone is in that network."""
    result = []

    def run():
        with open(f"/run/netns/{node.name}", encoding="ascii") as namespace:
            if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                raise OSError("setns")
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as netfilter:
            result.append(call(netfilter))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


def fill(node, count):
    """Adds so many connections to the node's table."""
    def send(netfilter):
        requests = new_connections(count)
        while batch := b"".join(itertools.islice(requests, 500)):
            netfilter.send(batch)
        return True
    in_network(node, send)


def flush(node):
    """Deletes all connections (IPCTNL_MSG_CT_DELETE without a tuple)."""
    request = struct.pack("=IHHII", 20, 0x102, 0x1, 0, 0) + struct.pack("=BBH", 0, 0, 0)
    in_network(node, lambda netfilter: netfilter.send(request))


@case("SpokeConntrackNearlyFull")
def conntrack_nearly_full(lab):
    """The table of connections is filled to nine tenths, by netlink; the connections are deleted."""
    fill(lab.checked_node, limit() * 9 // 10)
    yield
    flush(lab.checked_node)


@case("SpokeConntrackDrops")
def conntrack_drops(lab):
    """The table of connections is full while the node begins ten more; they are deleted, and the time passes
    that the rule looks back."""
    node = lab.checked_node
    node.run("nft", "-f", "-", input=TRACK)
    fill(node, limit())
    for _ in range(10):
        subprocess.run(["ip", "netns", "exec", node.name, "ping", "-c", "1", "-W", "0.1", "10.99.0.1"],
                       check=False, capture_output=True)
    # A table that stays full keeps out the connections of Prometheus, too.
    flush(node)
    yield
    node.run("nft", "delete", "table", "inet", "tracked")
