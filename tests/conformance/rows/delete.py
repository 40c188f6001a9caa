"""C: DEL. It may come late, twice, with nothing but a container id and an interface name."""

import os
import signal
import threading

from checklist import DEFAULT_ADDRESSES, row
from lab import VERSIONS, eventually, expect, expect_equal
from private_node import sh


def gone(node, before):
    expect_equal(node.in_use(), {}, "assignments")
    node.settles_to(before)


@row("C1", "link, routes, rules and shapers go, the address comes back, stdout is empty")
def takes_everything_away(node):
    def comes_and_goes():
        pod = node.pod()
        node.add(pod, runtimeConfig={"bandwidth": {"ingressRate": 10**7, "ingressBurst": 10**6,
                                                   "egressRate": 10**7, "egressBurst": 10**6}})
        node.delete(pod)
        eventually("the pod's link is gone", lambda: pod.link() is None)

    # The first one brings the node's queues, which stay for some minutes: the next pod needs no others.
    comes_and_goes()
    eventually("the first pod's queues are gone",
               lambda: not any("bfifo" in line for line in node.objects()))
    before = node.objects()
    comes_and_goes()
    gone(node, before)


@row("C2", "a second and a third DEL succeed")
def again(node):
    pod = node.pod()
    result = node.add(pod)
    node.delete(pod, prevResult=result)
    for _ in range(2):
        node.cni("DEL", pod, CNI_NETNS="").silent()


@row("C3", "a container that was never added")
def never_added(node):
    before = node.objects()
    node.delete(node.pod())
    gone(node, before)


@row("C4", "CNI_NETNS is empty")
def empty_netns(node):
    before = node.objects()
    pod = node.pod()
    node.add(pod)
    node.cni("DEL", pod, CNI_NETNS="").silent()
    gone(node, before)


@row("C5", "CNI_NETNS is not set")
def unset_netns(node):
    before = node.objects()
    pod = node.pod()
    node.add(pod)
    node.cni("DEL", pod, CNI_NETNS=None).silent()
    gone(node, before)


@row("C6", "CNI_NETNS is a path that is not there any more")
def missing_netns(node):
    before = node.objects()
    pod = node.pod()
    node.add(pod)
    pod.destroy()
    node.delete(pod)
    gone(node, before)


@row("C7", "CNI_NETNS is a plain file, as a broken mount leaves it: all of the node's side goes")
def netns_is_a_file(node):
    before = node.objects()
    pod = node.pod()
    node.add(pod)
    plain = os.path.join(node.pods, "plain")
    with open(plain, "wb"):
        pass
    node.cni("DEL", pod, CNI_NETNS=plain).silent()
    gone(node, before)


@row("C8", "CNI_NETNS is another pod's by now: that pod keeps its interface")
def netns_of_another(node):
    old, new = node.pod(), node.pod()
    node.add(old)
    node.add(new)
    node.cni("DEL", old, CNI_NETNS=new.netns).silent()
    expect_equal(list(node.in_use()), [(new.id, "eth0")], "assignments")
    node.ping(new)


@row("C9", "somebody has deleted the link already")
def link_is_gone(node):
    before = node.objects()
    for inside in (True, False):
        pod = node.pod()
        host = node.add(pod)["interfaces"][0]["name"]
        if inside:
            pod.run("ip", "link", "del", "eth0")
        else:
            sh("ip", "link", "del", host)
        node.delete(pod)
        gone(node, before)


@row("C10", "other interfaces of the container stay as they are")
def other_interfaces(node):
    pod = node.pod()
    pod.run("ip", "link", "add", "mine", "type", "veth", "peer", "name", "other")
    node.add(pod)
    node.add(pod, ifname="net1")
    node.delete(pod)
    eventually("eth0 is gone", lambda: pod.link() is None)
    expect(pod.link("mine") and pod.link("other"), "a stranger's links stay")
    node.ping(pod)


@row("C11", "without prevResult, after a failed ADD as well")
def without_previous_result(node):
    before = node.objects()
    pod = node.pod()
    node.add(pod)
    node.delete(pod)
    node.cni("ADD", node.pod(), CNI_NETNS="/nonexistent").failed()
    node.cni("DEL", pod, CNI_NETNS="/nonexistent").silent()
    gone(node, before)


