"""B: ADD."""

import json
import os
import subprocess
import threading
import time

from checklist import DUAL, DUAL_RULE, DEFAULT_ADDRESSES, row
from lab import Failed, eventually, expect, expect_equal
from private_node import sh

TRY_AGAIN = 11
DUAL_ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=dual;K8S_POD_NAME=p"
DUAL_NODE = {"addresses": DEFAULT_ADDRESSES + DUAL, "rules": (DUAL_RULE,)}
V6_NODE = {"addresses": DUAL, "rules": (DUAL_RULE,)}
DUAL_STACK = {**DUAL_NODE, "rules": (DUAL_RULE,)}


@row("B1", "the interface is there: a veth, up, with address and routes; the node answers ping")
def makes_the_interface(node):
    pod = node.pod()
    result = node.add(pod)
    link = pod.link()
    expect_equal(link["linkinfo"]["info_kind"], "veth", "the kind of link")
    expect("UP" in link["flags"], "it is up")
    expect_equal(pod.addresses(), [result["ips"][0]["address"]], "addresses")
    expect(any(route["dst"] == "default" for route in pod.routes()), "a default route")
    node.ping(pod)


@row("B2", "the result: host end without sandbox, pod end with it, addresses that point at the latter")
def result_content(node):
    pod = node.pod()
    result = node.add(pod)
    host, inside = result["interfaces"]
    expect(not host.get("sandbox"), "the host end has no sandbox")
    expect_equal(inside["name"], "eth0", "the pod end's name")
    expect_equal(inside["sandbox"], pod.netns, "the pod end's sandbox")
    expect_equal(inside["mac"], pod.link()["address"], "the pod end's MAC")
    outside = next(link for link in node.ip("link") if link["ifname"] == host["name"])
    expect_equal(host["mac"], outside["address"], "the host end's MAC")
    expect_equal([address["interface"] for address in result["ips"]], [1], "ips[].interface")


@row("B3", "the host end can be found through the pod end's peer, as the bandwidth plugin does")
def host_end_is_the_peer(node):
    pod = node.pod()
    result = node.add(pod)
    outside = next(link for link in node.ip("link")
                   if link["ifname"] == result["interfaces"][0]["name"])
    expect_equal(pod.link()["link_index"], outside["ifindex"], "the peer's index")


@row("B4", "both families: two addresses, and a default route of each", **DUAL_NODE)
def dual_stack(node):
    pod = node.pod()
    result = node.add(pod, args=DUAL_ARGS)
    expect_equal(len(result["ips"]), 2, f"addresses of {result}")
    expect_equal(sorted(route["dst"] for route in result["routes"]), ["0.0.0.0/0", "::/0"], "routes")
    expect_equal(pod.addresses(), sorted(ip["address"] for ip in result["ips"]), "in the pod")
    for family in (4, 6):
        expect(any(route["dst"] == "default" for route in pod.routes(family)),
               f"a default route of IPv{family}")


@row("B5", "a pod with IPv6 alone", **V6_NODE)
def ipv6_only(node):
    pod = node.pod()
    result = node.add(pod, args=DUAL_ARGS, cniVersion="0.4.0")
    expect_equal([ip["version"] for ip in result["ips"]], ["6"], "families")
    expect_equal([route["dst"] for route in result["routes"]], ["::/0"], "routes")
    expect_equal(pod.addresses(), [result["ips"][0]["address"]], "in the pod")


@row("B6", "the MTU of the configuration is on both ends and, from 1.1.0 on, in the result")
def mtu(node):
    for value in (1280, 1400):
        pod = node.pod()
        result = node.add(pod, mtu=value)
        host = next(link for link in node.ip("link")
                    if link["ifname"] == result["interfaces"][0]["name"])
        expect_equal((pod.link()["mtu"], host["mtu"]), (value, value), "the links' MTU")
        expect_equal([i["mtu"] for i in result["interfaces"]], [value, value], "the result's MTU")
    for value in (67, 65536, -1, "1500", 1.5):
        node.cni("ADD", node.pod(), node.conf(mtu=value)).failed(7)


