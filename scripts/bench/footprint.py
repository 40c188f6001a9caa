"""What a node with 110 pods pays for its agent at rest, and how large an image of ours is."""

import os
import re
import time

from harness import BIN, cpu_seconds, main, memory_kib
from path_node import AgentNode
from path_rig import enter_private, make_wire, sh

PODS = 110
SECONDS = 60
PAUSE = 15  # Until what followed the last ADD is over.
NODE_PROGRAMS = ("spoke-netagent", "spoke")
# What the agent runs: iptables of both back ends, with their extensions.
TOOLS = ("/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi")
EXTENSIONS = "/usr/lib/x86_64-linux-gnu/xtables"
SERVER_PROGRAMS = ("spoke-ipam-server", "spokectl")
LIBRARY = re.compile(r"(/\S+) \(0x")
MEBIBYTE = 1 << 20


def stripped_size(bench, program):
    """As a package would have it."""
    copy = bench.path(f"{program}.stripped")
    sh("strip", "-o", copy, os.path.join(BIN, program))
    return os.path.getsize(copy)


def libraries(program):
    """The shared objects it is started with, as files, the loader included."""
    # A static program has none, and ldd says so by failing. A path stays as it is when joined.
    text = sh("sh", "-c", f"ldd {os.path.join(BIN, program)} || true")
    return {os.path.realpath(path) for path in LIBRARY.findall(text)}


def extensions():
    """The plugins of the tools, as files."""
    return {os.path.realpath(os.path.join(EXTENSIONS, name)) for name in os.listdir(EXTENSIONS)}


def image_mib(bench, programs, tools=()):
    """What an image holds that has these programs and tools, and nothing they do not need."""
    needed = set().union(*(libraries(program) for program in (*programs, *tools)), tools)
    if tools:
        needed |= extensions()
    size = sum(stripped_size(bench, program) for program in programs)
    return (size + sum(os.path.getsize(path) for path in needed)) / MEBIBYTE, len(needed)


def run(bench):
    pods = 5 if bench.quick else PODS
    seconds = 3 if bench.quick else SECONDS
    enter_private()
    make_wire("o")
    node = AgentNode(bench, "o-a", "a", pods + 2)
    node.attach(pods)
    time.sleep(1 if bench.quick else PAUSE)

    began, used = time.monotonic(), cpu_seconds(node.agent.pid)
    scrapes = 0
    while time.monotonic() - began < seconds:
        # As Prometheus does it.
        if scrapes <= (time.monotonic() - began) // 15:
            node.scrape()
            scrapes += 1
        time.sleep(0.5)
    share = (cpu_seconds(node.agent.pid) - used) / (time.monotonic() - began)
    rss = memory_kib(node.agent.pid, "VmRSS") / 1024
    peak = memory_kib(node.agent.pid, "VmHWM") / 1024
    both, _ = image_mib(bench, NODE_PROGRAMS + SERVER_PROGRAMS, TOOLS)
    of_node, of_files = image_mib(bench, NODE_PROGRAMS, TOOLS)
    of_server, _ = image_mib(bench, SERVER_PROGRAMS)

    bench.figures = {"agent_rss_mib": round(rss, 1), "agent_peak_mib": round(peak, 1),
                     "agent_cpu": round(share, 5), "image_mib": round(both, 1),
                     "node_image_mib": round(of_node, 1), "server_image_mib": round(of_server, 1)}
    bench.row("agent_rss_mib", f"{rss:.1f} MiB", "<= 40", f"peak {peak:.1f} MiB, {pods} pods")
    bench.row("agent_cpu", f"{share:.4f} of a core", "<= 0.01",
              f"{seconds} s, {scrapes} scrapes included")
    bench.row("image_mib", f"{both:.1f} MiB", "<= 60",
              f"all four programs, iptables, and the shared objects they need; for a node alone "
              f"{of_node:.1f} MiB in {of_files} files and two programs, the server's "
              f"{of_server:.1f} MiB")
    bench.context.update(n=1, pods=pods, seconds=seconds)


if __name__ == "__main__":
    main("footprint", run)
