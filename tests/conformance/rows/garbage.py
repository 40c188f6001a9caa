"""E: GC. What is not in the list of attachments in use goes; without a list, nothing does."""

import json
import os
import re
import time

from checklist import row
from lab import VERSIONS, eventually, expect, expect_equal

# An assignment younger than this may be of an ADD that the runtime has not written down yet.
YOUNG = 60

def attachments(*pods):
    return [{"containerID": pod.id, "ifname": ifname} for pod, ifname in pods]


def collect(node, valid, key="cni.dev/valid-attachments", **keys):
    conf = node.conf(**keys)
    if valid is not None:
        conf[key] = valid
    return node.cni("GC", conf=conf)


def age(node, **environment):
    """Makes all assignments old: an agent that restarts in `environment`, its journal an hour back."""
    node.stop_agent()
    node.tool("spoke-journal", "age", node.journal, str(YOUNG + 1))
    node.start_agent(**environment)


def two_pods(node):
    kept, stale = node.pod(), node.pod()
    node.add(kept)
    node.add(stale)
    age(node)
    return kept, stale


@row("E1", "what is not listed goes, what is listed stays")
def collects_what_is_not_listed(node):
    kept, stale = two_pods(node)
    collect(node, attachments((kept, "eth0"))).silent()
    expect_equal(list(node.in_use()), [(kept.id, "eth0")], "assignments")
    eventually("one link is left", lambda: len(node.links()) == 1)
    node.ping(kept)


@row("E2", "an empty list: everything of this network, nothing of another")
def empty_list(node):
    mine, other = node.pod(), node.pod()
    node.add(mine)
    node.add(other, name="another")
    age(node)
    collect(node, []).silent()
    expect_equal(list(node.in_use()), [(other.id, "eth0")], "assignments")


@row("E3", "no list: nothing is deleted; the list's older name is understood")
def no_list(node):
    kept, stale = two_pods(node)
    collect(node, None).silent()
    expect_equal(len(node.in_use()), 2, "assignments without a list")
    collect(node, attachments((kept, "eth0")), key="cni.dev/attachments").silent()
    expect_equal(list(node.in_use()), [(kept.id, "eth0")], "assignments")
    expect(stale.id not in str(node.in_use()), "the stale one has gone")
    for nonsense in (7, "x", {}, [7], [{}], [{"containerID": 7}]):
        conf = node.conf()
        conf["cni.dev/valid-attachments"] = nonsense
        node.cni("GC", conf=conf).failed(7)
        expect_equal(list(node.in_use()), [(kept.id, "eth0")], f"assignments after {nonsense!r}")


@row("E4", "interfaces of one container are told apart")
def by_interface(node):
    pod = node.pod()
    node.add(pod)
    node.add(pod, ifname="net1")
    age(node)
    collect(node, attachments((pod, "eth0"))).silent()
    expect_equal(list(node.in_use()), [(pod.id, "eth0")], "assignments")
    node.ping(pod)


@row("E5", "no container, namespace or interface in the environment")
def bare_environment(node):
    answer = node.exec(node.environment("GC", CNI_PATH=None),
                       b'{"cniVersion":"1.1.0","name":"spoke","type":"spoke","socket":"%s",'
                       b'"cni.dev/valid-attachments":[]}' % node.socket.encode())
    answer.silent()


@row("E6", "a version that has no GC: code 1")
def no_gc_in_version(node):
    for version in ("0.4.0", "1.0.0"):
        error = collect(node, [], cniVersion=version).failed(1)
        expect("GC" in error["msg"] + error.get("details", ""), f"GC is named in {error}")


