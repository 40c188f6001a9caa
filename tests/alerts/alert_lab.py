"""What the alerts are about, all at once on one bridge: two servers on etcd, servers of their own for what
else can go wrong, and nodes. Prometheus reads all of them."""

import contextlib
import json
import os
import subprocess
import sys

import azure
from certificates import make_authority, sign
from faults import give_disk
from ha_lab import Agent, Lab, Server, eventually, expect, sh
import kubernetes_api
from kubernetes_api import KubernetesApi
import policy_cases
import resolver
from watcher import TOKEN

# Jobs, besides the names that the rules ask for: what is added up by job is about one group of servers.
SERVERS = "spoke-ipam-server"
AGENTS = "spoke-netagent"
BRIDGE = "10.99.0.1"  # The address of what is in no machine's network.
AUDITS = "3s"  # From one to the next.
LEASE = 15  # Seconds: a machine that is busy may take some to answer.
PROTECT_CLOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "protect_clock.py")
DISK = 8  # Megabytes of a server's or an agent's disk.


class LoneServer(Server):
    """A server with a store of its own."""

    def __init__(self, lab, index, pool):
        super().__init__(lab, index)
        give_disk(self, DISK)
        self.pool = pool
        self.variables = {}  # Of its environment.

    def start(self):
        self.exec([self.lab.program("spoke-ipam-server"), "--config", self.config], **self.variables)

    def store(self, **changes):
        return {"sqlite": os.path.join(self.disk, "ipam.db"), **changes}

    def ask(self, *words):
        """What spokectl prints. It has to succeed."""
        done, said = self.spokectl(*words, timeout="15s")
        expect(done, f"{self.name}: spokectl {' '.join(words)}: {said}")
        return said

    def apply(self, *objects):
        """Has the server's objects be as these, each a tuple of kind, name and spec."""
        done, said = self.try_apply(*objects)
        expect(done, f"{self.name}: apply: {said}")

    def try_apply(self, *objects):
        """The same; whether it succeeds, and what spokectl says."""
        path = os.path.join(self.directory, "objects.yaml")
        with open(path, "w", encoding="utf-8") as file:
            for kind, name, spec in objects:
                json.dump({"apiVersion": "spoke/v1", "kind": kind, "metadata": {"name": name},
                           "spec": spec}, file)
                file.write("\n---\n")
        return self.spokectl("apply", "-f", path)

    def restart(self):
        self.kill()
        self.configure()
        self.start()
        self.await_answer()

    def await_answer(self):
        eventually(f"{self.name} answers", self.leads, 60)

    def nodes(self):
        """Its nodes by name, as it lists them."""
        done, said = self.spokectl("node", "list", "-o", "json")
        return {row["name"]: row for row in json.loads(said)} if done else {}


class Node(Agent):
    """A node of one server."""

    def __init__(self, lab, index, server, **settings):
        super().__init__(lab, index)
        give_disk(self, DISK)
        self.servers = [server]
        self.server = server
        self.settings = {
            "metrics": {"address": "0.0.0.0:9465", "token_file": lab.token,
                        "iptables_exporter": {"address": "off"}},
            "lasting_dir": self.directory, "cni_wait": "3s", **settings}
        sh("ip", "-n", self.name, "route", "add", "default", "via", "10.99.0.1")

    def exec(self, words, **variables):
        super().exec([sys.executable, PROTECT_CLOCK, *words], **variables)

    def await_connected(self):
        def connected():
            return self.server.nodes().get(self.name, {}).get("connected")
        eventually(f"{self.name} is connected", connected, 60)

    def restart(self):
        self.kill()
        self.start()
        self.await_connected()

    def try_add(self):
        """A pod, whose ADD may fail: then it is taken down again."""
        self.made += 1
        pod = f"{self.name}-pod-{self.made}"
        sh("ip", "netns", "add", pod)
        done, said = self.cni("ADD", pod)
        if done:
            self.pods[pod] = json.loads(said)["ips"][0]["address"].split("/")[0]
        else:
            self.cni("DEL", pod)
            sh("ip", "netns", "delete", pod)

    def run(self, *words, **keywords):
        """What a command prints in the node's network."""
        return sh("ip", "netns", "exec", self.name, *words, **keywords)


