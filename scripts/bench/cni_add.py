"""ADD and DEL of a pod, from exec to exit, against the reference plugins turn by turn. The agent does all
that it does for pods, and each address has had another pod a moment ago, as on a node where jobs come
and go; what the first pods of an address wait for is beside it."""

import os
import subprocess

from cni_node import Node, build_empty, enter_namespaces
from harness import BIN, main, median, spread

ROUNDS = 100
WAVES = 5
WAVE = 32
FULL_NODE = 110
PRESENT = (0, 110, 500, 1000)
EXECS = 300
FLOORS = 100


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def show_serial(bench, samples):
    for name, values in sorted(samples.items()):
        bench.row(name, f"{median(values) / 1000:.2f} ms", "",
                  f"p99 {percentile(values, 0.99) / 1000:.2f} ms, n={len(values)}")


def ratio(bench, key, target, ours, theirs):
    value = median(ours) / median(theirs)
    bench.figures[key] = round(value, 4)
    bench.row(key, f"{value:.4f}", f"<= {target}" if target else "",
              f"{median(ours) / 1000:.2f} ms over {median(theirs) / 1000:.2f} ms, "
              f"spread {spread(ours):.1f}/{spread(theirs):.1f}")


def run(bench):
    quick = bench.quick
    rounds = 5 if quick else ROUNDS
    present = (0, 5, 10, 20) if quick else PRESENT
    enter_namespaces()
    node = Node(bench, addresses=64 if quick else 1200, dual=16 if quick else 150, busy=True)

    fresh = node.measure("serial", networks="spoke", rounds=rounds)
    node.wear()
    serial = node.measure("serial", rounds=rounds)
    show_serial(bench, serial)
    for key, target, ours, theirs in (
            ("add_ratio_ptp", 0.10, "spoke_add", "ptp_add"),
            ("del_ratio_ptp", 0.033, "spoke_del", "ptp_del"),
            ("add_ratio_chain", 0.033, "spoke_add", "ptp_chain_add"),
            ("del_ratio_chain", 0.010, "spoke_del", "ptp_chain_del"),
            ("add_dual_ratio", 1.3, "spoke_dual_add", "spoke_add")):
        ratio(bench, key, target, serial[ours], serial[theirs])

    ratio(bench, "add_used_over_fresh", "", serial["spoke_add"], fresh["spoke_add"])

    there = node.measure("present", networks="spoke", rounds=rounds, present=present)
    for count in present:
        show_serial(bench, {f"add with {count} pods": there[f"add_{count}"],
                            f"del with {count} pods": there[f"del_{count}"]})
    for verb in ("add", "del"):
        for key, target, count in (("500", 1.15, present[-2]), ("1000", 1.3, present[-1])):
            ratio(bench, f"{verb}_growth_{key}", target, there[f"{verb}_{count}"], there[f"{verb}_0"])

    waves = node.measure("wave", networks=["spoke", "ptp", "ptp_chain"],
                         size=4 if quick else WAVE, rounds=2 if quick else WAVES)
    ratio(bench, "wave32_ratio_ptp", 0.07, waves["spoke_add"], waves["ptp_add"])
    ratio(bench, "wave32_ratio_chain", 0.033, waves["spoke_add"], waves["ptp_chain_add"])

    full = node.measure("wave", networks="spoke", size=8 if quick else FULL_NODE,
                        rounds=2 if quick else WAVES)
    seconds = median(full["spoke_add"]) / 1e6
    bench.figures["node110_seconds"] = round(seconds, 3)
    bench.row("node110_seconds", f"{seconds:.3f} s", "<= 0.5",
              f"worst {max(full['spoke_add']) / 1e6:.3f} s, n={len(full['spoke_add'])}")

    execs = node.measure("exec", empty=build_empty(bench), rounds=10 if quick else EXECS)
    ratio(bench, "exec_ratio_static", 2.0, execs["plugin"], execs["empty"])
    mebibytes = os.path.getsize(os.path.join(BIN, "spoke")) / 2**20
    bench.figures["plugin_mib"] = round(mebibytes, 3)
    bench.row("plugin_mib", f"{mebibytes:.2f} MiB", "<= 3", linkage())

    floor = node.measure("floor", rounds=10 if quick else FLOORS)
    ratio(bench, "kernel_ratio_floor", 1.3, floor["router"], floor["floor"])

    bench.context["n"] = rounds
    bench.context["peer"] = "containernetworking-plugins " + subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "containernetworking-plugins"], check=True,
        capture_output=True, text=True).stdout


def linkage():
    """Returns whether the plugin is one static file, as the system sees it."""
    said = subprocess.run(["ldd", os.path.join(BIN, "spoke")], check=False, capture_output=True,
                          text=True)
    return "static" if said.returncode != 0 or "statically" in said.stdout else "NOT static"


if __name__ == "__main__":
    main("cni_add", run)