@row("B7", "the configuration's DNS counts when any of it is set, else the one from before stays")
def dns(node):
    mine = {"nameservers": ["10.0.0.10"], "search": [], "options": ["ndots:5"]}
    result = node.add(node.pod(), dns=mine)
    expect_equal(result["dns"]["nameservers"], ["10.0.0.10"], "nameservers")
    expect_equal(result["dns"]["options"], ["ndots:5"], "options")
    before = {"cniVersion": "1.1.0", "interfaces": [], "ips": [], "routes": [],
              "dns": {"nameservers": ["192.0.2.1"]}}
    result = node.add(node.pod(), prevResult=before)
    expect_equal(result["dns"], {"nameservers": ["192.0.2.1"]}, "of the plugin before")
    result = node.add(node.pod(), prevResult=before, dns={"nameservers": []})
    expect(not result.get("dns", {}).get("nameservers"), "an empty list counts as set")


@row("B8", "versions that know one address a family are not claimed: 0.2.0 is refused, no crash",
     agent=False)
def old_result_version(node):
    for version in ("0.1.0", "0.2.0"):
        node.cni("ADD", node.pod(), node.conf(cniVersion=version)).failed(1)


@row("B9", "the name is taken in the pod: an error, and the link there keeps all that it has")
def name_taken(node):
    pod = node.pod()
    first = node.add(pod)
    before = (pod.link(), pod.addresses(), pod.routes(), node.in_use(), node.objects())
    other = node.pod()
    other_id = other.id
    pod_id, pod.id = pod.id, other_id
    node.cni("ADD", pod).failed()
    pod.id = pod_id
    expect_equal((pod.link(), pod.addresses(), pod.routes(), node.in_use(), node.objects()), before,
                 "everything is as before")
    expect_equal(pod.addresses(), [first["ips"][0]["address"]], "the address")
    node.ping(pod)
    foreign = node.pod()
    foreign.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "other0")
    node.cni("ADD", foreign).failed()
    expect(foreign.link() and foreign.link("other0"), "a stranger's link stays")
    expect_equal(len(node.in_use()), 1, "assignments")


@row("B10", "the same ADD again: an error, and the first keeps its address")
def same_add_again(node):
    pod = node.pod()
    node.add(pod)
    in_use = node.in_use()
    node.cni("ADD", pod).failed()
    expect_equal(node.in_use(), in_use, "assignments")
    node.ping(pod)


@row("B11", "two interfaces of one container have an address each, and go one by one")
def two_interfaces(node):
    pod = node.pod()
    first = node.add(pod)
    second = node.add(pod, ifname="net1")
    expect(first["ips"][0]["address"] != second["ips"][0]["address"], "different addresses")
    expect_equal(pod.addresses("net1"), [second["ips"][0]["address"]], "of net1")
    node.ping(pod)
    pod.run("ping", "-n", "-c", "1", "-W", "2", "-I", second["ips"][0]["address"].split("/")[0],
            "10.250.0.4")
    node.delete(pod, ifname="net1")
    eventually("net1 is gone", lambda: pod.link("net1") is None)
    node.ping(pod)
    expect_equal(list(node.in_use()), [(pod.id, "eth0")], "assignments")
    node.delete(pod)
    expect_equal(node.in_use(), {}, "assignments")


@row("B12", "the next container gets another address and another link")
def another_container(node):
    one, two = node.pod(), node.pod()
    a, b = node.add(one), node.add(two)
    expect(a["ips"][0]["address"] != b["ips"][0]["address"], "addresses differ")
    expect(a["interfaces"][0]["name"] != b["interfaces"][0]["name"], "host links differ")
    one.run("ping", "-n", "-c", "1", "-W", "2", b["ips"][0]["address"].split("/")[0])


