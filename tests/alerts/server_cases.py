"""Alerts of servers and of their store."""

import glob
import json
import os
import socket
import threading

from case import case
from faults import Full
from ha_lab import eventually

LARGE = 40  # Addresses: more than may be given back at once, however small the cluster.
MORE = 5  # Pods that are more than a node has addresses for at first.
FOREIGN = 120  # Keys of 100 kB: more than 80 % of the quota that rules.py gives.
WRITES = 100  # As many as certainly do not fit into what a full disk has left.


@case("SpokeServerDown", labels={"instance": "server-b"})
def server_down(lab):
    """The process of a server is killed; it is started again."""
    server = lab.pair.servers[1]
    server.kill()
    yield
    server.start()


@case("SpokeStoreNotWritable")
def store_not_writable(lab):
    """The disk of SQLite is full when an operator writes; room is made."""
    full = Full(lab.stored)
    full.begin()
    # What is written first may find room in files that are there.
    for number in range(WRITES):
        cidrs = [f"192.0.{number}.{last}/32" for last in range(256)]
        if not lab.stored.try_apply(("DestinationGroup", f"much-{number}", {"cidrs": cidrs}))[0]:
            break
    yield
    full.end()


@case("SpokeEtcdNearlyFull")
def etcd_nearly_full(lab):
    """Somebody else writes into etcd; it is removed, and the member compacted and defragmented."""
    for number in range(FOREIGN):
        lab.pair.ctl("put", f"/foreign/{number}", "x" * 100_000)
    yield
    lab.pair.ctl("del", "--prefix", "/foreign/")
    revision = json.loads(lab.pair.ctl("get", "x", "-w", "json"))["header"]["revision"]
    # The server compacts as well: to be told that it has done so already is fine.
    lab.pair.ctl("compact", str(revision), fail=False)
    lab.pair.ctl("defrag")


@case("SpokeNoLeader")
def no_leader(lab):
    """The only member of etcd and the server that leads are killed; both are started again."""
    leader, member = lab.pair.leader(), lab.pair.members[0]
    member.kill()
    leader.kill()
    yield
    member.start()
    leader.start()


@case("SpokeRecovery")
def recovery(lab):
    """A backup from before nodes were given more addresses is restored while an agent is away; the agent
    comes back."""
    server, node = lab.stored, lab.stored_nodes[1]
    backup = os.path.join(server.disk, "backup.db")
    server.ask("backup", backup)
    for each in lab.stored_nodes:
        for _ in range(MORE):
            each.add()
    node.kill()
    server.kill()
    store = os.path.join(server.disk, "ipam.db")
    for path in glob.glob(store + "-*"):
        os.unlink(path)
    os.replace(backup, store)
    server.start()
    yield
    node.start()
    node.await_connected()
    delete_pods(lab.stored_nodes)


def delete_pods(nodes):
    for node in nodes:
        for pod in list(node.pods):
            node.delete(pod)


@case("SpokeAgentsAway", "SpokeAgentMetricsDown")
def agent_away(lab):
    """The process of an agent is killed; it is started again."""
    node = lab.stored_nodes[1]
    node.kill()
    yield
    node.start()


@case("SpokePoolNearlyFull", "SpokePoolFull", "SpokeNodesShort", "SpokePodsWaiting",
      labels={"job": "stored"})
def pool_full(lab):
    """More pods are started than the pool has addresses, and one waits; they are deleted, and what they had
    comes back."""
    node = lab.stored_nodes[0]
    waiting = threading.Event()
    waiting.set()

    def start_pods():
        while waiting.is_set():
            node.try_add()
    starter = threading.Thread(target=start_pods, daemon=True)
    starter.start()
    yield
    waiting.clear()
    starter.join()
    delete_pods([node])


@case("SpokeReleasesFrozen")
def releases_frozen(lab):
    """What was reserved on a node for a large job is not needed any more, all at once; an operator lifts the
    freeze."""
    server, node = lab.stored, lab.stored_nodes[0]
    server.ask("pool", "create", "large", "--cidr", "10.63.8.0/25")
    server.ask("reserve", "create", "large", "--node", node.name, "--addresses-per-node", str(LARGE))
    eventually("the node has what is reserved", lambda: held(server, node) >= LARGE, 30)
    server.ask("reserve", "release", "large")
    yield
    server.ask("unfreeze")
    server.ask("node", "drain", node.name)
    eventually("the pool is not used any more",
               lambda: server.spokectl("pool", "delete", "large")[0], 60)
    server.ask("node", "undrain", node.name)


def held(server, node):
    """How many addresses the node has."""
    return int(server.nodes()[node.name]["attached"])


@case("SpokePromiseBroken")
def promise_broken(lab):
    """Addresses are reserved in a pool, which is then made smaller; the reservation is released."""
    server = lab.in_cluster
    server.ask("pool", "create", "jobs", "--cidr", "10.63.0.0/23")
    server.ask("reserve", "create", "job", "--count", "2", "--addresses-per-node", "200")
    server.ask("pool", "resize", "jobs", "--cidr", "10.63.0.0/29")
    yield
    server.ask("reserve", "release", "job")
    server.ask("pool", "delete", "jobs")


@case("SpokeAddressDoubled")
def address_doubled(lab):
    """Another machine answers for the address of a pod; an operator lifts the quarantine."""
    server, node = lab.stored, lab.stored_nodes[0]
    node.add()
    pod, address = next(iter(node.pods.items()))
    claim(f"v{node.name}", address)
    yield
    server.ask("ip", "quarantine", address, "--lift")
    node.delete(pod)


@case("SpokeAddressesQuarantined")
def addresses_quarantined(lab):
    """An operator puts an address of the pool into quarantine, and lifts that."""
    server = lab.in_cluster
    server.ask("ip", "quarantine", "10.66.0.200", "--reason", "somebody uses it")
    yield
    server.ask("ip", "quarantine", "10.66.0.200", "--lift")


def claim(device, address):
    """Says on a device, by ARP, that a machine which does not exist has the address."""
    mac = bytes.fromhex("02000000ff01")
    arp = bytes.fromhex("0001080006040001") + mac + socket.inet_aton(address) + bytes(6)
    frame = b"\xff" * 6 + mac + bytes.fromhex("0806") + arp + socket.inet_aton(address)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((device, 0))
        wire.send(frame.ljust(60, b"\0"))
