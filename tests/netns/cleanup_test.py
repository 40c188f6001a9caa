#!/usr/bin/env python3
"""A node that has objects of others, of each kind that the agent makes too, then an agent and pods:
what `spoke-netagent --cleanup` leaves is exactly what was there before.

usage: cleanup_test.py DIRECTORY_OF_PROGRAMS
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "conformance"), os.path.join(TESTS, "support")]

from lab import Node, eventually, expect, expect_equal  # noqa: E402
from private_node import enter_node, sh  # noqa: E402

DELETION_GROUP = 0x73706B00
NETWORK = """
ip link add spk0123 type ifb
ip link add ifb9 type ifb
ip link add theirs0 group {group} type veth peer name theirs1
ip route add 192.0.2.0/28 dev eth0 proto 4
ip route add unreachable 192.0.2.32/28 metric 8388608 proto 4
ip route add default via 10.250.0.2 dev eth0 table 83110 proto 4
ip neigh add 10.250.0.77 lladdr 02:00:00:00:00:77 dev eth0 nud permanent
nft add table inet theirs
nft add chain inet theirs forward {{ type filter hook forward priority 0 ; }}
nft add rule inet theirs forward ip saddr 192.0.2.7 drop
nft add table inet spoke2
nft add table ip spoke
"""
RULES = """
ip rule add pref 8310 from 192.0.2.9 table 100 protocol 4
ip rule add pref 9000 from 192.0.2.8 table 101 protocol 83
"""
# Makes what the agent makes only where there are gateways, several NICs or limits, as it makes it.
RARE = """
ip rule add pref 8290 fwmark 8/0x3f table 83108 protocol 83
ip route add default via 10.250.0.1 dev eth0 table 83108 proto 83 onlink
ip rule add pref 8300 table main suppress_prefixlength 0 protocol 83
ip -6 rule add pref 8300 table main suppress_prefixlength 0 protocol 83
ip rule add pref 8310 from 10.250.1.99 table 84000002 protocol 83
ip route add default via 10.250.0.1 dev eth0 table 84000002 proto 83 onlink
ip -6 route add unreachable fd00:9::9/128 metric 8388608 proto 83
ip link add spoke-in type ifb
ip link add spoke-out type ifb
ip link add spoke-tunnel type vxlan external gpe dstport 4789
ip link set spoke-tunnel up
ip rule add pref 8290 fwmark 9/0x3f table 83109 protocol 83
ip route add default encap ip id 83 dst 10.250.0.2 dev spoke-tunnel table 83109 proto 83
"""
MANGLE = "iptables-nft -t mangle -A FORWARD -s 192.0.2.0/24 -m comment --comment theirs -j ACCEPT"
# A classic program that matches nothing: other kinds of filters are modules that a kernel may lack.
FILTER = ("tc", "filter", "add", "dev", "eth0", "ingress", "pref", "7", "protocol", "ip", "bpf",
          "bytecode", "1,6 0 0 0")


def run_all(lines, **words):
    for line in lines.format(**words).strip().splitlines():
        sh(*line.split())


def files_in(*directories):
    lines = []
    for directory in directories:
        for folder, _, names in os.walk(directory):
            lines.append(f"folder {folder}")
            for name in names:
                path = os.path.join(folder, name)
                content = b""
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        content = file.read()
                lines.append(f"file {path} {hashlib.sha256(content).hexdigest()}")
    return lines


def listing(directories):
    """Every object that an agent could have touched, a line each, sorted."""
    lines = files_in(*directories)
    for line in ("ip -d -o link", "ip -4 route show table all", "ip -6 route show table all",
                 "ip -4 rule", "ip -6 rule", "ip neigh show nud permanent", "nft -s list ruleset",
                 "tc qdisc"):
        lines += [f"{line}: {found.strip()}" for found in sh(*line.split()).splitlines()]
    for device in sorted(os.listdir("/sys/class/net")):
        for hook in ("ingress", "egress"):
            lines += [f"{device} {hook}: {found.strip()}" for found in
                      sh("tc", "filter", "show", "dev", device, hook).splitlines()]
    # Link-local and multicast IPv6, and what a pod's first packets are counted in, the kernel adds in its own time.
    counted = re.compile(r"nft .*: (elements = \{ )?0x[0-9a-f]{8} counter")
    return sorted(line for line in lines if "fe80:" not in line and "ff00::" not in line and not counted.match(line))


class World:
    def __init__(self, programs, scratch):
        self.node = None
        self.programs = programs
        self.scratch = scratch
        self.bin = os.path.join(scratch, "bin")
        self.conf = os.path.join(scratch, "net.d")
        for folder in (self.bin, self.conf, "/run/spoke"):
            os.makedirs(folder)
        self.write(os.path.join(self.conf, "10-other.conflist"), '{"plugins":[{"type":"ptp"}]}')
        self.write("/run/spoke/ipam-admin.sock", "the server's")
        self.source = os.path.join(scratch, "source.conflist")
        self.write(self.source, '{"cniVersion":"1.0.0","name":"spoke","plugins":'
                                '[{"type":"spoke"},{"type":"portmap"}]}')

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def settings(self):
        return (f"cni: {{conf_dir: {self.conf}, conf_file: 05-spoke.conflist, bin_dir: {self.bin},\n"
                f"      content: {self.source}, plugin: {self.programs}/spoke}}\n"
                "metrics: {address: \"off\", iptables_exporter: {address: \"off\"}}")

    def listing(self):
        return listing(("/run/spoke", self.bin, self.conf))

    def start(self):
        """An agent that has made what it makes without a policy, and a pod. The fast path's filters
        are node_cleaner_test's."""
        self.node = Node(self.programs, self.scratch, settings=self.settings())
        pod = self.node.pod()
        self.node.add(pod, args="K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-1")
        eventually("the files are installed",
                   lambda: os.path.exists(os.path.join(self.conf, "05-spoke.conflist")))
        expect(os.path.exists(os.path.join(self.bin, "spoke")), "the plugin is copied first")
        eventually("the published rules are there",
                   lambda: "iptables-exporter openai" in sh("nft", "list", "ruleset"), 20)
        expect("table inet spoke" in sh("nft", "list", "ruleset"), "the agent's table")
        run_all(RARE)
        return pod

    def clean(self, *options):
        """The exit code and what was printed."""
        done = subprocess.run(
            [os.path.join(self.programs, "spoke-netagent"), "--config",
             os.path.join(self.scratch, "agent.yaml"), "--cleanup", *options],
            check=False, capture_output=True, text=True, timeout=60)
        expect_equal(done.stderr, "", "standard error")
        return done.returncode, done.stdout

    def expect_as_before(self, before, what):
        after = self.listing()
        expect_equal((sorted(set(after) - set(before)), sorted(set(before) - set(after))), ([], []),
                     f"{what}: left over, and missing")


