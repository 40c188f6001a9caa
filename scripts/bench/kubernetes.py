"""A hundred pods at once on a real Kubernetes, Spoke against the stock chain of reference plugins."""

import os
import subprocess

from harness import BIN, ROOT, Failure, main, median, say, spread

ROUNDS = 3
PODS = 100
PATIENCE = 1800  # Seconds, for all of it.


def program(bench):
    tools = subprocess.run([os.path.join(ROOT, "scripts/kubernetes.sh")], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.strip()
    image = bench.path("spoke.tar")
    environment = {**os.environ, "KUBERNETES_BIN": tools, "SPOKE_BIN": BIN}
    subprocess.run([os.path.join(ROOT, "scripts/image.sh"), "-o", image], check=True,
                   env=environment, stdout=subprocess.DEVNULL)
    rounds, pods = (1, 10) if bench.quick else (ROUNDS, PODS)
    return [os.path.join(ROOT, "tests/kubernetes/kubernetes_bench.sh"), BIN, image, str(rounds),
            str(pods)], environment


def read_figures(process):
    """Name to all its values, as they come."""
    figures = {}
    for line in process.stdout:
        words = line.split()
        if words[:1] == ["figure"]:
            figures.setdefault(words[1], []).append(float(words[2]))
        else:
            say(line.rstrip())
    return figures


def run(bench):
    command, environment = program(bench)
    process = bench.start(command, stdout=subprocess.PIPE, text=True, env=environment)
    figures = read_figures(process)
    if process.wait(timeout=PATIENCE) != 0:
        raise Failure("the cluster's script failed; its last words are above")
    for key, name, target in (("pods100_ratio", "pods_ms", 1.0), ("cni_share_ratio", "cni_ms", 0.2)):
        ours, stock = figures[f"{name}.spoke"], figures[f"{name}.stock"]
        bench.figures[key] = round(median(ours) / median(stock), 4)
        bench.figures[f"{name}_spoke"] = round(median(ours), 2)
        bench.figures[f"{name}_stock"] = round(median(stock), 2)
        bench.row(key, f"{bench.figures[key]:.3f}", f"<= {target}",
                  f"{median(ours):.0f} ms (spread {spread(ours):.0%}) over {median(stock):.0f} ms "
                  f"(spread {spread(stock):.0%})")
    for key in ("lost_pings", "left_behind"):
        bench.figures[key] = int(figures[key][0])
        bench.row(key, str(bench.figures[key]), "0")
    bench.context.update({"n": len(figures["pods_ms.spoke"]), "pods": 10 if bench.quick else PODS,
                          "peer": "ptp, host-local, portmap, bandwidth, firewall 1.1.1"})


if __name__ == "__main__":
    main("kubernetes", run)
