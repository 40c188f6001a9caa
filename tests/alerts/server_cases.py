"""Alerts of servers and of their store."""

from case import case
from faults import Full

WRITES = 100  # As many as certainly do not fit into what a full disk has left.


@case("SpokeServerDown", labels={"instance": "server-b"})
def server_down(lab):
    """The process of a server is killed; it is started again."""
    server = lab.pair.servers[1]
    server.kill()
    yield
    server.start()


@case("SpokeStoreNotWritable")
def store_not_writable(lab):
    """The disk of SQLite is full when an operator writes; room is made."""
    full = Full(lab.stored)
    full.begin()
    # What is written first may find room in files that are there.
    for number in range(WRITES):
        cidrs = [f"192.0.{number}.{last}/32" for last in range(256)]
        if not lab.stored.try_apply(("DestinationGroup", f"much-{number}", {"cidrs": cidrs}))[0]:
            break
    yield
    full.end()
