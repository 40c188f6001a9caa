#!/usr/bin/env python3
"""Three servers, three members of etcd and four nodes, real processes each in a network namespace of
its own, under load: pods come and go on each node, and an operator writes. Meanwhile anything is killed,
paused, cut off, loses packets, has a full disk or is drained at random. At every moment an address has one
pod, and rests before the next one; afterwards kernels, journals, servers and store agree, and nothing that was
acknowledged is lost.

usage: chaos_test.py DIRECTORY_OF_PROGRAMS [--minutes N] [--seed N]
"""

import argparse
import collections
import contextlib
import os
import random
import sys
import tempfile
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "ha")]

from faults import Killed, choose, give_disk, take_disks  # noqa: E402
from ha_lab import Failed, Lab, enter_network, eventually, expect  # noqa: E402
from runtime import Holders, Runtime  # noqa: E402
import settled  # noqa: E402

AT_ONCE = 2  # So many faults.
NODES = 4
PODS = 5  # The most on one node.


class Chaos:
    """Begins faults and ends them, and starts again what has ended by itself, as a kubelet does."""

    def __init__(self, lab, seed):
        self.lab = lab
        self.random = random.Random(seed)
        self.under_way = []  # With the time when each is over.
        self.counts = collections.Counter()

    def step(self):
        now = time.monotonic()
        for entry in [entry for entry in self.under_way if entry[1] <= now]:
            self.under_way.remove(entry)
            entry[0].end()
        if len(self.under_way) < AT_ONCE and self.random.random() < 0.15:
            fault = self.next_fault()
            if fault is not None:
                print(f"{fault}", flush=True)
                fault.begin()
                self.counts[type(fault).__name__.lower()] += 1
                self.under_way.append((fault, now + self.random.uniform(0.3, 6)))
        self.revive()

    def next_fault(self):
        """Begins with the leader's end, so that each run has a takeover; then anything."""
        leader = self.lab.leader() if not self.counts else None
        if leader is not None:
            return Killed(leader)
        return choose(self.random, self.lab, [entry[0] for entry in self.under_way])

    def revive(self):
        down = {fault.machine for fault, _ in self.under_way if fault.holds_down}
        for machine in self.lab.members + self.lab.servers + self.lab.agents:
            if machine not in down and not machine.runs():
                machine.start()

    def finish(self):
        for fault, _ in self.under_way:
            fault.end()
        self.under_way = []
        self.revive()


class Writer(threading.Thread):
    """An operator who writes all the time, to whoever takes it."""

    def __init__(self, lab):
        super().__init__(name="writer", daemon=True)
        self.lab = lab
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.2):
            for server in self.lab.servers:
                if server.runs() and self.lab.write(server, timeout="2s")[0]:
                    break


def build(lab):
    """Small disks, and fewer addresses than the nodes would like to have; but enough for their pods."""
    for machine in lab.members:
        give_disk(machine, 400)
    for machine in lab.agents:
        give_disk(machine, 2)
    for machine in lab.servers:
        give_disk(machine, 2)
        machine.pool = "10.60.0.0/26"
    lab.start_etcd()
    lab.start_servers()
    for agent in lab.agents:
        agent.start()


def check_coverage(chaos, runtimes, holders, minutes):
    """A run in which little has happened shows little."""
    made = sum(runtime.made for runtime in runtimes)
    leaders = sum(len(server.events("leading")) for server in chaos.lab.servers)
    print(f"{minutes} minutes: {sum(chaos.counts.values())} faults "
          f"({', '.join(f'{count} {kind}' for kind, count in sorted(chaos.counts.items()))}), "
          f"{made} pods, {holders.reused} addresses used again, "
          f"{sum(runtime.killed for runtime in runtimes)} plugins killed, "
          f"{sum(runtime.failed for runtime in runtimes)} ADDs failed, {leaders} leaders, "
          f"{len(chaos.lab.written)} writes")
    expect(sum(chaos.counts.values()) >= 8 * minutes, "there were hardly any faults")
    expect(made >= 60 * minutes and holders.reused >= 20 * minutes, "there were hardly any pods")
    expect(leaders >= 2, "only one server has led")


@contextlib.contextmanager
def running(programs, directory):
    """A lab that runs, on disks of its own, which go with it."""
    with contextlib.ExitStack() as disks:
        with Lab(programs, directory, servers=3, members=3, agents=NODES) as lab:
            disks.callback(take_disks, lab)
            build(lab)
            yield lab


def run(programs, directory, minutes, seed):
    """One run."""
    with running(programs, directory) as lab:
        settled.await_connected(lab)
        holders = Holders()
        runtimes = [Runtime(agent, holders, f"{seed}-{agent.name}", PODS) for agent in lab.agents]
        writer = Writer(lab)
        for thread in [*runtimes, writer]:
            thread.start()
        chaos = Chaos(lab, seed)
        over = time.monotonic() + 60 * minutes
        while time.monotonic() < over:
            chaos.step()
            expect(not holders.broken, "; ".join(holders.broken))
            time.sleep(0.1)
        chaos.finish()
        for runtime in runtimes:
            runtime.churning.clear()
        writer.over.set()
        writer.join()
        while any(runtime.is_alive() for runtime in runtimes):
            chaos.revive()  # What a fault has broken may end only now.
            time.sleep(0.2)
        for runtime in runtimes:
            expect(runtime.error is None, f"{runtime.name}: {runtime.error}")
        check_coverage(chaos, runtimes, holders, minutes)
        stop = threading.Event()
        reviver = threading.Thread(target=lambda: revive_until(chaos, stop), daemon=True)
        reviver.start()
        try:
            settled.check(lab, runtimes, lambda: eventually("a server leads", lab.leader, 60))
        finally:
            stop.set()
            reviver.join()
        expect(not holders.broken, "; ".join(holders.broken))


def revive_until(chaos, stop):
    while not stop.wait(0.5):
        chaos.revive()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("programs", help="the directory of the programs")
    parser.add_argument("--minutes", type=float, default=1, help="how long faults go on (default: 1)")
    parser.add_argument("--seed", help="which faults, in which order; when they meet what is no seed decides")
    options = parser.parse_args()
    seed = options.seed or str(random.SystemRandom().randrange(1_000_000))
    print(f"seed {seed}", flush=True)
    enter_network()
    with tempfile.TemporaryDirectory(dir="/run") as directory:
        try:
            run(options.programs, directory, options.minutes, seed)
        except Failed as failure:
            sys.exit(f"chaos_test: seed {seed}: {failure}")


if __name__ == "__main__":
    main()
