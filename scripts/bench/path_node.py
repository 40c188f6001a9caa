"""Nodes with a real agent each, on a path_rig wire, and pods that the real plugin has attached."""

import json
import os
import re
import subprocess
import urllib.request

from fleet import Server
from harness import BIN, LIBC, Failure, wait_until
from path_rig import CLONE_NEWNET, NAMESPACES, NODE, Path, add_namespace, make_wire

CLUSTER = "10.32.0.0/11"
POOL = {"a": "10.40.0.0/16", "b": "10.41.0.0/16"}
METRICS = "127.0.0.1:9465"  # The agent's default.
POD_NAMESPACE = "bench"
AGENT = """\
node_name: {name}
vm_id: {name}-vm
nic: eth0
server: 127.0.0.1:{port}
tls: {{insecure: true}}
health: unix:{socket}.health
cni_socket: {socket}
state_dir: {state}
cooldown: 1s
traffic: {{fast_path: {fast_path}}}
{more}"""
# This is without the rules that the agent lays down in iptables' mangle table by default, and that
# every packet meets that is routed.
NO_PUBLISHED_RULES = "metrics: {iptables_exporter: {cluster: off}}\n"
POOLS = """\
apiVersion: spoke/v1
kind: Pool
metadata: {{name: bench}}
spec:
  cidr: {cidr}
  blockPrefixLength: 28
  namespaces: [{namespace}]
  nodeAddresses: {{min: {addresses}, batch: 16, spare: 0, max: {addresses}}}
---
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {{name: main}}
spec:
  cluster: [{cluster}, 10.250.0.0/16]
  peerSpoke: [10.96.0.0/11]
  platform: [169.254.169.254/32, 168.63.129.16/32]
"""
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Inside:
    """A context in which this thread, and what it starts, is in a network namespace."""

    def __init__(self, namespace):
        self.path = f"{NAMESPACES}/{namespace}"
        self.home = None

    def __enter__(self):
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        with open(self.path, "rb") as there:
            self.move(there.fileno())

    def __exit__(self, kind, error, trace):
        self.move(self.home)
        os.close(self.home)

    def move(self, descriptor):
        if LIBC.setns(descriptor, CLONE_NEWNET) != 0:
            raise Failure(f"cannot go to {self.path}")


def parse_metrics(text):
    """Each sample of a scrape: (name, labels, value)."""
    samples = []
    for line in text.splitlines():
        found = SAMPLE.match(line)
        if found:
            samples.append((found[1], dict(LABEL.findall(found[2] or "")), float(found[3])))
    return samples


class AgentNode:
    """An agent in a namespace of a wire, its server beside it, and the pods it has attached."""

    def __init__(self, bench, namespace, side, addresses, fast_path="auto", more=""):
        self.bench = bench
        self.namespace = namespace
        self.side = side
        self.pods = []  # (namespace, address)
        self.directory = f"/run/{namespace}"
        os.makedirs(f"{self.directory}/state")
        self.socket = f"{self.directory}/cni.sock"
        with Inside(namespace):
            self.server = Server(bench, name=f"server-{namespace}", addresses=1, most=1)
            self.server.start()
            # It belongs on another machine: here it takes what the node leaves.
            for thread in os.listdir(f"/proc/{self.server.pid}/task"):
                os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))
            self.apply("pools", POOLS.format(cidr=POOL[side], namespace=POD_NAMESPACE,
                                             addresses=addresses, cluster=CLUSTER))
            config = bench.path(f"agent-{namespace}.yaml")
            with open(config, "w", encoding="utf-8") as out:
                out.write(AGENT.format(name=namespace, port=self.server.port, socket=self.socket,
                                       state=f"{self.directory}/state", more=more,
                                       fast_path=fast_path))
            # By ip-netns(8), for a /sys with the devices of the namespace: the agent reads it.
            self.agent = bench.start(["ip", "netns", "exec", namespace, os.path.join(BIN, "spoke-netagent"),
                                      "--config", config], log=f"agent-{namespace}.log")
        wait_until(f"the addresses of {namespace}", 60, lambda: self.attached() >= addresses, 0.1)

    def apply(self, name, text):
        """Gives the server objects of policy."""
        path = self.bench.path(f"{name}-{self.namespace}.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        self.server.ask("apply", "-f", path)

    def attached(self):
        if self.agent.poll() is not None:
            raise Failure(f"the agent of {self.namespace} ended with {self.agent.returncode}")
        nodes = self.server.ask("node", "list", fail=False) or []
        return sum(int(node["attached"]) for node in nodes if node["connected"])

    def attach(self, count, annotations=None):
        """Attaches so many more pods, which have these annotations."""
        for _ in range(count):
            pod = f"{self.namespace}-p{len(self.pods)}"
            add_namespace(pod)
            environment = dict(os.environ, CNI_COMMAND="ADD", CNI_CONTAINERID=f"{pod}-container",
                               CNI_NETNS=f"{NAMESPACES}/{pod}", CNI_IFNAME="eth0", CNI_PATH=BIN,
                               CNI_ARGS=f"IgnoreUnknown=1;K8S_POD_NAMESPACE={POD_NAMESPACE};"
                               f"K8S_POD_NAME={pod};K8S_POD_UID={pod}-uid")
            done = subprocess.run([os.path.join(BIN, "spoke")], env=environment, check=False,
                                  input=self.network(annotations), capture_output=True,
                                  text=True)
            if done.returncode != 0:
                raise Failure(f"ADD of {pod}: {done.stdout.strip()} {done.stderr.strip()}")
            address = json.loads(done.stdout)["ips"][0]["address"].split("/")[0]
            self.pods.append((pod, address))

    def network(self, annotations):
        """The network configuration for a pod with these annotations."""
        network = {"cniVersion": "1.0.0", "name": "spoke", "type": "spoke", "socket": self.socket}
        if annotations:
            network["runtimeConfig"] = {"io.kubernetes.cri.pod-annotations": annotations}
        return json.dumps(network)

    def scrape(self):
        """The agent's /metrics, parsed."""
        with Inside(self.namespace):
            with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=10) as answer:
                return parse_metrics(answer.read().decode())

    def count(self, metric, **labels):
        """The sum of a metric's samples that have these labels. A Failure when there is none."""
        found = [value for name, has, value in self.scrape()
                 if name == metric and all(has.get(key) == want for key, want in labels.items())]
        if not found:
            raise Failure(f"{self.namespace} has no {metric} with {labels}")
        return sum(found)

    def forwarded(self, kind, direction):
        """Packets or bytes of the class cluster that pods have sent or received so far."""
        return self.count(f"spoke_node_{kind}_total", hook="forward", direction=direction,
                          **{"class": "cluster"})


class AgentPair:
    """Two such nodes, with so many pods on each, or on "a" and on "b"."""

    def __init__(self, bench, name, pods, fast_path="auto", more=""):
        make_wire(name)
        self.nodes = {}
        for side in NODE:
            count = pods[side] if isinstance(pods, dict) else pods
            self.nodes[side] = AgentNode(bench, f"{name}-{side}", side, count + 2, fast_path, more)
            self.nodes[side].attach(count)

    def path(self):
        """From the last pod of the one node to the last of the other."""
        return Path(self.nodes["a"].pods[-1], self.nodes["b"].pods[-1])
