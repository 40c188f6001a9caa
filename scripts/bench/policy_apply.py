"""A policy of 1,000 blocks reaches a node with 200 pods while traffic flows: how long until it is
in force, and whether a packet was lost, or counted twice, or not at all. And how long a node with
250 pods is without rules when somebody else flushes all of them."""

import json
import re
import subprocess
import time

from harness import Failure, main, median, say, wait_until
from kernel_watch import NETLINK_NETFILTER, KernelWatch
from path_node import NO_PUBLISHED_RULES, AgentPair
from path_rig import Path, bench_words, enter_private, ip, sh

PODS = 200
BLOCKS = 1000
ROUNDS = 9
REPAIRED_PODS = 250
REPAIRS = 9
RATE = 4000  # Packets a second of each flow.
# The time from the first byte of a policy until nothing more is taken for its effect.
PATIENCE = 2.0
INTERNET = "203.0.113.10"
ETHERNET_HEADER = 14

NFNLGRP_NFTABLES = 7
NFT_MSG_NEWGEN = 15
NFNL_SUBSYS_NFTABLES = 10


class Flow:
    """A steady flow of numbered packets between two ends, until it has sent for so long."""

    def __init__(self, path, seconds):
        self.process = subprocess.Popen(bench_words("conserve", [path], seconds=seconds, rate=RATE),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self):
        out, errors = self.process.communicate(timeout=180)
        if self.process.returncode != 0:
            raise Failure(f"a flow: {errors.strip()}")
        return json.loads(out)


def blocks(version, count):
    """So many blocks of the Internet; half of them are in every version."""
    chosen = ["203.0.113.0/24"] if version % 2 else ["203.0.114.0/24"]
    for number in range(count - 1):
        second = 0 if number % 2 else version % 2 * 64
        chosen.append(f"60.{second + number // 250}.{number % 250}.0/25")
    return chosen


def policy(version, count):
    listed = "\n".join(f"    - {block}" for block in blocks(version, count))
    return ("apiVersion: spoke/v1\nkind: DestinationGroup\nmetadata: {name: far}\nspec:\n  cidrs:\n"
            f"{listed}\n")


def apply_once(node, watch, version, count):
    """Applies a policy; milliseconds from its arrival at the agent until it was in force."""
    watch.forget()
    node.apply("policy", policy(version, count))
    wait_until("the policy at the agent", 10, lambda: watch.arrived)
    time.sleep(PATIENCE)
    first = watch.arrived[0]
    after = [turn for turn in watch.changed if first <= turn <= first + PATIENCE]
    if not after:
        raise Failure("the agent got a policy and did nothing to the kernel's tables")
    marker = blocks(version, count)[0].split("/")[0]
    if marker not in sh("ip", "netns", "exec", node.namespace, "nft", "list", "map", "inet",
                        "spoke", "destination4"):
        raise Failure(f"{marker} is not in the kernel's tables")
    return (after[-1] - first) * 1000


def veth_bytes(nodes):
    """Bytes and packets that all pods' own devices have sent and received, without link headers."""
    total = {"sent": [0, 0], "received": [0, 0]}
    for node in nodes:
        for pod, _ in node.pods:
            text = sh("ip", "-n", pod, "-j", "-s", "link", "show", "eth0")
            stats = json.loads(text)[0]["stats64"]
            for direction, key in (("sent", "tx"), ("received", "rx")):
                total[direction][1] += stats[key]["packets"]
                total[direction][0] += (stats[key]["bytes"]
                                        - ETHERNET_HEADER * stats[key]["packets"])
    return total


def class_bytes(nodes):
    """Returns the same as all classes together have it."""
    total = {"sent": [0, 0], "received": [0, 0]}
    for node in nodes:
        scraped = node.scrape()
        for index, metric in enumerate(("spoke_node_bytes_total", "spoke_node_packets_total")):
            for name, labels, value in scraped:
                if name == metric and labels.get("hook") == "forward":
                    total[labels["direction"]][index] += int(value)
    return total


def growth(after, before):
    return {key: [now - then for now, then in zip(after[key], before[key])] for key in after}


def rules_of(node):
    """The agent's rules and its pods, as nft lists them; without what packets leave there."""
    text = sh("ip", "netns", "exec", node.namespace, "nft", "-s", "list", "table", "inet", "spoke")
    counted = re.compile(r"epoch/|0x[0-9a-f]{8} counter")
    return sorted(line.strip() for line in text.splitlines() if not counted.search(line))