@row("B13", "a stranger's link under the host link's name: an error that names it, and it stays")
def host_name_taken(node):
    pod = node.pod()
    name = node.add(pod)["interfaces"][0]["name"]
    node.delete(pod)
    eventually("the link is gone", lambda: not [x for x in node.ip("link") if x["ifname"] == name])
    sh("ip", "link", "add", name, "type", "veth", "peer", "name", "stranger")
    error = node.cni("ADD", pod).failed()
    expect(name in error["msg"] + error.get("details", ""), f"{name} is named in {error}")
    expect("stranger" in sh("ip", "-o", "link"), "the stranger's link stays")
    expect_equal(node.in_use(), {}, "assignments")


@row("B14", "the node's own link of the interface's name is not touched")
def host_link_of_that_name(node):
    def look():
        # The shaper's queues come at some time after the first pod, and the kernel ends its search
        # for duplicates of its own link-local address (RFC 4862, section 5.4) at some time too.
        return [{key: value for key, value in link.items() if key != "qdisc"}
                | {"addr_info": [a for a in link["addr_info"] if a["scope"] != "link"]}
                for link in node.ip("-d", "addr") if link["ifname"] == "eth0"]

    before = look()
    pod = node.pod()
    node.add(pod)
    node.delete(pod)
    expect_equal(look(), before, "eth0 of the node")


@row("B15", "the host link's name is the same for the same attachment and no other, 15 at most")
def host_names(node):
    pod = node.pod()
    first = node.add(pod)["interfaces"][0]["name"]
    second = node.add(pod, ifname="net1")["interfaces"][0]["name"]
    expect(first != second and max(len(first), len(second)) <= 15, f"{first}, {second}")
    node.delete(pod)
    node.delete(pod, ifname="net1")
    expect_equal(node.add(pod)["interfaces"][0]["name"], first, "of the same attachment")


@row("B16", "CNI_NETNS is not there: an error, and no address is assigned")
def netns_missing(node):
    before = node.objects()
    pod = node.pod()
    pod.destroy()
    node.cni("ADD", pod).failed()
    expect_equal((node.in_use(), node.objects()), ({}, before), "nothing has changed")


@row("B17", "CNI_NETNS is a plain file, or of a dead process: an error, and no address is assigned")
def netns_is_a_file(node):
    before = node.objects()
    plain = os.path.join(node.pods, "plain")
    with open(plain, "wb"):
        pass
    child = subprocess.Popen(["true"])
    child.wait()
    for path in (plain, f"/proc/{child.pid}/ns/net", "/proc/self/ns/mnt", "/dev/null", node.pods):
        node.cni("ADD", node.pod(), CNI_NETNS=path).failed()
    expect_equal((node.in_use(), node.objects()), ({}, before), "nothing has changed")


@row("B18", "CNI_NETNS is the node's own: refused before anything is done")
def netns_is_the_nodes(node):
    before = node.objects()
    for path in ("/proc/self/ns/net", f"/proc/{os.getpid()}/ns/net"):
        node.cni("ADD", node.pod(), CNI_NETNS=path).failed(4, 8)
    expect_equal((node.in_use(), node.objects()), ({}, before), "nothing has changed")


@row("B19", "whichever step of the kernel's fails: the address is given back and nothing stays",
     agent=False)
def every_step_fails(node):
    node.start_agent()
    before = node.objects()
    node.stop_agent()
    steps = 0
    while steps < 40:
        if os.path.exists(node.log):
            os.unlink(node.log)
        node.start_agent(SPOKE_FAULT=f"fail attach* {steps + 1}")
        pod = node.pod()
        answer = node.cni("ADD", pod)
        reached = node.fault_reached()
        if not reached:
            answer.succeeded()
            break
        steps += 1
        answer.failed()
        expect_equal(node.in_use(), {}, f"assignments after step {steps} failed")
        node.settles_to(before, f"after step {steps} failed")
        node.stop_agent()
        pod.destroy()
    expect(3 <= steps < 40, f"{steps} steps")


@row("B20", "stdout is closed or full: the ADD counts as failed and is undone")
def result_cannot_be_written(node):
    before = node.objects()
    path = os.path.join(node.programs, "spoke")
    for sink in (">&-", ">/dev/full"):
        done = subprocess.run(["sh", "-c", f"exec {path} {sink}"], check=False,
                              input=json.dumps(node.conf()).encode(), capture_output=True,
                              env=node.environment("ADD", node.pod()))
        expect(done.returncode != 0, f"with stdout {sink}")
        expect_equal(node.in_use(), {}, f"assignments with stdout {sink}")
        node.settles_to(before)