@row("C12", "prevResult is nothing, empty, of another version or nonsense")
def odd_previous_results(node):
    before = node.objects()
    for previous in (None, {}, {"dns": {}}, {"cniVersion": "0.2.0", "ip4": {"ip": "192.0.2.1/24"}},
                     {"cniVersion": "9.9.9"}, "garbage", 7, [], {"interfaces": "x", "ips": 1},
                     {"ips": [{"address": "nonsense", "interface": 99}]}):
        pod = node.pod()
        node.add(pod)
        conf = node.conf()
        conf["prevResult"] = previous
        node.cni("DEL", pod, conf).silent()
        pod.destroy()
    gone(node, before)


@row("C13", "prevResult names another pod's address: that pod keeps it")
def previous_result_of_another(node):
    mine, other = node.pod(), node.pod()
    result, others = node.add(mine), node.add(other)
    node.delete(mine, prevResult={**result, "ips": others["ips"],
                                  "interfaces": others["interfaces"]})
    expect_equal(node.in_use(), {(other.id, "eth0"): [others["ips"][0]["address"].split("/")[0]]},
                 "assignments")
    node.ping(other)


@row("C14", "the agent is down: DEL succeeds within a minute, and the agent does it on its return")
def agent_down(node):
    before = node.objects()
    pod, kept = node.pod(), node.pod()
    node.add(pod)
    node.add(kept)
    node.stop_agent(signal.SIGKILL)
    answer = node.cni("DEL", pod).silent()
    expect(answer.took < 10, f"it took {answer.took} s")
    node.cni("DEL", node.pod()).silent()
    node.start_agent()
    expect_equal(list(node.in_use()), [(kept.id, "eth0")], "assignments")
    node.ping(kept)
    node.delete(kept)
    gone(node, before)
    left = "/run/spoke/tombstones"
    expect(not os.path.isdir(left) or not os.listdir(left), "no note of it stays")


@row("C15", "the agent knows nothing of it: exit code 0, and never the words \"not found\"")
def unknown_to_the_agent(node):
    pod = node.pod()
    node.add(pod)
    node.stop_agent()
    os.unlink(node.journal)
    node.tool("spoke-journal", "seed", node.journal, *DEFAULT_ADDRESSES)
    before_links = node.links()
    node.start_agent()
    expect_equal(node.links(), before_links, "a link that the journal does not know stays")
    answer = node.cni("DEL", pod).silent()
    expect(b"not found" not in answer.out + answer.err, "the words")
    eventually("the link is gone", lambda: not node.links())


@row("C16", "in a chain, the plugins before and behind have taken their parts away already")
def others_came_first(node):
    before = node.objects()
    pod = node.pod()
    host = node.add(pod)["interfaces"][0]["name"]
    pod.run("ip", "route", "flush", "dev", "eth0")
    pod.run("ip", "addr", "flush", "dev", "eth0")
    sh("ip", "link", "set", host, "down")
    node.delete(pod)
    gone(node, before)


@row("C17", "without runtimeConfig the shapers go as well")
def without_runtime_config(node):
    before = node.objects()
    pod = node.pod()
    node.add(pod, runtimeConfig={"bandwidth": {"ingressRate": 10**7, "ingressBurst": 10**6}})
    node.delete(pod)
    gone(node, before)


@row("C18", "the configuration has changed since ADD: other MTU, other version")
def configuration_changed(node):
    before = node.objects()
    pod = node.pod()
    node.add(pod, cniVersion="0.4.0", mtu=1400)
    node.delete(pod, cniVersion="1.1.0", mtu=1300, dns={"search": ["example.internal"]})
    gone(node, before)


@row("C19", "with every version, 0.3.1 without prevResult among them")
def every_version(node):
    before = node.objects()
    for version in VERSIONS:
        pod = node.pod()
        node.add(pod, cniVersion=version)
        node.delete(pod, cniVersion=version)
    gone(node, before)


