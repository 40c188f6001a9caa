"""The simulated Azure of one server: Resource Manager beside it, and what a virtual machine is told on
each of its nodes."""

import json
import os
import urllib.request

from ha_lab import Machine, eventually, sh

GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/lab"
SUBNET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/lab/subnets/nodes"
SET = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/pool"
PREFIX = "10.99.0.0/24"


def scale_set(name, machines):
    """A scale set of these machines, as the simulator's specification has it."""
    first = []
    for machine in machines:
        link = json.loads(sh("ip", "-n", machine.name, "-j", "link", "show", "eth0"))[0]
        first.append({"node": machine.name, "mac": link["address"], "address": machine.address})
    return {"subscription": "00000000-0000-0000-0000-000000000001", "resource_group": "lab", "name": name,
            "location": "westeurope", "subnet_id": SUBNET, "instances": len(first), "first": first}


class Azure(Machine):
    """The simulator, on a machine of its own."""

    def __init__(self, lab, nodes):
        super().__init__(lab.directory, "azure", "10.99.0.5")
        self.lab = lab
        self.nodes = nodes
        self.url = f"http://{self.address}:8086"

    def start(self, others):
        """`others`: the machines of the network that are not its nodes, whose addresses it gives to nobody."""
        spec = {"subnets": [{"id": SUBNET, "prefix": PREFIX}],
                "scale_sets": [scale_set("pool", self.nodes), scale_set("others", [self, *others])]}
        path = os.path.join(self.directory, "spec.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        words = [self.lab.program("spoke-azure-sim"), "--spec", path,
                 "--listen", f"{self.address}:8086", "--open", "--knobs",
                 json.dumps({"latency_least_s": 0.5, "latency_most_s": 1})]
        for index, node in enumerate(self.nodes):
            words += ["--node", f"/run/netns/{node.name}={SET}/virtualMachines/{index}"]
        self.exec(words)
        eventually("the simulated Azure is ready", lambda: "ready" in self.said().split(), 30)

    def config(self):
        """The cloud, as the server's configuration has it."""
        return {"azure": {"endpoints": {"resource_manager": self.url, "metadata": self.url},
                          "scale_sets": [SET], "listing": "10s"}}

    def post(self, path, **values):
        request = urllib.request.Request(f"{self.url}/sim/{path}", data=json.dumps(values).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()

    def instance(self, index):
        return f"{SET}/virtualMachines/{index}"