@row("B21", "the plugin is killed at any moment: a DEL leaves nothing")
def killed_at_any_moment(node):
    before = node.objects()
    for i in range(24):
        pod = node.pod()
        plugin = subprocess.Popen([os.path.join(node.programs, "spoke")], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, env=node.environment("ADD", pod))
        plugin.stdin.write(json.dumps(node.conf()).encode())
        plugin.stdin.close()
        time.sleep(i * 0.0007)
        plugin.kill()
        plugin.wait()
        node.delete(pod)
        # The agent may still be at it: what comes after the DEL is for the next one.
        node.cni("STATUS")
        node.delete(pod)
        pod.destroy()
    expect_equal(node.in_use(), {}, "assignments")
    node.settles_to(before)


@row("B22", "the agent's socket is missing, dead, mute or talks nonsense: code 11 in time", agent=False)
def no_agent(node):
    import socket
    conf = node.conf(timeoutSeconds=2)
    answer = node.cni("ADD", node.pod(), conf)
    answer.failed(TRY_AGAIN)
    expect(answer.took < 5, f"missing: it took {answer.took} s")

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        os.makedirs(os.path.dirname(node.socket), exist_ok=True)
        server.bind(node.socket)
        answer = node.cni("ADD", node.pod(), conf)
        answer.failed(TRY_AGAIN)
        expect(answer.took < 5, f"refusing: it took {answer.took} s")

        server.listen(8)
        answer = node.cni("ADD", node.pod(), conf)
        answer.failed(TRY_AGAIN)
        expect(1 < answer.took < 10, f"mute: it took {answer.took} s")

        def nonsense():
            server.settimeout(20)
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                client.recv(1 << 20)
                client.send(b"\xff\xffnonsense\x00")
                client.close()
        threading.Thread(target=nonsense, daemon=True).start()
        for _ in range(3):
            node.cni("ADD", node.pod(), conf).failed()


@row("B23", "no address is free: code 11 with the reason, and no link", addresses=("10.250.1.1",))
def pool_empty(node):
    first = node.pod()
    node.add(first)
    before = node.objects()
    answer = node.cni("ADD", node.pod(), node.conf(timeoutSeconds=1))
    error = answer.failed(TRY_AGAIN)
    expect("default" in error["msg"] + error.get("details", ""), f"the pool is named in {error}")
    expect_equal(node.objects(), before, "nothing has been built")
    expect_equal(len(node.in_use()), 1, "assignments")


def tbf(text):
    return [line for line in text.splitlines() if "tbf" in line]


def shapers(node, pod, result):
    """The rates towards the pod, and from the node's only pod, as tc prints them."""
    host = result["interfaces"][0]["name"]
    expect_equal(tbf(pod.run("tc", "qdisc", "show", "dev", "eth0")), [], "queues in the pod")
    up = []
    if "spoke-out" in sh("ip", "-br", "link"):
        up = [line for line in sh("tc", "class", "show", "dev", "spoke-out").splitlines()
              if "rate" in line]
    return tbf(sh("tc", "qdisc", "show", "dev", host)), up


LOWER = {"ingressRate": 10_000_000, "ingressBurst": 800_000, "egressRate": 20_000_000,
         "egressBurst": 800_000}
# The shape is as containerd sends it: Go's names, and a burst that means "whatever".
CAPITALISED = {"IngressRate": 10_000_000, "IngressBurst": 4294967295, "EgressRate": 20_000_000,
               "EgressBurst": 4294967295}


@row("B24", "runtimeConfig.bandwidth counts in both spellings that runtimes use")
def bandwidth_spellings(node):
    for bandwidth in (LOWER, CAPITALISED):
        pod = node.pod()
        down, up = shapers(node, pod, node.add(pod, runtimeConfig={"bandwidth": bandwidth}))
        expect("rate 10Mbit" in down[0], f"towards the pod: {down}")
        expect("rate 20Mbit" in up[0], f"from the pod: {up}")
        node.delete(pod)


