"""F: STATUS. Whether an ADD would work now; it is asked every few seconds, without a deadline."""

import os
import socket
import time

from checklist import row
from lab import eventually, expect, expect_equal
from private_node import sh

NOT_AVAILABLE = 50
LIMITED = 51
SOON = 1.0  # Seconds, on a busy machine; the plugin itself gives up long before.


@row("F1", "ready: exit code 0, silent")
def ready(node):
    node.cni("STATUS").silent()


@row("F2", "the agent is down: code 50", agent=False)
def agent_down(node):
    node.cni("STATUS").failed(NOT_AVAILABLE)


@row("F3", "the data path cannot be mended: code 51")
def broken_data_path(node):
    pod = node.pod()
    address = node.add(pod)["ips"][0]["address"]
    # A stranger has led the pod's address elsewhere: nothing the agent may touch.
    sh("ip", "route", "del", address)
    sh("ip", "route", "add", address, "dev", "eth0", "proto", "static")
    eventually("STATUS says 51", lambda: node.cni("STATUS").code != 0
               and node.cni("STATUS").json["code"] == LIMITED, 40)


STRICT = {"addresses": ("10.250.1.1",), "settings": "strict_status: true"}


@row("F4", "no address is free: code 50, with the reason; by default only while no pod has one", **STRICT)
def pool_empty(node):
    pod = node.pod()
    node.add(pod)
    error = node.cni("STATUS").failed(NOT_AVAILABLE)
    expect("default" in error["msg"] + error.get("details", ""), f"the pool is named in {error}")
    node.delete(pod)
    eventually("it is ready again", lambda: node.cni("STATUS").code == 0)
    # Kubernetes would evict the pods of a node that is not ready, and it is full of them.
    node.stop_agent()
    node.settings = ""
    node.start_agent()
    full = node.pod()
    node.add(full)
    node.cni("STATUS").silent()
    node.stop_agent()
    full.destroy()
    eventually("its link is gone", lambda: not node.links())
    os.unlink(node.journal)
    node.start_agent()
    node.cni("STATUS").failed(NOT_AVAILABLE)


@row("F5", "a version that has no STATUS: code 1")
def no_status_in_version(node):
    for version in ("0.4.0", "1.0.0"):
        error = node.cni("STATUS", conf=node.conf(cniVersion=version)).failed(1)
        expect("STATUS" in error["msg"] + error.get("details", ""), f"STATUS is named in {error}")


@row("F6", "CNI_PATH and the other variables are not needed")
def bare_environment(node):
    node.exec(node.environment("STATUS", CNI_PATH=None),
              b'{"cniVersion":"1.1.0","name":"spoke","socket":"%s"}'
              % node.socket.encode()).silent()


@row("F7", "an agent that does not answer: an error at once, not after a while", agent=False)
def mute_agent(node):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(node.socket)
        server.listen(8)
        answer = node.cni("STATUS")
        answer.failed(NOT_AVAILABLE)
        expect(answer.took < SOON, f"it took {answer.took} s")


@row("F8", "STATUS changes nothing")
def changes_nothing(node):
    node.add(node.pod())
    before = (node.objects(), node.assignments())
    for _ in range(5):
        node.cni("STATUS").silent()
    expect_equal((node.objects(), node.assignments()), before, "the state")


@row("F9", "while STATUS fails, DEL works, and so does an ADD that can", **STRICT)
def others_work(node):
    pod = node.pod()
    node.add(pod)
    node.cni("STATUS").failed(NOT_AVAILABLE)
    node.delete(pod)
    time.sleep(1.2)
    node.add(pod)
