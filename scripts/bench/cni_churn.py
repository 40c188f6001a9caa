"""Pods that come and go by the thousand: nothing may fail, and nothing may stay."""

import os
import re
import time

from cni_node import Node, enter_namespaces, sh
from harness import Failure, main, memory_kib, say

CYCLES = 10_000
PARALLEL = 16
ADDRESSES = 600
# Enough that what an agent remembers of pods that have gone, and of its log, is full.
WARM_UP = 2000
# Allocators keep what they have once had; this much of the agent's memory may be that.
RSS_SLACK_KIB = 2048


def lines(*words):
    """Returns how many lines a command prints; link-local IPv6 is left out, since the kernel adds that to
    the node's own devices in its own time."""
    return sum("fe80:" not in line and "ff00::" not in line for line in sh(*words).splitlines())


def rule_lines():
    """Returns how many lines the rules have, without the pods that were settled last: the next that are
    settled take their place."""
    return len(re.sub(r"set folded \{.*?\n\t\}", "", sh("nft", "list", "ruleset"), flags=re.S).splitlines())


def count(node):
    """Returns what a node holds that pods could leave behind, by kind."""
    pid = node.agent.pid
    return {
        "links": lines("ip", "-o", "link"),
        "routes4": lines("ip", "-4", "route", "show", "table", "all"),
        "routes6": lines("ip", "-6", "route", "show", "table", "all"),
        "rules": lines("ip", "-4", "rule") + lines("ip", "-6", "rule"),
        "neighbours": lines("ip", "neigh", "show", "nud", "permanent"),
        "set elements": rule_lines(),
        # The kernel keeps what was closed for a minute, such as of the agent's look at its server.
        "sockets": lines("ss", "-xanH") + lines("ss", "-tanH", "exclude", "time-wait"),
        "files of the agent": len(os.listdir(f"/proc/{pid}/fd")),
        "namespaces": len(os.listdir(node.pods)),
        "tombstones": len(os.listdir("/run/spoke/tombstones"))
        if os.path.isdir("/run/spoke/tombstones") else 0,
        "in_use": len([a for a in node.server.ask("ip", "list") if a["state"] == "in_use"]),
    }


def more_than(before, counts):
    """Returns by how much each kind has become more. What has become less was of something that came to an
    end, such as a question to a resolver."""
    return {kind: counts[kind] - before[kind] for kind in before if counts[kind] > before[kind]}


def settle(node, before, seconds=40):
    """Waits until nothing is more than before; returns the counts in the end."""
    deadline = time.monotonic() + seconds
    while True:
        counts = count(node)
        if not more_than(before, counts) or time.monotonic() > deadline:
            return counts
        time.sleep(0.5)


def run(bench):
    cycles = 200 if bench.quick else CYCLES
    enter_namespaces()
    node = Node(bench, addresses=ADDRESSES, cooldown="200ms")
    empty = count(node)
    node.measure("churn", networks="spoke", cycles=50 if bench.quick else WARM_UP,
                 parallel=PARALLEL)
    left = more_than(empty, settle(node, empty))
    if left and not bench.quick:  # A machine that does other things has leftovers that go later.
        raise Failure(f"the warm-up has left something: {left}, beyond {empty}")
    rss = memory_kib(node.agent.pid, "VmRSS")
    journal = os.path.getsize(node.state + "/journal")

    churned = node.measure("churn", networks="spoke", cycles=cycles, parallel=PARALLEL)
    if churned["errors"]:
        say(f"  the first error: {churned['first_error']}")
    after = settle(node, empty)
    leaked = more_than(empty, after)
    rss_growth = memory_kib(node.agent.pid, "VmRSS") - rss
    if rss_growth > RSS_SLACK_KIB:
        leaked["KiB of memory"] = rss_growth
    journal_after = os.path.getsize(node.state + "/journal")
    if journal_after > max(journal, 2 << 20):
        leaked["bytes of journal"] = journal_after

    bench.figures = {"cycles": churned["cycles"], "errors": churned["errors"],
                     "leaked": sum(leaked.values())}
    bench.row("cycles", churned["cycles"], ">= 10000",
              f"{churned['cycles'] / churned['seconds']:.0f} a second, namespaces included")
    bench.row("errors", churned["errors"], "0")
    bench.row("leaked", bench.figures["leaked"], "0", str(leaked) if leaked else "")
    bench.row("memory of the agent", f"{rss_growth:+d} KiB", f"<= {RSS_SLACK_KIB}")
    bench.row("journal", f"{journal_after >> 10} KiB", "<= 2048", f"{journal >> 10} KiB before")
    bench.context.update(n=cycles, parallel=PARALLEL, counts=after, rss_growth_kib=rss_growth)


if __name__ == "__main__":
    main("cni_churn", run)
