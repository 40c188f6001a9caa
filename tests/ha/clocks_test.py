#!/usr/bin/env python3
"""Machines whose times of day are hours apart, and drift: servers, their standbys and agents, real
processes with real members of etcd. What measures time must not go by what somebody sets; what has
to, certificates, must say so.

usage: clocks_test.py DIRECTORY_OF_PROGRAMS CASE
"""

import json
import os
import subprocess
import sys
import time

from certificates import make_authority, sign
from ha_lab import Lab, eventually, expect, run
from private_node import sh

HOUR = 3600


def shift(lab, machine, hours, drift=0):
    library = os.path.join(lab.programs, "shifted_clock.so")
    machine.set_clock(library, hours * HOUR, drift)
    shown = float(subprocess.run(["date", "+%s"], check=True, capture_output=True, text=True,
                                 env={**os.environ, **machine.clock}).stdout)
    expect(abs(shown - time.time() - hours * HOUR) < 60, f"the clock is not shifted: {shown}")


def check_addresses(lab):
    """No two pods have one address."""
    found = [(address, pod) for agent in lab.agents for pod, address in agent.pods.items()]
    addresses = [address for address, _ in found]
    expect(len(set(addresses)) == len(addresses), f"an address is there twice: {sorted(found)}")


def clocks_apart(programs, directory):
    """The leader is ten hours ahead and goes one part in a hundred too fast, its standby is ten
    hours behind, one node six hours behind: assignments and leadership go on, over a takeover too."""
    with Lab(programs, directory, agents=2) as lab:
        first, second = lab.servers
        shift(lab, first, 10, drift=0.01)
        shift(lab, second, -10)
        shift(lab, lab.agents[0], -6, drift=-0.01)
        lab.start_etcd()
        lab.start_servers()
        for agent in lab.agents:
            agent.start()
        for agent in lab.agents:
            for _ in range(4):
                agent.add()
        check_addresses(lab)
        # Several leases long nothing changes hands.
        end = time.monotonic() + 10
        while time.monotonic() < end:
            lab.write_some(first)
            time.sleep(0.5)
        expect(not second.events("leading") and not first.events("leadership_not_renewed"),
               "the leadership has changed")
        for agent in lab.agents:
            agent.delete(next(iter(agent.pods)))
            agent.add()
        check_addresses(lab)
        first.kill()
        lab.await_write(20, [second])
        lab.check_written()
        for agent in lab.agents:
            connected = len(agent.events("server_connected"))
            eventually(f"{agent.name} is at the next leader", lambda a=agent: len(
                a.events("server_connected")) > 1, 60)
            expect(connected >= 1, f"{agent.name} was at no leader before")
        # What the former leader has stored is from a time twenty hours ahead.
        for agent in lab.agents:
            agent.delete(next(iter(agent.pods)))
            for _ in range(6):
                agent.add()
        check_addresses(lab)
        first.start()
        lab.await_standby(first, second)


def clocks_certificates(programs, directory):
    """A certificate is good by the time of day: of two nodes the one whose clock is two days ahead
    cannot connect, and says why; with a clock that is right it does."""
    with Lab(programs, directory, servers=1, members=1, agents=2) as lab:
        files = os.path.join(directory, "tls")
        make_authority(files)
        lab.servers[0].tls = sign(files, "spoke-ipam-server", "serverAuth")
        lab.start_etcd()
        lab.start_servers()
        right, ahead = lab.agents
        for agent in lab.agents:
            agent.tls = sign(files, agent.name, "clientAuth")
        shift(lab, ahead, 48)
        right.start()
        ahead.start()
        eventually("the node with the right clock is connected",
                   lambda: right.events("server_connected"), 60)
        right.add()
        said = eventually("the other one says that it is not", lambda: [
            line for line in ahead.events("server_unreachable") if "certificate" in line], 60)[0]
        expect("ended" in said and "clock" in said, f"it does not say why: {said}")
        expect(not ahead.events("server_connected"), "it is connected")
        ahead.stop()
        ahead.clock = {}
        ahead.start()
        eventually("with the right clock it is connected",
                   lambda: ahead.events("server_connected"), 60)
        ahead.add()
        check_addresses(lab)


def clocks_cooldown(programs, directory):
    """A node's clock is set an hour ahead while its agent is away: an address in cooldown stays so."""
    with Lab(programs, directory, servers=1, members=1, agents=1) as lab:
        server, agent = lab.servers[0], lab.agents[0]
        agent.cooldown = "600s"
        lab.start_etcd()
        lab.start_servers()
        agent.start()
        agent.add()
        pod, address = next(iter(agent.pods.items()))
        agent.delete(pod)

        def state():
            done, said = server.spokectl("ip", "list", "--node", agent.name, "-o", "json")
            return next(row["state"] for row in json.loads(said)
                        if row["address"] == address) if done else said
        eventually("the server knows of the cooldown", lambda: state() == "cooldown", 20)
        agent.stop()
        shift(lab, agent, 1)
        agent.start()
        eventually("the agent is back", lambda: len(agent.events("server_connected")) > 1, 60)
        agent.add()  # What the server is told comes after what it was told before.
        end = time.monotonic() + 5
        while time.monotonic() < end:
            expect(state() == "cooldown", f"{address} is {state()}")
            time.sleep(0.5)


CASES = {case.__name__: case for case in (clocks_apart, clocks_certificates, clocks_cooldown)}

if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], CASES)
