"""Measures how long 7,500 nodes that join at once keep the taint that the kubelet gave them once they are
fit, and how much is written to the Kubernetes API then and later. The API server is played, over HTTP, with
a latency of 10 ms a call and 200 changes at once, as kube-apiserver's default is; the part of the server
that writes is the real one. Times to hold a verdict are shortened, so that nodes change within seconds."""

import json
import os
import subprocess

from harness import BIN, Failure, main

NODES = 7500


def run(bench):
    nodes, seconds = (300, 5) if bench.quick else (NODES, 60)
    process = bench.start([os.path.join(BIN, "spoke-nodes-bench"), "--nodes", str(nodes), "--seconds", str(seconds)],
                          stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-nodes-bench ended with code {process.returncode}")
    measured = json.loads(text)
    if measured["left"] != 0:
        raise Failure(f"{measured['left']} nodes have kept their taint: {measured['problem']}")
    bench.figures = {key: measured[key] for key in
                     ("fit_s", "told_s", "writes_per_join", "api_writes_per_s", "most_writes_in_a_second")}
    bench.row(f"{nodes} nodes join at once: the last is lifted, s", f"{measured['fit_s']:.1f}", "<= 60",
              f"and has its condition after {measured['told_s']:.1f} s")
    bench.row("writes a node that joins", f"{measured['writes_per_join']:.2f}", "<= 2")
    bench.row("writes a second while nodes come and go", f"{measured['api_writes_per_s']:.1f}", "<= 20",
              f"at most {measured['most_writes_in_a_second']} in one second")
    bench.context.update(n=1, nodes=nodes, seconds=seconds, refused=measured["refused"])


if __name__ == "__main__":
    main("nodes", run)
