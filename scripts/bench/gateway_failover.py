"""Measures how long new connections through an egress gateway fail once the tunnel into it is cut, and
whether connections by another gateway lose anything; in namespaces, with real rules, tunnels and
probes."""

import json
import os
import subprocess

from harness import BIN, Failure, main, median


def run(bench):
    process = bench.start([os.path.join(BIN, "spoke-gateway-bench"), "--rounds",
                           "2" if bench.quick else "10"], stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failure(f"spoke-gateway-bench ended with code {process.returncode}")
    measured = json.loads(text)
    for key, what in (("failover_s", "new connections fail, s"),
                      ("back_s", "until the gateway is used again, s")):
        values = measured[key]
        bench.figures[key] = round(median(values), 2)
        bench.row(what, f"{median(values):.2f}", "", f"{min(values):.2f} to {max(values):.2f}")
    bench.figures["others_lost"] = measured["others_lost"]
    bench.row("packets by the other gateway without an answer", str(measured["others_lost"]), "0",
              f"of {measured['others_asked']}")
    bench.context["n"] = len(measured["failover_s"])


if __name__ == "__main__":
    main("gateway_failover", run)