def check_with_pods(world):
    """Among others' objects: refused twice, then all goes, with the pod's network."""
    run_all(RULES)
    before = world.listing()
    pod = world.start()
    link = world.node.links()[0]
    code, text = world.clean()
    expect_equal((code, "the agent runs: stop it first" in text), (1, True), f"refused ({text})")
    world.node.stop_agent()
    during = world.listing()
    code, text = world.clean()
    expect_equal(code, 1, "the exit code while pods are there")
    expect(f"  {link} (shop/web-1 " in text, f"it names the pod: {text}")
    world.expect_as_before(during, "what a refusal changes")
    world.node.delete(pod)  # There is no agent: it leaves a tombstone.
    expect(os.listdir("/run/spoke/tombstones") != [], "there is a tombstone")
    code, text = world.clean("--with-pods", "-o", "json")
    expect_equal(code, 0, text)
    report = json.loads(text)
    expect_equal((report["failed"], report["left"], report["refused"]), ([], [], ""), "the report")
    kinds = {removal["kind"] for removal in report["removed"]}
    expect_equal(kinds, {"file", "link", "rule", "route", "table", "iptables rule"},
                 "what was removed")
    world.expect_as_before(before, "after a cleanup with pods")
    expect_equal(world.clean(), (0, "nothing to remove\n"), "the second time")
    expect_equal(world.clean("--with-pods"), (0, "nothing to remove\n"), "the third time")
    pod.destroy()


def check_without_pods(world):
    """Where nobody else has rules of iptables, their table goes too."""
    before = world.listing()
    pod = world.start()
    world.node.delete(pod)
    pod.destroy()
    world.node.stop_agent()
    code, text = world.clean()
    expect_equal(code, 0, text)
    expect("settings stay as they are: net.ipv4.ip_forward" in text, text)
    world.expect_as_before(before, "after a cleanup")
    expect_equal(world.clean(), (0, "nothing to remove\n"), "the second time")


def main():
    programs = os.path.abspath(sys.argv[1])
    enter_node()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    # The agent's settings stay, and with them what the kernel makes of them.
    for setting in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"):
        World.write(f"/proc/sys/{setting}", "1")
    with tempfile.TemporaryDirectory(dir="/run") as scratch:
        world = World(programs, scratch)
        run_all(NETWORK, group=DELETION_GROUP + 1)
        run_all(MANGLE)
        sh("tc", "qdisc", "add", "dev", "eth0", "clsact")
        sh(*FILTER)
        try:
            check_with_pods(world)
            run_all(RULES.replace(" add ", " del "))
            sh("tc", "qdisc", "del", "dev", "eth0", "clsact")
            sh("nft", "delete", "table", "ip", "mangle")
            os.unlink("/run/spoke/ipam-admin.sock")
            os.rmdir("/run/spoke")
            check_without_pods(world)
        except BaseException:
            if world.node is not None:
                world.node.show_logs()
            raise
        finally:
            if world.node is not None:
                world.node.stop_agent()


if __name__ == "__main__":
    main()
