#!/usr/bin/env -S python3 -B
"""Fifty simulated agents against a real server: they obtain, assign and give back addresses while it
is killed and started again, and nothing that it acknowledged is lost or given twice.

usage: SPOKE_BIN=DIRECTORY_OF_PROGRAMS swarm_test.py
"""

import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/bench"))

# pylint: disable=wrong-import-position
from fleet import Server, Swarm, count_lost  # noqa: E402
from harness import Bench, Failure, leave_on_signals, say  # noqa: E402

AGENTS = 50
ADDRESSES = 27
ASSIGNED = 200
RESTARTS = 3


def expect(what, got, want):
    if got != want:
        raise Failure(f"{what}: wanted {want}, got {got}")


def test_storm(bench):
    """Every agent gets its addresses, and the server says the same."""
    server = Server(bench, "storm")
    server.start()
    result = Swarm(bench, server, "storm", agents=AGENTS, addresses=ADDRESSES).result()
    expect("addresses", result["addresses"], AGENTS * ADDRESSES)
    expect("attached", server.ask("status")["addresses_attached"], AGENTS * ADDRESSES)
    server.stop()


def test_churn(bench, name, **options):
    """Assignments and releases are acknowledged, and in the end the server knows all assignments."""
    server = Server(bench, name)
    server.start()
    swarm = Swarm(bench, server, "churn", agents=AGENTS, addresses=ADDRESSES, seconds=1,
                  warm_up=0.1, pods=3, **options)
    swarm.event("ready")
    swarm.event("measured")
    if not swarm.result()["operations"]:
        raise Failure("nothing was acknowledged")
    server.stop()


def test_restarts(bench):
    """The server is killed while pods come and go."""
    server = Server(bench, "restarts")
    server.start()
    swarm = Swarm(bench, server, "recover", agents=AGENTS, addresses=ADDRESSES, assign=ASSIGNED, pods=3)
    swarm.event("ready")
    expect("in_use", server.ask("status")["addresses_in_use"], ASSIGNED)
    swarm.tell("work")
    for i in range(RESTARTS):
        time.sleep(0.3)  # Some work is done, how much does not matter.
        server.kill()
        swarm.tell("killed")
        swarm.tell(f"holdings {bench.path(f'holdings{i}')}")
        swarm.event("written")
        copy = server.copy_store(f"copy{i}")
        copy.start()
        expect("lost", count_lost(bench.path(f"holdings{i}"), copy.ask("ip", "list")), 0)
        copy.stop()
        server.start()
        swarm.tell("wait")
        expect("synced", swarm.event("synced")["synced"], AGENTS)
    swarm.tell("rest")
    if not swarm.event("resting")["operations"]:
        raise Failure("no operation was acknowledged between the restarts")
    swarm.tell(f"holdings {bench.path('holdings')}")
    swarm.event("written")
    with open(bench.path("holdings"), encoding="ascii") as lines:
        fields = [line.rstrip("\n").split("\t") for line in lines]
    expect("not acknowledged at rest", [f for f in fields if f[4] != "1"], [])
    addresses = server.ask("ip", "list")
    expect("lost", count_lost(bench.path("holdings"), addresses), 0)
    expect("in_use", len([a for a in addresses if a["state"] == "in_use"]),
           len([f for f in fields if f[2] == "in_use"]))
    swarm.result()
    server.stop()


def main():
    leave_on_signals()
    try:
        with tempfile.TemporaryDirectory() as above, Bench("swarm_test", True, above) as bench:
            test_storm(bench)
            test_churn(bench, "single")
            test_churn(bench, "coalesced", coalesce=True)
            test_restarts(bench)
    except Failure as failure:
        say(f"swarm_test: FAILED: {failure}")
        sys.exit(1)
    say("swarm_test: OK")


if __name__ == "__main__":
    main()
