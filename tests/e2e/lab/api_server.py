#!/usr/bin/env -S python3 -B
"""api_server DIRECTORY ADDRESS NODE...: an API server of Kubernetes with these nodes, made up, on port 6443. The
machine has a pod's service account for it; its key and certificate are in DIRECTORY. Prints "ready"."""

import os
import signal
import sys

TESTS = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path[:0] = [os.path.join(TESTS, folder) for folder in ("alerts", "ha", "support")]
from kubernetes_api import KubernetesApi  # noqa: E402

directory, address, *nodes = sys.argv[1:]
api = KubernetesApi(directory, address)
for node in nodes:
    api.add_node(node)
print("ready", flush=True)
signal.pause()
