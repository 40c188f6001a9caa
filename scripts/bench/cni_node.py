"""A node for benchmarks of the pod path: namespaces of its own, a server, an agent, and the program
that plays the runtime."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request

from fleet import Server
from harness import BIN, ROOT, Failure, wait_until
from path_node import METRICS

sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from private_node import enter_node, sh  # noqa: E402

PEERS = "/usr/lib/cni"
AGENT = """\
node_name: bench
vm_id: bench-vm
nic: eth0
server: 127.0.0.1:{port}
tls: {{insecure: true}}
health: off
cni_socket: {socket}
state_dir: {state}
cooldown: {cooldown}
"""
# What a node does for its pods besides: classes of traffic, limits of bandwidth for all of them, and a
# destination that is known by its name.
POLICY = """\
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {name: main}
spec:
  cluster: [10.32.0.0/11, 10.250.0.0/16, "fd10:250::/64"]
  peerSpoke: [10.96.0.0/11]
  platform: [169.254.169.254/32, 168.63.129.16/32]
---
apiVersion: spoke/v1
kind: DestinationGroup
metadata: {name: datasets}
spec: {cidrs: [203.0.113.0/24], names: [datasets.example.com]}
---
apiVersion: spoke/v1
kind: BandwidthLimit
metadata: {name: internet}
spec:
  perPod: {ingress: 500Mbit, egress: 200Mbit}
  perNode: {ingress: 5Gbit, egress: 2Gbit}
"""
# Blocks, since a NIC has 256 configurations at most and some benchmarks want more addresses. Pods of
# the namespace "dual" get an IPv6 address as well; those of "bench" get IPv4 alone.
POOLS = """\
apiVersion: spoke/v1
kind: Pool
metadata: {{name: bench}}
spec:
  cidr: 10.40.0.0/16
  blockPrefixLength: 28
  namespaces: [bench, dual]
  nodeAddresses: {{min: {addresses}, batch: 16, spare: 0, max: {addresses}}}
---
apiVersion: spoke/v1
kind: Pool
metadata: {{name: dual}}
spec:
  cidr: fd10:250::/64
  namespaces: [dual]
  nodeAddresses: {{min: {dual}, batch: 16, spare: 0, max: {dual}}}
"""


def enter_namespaces():
    """From here on, this process and all it starts have a network and a /run of their own."""
    try:
        enter_node()
    except OSError as error:
        raise Failure(f"no namespaces: {error}") from error


class Node:
    """The agent of one node, with `addresses` attached to it, and its server. With `busy` it does all that
    agents do for pods, and is scraped every 15 s."""

    def __init__(self, bench, addresses, cooldown="1s", dual=0, busy=False):
        self.bench = bench
        self.addresses = addresses
        self.scrape_error = None
        self.pods = "/run/pods"
        self.socket = "/run/spoke/cni.sock"
        self.state = "/run/spoke/netagent"
        for directory in (self.pods, self.state, "/run/leases"):
            os.makedirs(directory)
        # It has the agent's cooldown: to an agent that connects anew, the server says how long each address
        # must still rest, and the longer one holds.
        self.server = Server(bench, addresses=1, most=1, cooldown=cooldown)
        self.server.start()
        # It belongs on another machine: here it takes what the node leaves.
        for thread in os.listdir(f"/proc/{self.server.pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))
        pools = bench.path("pools.yaml")
        with open(pools, "w", encoding="utf-8") as out:
            out.write(POOLS.format(addresses=addresses, dual=max(1, dual)))
        self.server.ask("apply", "-f", pools)
        config = bench.path("agent.yaml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(AGENT.format(port=self.server.port, socket=self.socket, state=self.state,
                                   cooldown=cooldown))
        self.agent = bench.start([os.path.join(BIN, "spoke-netagent"), "--config", config],
                                 log="agent.log")
        wait_until("the addresses on the node", 60,
                   lambda: self.attached() >= addresses + dual, 0.1)
        if busy:
            self.make_busy()

    def make_busy(self):
        """Has the agent classify, limit and name traffic from now on, and scrapes it."""
        policy = self.bench.path("policy.yaml")
        with open(policy, "w", encoding="utf-8") as out:
            out.write(POLICY)
        self.server.ask("apply", "-f", policy)
        wait_until("the policy in the kernel", 30, lambda: b"203.0.113.0" in self.kernel_rules(), 0.1)
        threading.Thread(target=self.scrape_for_ever, daemon=True).start()

    @staticmethod
    def kernel_rules():
        return subprocess.run(["nft", "list", "ruleset"], check=True, capture_output=True).stdout

    def scrape_for_ever(self):
        while self.agent.poll() is None:
            try:
                with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=30) as answer:
                    answer.read()
            except OSError as error:
                self.scrape_error = error
                return
            time.sleep(15)

    def wear(self):
        """Gives each address to a pod and takes it back: from here on, all have been used a moment ago."""
        self.measure("churn", networks="spoke", cycles=self.addresses + 64, parallel=16)

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
        if self.scrape_error:
            raise Failure(f"{mode}: the agent could not be scraped meanwhile: {self.scrape_error}")
        return json.loads(done.stdout)


def build_empty(bench):
    """The static program that does nothing; its path."""
    path = bench.path("empty")
    sh("gcc", "-O2", "-static", "-o", path, os.path.join(ROOT, "tests/bench/cni/empty.c"))
    return path
