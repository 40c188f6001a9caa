"""Measures what a node with 250 pods pays for its agent at rest, and how large an image of ours is."""

import json
import os
import subprocess
import time

from harness import BIN, ROOT, Failure, cpu_seconds, main, median, memory_kib
from path_node import AgentNode
from path_rig import enter_private, make_wire

PODS = 250
SECONDS = 60
PAUSE = 15  # The seconds until what followed the last ADD is over.
WINDOW = 5  # Seconds; the clock that counts CPU time ticks every 10 ms.
MEBIBYTE = 1 << 20


def make_image(bench):
    """Builds the image as users get it; what scripts/image.sh says of it."""
    done = subprocess.run(
        [os.path.join(ROOT, "scripts/image.sh"), "-o", bench.path("image.tar"), "--json"],
        env={**os.environ, "SPOKE_BIN": BIN}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"the image cannot be made: {done.stderr.strip()}")
    return json.loads(done.stdout)


def watch(node, seconds, window):
    """The agent at rest: resident MiB twice a second, shares of a core a window, scrapes."""
    resident, shares, scrapes = [], [], 0
    began = since = time.monotonic()
    used = cpu_seconds(node.agent.pid)
    while since - began < seconds:
        # Prometheus does it like this.
        if scrapes <= (time.monotonic() - began) // 15:
            node.scrape()
            scrapes += 1
        time.sleep(0.5)
        resident.append(memory_kib(node.agent.pid, "VmRSS") / 1024)
        now = time.monotonic()
        if now - since >= window:
            used_now = cpu_seconds(node.agent.pid)
            shares.append((used_now - used) / (now - since))
            used, since = used_now, now
    return resident, shares, scrapes


def run(bench):
    pods = 5 if bench.quick else PODS
    seconds = 3 if bench.quick else SECONDS
    enter_private()
    make_wire("o")
    node = AgentNode(bench, "o-a", "a", pods + 2)
    node.attach(pods)
    time.sleep(1 if bench.quick else PAUSE)

    used, began = cpu_seconds(node.agent.pid), time.monotonic()
    resident, shares, scrapes = watch(node, seconds, 1 if bench.quick else WINDOW)
    share = (cpu_seconds(node.agent.pid) - used) / (time.monotonic() - began)
    peak = memory_kib(node.agent.pid, "VmHWM") / 1024
    image = make_image(bench)
    unpacked, packed = image["unpacked_bytes"] / MEBIBYTE, image["file_bytes"] / MEBIBYTE

    bench.figures = {"agent_rss_mib": round(max(resident), 1),
                     "agent_rss_median_mib": round(median(resident), 1),
                     "agent_peak_mib": round(peak, 1),
                     "agent_cpu": round(share, 5), "agent_cpu_median": round(median(shares), 5),
                     "agent_cpu_worst": round(max(shares), 5),
                     "image_mib": round(unpacked, 1), "image_file_mib": round(packed, 1)}
    bench.row("agent_rss_mib", f"{max(resident):.1f} MiB", "<= 25",
              f"the worst; median {median(resident):.1f}, ever {peak:.1f} MiB, {pods} pods")
    bench.row("agent_cpu", f"{share:.4f} of a core", "<= 0.001",
              f"{seconds} s, {scrapes} scrapes included; of its windows the median "
              f"{median(shares):.4f}, the worst {max(shares):.4f}")
    bench.row("image_mib", f"{unpacked:.1f} MiB", "<= 60",
              f"unpacked, {image['files']} entries; the file to load has {packed:.1f} MiB")
    bench.context.update(n=1, pods=pods, seconds=seconds)


if __name__ == "__main__":
    main("footprint", run)
