#!/usr/bin/env python3
"""Has each alert of conf/alerts.yaml fire and be resolved, in Debian's Prometheus, which reads real servers
and agents: each condition is caused, and ended. Prints a table. An alert without a case is an error.

usage: alerts_test.py DIRECTORY_OF_PROGRAMS [ALERT...]
       alerts_test.py --check    only whether each alert has a case
"""

import os
import sys
import tempfile
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, folder) for folder in ("ha", "chaos", "support")]

from alert_lab import AlertLab  # noqa: E402
import azure_cases  # noqa: E402
from case import play  # noqa: E402
import cluster_cases  # noqa: E402
from ha_lab import Failed, enter_network, eventually, expect  # noqa: E402
import node_cases  # noqa: E402
import policy_cases  # noqa: E402
import rules  # noqa: E402
import server_cases  # noqa: E402
from watcher import Watcher  # noqa: E402

RULES = os.path.join(os.path.dirname(TESTS), "conf", "alerts.yaml")
QUIET = 12  # Seconds in which no alert may fire, before anything is done: longer than any `for` is here.
LAST_LOOK = 120  # Seconds in which all is over: agents look at their nodes once a minute.

# Cases of one list are played one after the other; the lists beside each other, since they have nothing
# in common.
TRACKS = {
    "pair": [server_cases.etcd_nearly_full, server_cases.server_down, server_cases.no_leader],
    "store": [server_cases.store_not_writable, server_cases.agent_away, server_cases.recovery,
              server_cases.address_doubled, server_cases.pool_full, server_cases.releases_frozen,
              node_cases.node_loses_packets, node_cases.probes_lost],
    "addresses": [server_cases.addresses_quarantined, server_cases.promise_broken],
    "azure": [azure_cases.attach_slow, azure_cases.audit_differences, azure_cases.cloud_throttles,
              azure_cases.cloud_denies, azure_cases.certificate_ends],
    "policy": [policy_cases.policy_refused, policy_cases.traffic_leaks,
               policy_cases.pod_over_share, policy_cases.shaper_missing, policy_cases.budget_saturated,
               policy_cases.budget_unknown],
    "node": [node_cases.add_errors, node_cases.rules_drift, node_cases.traffic_unreadable,
             node_cases.conntrack_nearly_full, node_cases.conntrack_drops],
    "iptables": [node_cases.published_rules_missing, node_cases.iptables_mixed, node_cases.node_warned],
    "cluster": [cluster_cases.kubernetes_unusable, cluster_cases.nodes_unfit,
                cluster_cases.audit_old],
}


class Track(threading.Thread):
    """Plays the cases of one list. It lives until end(), since what a thread has started may end with it
    (die_with_parent())."""

    def __init__(self, name, cases, lab, watcher):
        super().__init__(name=name, daemon=True)
        self.played = threading.Event()
        self.over = threading.Event()
        self.cases = cases
        self.lab = lab
        self.watcher = watcher
        self.rows = []
        self.errors = []  # A case that fails does not keep the others from being played.

    def run(self):
        self.play()
        self.played.set()
        self.over.wait()

    def end(self):
        self.over.set()
        self.join()

    def play(self):
        for case in self.cases:
            try:
                for row in play(case, self.lab, self.watcher):
                    self.rows.append(row)
                    print(f"{self.name}: {row.alert} fired after {row.fired:.1f} s, was resolved after "
                          f"{row.resolved:.1f} s", flush=True)
            except Exception as error:  # Read by the main thread, which fails by it.
                self.errors.append(f"{', '.join(case.alerts)}: {type(error).__name__}: {error}")
                print(f"{self.name}: {self.errors[-1]}", flush=True)


def check_covered(wanted):
    """Each alert of the rules has one case, and no case is of an alert that is not there."""
    have = [alert for cases in TRACKS.values() for case in cases for alert in case.alerts]
    expect(len(have) == len(set(have)), "an alert has two cases")
    expect(wanted, "the file has no rules")
    missing = [alert for alert in wanted if alert not in have]
    expect(not missing, f"conf/alerts.yaml has alerts without a case: {', '.join(missing)}")
    unknown = [alert for alert in have if alert not in wanted]
    expect(not unknown, f"conf/alerts.yaml has no alert {', '.join(unknown)}")


def await_calm(watcher):
    """Until all is read and nothing fires; then nothing may for a while."""
    eventually("all targets are up", lambda: not watcher.targets_down(), 60)
    eventually("all rules work", lambda: not watcher.broken_rules(), 30)
    eventually("nothing fires", lambda: not watcher.alerts(), 60)
    over = time.monotonic() + QUIET
    while time.monotonic() < over:
        firing = watcher.alerts(states=("firing",))
        expect(not firing, f"all is well, and this fires: {firing}")
        time.sleep(0.2)


def print_table(rows, wanted):
    """The rows, in the order of the rules."""
    width = max(len(name) for name in wanted)
    print(f"\n{'ALERT':{width}}  FIRED  RESOLVED  BY        CAUSED, AND ENDED")
    for row in sorted(rows, key=lambda row: wanted.index(row.alert)):
        print(f"{row.alert:{width}}  {row.fired:3.0f} s  {row.resolved:6.0f} s  {row.case.by:8}  "
              f"{row.case.how}")


def play_all(lab, watcher, wanted, chosen):
    """Plays the cases of the chosen alerts, and prints the table."""
    tracks = [Track(name, [case for case in cases if chosen & set(case.alerts)], lab, watcher)
              for name, cases in TRACKS.items()]
    for track in tracks:
        track.start()
    for track in tracks:
        track.played.wait()
    rows = [row for track in tracks for row in track.rows]
    print_table(rows, wanted)
    errors = [error for track in tracks for error in track.errors]
    expect(not errors, "\n".join(errors))
    expect(chosen <= {row.alert for row in rows}, "not all of them have been played")
    try:
        eventually("nothing fires any more", lambda: not watcher.alerts(), LAST_LOOK)
    except Failed as failure:
        raise Failed(f"{failure}: {watcher.alerts()}") from failure
    for track in tracks:
        track.end()


def run(programs, directory, wanted, chosen):
    with open(RULES, encoding="utf-8") as file:
        watcher = Watcher(directory, rules.shortened(file.read()))
    with AlertLab(programs, directory) as lab:
        try:
            watcher.start(lab.jobs())
            await_calm(watcher)
            play_all(lab, watcher, wanted, chosen)
        finally:
            watcher.kill()


def main(programs, *named):
    with open(RULES, encoding="utf-8") as file:
        wanted = rules.names(file.read())
    begun = time.monotonic()
    try:
        check_covered(wanted)
        if programs == "--check":
            return
        unknown = set(named) - set(wanted)
        expect(not unknown, f"no such alert: {', '.join(unknown)}")
        # Each of hundreds of spokectls and plugins would look for leaks when it ends; other tests do.
        os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        enter_network()
        with tempfile.TemporaryDirectory(dir="/run") as directory:
            run(os.path.abspath(programs), directory, wanted, set(named or wanted))
    except Failed as failure:
        sys.exit(f"alerts_test: {failure}")
    print(f"{len(named or wanted)} alerts, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
