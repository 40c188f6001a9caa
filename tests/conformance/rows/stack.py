"""G: with other plugins, other agents, and a busy kernel around."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time

from checklist import row
from lab import Failed, eventually, expect, expect_equal
from private_node import sh

VERSION = "1.0.0"  # The newest that the reference plugins of Debian 12 know.


class Chain:
    """A list of plugins as libcni runs it."""

    def __init__(self, node, *plugins):
        self.node = node
        self.plugins = plugins
        self.result = None

    def call(self, command, pod, plugin):
        conf = {"cniVersion": VERSION, "name": "chain", "socket": self.node.socket, **plugin}
        if self.result is not None:
            conf["prevResult"] = self.result
        return self.node.cni(command, pod, conf, program=plugin["type"]).succeeded()

    def add(self, pod):
        for plugin in self.plugins:
            self.result = self.call("ADD", pod, plugin).json

    def check(self, pod):
        for plugin in self.plugins:
            # Debian 12's portmap looks for IPv6 rules of a pod that has IPv4 alone.
            if plugin["type"] != "portmap":
                self.call("CHECK", pod, plugin)

    def delete(self, pod):
        for plugin in reversed(self.plugins):
            self.call("DEL", pod, plugin)
        self.result = None


OURS = {"type": "spoke"}
PORTMAP = {"type": "portmap", "snat": True, "runtimeConfig": {"portMappings": [
    {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
    {"hostPort": 8053, "containerPort": 53, "protocol": "udp"}]}}
TUNING = {"type": "tuning", "mac": "02:00:00:00:00:77",
          "sysctl": {"net.ipv4.conf.eth0.arp_filter": "1"}}
FIREWALL = {"type": "firewall", "backend": "iptables"}


@row("G1", "in a list with portmap, tuning or firewall: ADD, CHECK and DEL")
def chains(node):
    for other in (PORTMAP, TUNING, FIREWALL):
        pod = node.pod()
        chain = Chain(node, OURS, other)
        chain.add(pod)
        try:
            if other is not TUNING:
                chain.check(pod)
            elif chain.result["interfaces"][1]["mac"] != TUNING["mac"]:
                raise Failed(f"tuning's MAC in {chain.result}")
        finally:
            chain.delete(pod)
    expect_equal(node.in_use(), {}, "assignments")


def serve(pod, kind, port):
    """A server in the pod that says hello to whoever comes; TCP or UDP."""
    program = {
        "tcp": "s=socket.create_server(('0.0.0.0',{0}))\nprint('ready',flush=True)\n"
               "while True:\n c,_=s.accept()\n c.send(b'hello')\n c.close()",
        "udp": "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.bind(('0.0.0.0',{0}))\n"
               "print('ready',flush=True)\nwhile True:\n _,a=s.recvfrom(99)\n s.sendto(b'hello',a)",
    }[kind].format(port)
    server = subprocess.Popen(["nsenter", f"--net={pod.netns}", "python3", "-c",
                               "import socket\n" + program], stdout=subprocess.PIPE)
    server.stdout.readline()
    return server


def says_hello(kind, port):
    import socket
    if kind == "tcp":
        with socket.create_connection(("10.250.0.4", port), 3) as connection:
            return connection.recv(99) == b"hello"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(3)
        client.sendto(b"?", ("10.250.0.4", port))
        return client.recv(99) == b"hello"


@row("G2", "portmap: TCP and UDP ports of the node reach the pod, and the next pod with the same")
def host_ports(node):
    for _ in range(2):
        pod = node.pod()
        chain = Chain(node, OURS, PORTMAP)
        chain.add(pod)
        servers = [serve(pod, "tcp", 80), serve(pod, "udp", 53)]
        try:
            expect(says_hello("tcp", 8080), "TCP")
            expect(says_hello("udp", 8053), "UDP")
        finally:
            for server in servers:
                server.kill()
                server.wait()
            chain.delete(pod)


@row("G3", "one namespace under two paths is one namespace")
def two_paths(node):
    pod = node.pod()
    os.symlink("/run", "/run/alias")
    other = "/run/alias" + pod.netns.removeprefix("/run")
    result = node.cni("ADD", pod, CNI_NETNS=other).succeeded().json
    expect_equal(result["interfaces"][1]["sandbox"], other, "the sandbox as it was given")
    node.cni("CHECK", pod, node.conf(prevResult=result)).silent()
    node.delete(pod)


@row("G4", "after a reboot, with all of /run lost: DEL succeeds, and all addresses can be assigned")
def reboot(node):
    pod = node.pod()
    node.add(pod)
    node.stop_agent(signal.SIGKILL)
    pod.destroy()
    eventually("the kernel has forgotten", lambda: not node.links())
    shutil.rmtree("/run/spoke")
    node.cni("DEL", pod, CNI_NETNS="").silent()
    os.makedirs(node.state)
    node.tool("spoke-journal", "seed", node.journal, "10.250.1.1")
    node.start_agent()
    node.cni("DEL", pod, CNI_NETNS="").silent()
    node.add(node.pod())


@row("G5", "the binary is replaced while it is in use; old ADD and new DEL go together")
def upgrade(node):
    copy = os.path.join(node.scratch, "bin")
    os.makedirs(copy)
    path = os.path.join(copy, "spoke")
    shutil.copy2(os.path.join(node.programs, "spoke"), path)
    programs, node.programs = node.programs, copy
    errors = []

    def churn():
        for _ in range(6):
            pod = node.pod()
            try:
                node.add(pod)
                node.delete(pod)
            except (Failed, OSError) as error:
                errors.append(str(error))
    worker = threading.Thread(target=churn)
    worker.start()
    while worker.is_alive():
        shutil.copy2(os.path.join(programs, "spoke"), path + ".new")
        os.rename(path + ".new", path)
    worker.join()
    node.programs = programs
    expect_equal(errors, [], "errors")


@row("G6", "five hundred pods come and go, and everything is as it was", cooldown="100ms",
     addresses=tuple(f"10.250.2.{i}" for i in range(1, 65)))
def churn(node):
    def files():
        return len(os.listdir(f"/proc/{node.agent.pid}/fd"))
    # It is executed a thousand times, and starts in a tenth of the time.
    node.plugins = node.released
    warm = node.pod()
    node.add(warm)
    node.delete(warm)
    time.sleep(1)
    before, open_files = node.objects(), files()
    errors = []

    def work(pods):
        for pod in pods:
            try:
                node.add(pod)
                node.delete(pod)
            except Failed as error:
                errors.append(str(error))
    for _ in range(10):
        pods = [node.pod() for _ in range(50)]
        threads = [threading.Thread(target=work, args=(pods[i::5],)) for i in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for pod in pods:
            pod.destroy()
    expect_equal(errors, [], "errors")
    expect_equal(node.in_use(), {}, "assignments")
    node.settles_to(before)
    eventually("no file stays open", lambda: files() <= open_files)


@row("G7", "somebody makes and deletes links all the time: nothing fails for it")
def link_storm(node):
    stop = threading.Event()

    def storm():
        i = 0
        while not stop.is_set():
            i += 1
            sh("ip", "link", "add", f"storm{i % 10}", "type", "veth", "peer", "name",
               f"calm{i % 10}")
            sh("ip", "link", "del", f"storm{i % 10}")
    worker = threading.Thread(target=storm)
    worker.start()
    try:
        for _ in range(10):
            pod = node.pod()
            result = node.add(pod)
            node.cni("CHECK", pod, node.conf(prevResult=result)).silent()
            node.delete(pod)
        node.stop_agent()
        node.start_agent()
        node.cni("STATUS").silent()
    finally:
        stop.set()
        worker.join()


@row("G8", "the MAC of the result is the link's, two seconds later as well")
def mac_stays(node):
    pod = node.pod()
    result = node.add(pod)
    time.sleep(2)
    expect_equal(pod.link()["address"], result["interfaces"][1]["mac"], "the MAC")


@row("G9", "the released plugin is one static file of at most 3 MiB")
def one_small_file(node):
    path = os.path.join(node.released, "spoke")
    expect(os.path.exists(path), f"{path}: make it with scripts/build.sh release spoke")
    dynamic = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    expect(dynamic.returncode != 0 or "statically" in dynamic.stdout, f"static: {dynamic.stdout}")
    expect(os.path.getsize(path) <= 3 << 20, f"{os.path.getsize(path)} bytes")
