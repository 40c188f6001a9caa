"""Two nodes joined by a wire, and pods on them, all of them network namespaces: what packets are
sent through to say what a network costs.

The wire is a veth pair, so there is no NIC in any figure: every network is compared with one that
has the same wire.
"""

import json
import os
import subprocess
import sys

from harness import BIN, ROOT, Failure

sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from private_node import CLONE_NEWNET, CLONE_NEWNS, sh, unshare  # noqa: E402

NAMESPACES = "/run/netns"
NODE = {"a": "10.250.0.4", "b": "10.250.0.5"}
POD = {"a": "10.40.1.7", "b": "10.40.2.7"}
GATEWAY = "169.254.1.1"
WIRE_MTU = 1500


def enter_private():
    """From here on, this process and all it starts have mounts and a /run of their own; `ip netns`
    keeps its namespaces there, and they go with the last process."""
    try:
        unshare(CLONE_NEWNS | CLONE_NEWNET)
        sh("mount", "--make-rprivate", "/")
        sh("mount", "-t", "tmpfs", "-o", "mode=755", "bench-run", "/run")
        sh("mount", "-t", "sysfs", "sysfs", "/sys")
        sh("ip", "link", "set", "lo", "up")
        os.makedirs(NAMESPACES)
    except OSError as error:
        raise Failure(f"no namespaces: {error}") from error


def ip(namespace, *lines):
    """Commands of ip(8), in one call, inside a namespace."""
    sh("ip", "-n", namespace, "-batch", "-", input="\n".join(lines) + "\n")


def inside(namespace, *words, **keywords):
    """Runs a program inside a namespace; what it prints."""
    return sh("ip", "netns", "exec", namespace, *words, **keywords)


def add_namespace(name):
    sh("ip", "netns", "add", name)
    ip(name, "link set lo up")


def make_wire(name):
    """The nodes `name`-a and `name`-b with eth0 joined, forwarding, each the other's way out."""
    for side in NODE:
        add_namespace(f"{name}-{side}")
        inside(f"{name}-{side}", "sysctl", "-qw", "net.ipv4.ip_forward=1",
               "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0",
               "net.ipv6.conf.all.forwarding=1")
    ip(f"{name}-a", f"link add eth0 mtu {WIRE_MTU} numrxqueues 1 numtxqueues 1 type veth peer name "
       f"eth0 mtu {WIRE_MTU} numrxqueues 1 numtxqueues 1 netns {name}-b")
    for side, other in (("a", "b"), ("b", "a")):
        ip(f"{name}-{side}", "link set eth0 up", f"address add {NODE[side]}/16 dev eth0",
           f"route add default via {NODE[other]} dev eth0")


def mac_of(namespace, device):
    return json.loads(sh("ip", "-n", namespace, "-j", "link", "show", device))[0]["address"]


def add_routed_pod(node, pod, address, link):
    """A pod as Spoke makes it: a /32, a gateway that is no device's address, permanent neighbours
    on both sides, no rules."""
    add_namespace(pod)
    ip(pod, f"link add eth0 mtu {WIRE_MTU} numrxqueues 1 numtxqueues 1 type veth peer name {link} "
       f"mtu {WIRE_MTU} numrxqueues 1 numtxqueues 1 netns {node}")
    ip(node, f"link set {link} up", f"route add {address}/32 dev {link}",
       f"neigh add {address} lladdr {mac_of(pod, 'eth0')} dev {link} nud permanent")
    ip(pod, "link set eth0 up", f"address add {address}/32 dev eth0",
       f"route add {GATEWAY}/32 dev eth0", f"route add default via {GATEWAY} dev eth0",
       f"neigh add {GATEWAY} lladdr {mac_of(node, link)} dev eth0 nud permanent")


class Path:
    """The places where a measurement begins and ends."""

    def __init__(self, source, destination):
        self.source_namespace, self.source = source
        self.destination_namespace, self.destination = destination

    def text(self):
        return (f"{NAMESPACES}/{self.source_namespace},{NAMESPACES}/{self.destination_namespace},"
                f"{self.source},{self.destination}")


