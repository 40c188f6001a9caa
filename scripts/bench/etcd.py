"""A cluster of etcd for benchmarks: real members on loopback, with their data in the benchmark's
directory."""

import json
import os
import signal
import subprocess

from harness import Failure, low_port, wait_until

# The timings that docs/HA.md asks for, in milliseconds.
HEARTBEAT_MS = 50
ELECTION_MS = 500
MEMBERS = 3


class Etcd:
    """Three members, started and healthy. They end with the benchmark."""

    def __init__(self, bench, name="etcd"):
        self.bench = bench
        self.name = name
        self.clients = [low_port() for _ in range(MEMBERS)]
        self.peers = [low_port() for _ in range(MEMBERS)]
        self.processes = [None] * MEMBERS
        for member in range(MEMBERS):
            self.start(member)
        self.await_health()

    @property
    def endpoints(self):
        return [f"http://127.0.0.1:{port}" for port in self.clients]

    def start(self, member):
        client = f"http://127.0.0.1:{self.clients[member]}"
        peer = f"http://127.0.0.1:{self.peers[member]}"
        everybody = ",".join(f"m{i}=http://127.0.0.1:{port}" for i, port in enumerate(self.peers))
        self.processes[member] = self.bench.start(
            ["/usr/bin/etcd", "--name", f"m{member}",
             "--data-dir", self.bench.path(f"{self.name}.m{member}"),
             "--listen-client-urls", client, "--advertise-client-urls", client,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", everybody, "--initial-cluster-token", self.bench.directory,
             "--snapshot-count", "10000",  # As the files of scripts/etcd_files.sh have it.
            "--heartbeat-interval", str(HEARTBEAT_MS), "--election-timeout", str(ELECTION_MS),
             "--logger", "zap"], log=f"{self.name}.m{member}.log")

    def ctl(self, *words, member=None, fail=True):
        """What etcdctl prints; None when it fails and `fail` is false."""
        endpoints = self.endpoints if member is None else [self.endpoints[member]]
        done = subprocess.run(["/usr/bin/etcdctl", "--endpoints", ",".join(endpoints),
                               "--command-timeout=5s", *words], check=False, capture_output=True,
                              text=True, env={**os.environ, "ETCDCTL_API": "3"})
        if done.returncode == 0:
            return done.stdout
        if fail:
            raise Failure(f"etcdctl {' '.join(words)}: {done.stderr.strip()}")
        return None

    def status(self, member):
        """What a member says of itself; None while it does not answer."""
        text = self.ctl("endpoint", "status", "-w", "json", member=member, fail=False)
        return json.loads(text)[0]["Status"] if text else None

    def await_health(self):
        """Until every member answers and knows a leader, and one that was away has caught up."""
        def healthy():
            found = [self.status(member) for member in range(MEMBERS)]
            if not all(status and status.get("leader") for status in found):
                return False
            applied = [status.get("raftAppliedIndex", 0) for status in found]
            return max(applied) - min(applied) < 1000

        wait_until("three healthy members of etcd", 60, healthy, 0.1)

    def leader(self):
        """The index of etcd's own leader."""
        def find():
            for member in range(MEMBERS):
                status = self.status(member)
                if status and status.get("leader") == status["header"]["member_id"]:
                    return (member,)
            return None

        return wait_until("a leader of etcd", 30, find)[0]

    def database_mib(self):
        """The size of the largest member's database."""
        def answered():
            found = [self.status(member) for member in range(MEMBERS)]
            return found if all(found) else None

        found = wait_until("the size of each member's database", 60, answered)
        return max(status["dbSize"] for status in found) / (1 << 20)

    def version(self):
        return self.status(0)["version"]

    def forget(self, member):
        """Takes note that somebody has killed a member."""
        self.bench.stop(self.processes[member], signal.SIGKILL)

    def stop(self):
        for process in self.processes:
            self.bench.stop(process, signal.SIGKILL)
