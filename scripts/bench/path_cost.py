"""Measures what a packet costs from pod to pod: ours with everything counted and isolated, over the same
path without a single rule, and over what others do."""

from harness import Failure, main, say
from path_node import NO_PUBLISHED_RULES, AgentPair
from path_rig import (enter_private, lower_quartile, make_host, make_linear, make_plain, make_vxlan,
                      measure)

ROUNDS = 15
PACKETS = 5120
MEBIBYTES = 32
TRIPS = 1280
MANY = 500
# IPv4 and UDP headers around 64 bytes.
PACKET_BYTES = 92
# Beside what was sent, a few packets of whoever else is there (neighbour discovery, probes).
STRAY = 64
# mode, its options, the figure it gives
MODES = (("udp", "packets", PACKETS, "p25_ns"), ("tcp", "mib", MEBIBYTES, "p25_ns"),
         ("rtt", "rounds", TRIPS, "p10_ns"))


class Ours:
    """A pair of nodes of ours, and the proof that what was sent took the way that is measured."""

    def __init__(self, bench, name, pods, fast_path="auto", more=""):
        self.name = name
        self.fast = fast_path == "auto"
        self.pair = AgentPair(bench, name, pods, fast_path, more)
        for node in self.pair.nodes.values():
            if bool(node.count("spoke_fast_path_on")) != self.fast:
                raise Failure(f"{node.namespace}: the fast path is not what was asked for")

    def counts(self, kind):
        return {"sent": self.pair.nodes["a"].forwarded(kind, "sent"),
                "received": self.pair.nodes["b"].forwarded(kind, "received")}

    def verify(self, mode, before, sent):
        """A Failure unless both nodes have counted what this round has sent."""
        after = self.counts("bytes")
        for side in after:
            grown = after[side] - before[side]
            least = sent if mode == "tcp" else sent * PACKET_BYTES
            # TCP's own headers: 52 bytes of each segment; counted as the kernel carries them, whole
            # trains of segments under one header.
            most = sent * 1.05 if mode == "tcp" else least
            if mode == "rtt":  # A payload of 8 bytes.
                least = most = sent * 36
            if not least <= grown <= most + STRAY * 1500:
                raise Failure(f"{self.name}, {mode}: {sent} were sent, but {side} has grown by "
                              f"{grown:.0f} bytes: not what was meant is measured")


def networks(bench):
    """Name to path, and ours by name."""
    quick = bench.quick
    many = 10 if quick else MANY
    ours = {"ours": Ours(bench, "o1", 1), "ours, slow path": Ours(bench, "os", 1, "off"),
            "ours, slow, no iptables": Ours(bench, "ox", 1, "off", NO_PUBLISHED_RULES),
            f"ours, {many} pods": Ours(bench, "om", many)}
    paths = {"host": make_host("h"), "plain": make_plain("p"), "plain again": make_plain("q"),
             "linear4": make_linear("l4", 4), "linear256": make_linear("l5", 256),
             "linear1000": make_linear("l6", 40 if quick else 1000), "vxlan": make_vxlan("v")}
    for name, one in ours.items():
        paths[name] = one.pair.path()
    return paths, ours, f"ours, {many} pods"


def measure_all(paths, ours, rounds):
    """name -> mode -> samples. Each round begins with another network."""
    samples = {name: {mode: [] for mode, *_ in MODES} for name in paths}
    names = list(paths)
    for turn in range(rounds):
        order = names[turn % len(names):] + names[:turn % len(names)]
        for mode, option, size, key in MODES:
            before = {name: one.counts("bytes") for name, one in ours.items()}
            results = measure(mode, [paths[name] for name in order], **{option: size})
            for name, result in zip(order, results):
                # Somebody else has paid a part for packets that came late.
                if not result.get("late"):
                    samples[name][mode].append(result[key])
                if name in ours:
                    ours[name].verify(mode, before[name], result["sent"])
        say(f"  round {turn + 1} of {rounds}")
    for name, modes in samples.items():
        for mode, values in modes.items():
            if len(values) * 2 < rounds:
                raise Failure(f"{name}, {mode}: only {len(values)} rounds of {rounds} were whole")
    return {name: {mode: lower_quartile(values) for mode, values in modes.items()}
            for name, modes in samples.items()}


def run(bench):
    enter_private()
    paths, ours, many = networks(bench)
    rounds = 2 if bench.quick else ROUNDS
    cost = measure_all(paths, ours, rounds)

    plain = cost["plain"]
    for name, modes in cost.items():
        bench.row(name, f"{modes['udp']:.0f} ns", "",
                  f"{modes['udp'] / plain['udp']:.3f} of plain; TCP {modes['tcp'] / 1000:.0f} us a "
                  f"MiB, {modes['tcp'] / plain['tcp']:.3f}; round trip {modes['rtt'] / 1000:.2f} "
                  f"us, {modes['rtt'] / plain['rtt']:.3f}")
    for key, target, mode, above, below in (
            ("rel_plain", "<= 0.85", "udp", "ours", "plain"),
            ("bytes_rel_plain", "<= 0.90", "tcp", "ours", "plain"),
            ("rtt_rel_plain", "", "rtt", "ours", "plain"),
            ("slow_rel_plain", "<= 1.15", "udp", "ours, slow path", "plain"),
            ("slow_bare_rel_plain", "", "udp", "ours, slow, no iptables", "plain"),
            ("growth_500", "<= 1.03", "udp", many, "ours"),
            ("rel_host", "<= 1.35", "udp", "ours", "host"),
            ("linear4_rel_plain", "", "udp", "linear4", "plain"),
            ("linear256_rel_plain", "", "udp", "linear256", "plain"),
            ("linear1000_rel_plain", "", "udp", "linear1000", "plain"),
            ("vxlan_rel_plain", "", "udp", "vxlan", "plain"),
            ("noise", "", "udp", "plain again", "plain")):
        value = cost[above][mode] / cost[below][mode]
        bench.figures[key] = round(value, 4)
        bench.row(key, f"{value:.3f}", target)
    bench.context.update(n=rounds, peer="plain routed veth", costs=cost)


if __name__ == "__main__":
    main("path_cost", run)
