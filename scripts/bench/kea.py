"""The peer for commits: Debian's Kea DHCPv4 server with leases in a memfile, driven by perfdhcp.

Kea runs as fast as it can be made to here: no log, no cleanup of its lease file, several settings
of its threads tried, and a lease counts once perfdhcp has the answer. Its lease file is written but
never synced, which is less than what we promise. Both run in network namespaces of their own that
vanish with the benchmark.
"""

import json
import os
import re
import signal
import subprocess

from harness import Failure, wait_until

SERVER, CLIENT = "10.64.0.1", "10.64.0.2"
DHCP_PORT = ":0043 "  # 67, as /proc/net/udp has it.
MAX_DROPPED = 0.025
CLIENTS = 500_000
# Threads (0: off) and queue a thread. 4 x 7 is what Kea's manual recommends for a memfile.
SETTINGS = ((0, 0), (2, 64), (4, 7), (4, 64))


def describe(setting):
    threads, queue = setting
    return f"{threads} threads, queue {threads * queue}" if threads else "single-threaded"


class Kea:
    """Kea and perfdhcp joined by a veth pair."""

    def __init__(self, bench):
        self.bench = bench
        self.runs = 0
        self.server_space = self._namespace()
        self.client_space = self._namespace()
        self._in(self.server_space, "ip", "link", "add", "srv0", "type", "veth", "peer", "name",
                 "cli0", "netns", str(self.client_space))
        for space, device, address in ((self.server_space, "srv0", SERVER),
                                       (self.client_space, "cli0", CLIENT)):
            self._in(space, "ip", "address", "add", f"{address}/10", "dev", device)
            self._in(space, "ip", "link", "set", device, "up")
            self._in(space, "ip", "link", "set", "lo", "up")

    def _namespace(self):
        """A process that keeps a new network namespace alive; its pid."""
        own = os.readlink("/proc/self/ns/net")
        process = self.bench.start(["unshare", "--net", "sleep", "infinity"])
        wait_until("a network namespace", 10,
                   lambda: os.readlink(f"/proc/{process.pid}/ns/net") != own)
        return process.pid

    def _in(self, space, *arguments):
        subprocess.run(["nsenter", "--target", str(space), "--net", *arguments], check=True)

    def _config(self, setting, leases):
        threads, queue = setting
        return {"Dhcp4": {
            "interfaces-config": {"interfaces": ["srv0"], "dhcp-socket-type": "udp"},
            "lease-database": {"type": "memfile", "persist": True, "name": leases,
                               "lfc-interval": 0},
            "valid-lifetime": 7200,
            "multi-threading": {"enable-multi-threading": threads > 0,
                                "thread-pool-size": threads, "packet-queue-size": threads * queue},
            "subnet4": [{"subnet": "10.64.0.0/10",
                         "pools": [{"pool": "10.65.0.0 - 10.72.255.255"}]}],
            "loggers": [{"name": "kea-dhcp4", "severity": "FATAL",
                         "output_options": [{"output": self.bench.path("kea.log")}]}]}}

    def leases_per_second(self, setting, rate, seconds):
        """Offers `rate` new clients a second to a Kea with no leases. The leases a second that were
        granted, and the share of the clients that got none."""
        self.runs += 1
        leases = self.bench.path(f"leases{self.runs}.csv")
        config = self.bench.path(f"kea{self.runs}.json")
        with open(config, "w", encoding="utf-8") as out:
            json.dump(self._config(setting, leases), out)
        directory = self.bench.directory
        kea = self.bench.start(
            ["nsenter", "--target", str(self.server_space), "--net", "kea-dhcp4", "-c", config],
            log="kea.log", env={**os.environ, "KEA_PIDFILE_DIR": directory,
                                "KEA_LOCKFILE_DIR": directory})
        wait_until("Kea's socket", 20, lambda: self._serves(kea))
        client = self.bench.start(
            ["nsenter", "--target", str(self.client_space), "--net", "perfdhcp", "-4", "-r",
             str(rate), "-R", str(CLIENTS), "-p", str(seconds), "-W", "500000", SERVER],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            text, _ = client.communicate(timeout=seconds + 60)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"perfdhcp at {rate} leases/s does not end") from error
        finally:
            self.bench.stop(client, signal.SIGKILL)
            self.bench.stop(kea)
        sent = [int(n) for n in re.findall(r"sent packets: (\d+)", text)]
        received = [int(n) for n in re.findall(r"received packets: (\d+)", text)]
        # 3: some exchanges were not completed, which the counts say as well.
        if client.returncode not in (0, 3) or len(sent) != 2 or len(received) != 2 or not sent[0]:
            raise Failure(f"perfdhcp ended with code {client.returncode}:\n{text}")
        with open(leases, encoding="ascii") as written:
            lines = sum(1 for _ in written) - 1
        if lines < received[1]:
            raise Failure(f"Kea has answered {received[1]} requests and written {lines} leases")
        os.unlink(leases)
        return received[1] / seconds, 1 - received[1] / sent[0]

    @staticmethod
    def _serves(kea):
        if kea.poll() is not None:
            raise Failure(f"kea-dhcp4 ended with code {kea.returncode}")
        with open(f"/proc/{kea.pid}/net/udp", encoding="ascii") as sockets:
            return any(DHCP_PORT in line for line in sockets)

    def best(self, setting, rates, seconds):
        """The most leases a second at one of `rates`, tried in order, with at most MAX_DROPPED of
        the clients left out; stops after two rates in a row that were too high, each tried twice,
        since the machine may have been busy. 0: none was met."""
        best, failures = 0.0, 0
        for rate in rates:
            for _ in range(2):
                got, dropped = self.leases_per_second(setting, int(rate), seconds)
                if dropped <= MAX_DROPPED:
                    break
            if dropped <= MAX_DROPPED:
                best, failures = max(best, got), 0
            else:
                failures += 1
            if failures == 2:
                break
        return best