@row("E7", "one that cannot be deleted does not keep the others from it")
def one_fails(node):
    for _ in range(3):
        node.add(node.pod())
    age(node, SPOKE_FAULT="fail detach.retire 1")
    error = collect(node, []).failed()
    expect(node.fault_reached(), "the kernel has refused one")
    left = list(node.in_use())
    expect_equal(len(left), 1, "assignments: the others are collected")
    expect(left[0][0] in error["msg"], f"{left[0]} is named in {error}")
    eventually("its link stays, the others go", lambda: len(node.links()) == 1)
    collect(node, []).silent()
    expect_equal(node.in_use(), {}, "assignments")
    eventually("no link is left", lambda: not node.links())


@row("E8", "a stale pod whose namespace is still there loses its interface all the same")
def namespace_is_there(node):
    pod = node.pod()
    node.add(pod)
    age(node)
    collect(node, []).silent()
    expect_equal(node.in_use(), {}, "assignments")
    eventually("the pod's link is gone", lambda: pod.link() is None)


@row("E9", "twice")
def twice(node):
    two_pods(node)
    for _ in range(2):
        collect(node, []).silent()


@row("E10", "a list of 5,000 within 30 seconds")
def long_list(node):
    pod = node.pod()
    node.add(pod)
    age(node)
    many = attachments((pod, "eth0")) + [{"containerID": f"{i:064x}", "ifname": "eth0"}
                                         for i in range(10**6, 10**6 + 5000)]
    answer = collect(node, many).silent()
    expect(answer.took < 30, f"it took {answer.took} s")
    expect_equal(len(node.in_use()), 1, "assignments")


@row("E11", "the agent is down: an error, and nothing is lost")
def agent_down(node):
    two_pods(node)
    node.stop_agent()
    collect(node, []).failed(11)
    node.start_agent()
    expect_equal(len(node.in_use()), 2, "assignments")


@row("E12", "an attachment that is a few seconds old is not collected: its ADD may not be over")
def young_ones(node):
    pod = node.pod()
    node.add(pod)
    time.sleep(1)
    collect(node, []).silent()
    expect_equal(list(node.in_use()), [(pod.id, "eth0")], "assignments")
    node.ping(pod)


CONF = os.path.join(os.path.dirname(__file__), "..", "..", "..", "conf")
SHIPPED = ("10-spoke.conflist", "kubernetes/base/config/spoke.conflist")
CHART = "helm/spoke/values.yaml"
OLD = VERSIONS[:-1]  # The versions that libcni before 1.2 speaks; it passes over cniVersions.


def read(name):
    with open(os.path.join(CONF, name), encoding="utf-8") as file:
        return file.read()


def negotiated(network, known):
    """The version that a runtime takes (CNI specification 1.1.0, section 1, cniVersions)."""
    offered = [network["cniVersion"]]
    if "1.1.0" in known:
        offered += network["cniVersions"]
    return max((version for version in offered if version in known),
               key=lambda version: [int(part) for part in version.split(".")])


@row("E13", "the configurations that are shipped: runtimes of 1.1.0 may ask for GC and STATUS")
def shipped(node):
    declared = re.search(r"\n    cniVersion: (\S+)\n    cniVersions: (\[.*\])\n", read(CHART))
    networks = [json.loads(read(name)) for name in SHIPPED]
    networks.append({**networks[-1], "cniVersion": declared[1], "cniVersions": json.loads(declared[2])})
    for network in networks:
        expect_equal(sorted(network["cniVersions"]), sorted(VERSIONS), "cniVersions")
        old, new = negotiated(network, OLD), negotiated(network, VERSIONS)
        expect_equal((old, new), ("1.0.0", "1.1.0"), "what runtimes take")
        pod = node.pod()
        plugin = {**network["plugins"][0], "name": network["name"], "socket": node.socket}
        result = node.cni("ADD", pod, {**plugin, "cniVersion": old}).succeeded().json
        expect_equal(result["cniVersion"], old, "an older runtime reads the result")
        node.cni("STATUS", conf={**plugin, "cniVersion": new}).silent()
        age(node)
        node.cni("GC", conf={**plugin, "cniVersion": new, "cni.dev/valid-attachments": []}).silent()
        expect_equal(node.in_use(), {}, "assignments")