@row("B25", "a burst without a rate, and a rate without a burst: an error that says the rule")
def burst_without_rate(node):
    for bandwidth in ({"ingressBurst": 1000}, {"egressRate": 1000}, {"egressBurst": 1000},
                      {"ingressRate": 1000}):
        error = node.cni("ADD", node.pod(),
                         node.conf(runtimeConfig={"bandwidth": bandwidth})).failed(7)
        expect("burst" in error["msg"] and "rate" in error["msg"], f"the rule is said in {error}")
    expect_equal(node.in_use(), {}, "assignments")


@row("B26", "a burst of 4 GiB or more is refused; the runtimes' own defaults are taken")
def burst_limits(node):
    def bandwidth(burst):
        return {"bandwidth": {"ingressRate": 10**7, "ingressBurst": burst}}
    for burst in (2**32 * 8, 2**63):
        node.cni("ADD", node.pod(), node.conf(runtimeConfig=bandwidth(burst))).failed(7)
    for burst in (2**32 - 1, (2**32 - 1) * 8 - 1):
        pod = node.pod()
        node.add(pod, runtimeConfig=bandwidth(burst))
        node.delete(pod)


@row("B27", "one direction limited: the other has no shaper")
def one_direction(node):
    for key, index in (("ingress", 0), ("egress", 1)):
        pod = node.pod()
        result = node.add(pod, runtimeConfig={
            "bandwidth": {f"{key}Rate": 10_000_000, f"{key}Burst": 800_000}})
        shaped = shapers(node, pod, result)
        expect(shaped[index] and not shaped[1 - index], f"{key}: {shaped}")
        node.delete(pod)


@row("B28", "no limit, or zero: no shaper, and the same result")
def no_limit(node):
    for bandwidth in (None, {}, {"ingressRate": 0, "ingressBurst": 0, "egressRate": 0,
                                 "egressBurst": 0}):
        pod = node.pod()
        result = node.add(pod, runtimeConfig={"bandwidth": bandwidth})
        expect_equal(shapers(node, pod, result), ([], []), f"shapers with {bandwidth}")
        node.delete(pod)


@row("B29", "rates of the configuration itself go before those of runtimeConfig")
def static_bandwidth(node):
    pod = node.pod()
    result = node.add(pod, ingressRate=50_000_000, ingressBurst=800_000,
                      runtimeConfig={"bandwidth": LOWER})
    expect("rate 50Mbit" in shapers(node, pod, result)[0][0], "the configuration's rate")


