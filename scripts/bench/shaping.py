"""Limits of what pods exchange with the Internet: how exact they are, whether the cluster's traffic
notices, whether pods share fairly, and how soon a change holds."""

import json
import os
import re
import subprocess
import sys
import time

from harness import ROOT, Failure, main, median, say, wait_until
from kernel_watch import NETLINK_ROUTE, KernelWatch
from path_node import AgentNode
from path_rig import (NAMESPACES, POD, Path, bench_words, enter_private, inside, ip, lower_quartile,
                      make_plain, make_wire, measure)

INTERNET = "203.0.113.10"
RATES = (10, 100, 1000)  # Mbit/s.
RUNS = 3
SECONDS = 5
ROUNDS = 15
CROWD = 110
NODE_TOTAL = 1000  # Mbit/s.
ASSIGN = ("ingress", "egress")
RTNLGRP_TC = 4
RTM_NEWTCLASS = 40
# A policy of one object, beside which the server says nothing of that length.
LEAST_LIMIT_BYTES = 60


def limit(name, what):
    return (f"apiVersion: spoke/v1\nkind: BandwidthLimit\nmetadata: {{name: {name}}}\n"
            f"spec: {{{what}}}\n")


def per_pod(mbit):
    return limit("shaping", f"perPod: {{ingress: {mbit}Mbit, egress: {mbit}Mbit}}")


class Listener:
    """An iperf3 that serves one test after the other."""

    def __init__(self, bench, namespace, address, port):
        self.process = bench.start(["ip", "netns", "exec", namespace, "iperf3", "-s", "-J", "-B",
                                    address, "-p", str(port)], log=f"iperf3-{port}.log")
        wait_until("iperf3 to listen", 10, lambda: f":{port} " in inside(namespace, "ss", "-Hltn"),
                   0.05)


def iperf_words(namespace, direction, seconds, port, *more):
    words = ["ip", "netns", "exec", namespace, "iperf3", "-c", INTERNET, "-p", str(port), "-J",
             "-t", str(seconds), "--get-server-output", *more]
    return words + (["-R"] if direction == "ingress" else [])


def first_second(result, direction):
    """Bits that the receiver had after a second."""
    intervals = (result["intervals"] if direction == "ingress"
                 else result["server_output_json"]["intervals"])
    return intervals[0]["sum"]["bytes"] * 8 / intervals[0]["sum"]["seconds"]


def run_flow(namespace, direction, seconds, port):
    """Bits of payload a second at the receiver over the whole, and in the first second."""
    done = subprocess.run(iperf_words(namespace, direction, seconds, port), check=False,
                          capture_output=True, text=True)
    result = json.loads(done.stdout or "{}")
    if done.returncode != 0 or "end" not in result:
        raise Failure(f"iperf3 in {namespace}: {result.get('error', done.stderr.strip())}")
    return result["end"]["sum_received"]["bits_per_second"], first_second(result, direction)


class Ping:
    """Round trips to the Internet while something else goes on."""

    def __init__(self, namespace, seconds):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, "ping", "-n", "-i", "0.1", "-c",
             str(int(seconds * 10)), INTERNET], stdout=subprocess.PIPE, text=True)

    def milliseconds(self):
        out, _ = self.process.communicate(timeout=60)
        times = [float(value) for value in re.findall(r"time=([\d.]+) ms", out)]
        if len(times) < 10:
            raise Failure("ping had no answers")
        return median(times)


def measure_accuracy(bench, node, port, runs):
    """(rate, direction) -> shares of the limit, first seconds and queueing times."""
    pod = node.pods[0][0]
    cells = {}
    for mbit in RATES[:1] if bench.quick else RATES:
        node.apply("limit", per_pod(mbit))
        time.sleep(1)
        for direction in ASSIGN:
            cell = cells[mbit, direction] = {"share": [], "first": [], "queue": []}
            for _ in range(runs):
                ping = Ping(pod, SECONDS - 1)
                goodput, first = run_flow(pod, direction, SECONDS, port)
                cell["queue"].append(ping.milliseconds())
                cell["share"].append(goodput / (mbit * 1e6))
                cell["first"].append(first / (mbit * 1e6))
            say(f"  {mbit} Mbit {direction}: " + ", ".join(f"{v:.3f}" for v in cell["share"]))
    return cells


