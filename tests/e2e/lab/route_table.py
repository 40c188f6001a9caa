#!/usr/bin/env python3
"""Keeps a router's routes as a cloud's route table would have them: each attached address goes to the
node that has it.

usage: route_table.py ATTACHMENTS_FILE NODE=NEXT_HOP...

Reads the attachments file again whenever it was replaced. Nodes that are not named are left out."""

import os
import subprocess
import sys
import time

PROTOCOL = "77"  # Marks the routes that are ours.
LOOK_AGAIN_SECONDS = 0.1


def wanted_routes(text, next_hops):
    """Returns the next hop by destination."""
    routes = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3 and not line.startswith("#") and fields[2] in next_hops:
            routes[fields[0]] = next_hops[fields[2]]
    return routes


def plan(wanted, present):
    """The lines for ip -batch that turn `present` into `wanted`."""
    removed = [f"route del {to} proto {PROTOCOL}" for to in present if to not in wanted]
    changed = [f"route replace {to} via {via} proto {PROTOCOL}"
               for to, via in wanted.items() if present.get(to) != via]
    return removed + changed


def identity(path):
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def main():
    path, next_hops = sys.argv[1], dict(pair.split("=") for pair in sys.argv[2:])
    present, seen = {}, None
    print("ready", flush=True)
    while True:
        now = identity(path)
        if now != seen and now is not None:
            with open(path, encoding="utf-8") as file:
                wanted = wanted_routes(file.read(), next_hops)
            subprocess.run(["ip", "-batch", "-"], input="\n".join(plan(wanted, present)) + "\n",
                           text=True, check=True)
            present, seen = wanted, now
            print(f"{len(present)} routes", flush=True)
        time.sleep(LOOK_AGAIN_SECONDS)


if __name__ == "__main__":
    main()