def repair_once(node, watch):
    """Flushes what nf_tables has; milliseconds from the flush until the agent had put all back."""
    before = rules_of(node)
    watch.forget()
    sh("ip", "netns", "exec", node.namespace, "nft", "flush", "ruleset")
    time.sleep(PATIENCE)
    after = rules_of(node)
    if after != before:
        other = sorted(set(before) ^ set(after))
        raise Failure(f"a flush was not repaired within {PATIENCE} s: {len(after)} lines of "
                      f"{len(before)} are there; others than before: {other[:5]}")
    return (watch.changed[-1] - watch.changed[0]) * 1000


def measure_repair(bench, pods, rounds):
    """Each flush's time without rules, in milliseconds."""
    node = AgentPair(bench, "r", {"a": pods, "b": 1}, more=NO_PUBLISHED_RULES).nodes["a"]
    watch = KernelWatch(node.namespace, node.server.port, NETLINK_NETFILTER, NFNLGRP_NFTABLES,
                        NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN)
    time.sleep(1)
    # The shares of connections come with the first look at the rules since the kernel tracks
    # connections. A flush that is not measured brings that look about.
    sh("ip", "netns", "exec", node.namespace, "nft", "flush", "ruleset")
    time.sleep(PATIENCE)
    took = []
    for number in range(rounds):
        took.append(repair_once(node, watch))
        say(f"  flush {number + 1} of {rounds}: {took[-1]:.1f} ms")
    watch.stop()
    return took


def run(bench):
    quick = bench.quick
    pods, count, rounds = (8, 50, 2) if quick else (PODS, BLOCKS, ROUNDS)
    enter_private()
    pair = AgentPair(bench, "o", {"a": pods, "b": 1})
    near, far = pair.nodes["a"], pair.nodes["b"]
    ip(far.namespace, f"address add {INTERNET}/32 dev lo")
    near.apply("policy", policy(0, count))
    watch = KernelWatch(near.namespace, near.server.port, NETLINK_NETFILTER, NFNLGRP_NFTABLES,
                        NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN)
    time.sleep(1)

    before = (veth_bytes([near]), class_bytes([near]))
    # One flow keeps its class, the other's changes with every policy. Both ways of the wire.
    seconds = rounds * (PATIENCE + 1.5) + 3
    flows = [Flow(Path(near.pods[0], far.pods[0]), seconds),
             Flow(Path(near.pods[-1], (far.namespace, INTERNET)), seconds),
             Flow(Path(far.pods[0], near.pods[1]), seconds)]
    time.sleep(1)
    took = []
    for version in range(1, rounds + 1):
        took.append(apply_once(near, watch, version, count))
        say(f"  policy {version} of {rounds}: {took[-1]:.1f} ms")
    results = [flow.result() for flow in flows]
    watch.stop()
    veth, classes = (growth(after, start) for after, start in
                     zip((veth_bytes([near]), class_bytes([near])), before))

    sent = results[0]["sent"] + results[1]["sent"]
    wrong = sum(result[key] for result in results for key in ("lost", "twice", "order"))
    # Neighbour discovery and the like are beside what is numbered, so only what is missing counts.
    missing = (max(0, sent - classes["sent"][1])
               + max(0, results[2]["received"] - classes["received"][1]))
    error = max(abs(classes[way][0] - veth[way][0]) / max(1, veth[way][0]) for way in veth)
    bench.figures = {"ms": round(median(took), 2), "ms_worst": round(max(took), 2),
                     "lost": wrong + missing, "conservation_error": round(error, 6)}
    bench.row("ms", f"{median(took):.1f} ms", "<= 20", f"worst {max(took):.1f} ms, n={rounds}")
    bench.row("lost", wrong + missing, "0",
              f"of {sum(result['sent'] for result in results)}; {wrong} lost, doubled or out of "
              f"order, {missing} not counted; longest gap "
              f"{max(result['gap_us'] for result in results) / 1000:.1f} ms")
    bench.row("conservation_error", f"{error:.6f}", "<= 0.001",
              f"classes {classes} against devices {veth}, link headers of {ETHERNET_HEADER} bytes "
              "a packet taken off")
    repaired_pods, repairs = (8, 2) if quick else (REPAIRED_PODS, REPAIRS)
    repair = measure_repair(bench, repaired_pods, repairs)
    bench.figures["repair_ms"] = round(median(repair), 2)
    bench.figures["repair_ms_worst"] = round(max(repair), 2)
    bench.row("repair_ms", f"{median(repair):.1f} ms", "<= 100",
              f"worst {max(repair):.1f} ms, n={repairs}, {repaired_pods} pods, nft flush ruleset")
    bench.context.update(n=rounds, pods=pods, cidrs=count, repaired_pods=repaired_pods,
                         repairs=repairs, peer="the pods' own devices")


if __name__ == "__main__":
    main("policy_apply", run)
