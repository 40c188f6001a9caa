"""A node for benchmarks of the pod path: namespaces of its own, a server, an agent, and the program
that plays the runtime."""

import ctypes
import json
import os
import subprocess

from fleet import Server
from harness import BIN, LIBC, ROOT, Failure, wait_until

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
PEERS = "/usr/lib/cni"
AGENT = """\
node_name: bench
vm_id: bench-vm
nic: eth0
server: 127.0.0.1:{port}
tls: {{insecure: true}}
cni_socket: {socket}
state_dir: {state}
cooldown: {cooldown}
"""
# Pods of this namespace get an IPv6 address as well; all others get IPv4 alone.
DUAL_POOL = """\
apiVersion: spoke/v1
kind: Pool
metadata: {{name: dual}}
spec:
  cidr: fd10:250::/64
  namespaces: [dual]
  nodeAddresses: {{min: {addresses}, batch: 16, spare: 0.5, max: {addresses}}}
"""


def sh(*words):
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def enter_namespaces():
    """From here on, this process and all it starts have a network and a /run of their own."""
    if os.geteuid() != 0:
        raise Failure("needs root: it makes network namespaces")
    if LIBC.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise Failure(f"no namespaces: {os.strerror(ctypes.get_errno())}")
    sh("mount", "--make-rprivate", "/")
    sh("mount", "-t", "tmpfs", "-o", "mode=755", "bench-run", "/run")
    sh("mount", "-t", "sysfs", "sysfs", "/sys")
    for words in ("link set lo up", "link add eth0 mtu 1500 type veth peer name wire0",
                  "address add 10.250.0.4/16 dev eth0", "link set eth0 up", "link set wire0 up",
                  "route add default via 10.250.0.1 dev eth0"):
        sh("ip", *words.split())


class Node:
    """The agent of one node, with `addresses` attached to it, and its server."""

    def __init__(self, bench, addresses, cooldown="1s", dual=0):
        self.bench = bench
        self.addresses = addresses
        self.pods = "/run/pods"
        self.socket = "/run/spoke/cni.sock"
        self.state = "/run/spoke/netagent"
        for directory in (self.pods, self.state, "/run/leases"):
            os.makedirs(directory)
        self.server = Server(bench, addresses=addresses, most=addresses)
        self.server.start()
        if dual:
            path = bench.path("dual.yaml")
            with open(path, "w", encoding="utf-8") as out:
                out.write(DUAL_POOL.format(addresses=dual))
            self.server.ask("apply", "-f", path)
        config = bench.path("agent.yaml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(AGENT.format(port=self.server.port, socket=self.socket, state=self.state,
                                   cooldown=cooldown))
        self.agent = bench.start([os.path.join(BIN, "spoke-netagent"), "--config", config],
                                 log="agent.log")
        wait_until("the addresses on the node", 60,
                   lambda: self.attached() >= addresses + dual, 0.1)

    def attached(self):
        if self.agent.poll() is not None:
            raise Failure(f"the agent ended with code {self.agent.returncode}")
        nodes = self.server.ask("node", "list", fail=False) or []
        return sum(int(node["attached"]) for node in nodes if node["connected"])

    def measure(self, mode, **options):
        """One run of spoke-cni-bench; what it printed."""
        words = [os.path.join(BIN, "spoke-cni-bench"), mode, "--plugin-dir", BIN, "--peers-dir",
                 PEERS, "--socket", self.socket, "--leases-dir", "/run/leases", "--pods-dir",
                 self.pods]
        for key, value in options.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            words += ["--" + key.replace("_", "-"), *map(str, values)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{mode}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def build_empty(bench):
    """The static program that does nothing; its path."""
    path = bench.path("empty")
    sh("gcc", "-O2", "-static", "-o", path, os.path.join(ROOT, "tests/bench/cni/empty.c"))
    return path
