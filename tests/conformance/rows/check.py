"""D: CHECK. It says whether what ADD has made is still so, on both sides, and changes nothing."""

from checklist import DUAL, DUAL_RULE, DEFAULT_ADDRESSES, row
from lab import eventually, expect, expect_equal
from private_node import sh

DUAL_NODE = {"addresses": DEFAULT_ADDRESSES + DUAL, "rules": (DUAL_RULE,)}
DUAL_ARGS = "K8S_POD_NAMESPACE=dual"


def check(node, pod, result, **keys):
    return node.cni("CHECK", pod, node.conf(prevResult=result, **keys))


def must_notice(node, what, break_it, words, **keys):
    """CHECK is content, `break_it(pod, host link)` happens, and CHECK says so."""
    pod = node.pod()
    result = node.add(pod, **keys)
    check(node, pod, result).silent()
    break_it(pod, result["interfaces"][0]["name"])
    error = check(node, pod, result).failed()
    text = error["msg"] + error.get("details", "")
    expect(any(word in text for word in words), f"{what}: {error}")
    node.delete(pod)
    pod.destroy()


@row("D1", "right after ADD: exit code 0, no output")
def right_after(node):
    pod = node.pod()
    check(node, pod, node.add(pod)).silent()
    other = node.pod()
    for version in ("0.4.0", "1.0.0"):
        result = node.add(other, cniVersion=version)
        check(node, other, result, cniVersion=version).silent()
        node.delete(other)
        other = node.pod()


@row("D2", "a version that has no CHECK: code 1")
def no_check_in_version(node):
    for version in ("0.3.0", "0.3.1"):
        pod = node.pod()
        result = node.add(pod, cniVersion=version)
        error = check(node, pod, result, cniVersion=version).failed(1)
        expect("CHECK" in error["msg"] + error.get("details", ""), f"CHECK is named in {error}")


@row("D3", "no prevResult: an error")
def no_previous_result(node):
    pod = node.pod()
    node.add(pod)
    node.cni("CHECK", pod).failed()


@row("D4", "a prevResult without this interface, or of another sandbox: an error")
def other_previous_result(node):
    pod = node.pod()
    result = node.add(pod)
    check(node, pod, {**result, "interfaces": result["interfaces"][:1]}).failed()
    elsewhere = [result["interfaces"][0], {**result["interfaces"][1], "sandbox": "/nonexistent"}]
    check(node, pod, {**result, "interfaces": elsewhere}).failed()
    renamed = [result["interfaces"][0], {**result["interfaces"][1], "name": "eth7"}]
    check(node, pod, {**result, "interfaces": renamed}).failed()
    for nonsense in ("x", 7, [], {}, {"interfaces": 7}):
        check(node, pod, nonsense).failed()


@row("D5", "the pod's address is gone")
def address_gone(node):
    must_notice(node, "address", lambda pod, host: pod.run("ip", "addr", "flush", "dev", "eth0"),
                ["address"])


@row("D6", "one of two addresses is gone", **DUAL_NODE)
def one_address_gone(node):
    pod = node.pod()
    result = node.add(pod, args=DUAL_ARGS)
    check(node, pod, result).silent()
    six = next(ip["address"] for ip in result["ips"] if ":" in ip["address"])
    pod.run("ip", "-6", "addr", "del", six, "dev", "eth0")
    error = check(node, pod, result).failed()
    expect(six.split("/")[0] in error["msg"] + error.get("details", ""), f"{six} in {error}")


@row("D7", "the default route is gone, or leads elsewhere")
def route_gone(node):
    must_notice(node, "no default route",
                lambda pod, host: pod.run("ip", "route", "del", "default"), ["route"])

    def elsewhere(pod, _host):
        pod.run("ip", "addr", "add", "192.0.2.1/24", "dev", "eth0")
        pod.run("ip", "route", "del", "default")
        pod.run("ip", "route", "add", "default", "via", "192.0.2.9", "dev", "eth0")
    must_notice(node, "another next hop", elsewhere, ["route"])
    must_notice(node, "no gateway route",
                lambda pod, host: pod.run("ip", "route", "flush", "scope", "link"), ["route"])


@row("D8", "the link is deleted or renamed")
def link_gone(node):
    must_notice(node, "deleted", lambda pod, host: pod.run("ip", "link", "del", "eth0"), ["eth0"])

    def rename(pod, _host):
        pod.run("ip", "link", "set", "eth0", "down")
        pod.run("ip", "link", "set", "eth0", "name", "eth9")
    must_notice(node, "renamed", rename, ["eth0"])


