"""Measures what pods that come and go cost of Azure's limits: calls of any kind, listings included, while the
pods of a cluster are replaced, on a simulated clock."""

import json
import os
import subprocess

from harness import BIN, Failure, main


def churn(bench, *extra):
    size = (["--nodes", "50", "--scale-sets", "1", "--cycles", "2000"] if bench.quick else
            ["--nodes", "300", "--scale-sets", "1", "--cycles", "100000"])
    process = bench.start(
        [os.path.join(BIN, "spoke-azure-bench"), "churn", *size, "--addresses", "27",
         "--pod-seconds", "600", *extra], stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-azure-bench ended with code {process.returncode}")
    return json.loads(text)


def run(bench):
    measured = churn(bench)
    wandering = churn(bench, "--wander")
    bench.figures = {key: measured[key] for key in (
        "calls_per_pod", "calls", "writes", "list_pages", "cycles", "refused_pods", "doubled")}
    bench.row("calls a pod", f"{measured['calls_per_pod']:.5f}", "<= 0.01",
              f"{measured['calls']} calls for {measured['cycles']} pods in "
              f"{measured['hours']:.1f} simulated hours")
    bench.row("  of them writes", f"{measured['writes']}")
    bench.row("  of them pages of listings", f"{measured['list_pages']}")
    bench.figures["calls_per_pod_wandering"] = wandering["calls_per_pod"]
    bench.row("calls a pod when pods go to any node, however full",
              f"{wandering['calls_per_pod']:.5f}", "", f"{wandering['writes']} writes")
    bench.row("pods that found no address", f"{measured['refused_pods']}", "",
              f"{measured['running_pods']} running at the end")
    bench.row("addresses doubled", f"{measured['doubled']}")
    bench.context.update(n=1, pod_seconds=600, nodes=50 if bench.quick else 300)


if __name__ == "__main__":
    main("azure_calls", run)