class AlertLab:
    """The whole of it. Use as a context: it runs inside."""

    def __init__(self, programs, directory):
        self.directory = directory
        self.certificates = os.path.join(directory, "certificates")
        self.pair = pair = Lab(programs, directory, servers=2, members=1, lease=LEASE)
        pair.token = os.path.join(directory, "metrics.token")
        with open(pair.token, "w", encoding="utf-8") as file:
            file.write(TOKEN + "\n")
        self.stored = LoneServer(pair, 2, "10.62.0.0/27")
        self.policed = LoneServer(pair, 3, "10.64.0.0/24")
        self.on_azure = LoneServer(pair, 4, azure.PREFIX)
        self.in_cluster = LoneServer(pair, 5, "10.66.0.0/24")
        self.servers = [self.stored, self.policed, self.on_azure, self.in_cluster]
        self.stored_nodes = [Node(pair, index, self.stored) for index in (0, 1)]
        # With two nodes, nobody can tell which of them loses packets.
        self.third_node = Node(pair, 7, self.stored)
        self.policed_nodes = [
            Node(pair, index, self.policed, traffic={"pod_connections": policy_cases.SHARE})
            for index in (2, 3)]
        self.azure_node = Node(pair, 4, self.on_azure, vm_id=None, azure={})
        # To count the connections of a table that is full takes an agent with sanitizers some seconds.
        self.checked_node = Node(pair, 5, self.in_cluster, traffic={"pod_connections": "off"})
        self.legacy_node = Node(pair, 6, self.in_cluster)
        self.nodes = [*self.stored_nodes, self.third_node, *self.policed_nodes, self.azure_node, self.checked_node,
                      self.legacy_node]
        self.azure = azure.Azure(pair, [self.azure_node])
        self.api = KubernetesApi(directory, BRIDGE)
        for node in (self.checked_node, self.legacy_node):
            self.api.add_node(node.name)
        self.configure()

    def configure(self):
        for server in [*self.pair.servers, *self.servers]:
            server.settings = {
                "listen": {"metrics": "0.0.0.0:9464", "metrics_token_file": self.pair.token},
                "audit": {"period": AUDITS}, "cooldown": "1s",
                "reachability": {"interval": "1s", "window": "10s"},
                "node_addresses": {"min": 4, "batch": 2, "spare": 0.5, "max": 64},
                "release": {"idle": "1s", "jitter": "0s", "hysteresis": 0}}
        self.on_azure.settings["cloud"] = {"static": None, **self.azure.config()}
        # One server has certificates, of which one can be replaced.
        make_authority(self.certificates)
        self.on_azure.tls = sign(self.certificates, "spoke-ipam-server", "serverAuth")
        self.azure_node.tls = sign(self.certificates, self.azure_node.name, "clientAuth")
        self.in_cluster.settings["kubernetes"] = {
            "unfit_after": "30s", "fit_after": "1s", "max_tainted_share": 0.0,
            "max_tainted_a_minute": 1}
        self.in_cluster.variables = {"KUBERNETES_SERVICE_HOST": BRIDGE,
                                     "KUBERNETES_SERVICE_PORT": str(kubernetes_api.PORT)}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.end)
            self.start()
            stack.pop_all()
        return self

    def start(self):
        resolver.serve(self.directory, BRIDGE)
        others = [*self.pair.servers, *self.pair.members, *self.servers, *self.nodes]
        self.azure.start([machine for machine in others if machine is not self.azure_node])
        for server in self.servers:
            server.configure()
            server.start()
        self.pair.start_etcd()
        self.pair.start_servers()
        for server in self.servers:
            server.await_answer()
        policy_cases.open_outside()
        self.policed.apply(*policy_cases.POLICY)
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.await_connected()

    def __exit__(self, kind, error, trace):
        if kind is not None:
            for machine in [*self.servers, *self.pair.servers, *self.nodes, self.azure]:
                print(f"--- {machine.name}\n{machine.said()[-3000:]}", file=sys.stderr)
        self.end()

    def end(self):
        for machine in [*self.nodes, *self.servers, self.azure]:
            machine.kill()
            subprocess.run(["ip", "netns", "delete", machine.name], check=False)
        for machine in [*self.nodes, *self.servers]:
            sh("umount", machine.disk)
        self.pair.__exit__(None, None, None)

    def jobs(self):
        """The targets of each job."""
        lone = {"stored": self.stored, "policed": self.policed, "azure": self.on_azure,
                "cluster": self.in_cluster}
        jobs = {job: [(server.name, f"{server.address}:9464")] for job, server in lone.items()}
        return {**jobs,
                SERVERS: [(server.name, f"{server.address}:9464") for server in self.pair.servers],
                AGENTS: [(node.name, f"{node.address}:9465") for node in self.nodes]}