def send_for(pod, target, seconds):
    """Bytes a second that a pod sends to a sink on the node, by UDP-free TCP."""
    server = subprocess.Popen(
        ["python3", "-c",
         "import socket,sys\ns=socket.create_server(('0.0.0.0',5999))\nprint('ready',flush=True)\n"
         "c,_=s.accept()\nn=0\nwhile (d:=c.recv(1<<16)): n+=len(d)\nprint(n,flush=True)"],
        stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    pod.run("python3", "-c",
            "import socket,time\n"
            f"c=socket.create_connection(('{target}',5999))\nend=time.time()+{seconds}\n"
            "while time.time()<end: c.sendall(b'x'*16384)")
    received = int(server.stdout.readline())
    server.wait()
    return received / seconds


@row("B30", "a limited pod is clearly slower than one that is not, slows no other, and cannot lift it")
def throughput(node):
    limited, free = node.pod(), node.pod()
    node.add(limited, runtimeConfig={"bandwidth": {"egressRate": 20_000_000,
                                                   "egressBurst": 800_000}})
    node.add(free)
    limited.run("tc", "qdisc", "replace", "dev", "eth0", "root", "pfifo", "limit", "10000")
    limited.run("tc", "qdisc", "del", "dev", "eth0", "root")
    slow = send_for(limited, "10.250.0.4", 2) * 8
    fast = send_for(free, "10.250.0.4", 1) * 8
    expect(10_000_000 < slow < 26_000_000, f"limited to 20 Mbit/s: {slow / 1e6:.1f}")
    expect(fast > 5 * slow, f"not limited: {fast / 1e6:.1f} Mbit/s against {slow / 1e6:.1f}")


@row("B31", "the queue is bounded whatever burst the runtime asks for: round trips stay short")
def bounded_queue(node):
    pod = node.pod()
    node.add(pod, runtimeConfig={"bandwidth": CAPITALISED})
    sender = threading.Thread(target=send_for, args=(pod, "10.250.0.4", 3))
    sender.start()
    time.sleep(1)
    said = pod.run("ping", "-n", "-c", "5", "-i", "0.2", "-W", "3", "10.250.0.4")
    sender.join()
    worst = float(said.rsplit("=", 1)[1].split("/")[2])
    expect(worst < 400, f"the worst round trip is {worst} ms")


PREVIOUS = {"cniVersion": "1.0.0", "interfaces": [{"name": "tap0", "mac": "02:00:00:00:00:09"}],
            "ips": [{"address": "192.0.2.7/24", "interface": 0}],
            "routes": [{"dst": "192.0.2.0/24"}], "dns": {"nameservers": ["192.0.2.53"]}}


@row("B32", "called second in a chain: what was there stays, ours comes behind it")
def called_second(node):
    result = node.add(node.pod(), ifname="eth0", prevResult=PREVIOUS, cniVersion="1.0.0")
    expect_equal([i["name"] for i in result["interfaces"]][0], "tap0", "the first interface")
    expect_equal(len(result["interfaces"]), 3, "interfaces")
    expect_equal([ip.get("interface") for ip in result["ips"]], [0, 2], "the indexes")
    expect_equal(result["routes"][0], {"dst": "192.0.2.0/24"}, "the first route")
    for previous in ({}, {"dns": {}}, {"ips": [{"address": "192.0.2.7/24"}], "routes": None}):
        pod = node.pod()
        node.add(pod, prevResult=previous)
        node.delete(pod)


@row("B33", "CNI_ARGS: unknown keys, a trailing semicolon, nothing, a requested address and MAC")
def cni_args(node):
    for args in ("", "FOO=BAR", "IgnoreUnknown=1;FOO=BAR", "FOO", "FOO=BAR;", ";;", "=", "A=B=C"):
        pod = node.pod()
        node.add(pod, args=args)
        node.delete(pod)
    pod = node.pod()
    result = node.add(pod, args="IgnoreUnknown=1;IP=10.250.1.8;MAC=02:00:00:00:00:50")
    expect_equal(pod.addresses(), ["10.250.1.8/32"], "the requested address")
    expect_equal(result["interfaces"][1]["mac"], "02:00:00:00:00:50", "the requested MAC")


@row("B34", "a requested MAC: runtimeConfig before args.cni before CNI_ARGS; nonsense is refused")
def requested_mac(node):
    one, two, three = (f"02:00:00:00:00:0{i}" for i in (1, 2, 3))
    for keys, want in (({"args": f"MAC={three}"}, three),
                       ({"args": f"MAC={three}", "cni": two}, two),
                       ({"args": f"MAC={three}", "cni": two, "runtime": one}, one)):
        pod = node.pod()
        conf = {}
        if "cni" in keys:
            conf["args"] = {"cni": {"mac": keys["cni"]}}
        if "runtime" in keys:
            conf["runtimeConfig"] = {"mac": keys["runtime"]}
        answer = node.cni("ADD", pod, node.conf(**conf), CNI_ARGS=keys["args"]).succeeded()
        expect_equal(answer.json["interfaces"][1]["mac"], want, "the result's MAC")
        expect_equal(pod.link()["address"], want, "the link's MAC")
        node.delete(pod)
    for mac in ("xx", "02:00:00:00:00", "01:00:5e:00:00:01", "02:00:00:00:00:01:02", 7):
        node.cni("ADD", node.pod(), node.conf(runtimeConfig={"mac": mac})).failed()
    expect_equal(node.in_use(), {}, "assignments")


@row("B35", "a requested address that is not this node's, or is assigned: an error, and nothing is assigned")
def requested_address(node):
    holder = node.pod()
    node.add(holder, runtimeConfig={"ips": ["10.250.1.5/32"]})
    expect_equal(holder.addresses(), ["10.250.1.5/32"], "the request is granted")
    in_use = node.in_use()
    for request in ("192.0.2.1", "10.250.1.5", "fd10:250::9", "nonsense", "10.250.1.0/24"):
        node.cni("ADD", node.pod(), node.conf(runtimeConfig={"ips": [request]},
                                              timeoutSeconds=1)).failed()
    expect_equal(node.in_use(), in_use, "assignments")


@row("B36", "IPv6 is switched on where the pod has it off, and usable at once", **V6_NODE)
def ipv6_switched_off(node):
    pod = node.pod()
    pod.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1",
            "net.ipv6.conf.default.disable_ipv6=1")
    result = node.add(pod, args=DUAL_ARGS)
    expect_equal(pod.addresses(), [result["ips"][0]["address"]], "addresses")
    said = pod.run("ip", "-6", "-o", "addr", "show", "dev", "eth0", "scope", "global")
    expect("tentative" not in said, f"no duplicate detection: {said}")
    host = next(link["ifname"] for link in node.ip("link")
                if link["ifname"] == result["interfaces"][0]["name"])
    sh("ip", "-6", "addr", "add", "fd10:250:ffff::1/128", "dev", "lo")
    # The kernel makes it the node's own a moment later, and answers from another until then.
    eventually("the node has its address", lambda: "fd10:250:ffff::1" in sh(
        "ip", "-6", "route", "show", "table", "local"))
    pod.run("ping", "-6", "-n", "-c", "1", "-W", "2", "fd10:250:ffff::1")
    expect(host, "the host link")