def stock_bandwidth(name, mbit):
    """A plainly routed pod whose link the stock plugin `bandwidth` has limited."""
    path = make_plain(name)
    network = {"cniVersion": "1.0.0", "name": "stock", "type": "bandwidth",
               "ingressRate": mbit * 10**6, "ingressBurst": mbit * 10**4 * 8,
               "egressRate": mbit * 10**6, "egressBurst": mbit * 10**4 * 8,
               "prevResult": {"cniVersion": "1.0.0", "interfaces": [
                   {"name": "spk1"}, {"name": "eth0", "sandbox": f"{NAMESPACES}/{name}-pa"}],
                   "ips": [{"address": f"{POD['a']}/32", "interface": 1}]}}
    environment = dict(os.environ, CNI_COMMAND="ADD", CNI_CONTAINERID=f"{name}-stock",
                       CNI_NETNS=f"{NAMESPACES}/{name}-pa", CNI_IFNAME="eth0",
                       CNI_PATH="/usr/lib/cni")
    done = subprocess.run(["ip", "netns", "exec", f"{name}-a", "/usr/lib/cni/bandwidth"],
                          env=environment, input=json.dumps(network), capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"the stock plugin bandwidth: {done.stdout.strip()} {done.stderr.strip()}")
    return path


def measure_separation(bench, node, far, mbit):
    """CPU a MiB and round trip of a pod that is held back at its Internet limit, over one that is
    not limited and downloads as much; both at once, in turns."""
    limited, free = node.pods[1], node.pods[2]
    port = {"limited": 5301, "free": 5302}
    for one in port.values():
        Listener(bench, far.namespace, INTERNET, one)
    seconds = 600
    load = [bench.start(iperf_words(limited[0], "ingress", seconds, port["limited"]),
                        log="load1.log"),
            bench.start(iperf_words(free[0], "ingress", seconds, port["free"], "-b", f"{mbit}M"),
                        log="load2.log")]
    time.sleep(2)
    paths = {"limited": Path(limited, far.pods[0]), "free": Path(free, far.pods[0])}
    stock = stock_bandwidth("st", mbit)
    cost = {name: {"tcp": [], "rtt": []} for name in (*paths, "stock")}
    for turn in range(2 if bench.quick else ROUNDS):
        order = list(paths) if turn % 2 else list(paths)[::-1]
        for mode, option, key in (("tcp", {"mib": 32}, "p25_ns"), ("rtt", {"rounds": 1280},
                                                                  "p50_ns")):
            results = measure(mode, [paths[name] for name in order], **option)
            for name, result in zip(order, results):
                cost[name][mode].append(result[key])
        cost["stock"]["rtt"].append(measure("rtt", [stock], rounds=640)[0]["p50_ns"])
    cost["stock"]["tcp"].append(measure("tcp", [stock], mib=8)[0]["p25_ns"])
    for process in load:
        if process.poll() is not None:
            raise Failure("a load on the Internet ended too early")
        bench.stop(process)
    return {name: {mode: lower_quartile(values) for mode, values in modes.items()}
            for name, modes in cost.items()}


def max_min(total, wants):
    """Weighted max-min shares, worked out in another way than the product's: raise the level until
    nothing is left. `wants`: (demand, weight)."""
    shares = [0.0] * len(wants)
    open_ones = set(range(len(wants)))
    while open_ones and total > 1e-9:
        level = total / sum(wants[i][1] for i in open_ones)
        full = {i for i in open_ones if wants[i][0] - shares[i] <= level * wants[i][1]}
        if not full:
            for i in open_ones:
                shares[i] += level * wants[i][1]
            break
        for i in full:
            total -= wants[i][0] - shares[i]
            shares[i] = wants[i][0]
        open_ones -= full
    return shares


def measure_sharing(bench, node, far):
    """The largest distance of a pod from its share of the node's total, as a part of it."""
    pods = node.pods[3:]
    total = NODE_TOTAL * 1e6 / 8
    # Each tenth is idle, each fifth wants little, each seventh weighs double.
    paces = [0 if i % 10 == 0 else 250_000 if i % 5 == 1 else None for i in range(len(pods))]
    node.apply("limit", limit("shaping", f"perNode: {{ingress: {NODE_TOTAL}Mbit}}"))
    time.sleep(2)
    wanted = {"namespace": far.namespace, "address": INTERNET, "seconds": 10, "settle": 3,
              "pods": [{"namespace": pod, "pace": pace} for (pod, _), pace in zip(pods, paces)]}
    done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts/bench/crowd.py")],
                          input=json.dumps(wanted), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"the crowd: {done.stderr.strip()}")
    got = json.loads(done.stdout)["bytes_per_second"]
    fair = max_min(total, [(1e12 if pace is None else pace, weight(i))
                           for i, pace in enumerate(paces)])
    errors = [abs(rate / share - 1) for rate, share in zip(got, fair) if share > 0]
    return max(errors), median(errors), sum(got) / total


def weight(number):
    return 2 if number % 7 == 3 else 1