@row("C20", "a late DEL of an old sandbox does not touch the new pod of the same name")
def late_delete(node):
    args = "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;K8S_POD_UID={}"
    old, new = node.pod(), node.pod()
    node.add(old, args=args.format("1"))
    node.delete(old)
    node.add(new, args=args.format("2"))
    node.cni("DEL", old, CNI_ARGS=args.format("1")).silent()
    expect_equal(list(node.in_use()), [(new.id, "eth0")], "assignments")
    node.ping(new)


@row("C21", "DEL beside another pod's ADD, and beside another DEL of the same pod: all succeed")
def concurrent(node):
    before = node.objects()
    codes = []

    def call(command, pod):
        codes.append(node.cni(command, pod).code)
    for _ in range(4):
        one, two = node.pod(), node.pod()
        node.add(one)
        threads = [threading.Thread(target=call, args=words)
                   for words in (("DEL", one), ("ADD", two), ("DEL", one))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        node.delete(two)
    expect_equal(set(codes), {0}, "exit codes")
    gone(node, before)


@row("C22", "the namespace dies while its pod is deleted: exit code 0")
def namespace_race(node):
    before = node.objects()
    for _ in range(6):
        pod = node.pod()
        node.add(pod)
        killer = threading.Thread(target=pod.destroy)
        killer.start()
        node.cni("DEL", pod).silent()
        killer.join()
    gone(node, before)


@row("C23", "nothing of the address stays: veth, route, rule, neighbour, set element, connection")
def nothing_of_the_address(node):
    # Somebody's rules that look at connections, as kube-proxy's do: without any the kernel tracks none.
    sh("nft", "add", "table", "inet", "others")
    sh("nft", "add", "chain", "inet", "others", "any", "{ type filter hook forward priority 0 ; }")
    sh("nft", "add", "rule", "inet", "others", "any", "ct", "state", "new", "counter")
    pod, other = node.pod(), node.pod()
    address = node.add(pod)["ips"][0]["address"].split("/")[0]
    stays = node.add(other)["ips"][0]["address"].split("/")[0]
    node.ping(pod)
    node.ping(other)
    expect(node.connections(address), "the kernel tracks what the pod has sent")
    node.delete(pod)

    def traces():
        found = [line for line in node.objects() if address in line and "unreachable" not in line]
        # The set of those who may pass; what a pod has sent stays counted for two scrapes.
        members = sh("nft", "list", "set", "inet", "spoke", "pods4").splitlines()
        return found + [line for line in members if address in line] + node.connections(address)
    eventually(f"no trace of {address}", lambda: not traces())
    expect(node.connections(stays), "another pod's connections stay")


@row("C24", "CNI_ARGS that an ADD would refuse")
def odd_args(node):
    pod = node.pod()
    node.add(pod)
    conf = node.conf(runtimeConfig={"mac": "xx", "ips": ["nonsense"],
                                    "bandwidth": {"ingressBurst": 1}}, mtu=-5)
    node.cni("DEL", pod, conf, CNI_ARGS="FOO;MAC=xx;IP=nonsense;=;;").silent()
    expect_equal(node.in_use(), {}, "assignments")


LOST = {"settings": "lost_del_after: 1s"}
TWO_ROUNDS = 40  # Seconds in which the agent has looked at all links twice, on a busy machine.


@row("C25", "a DEL that never comes: what has lost link and namespace for a while is freed", **LOST)
def lost_delete(node):
    ended, before, cut_off, running = (node.pod() for _ in range(4))
    for pod in (ended, before, cut_off, running):
        node.add(pod)
    # The runtime is killed, and with it all that it knew. One pod ends while no agent is there.
    node.stop_agent(signal.SIGKILL)
    before.destroy()
    node.start_agent()
    ended.destroy()
    # This one has done it to itself, and is still there.
    cut_off.run("ip", "link", "del", "eth0")
    kept = {(pod.id, "eth0") for pod in (cut_off, running)}
    eventually("those that have ended are released", lambda: set(node.in_use()) == kept, TWO_ROUNDS)
    node.ping(running)
    # Should the DEL come after all, it is one too many, and as good as any.
    for pod in (ended, before, cut_off):
        node.cni("DEL", pod, CNI_NETNS="").silent()
    expect_equal(set(node.in_use()), {(running.id, "eth0")}, "assignments")