def bench_words(mode, paths, **options):
    words = [os.path.join(BIN, "spoke-path-bench"), mode]
    for path in paths:
        words += ["--path", path.text()]
    for key, value in options.items():
        words += ["--" + key.replace("_", "-"), str(value)]
    return words


def measure(mode, paths, **options):
    """One run of spoke-path-bench over all `paths` in turns; what it printed."""
    done = subprocess.run(bench_words(mode, paths, **options), check=False, capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise Failure(f"{mode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def make_host(name):
    """Node to node: the wire and nothing else."""
    make_wire(name)
    return Path((f"{name}-a", NODE["a"]), (f"{name}-b", NODE["b"]))


def make_plain(name):
    """Pod to pod by routing, without a single rule."""
    make_wire(name)
    for side in NODE:
        add_routed_pod(f"{name}-{side}", f"{name}-p{side}", POD[side], "spk1")
    return Path((f"{name}-pa", POD["a"]), (f"{name}-pb", POD["b"]))


def linear_rules(count):
    """Returns rules that count pods with iptables: four a pod, and each packet meets all of them."""
    rules = []
    for number in range(count // 4):
        pod = f"10.40.{number // 250 + 1}.{number % 250 + 2}"
        for match in (f"-s {pod} -d 10.0.0.0/8", f"-s {pod} ! -d 10.0.0.0/8",
                      f"-d {pod} -s 10.0.0.0/8", f"-d {pod} ! -s 10.0.0.0/8"):
            rules.append(f"-A FORWARD {match} -m comment --comment pod{number}")
    return rules


def make_linear(name, count):
    """Sets up the same as plain, with `count` linear counting rules in the mangle table of each node."""
    path = make_plain(name)
    text = "\n".join(["*mangle", *linear_rules(count), "COMMIT"]) + "\n"
    for side in NODE:
        inside(f"{name}-{side}", "iptables-nft-restore", input=text)
    return path


def make_vxlan(name):
    """An overlay as flannel makes it: a bridge for the node's pods, one VXLAN device, a route, a
    neighbour and a forwarding entry for each other node."""
    make_wire(name)
    subnet = {"a": "10.244.1", "b": "10.244.2"}
    for side in NODE:
        node, pod = f"{name}-{side}", f"{name}-p{side}"
        add_namespace(pod)
        ip(node, f"link add flannel.1 type vxlan id 1 local {NODE[side]} dev eth0 dstport 8472 "
           "nolearning", f"address add {subnet[side]}.0/32 dev flannel.1",
           "link set flannel.1 mtu 1450 up", "link add cni0 mtu 1450 type bridge",
           f"address add {subnet[side]}.1/24 dev cni0", "link set cni0 up",
           f"link add veth1 mtu 1450 type veth peer name eth0 mtu 1450 netns {pod}",
           "link set veth1 master cni0 up")
        ip(pod, "link set eth0 up", f"address add {subnet[side]}.7/24 dev eth0",
           f"route add default via {subnet[side]}.1 dev eth0")
    for side, other in (("a", "b"), ("b", "a")):
        mac = mac_of(f"{name}-{other}", "flannel.1")
        ip(f"{name}-{side}",
           f"route add {subnet[other]}.0/24 via {subnet[other]}.0 dev flannel.1 onlink",
           f"neigh add {subnet[other]}.0 lladdr {mac} dev flannel.1 nud permanent")
        sh("bridge", "-n", f"{name}-{side}", "fdb", "add", mac, "dev", "flannel.1", "dst",
           NODE[other])
    return Path((f"{name}-pa", f"{subnet['a']}.7"), (f"{name}-pb", f"{subnet['b']}.7"))


def lower_quartile(values):
    """Returns what the least disturbed quarter of the samples is at most."""
    return sorted(values)[max(0, (len(values) + 3) // 4 - 1)]