@row("D9", "the link is down")
def link_down(node):
    must_notice(node, "down", lambda pod, host: pod.run("ip", "link", "set", "eth0", "down"),
                ["down"])


@row("D10", "another MAC is an error, unless a later plugin has recorded it in prevResult")
def mac_changed(node):
    pod = node.pod()
    result = node.add(pod)
    pod.run("ip", "link", "set", "eth0", "address", "02:00:00:00:00:77")
    error = check(node, pod, result).failed()
    expect("MAC" in error["msg"] + error.get("details", ""), f"the MAC in {error}")
    recorded = [result["interfaces"][0],
                {**result["interfaces"][1], "mac": "02:00:00:00:00:77"}]
    # The kernel forgets a device's neighbours with its MAC, so the agent mends first.
    eventually("CHECK is content",
               lambda: check(node, pod, {**result, "interfaces": recorded}).code == 0, 30)
    node.ping(pod)


@row("D11", "under the name there is another kind of link now")
def another_link(node):
    def replace(pod, _host):
        pod.run("ip", "link", "del", "eth0")
        pod.run("ip", "link", "add", "base", "type", "veth", "peer", "name", "base2")
        pod.run("ip", "link", "add", "link", "base", "name", "eth0", "type", "macvlan")
    must_notice(node, "macvlan", replace, ["eth0"])


@row("D12", "the node's side: link down, route gone, neighbour gone, MTU changed")
def node_side(node):
    must_notice(node, "host link down", lambda pod, host: sh("ip", "link", "set", host, "down"),
                ["down"])
    must_notice(node, "host route gone", lambda pod, host: sh("ip", "route", "flush", "dev", host),
                ["route"])
    must_notice(node, "neighbour gone",
                lambda pod, host: sh("ip", "neigh", "flush", "nud", "permanent", "dev", host),
                ["neighbour"])
    must_notice(node, "MTU", lambda pod, host: sh("ip", "link", "set", host, "mtu", "1300"),
                ["MTU"])


RATES = {"runtimeConfig": {"bandwidth": {"ingressRate": 10**7, "ingressBurst": 10**6,
                                         "egressRate": 10**7, "egressBurst": 10**6}}}


@row("D13", "a shaper is gone, or has another rate")
def shaper_changed(node):
    must_notice(node, "gone", lambda pod, host: sh("tc", "qdisc", "del", "dev", host, "root"),
                ["shap", "rate", "limit"], **RATES)
    must_notice(node, "faster",
                lambda pod, host: sh("tc", "qdisc", "change", "dev", host, "root", "tbf", "rate",
                                     "99mbit", "burst", "64k", "latency", "50ms"),
                ["shap", "rate", "limit"], **RATES)


@row("D14", "no bandwidth was asked for: a qdisc of somebody else is none of our business")
def foreign_shaper(node):
    pod = node.pod()
    result = node.add(pod)
    sh("tc", "qdisc", "add", "dev", result["interfaces"][0]["name"], "root", "tbf", "rate",
       "99mbit", "burst", "64k", "latency", "50ms")
    check(node, pod, result).silent()


@row("D15", "the agent has no assignment of it, or another address than prevResult says")
def assignment_missing(node):
    pod, other = node.pod(), node.pod()
    result = node.add(pod)
    other_result = node.add(other)
    check(node, pod, {**result, "ips": other_result["ips"]}).failed()
    node.delete(pod)
    check(node, pod, result).failed()


@row("D16", "the agent is down: an error")
def agent_down(node):
    pod = node.pod()
    result = node.add(pod)
    node.stop_agent()
    check(node, pod, result).failed(11)


@row("D17", "the namespace is gone")
def namespace_gone(node):
    pod = node.pod()
    result = node.add(pod)
    pod.destroy()
    check(node, pod, result).failed()


@row("D18", "addresses and routes that others have added are fine")
def additions(node):
    pod = node.pod()
    result = node.add(pod)
    pod.run("ip", "addr", "add", "192.0.2.1/32", "dev", "eth0")
    pod.run("ip", "route", "add", "198.51.100.0/24", "via", "169.254.1.1", "dev", "eth0")
    check(node, pod, result).silent()


@row("D19", "CHECK changes nothing, whether it is content or not")
def changes_nothing(node):
    pod = node.pod()
    result = node.add(pod)
    pod.run("ip", "route", "del", "default")

    def state():
        # Counters and the age of neighbours move by themselves.
        return (node.objects(), pod.run("ip", "-d", "-o", "link"), pod.addresses(), pod.routes(),
                node.in_use())
    before = state()
    check(node, pod, result).failed()
    check(node, pod, {}).failed()
    expect_equal(state(), before, "the state")