@row("B37", "fifty pods at once, beside the loopback plugin: no address twice, no error",
     addresses=tuple(f"10.250.1.{i}" for i in range(1, 61)))
def fifty_at_once(node):
    pods = [node.pod() for _ in range(50)]
    results, errors = [], []

    def attach(pod):
        lo = threading.Thread(target=lambda: node.cni(
            "ADD", pod, {"cniVersion": "0.3.1", "name": "lo", "type": "loopback"}, "lo",
            "loopback"))
        lo.start()
        try:
            results.append(node.add(pod))
        except Failed as error:
            errors.append(str(error))
        lo.join()
    threads = [threading.Thread(target=attach, args=(pod,)) for pod in pods]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect_equal(errors, [], "errors")
    addresses = [result["ips"][0]["address"] for result in results]
    expect_equal(len(set(addresses)), 50, "different addresses")


INTERNET = "spoke.internal/internet-"


@row("B38", "annotations of the pod limit it on the Internet; one that is wrong is refused, with the pod")
def annotations(node):
    def requested(**values):
        return {"io.kubernetes.cri.pod-annotations": {
            INTERNET + key.replace("_", "-"): value for key, value in values.items()}}
    pod = node.pod()
    result = node.add(pod, runtimeConfig=requested(ingress_bandwidth="100Mbit",
                                                egress_bandwidth="1.5Gbit", weight="10"))
    expect_equal(shapers(node, pod, result)[0], [], "shapers of all that it receives")
    assignments = node.in_use()
    for wrong in ({"ingress_bandwidth": "100M"}, {"egress_bandwidth": "-1Mbit"},
                  {"ingress_bandwidth": "0.5Mbit"}, {"weight": "0"}, {"bandwidth": "100Mbit"}):
        error = node.cni("ADD", node.pod(), node.conf(runtimeConfig=requested(**wrong)),
                         CNI_ARGS="K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-0").failed(7)
        expect("prod/web-0" in error["msg"] and INTERNET in error["msg"], f"who and what: {error}")
        expect("such as" in error["details"], f"an example in {error}")
    expect_equal(node.in_use(), assignments, "assignments")