def measure_live(bench, node, far, port, rounds):
    """Milliseconds from a policy's arrival until the class has its new rate, and the packets of the
    cluster that were lost meanwhile."""
    node.apply("limit", per_pod(100))
    time.sleep(2)
    watch = KernelWatch(node.namespace, node.server.port, NETLINK_ROUTE, RTNLGRP_TC, RTM_NEWTCLASS,
                        LEAST_LIMIT_BYTES)
    pod = node.pods[0]
    load = bench.start(iperf_words(pod[0], "ingress", 600, port), log="live.log")
    flow = subprocess.Popen(bench_words("conserve", [Path(pod, far.pods[0])],
                                        seconds=rounds * 2 + 3, rate=4000),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    took = []
    for turn in range(rounds):
        watch.forget()
        node.apply("limit", per_pod(50 if turn % 2 else 80))
        wait_until("the policy at the agent", 10, lambda: watch.arrived)
        time.sleep(1)
        first = watch.arrived[0]
        after = [change - first for change in watch.changed if first <= change <= first + 0.5]
        if not after:
            raise Failure("a new limit has changed no class")
        took.append(after[-1] * 1000)
    out, errors = flow.communicate(timeout=120)
    if flow.returncode != 0:
        raise Failure(f"the flow inside the cluster: {errors.strip()}")
    bench.stop(load)
    watch.stop()
    result = json.loads(out)
    return took, sum(result[key] for key in ("lost", "twice", "order")), result["sent"]


def run(bench):
    enter_private()
    crowd = 8 if bench.quick else CROWD
    make_wire("s")
    near = AgentNode(bench, "s-a", "a", crowd + 6)
    far = AgentNode(bench, "s-b", "b", 4)
    ip(far.namespace, f"address add {INTERNET}/32 dev lo")
    near.attach(1)
    near.attach(1, {"spoke.internal/internet-ingress-bandwidth": "100Mbit"})
    near.attach(1)
    for number in range(crowd):
        near.attach(1, {"spoke.internal/internet-weight": str(weight(number))})
    far.attach(1)
    Listener(bench, far.namespace, INTERNET, 5300)

    cost = measure_separation(bench, near, far, 100)
    runs = 1 if bench.quick else RUNS
    cells = measure_accuracy(bench, near, 5300, runs)
    took, lost, sent = measure_live(bench, near, far, 5300, 4 if bench.quick else 20)
    share_error, share_middle, used = measure_sharing(bench, near, far)

    low = max(max(0.0, 1 - min(cell["share"])) for cell in cells.values())
    high = max(max(0.0, max(cell["share"]) - 1) for cell in cells.values())
    bench.figures = {
        "low_error": round(low, 4), "high_error": round(high, 4),
        "internal_cpu_ratio": round(cost["limited"]["tcp"] / cost["free"]["tcp"], 4),
        "internal_rtt_ratio": round(cost["limited"]["rtt"] / cost["free"]["rtt"], 4),
        "share_error": round(share_error, 4), "live_ms": round(max(took), 2),
        "first_second": round(max(max(cell["first"]) for cell in cells.values()), 4),
        "queue_ms": round(max(max(cell["queue"]) for cell in cells.values()), 2),
        "live_lost": lost,
        "stock_rtt_ratio": round(cost["stock"]["rtt"] / cost["free"]["rtt"], 4)}
    for (mbit, direction), cell in cells.items():
        bench.row(f"{mbit} Mbit {direction}", f"{median(cell['share']):.3f}", "0.95 .. 1.02",
                  f"of the limit ({min(cell['share']):.3f} to {max(cell['share']):.3f}, n={runs}); "
                  f"first second {max(cell['first']):.3f}; the queue adds "
                  f"{median(cell['queue']):.1f} ms")
    figures = bench.figures
    bench.row("low_error", figures["low_error"], "<= 0.05", "the worst single run")
    bench.row("high_error", figures["high_error"], "<= 0.02")
    bench.row("queue_ms", figures["queue_ms"], "<= 100")
    bench.row("internal_cpu_ratio", figures["internal_cpu_ratio"], "<= 1.10",
              f"{cost['limited']['tcp'] / 1000:.0f} us a MiB over {cost['free']['tcp'] / 1000:.0f}")
    bench.row("internal_rtt_ratio", figures["internal_rtt_ratio"], "<= 1.10",
              f"{cost['limited']['rtt'] / 1000:.1f} us over {cost['free']['rtt'] / 1000:.1f}; with "
              f"the stock plugin at 100 Mbit {cost['stock']['rtt'] / 1000:.1f} us")
    bench.row("share_error", figures["share_error"], "<= 0.05",
              f"the worst of {crowd} pods; the middle one {share_middle:.4f}; {used:.3f} of "
              f"{NODE_TOTAL} Mbit in use")
    bench.row("live_ms", figures["live_ms"], "<= 20",
              f"the worst of {len(took)}, median {median(took):.1f}; {lost} of {sent} packets of "
              "the cluster lost meanwhile")
    bench.context.update(n=runs, seconds=SECONDS, rounds=ROUNDS, pods=crowd,
                         peer="an unshaped pod under the same load; the stock plugin bandwidth")


if __name__ == "__main__":
    main("shaping", run)
