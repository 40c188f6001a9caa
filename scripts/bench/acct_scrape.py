"""Measures what it costs to read the counters of 250 pods, over iptables with rules that count the same."""

import json
import os
import resource
import subprocess
import time
import urllib.request

from harness import BIN, Failure, main, median
from path_node import METRICS, AgentPair, Inside, parse_metrics
from path_rig import (NAMESPACES, Path, enter_private, inside, ip, linear_rules, make_wire,
                      measure, sh)

PODS = 250
ROUNDS = 31
# Beyond the cluster, at the other node.
INTERNET = "203.0.113.10"
# A pod has four: to and from the cluster, to and from the Internet.
COUNTERS_A_POD = 4
PERCPU_ARRAY = "6"  # BPF_MAP_TYPE_PERCPU_ARRAY of linux/bpf.h.
CLASSES = ("cluster", "internet")


def put_counters_in_use(pair):
    """Lets each pod of node a send to and receive from both classes."""
    far = pair.nodes["b"]
    ip(far.namespace, f"address add {INTERNET}/32 dev lo")
    for pod, address in pair.nodes["a"].pods:
        for there in (far.pods[0], (far.namespace, INTERNET)):
            measure("udp", [Path((pod, address), there), Path(there, (pod, address))], packets=1)


def demand_counters(node, pods):
    """A Failure unless both classes and directions have counted for all pods together."""
    for name in CLASSES:
        for direction in ("sent", "received"):
            packets = node.count("spoke_node_packets_total", hook="forward", direction=direction,
                                 **{"class": name})
            if packets < pods * 64:
                raise Failure(f"{packets:.0f} packets {direction} of class {name} by {pods} pods")


def fast_map(node):
    """The kernel's number of the map with the fast path's counters, one value a processor and an
    entry a pod, more than any other map of that type has; 0: the agent has none."""
    found = {}
    above = f"/proc/{node.agent.pid}/fdinfo"
    for descriptor in os.listdir(above):
        try:
            with open(f"{above}/{descriptor}", encoding="ascii") as info:
                fields = dict(line.split(":", 1) for line in info if ":" in line)
        except FileNotFoundError:  # The agent has closed it meanwhile.
            continue
        if fields.get("map_type", "").strip() == PERCPU_ARRAY:
            found[int(fields["max_entries"])] = int(fields["map_id"])
    return found[max(found)] if found else 0


def dump(node):
    """The kernel's dump of all counters, and how many there are."""
    text = sh(os.path.join(BIN, "spoke-path-bench"), "dump", "--where",
              f"{NAMESPACES}/{node.namespace}", "--fast-map", str(fast_map(node)), "--rounds", "20")
    return json.loads(text)


def make_linear_peer(pods):
    """A node whose iptables count the same with linear rules, in use as well."""
    make_wire("linear")
    text = "\n".join(["*mangle", *linear_rules(pods * COUNTERS_A_POD), "COMMIT"]) + "\n"
    for program in ("iptables-nft-restore", "iptables-legacy-restore"):
        inside(f"linear-{'a' if 'nft' in program else 'b'}", program, input=text)


def time_save(program, namespace):
    """CPU milliseconds of one `iptables-save -c`, exec included, and how many counters it told."""
    with Inside(namespace):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([program, "-c", "-t", "mangle"], check=True, capture_output=True,
                              text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return took * 1000, done.stdout.count("-A FORWARD")


def time_scrape(node):
    """Wall milliseconds of one GET, and what it gave."""
    with Inside(node.namespace):
        began = time.perf_counter()
        with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=10) as answer:
            text = answer.read()
        return (time.perf_counter() - began) * 1000, parse_metrics(text.decode())


def run(bench):
    pods = 10 if bench.quick else PODS
    rounds = 3 if bench.quick else ROUNDS
    enter_private()
    pair = AgentPair(bench, "o", {"a": pods, "b": 1})
    node = pair.nodes["a"]
    put_counters_in_use(pair)
    demand_counters(node, pods)
    make_linear_peer(pods)

    samples = {"dump": [], "wall": [], "save": [], "legacy": [], "scrape": []}
    for _ in range(rounds):
        dumped = dump(node)
        samples["dump"].append(dumped["cpu_median_ms"])
        samples["wall"].append(dumped["wall_median_ms"])
        for key, program, side in (("save", "iptables-nft-save", "a"),
                                   ("legacy", "iptables-legacy-save", "b")):
            took, rules = time_save(program, f"linear-{side}")
            if rules != pods * COUNTERS_A_POD:
                raise Failure(f"{program} told {rules} rules")
            samples[key].append(took)
        took, scraped = time_scrape(node)
        samples["scrape"].append(took)
    if node.count("spoke_fast_path_on") and not dumped["fast"]:
        raise Failure("the fast path's counters were not found")
    told = dumped["elements"] + dumped["objects"] + dumped["fast"]
    if told < pods * COUNTERS_A_POD:
        raise Failure(f"{told} counters of {pods} pods: they are not in use")

    middle = {key: median(values) for key, values in samples.items()}
    bench.figures = {"dump_ms": round(middle["dump"], 3),
                     "ratio_iptables": round(middle["dump"] / middle["save"], 4),
                     "ratio_iptables_legacy": round(middle["dump"] / middle["legacy"], 4),
                     "scrape_ms": round(middle["scrape"], 2), "series": len(scraped)}
    bench.row("dump_ms", f"{middle['dump']:.3f} ms", "<= 1",
              f"{dumped['elements']} elements, {dumped['objects']} named counters and "
              f"{dumped['fast']} of the fast path; wall clock {middle['wall']:.3f} ms")
    bench.row("ratio_iptables", f"{bench.figures['ratio_iptables']:.3f}", "<= 0.1",
              f"iptables-nft-save -c of {pods * COUNTERS_A_POD} rules: {middle['save']:.1f} ms "
              f"of CPU; legacy {middle['legacy']:.1f} ms")
    bench.row("scrape_ms", f"{middle['scrape']:.2f} ms", "<= 2",
              f"{len(scraped)} series, worst {max(samples['scrape']):.1f} ms")
    bench.context.update(n=rounds, pods=pods, peer="iptables-save -c")


if __name__ == "__main__":
    main("acct_scrape", run)
