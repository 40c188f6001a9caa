"""A server of ours and a swarm of simulated agents, as benchmarks start them."""

import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time

from harness import BIN, Failure, low_port, say, wait_until

AGENTS = 7500
ADDRESSES_A_NODE = 27
# Reserve for what is never handed out, and for nodes that would like more.
POOLS = ("10.16.0.0/14", "10.24.0.0/15")
CONFIG = """\
listen: {{agents: "127.0.0.1:{port}", admin: "unix:{admin}", metrics: "127.0.0.1:0"}}
tls: {tls}
health: off
store: {store}
cloud: {{static: {{}}}}
pools:
{pools}
# Up to 16 used addresses of the 27 ask for no more.
node_addresses: {{min: {addresses}, batch: {addresses}, spare: 0.4, max: {most}}}
cooldown: {cooldown}
"""


def settle_file_limit():
    """Room for a descriptor an agent, in the programs we start."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < AGENTS + 500:
        raise Failure(f"only {hard} files may be open; raise the limit (ulimit -n)")


def has_verb(verb):
    """Returns whether this spokectl knows the verb: its help then is about the verb itself."""
    text = subprocess.run([os.path.join(BIN, "spokectl"), verb, "--help"], check=False,
                          capture_output=True, text=True).stdout
    return any(line.startswith("Usage:") and verb in line.split() for line in text.splitlines())


def make_certificates(bench, agents):
    """A directory with an authority, and a certificate of it for a server and for each of so many
    agents."""
    directory = bench.path("certificates")
    os.makedirs(directory)
    done = subprocess.run([os.path.join(BIN, "spoke-swarm"), "--agents", str(agents), "certificates",
                           "--directory", directory], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"spoke-swarm certificates: {done.stderr.strip()}")
    return directory


def server_tls(certificates):
    if certificates is None:
        return "{insecure: true}"
    return (f"{{ca: {certificates}/ca.pem, certificate: {certificates}/server.pem, "
            f"key: {certificates}/server.key}}")


def agents_tls(certificates):
    """The options of a Swarm whose agents have a certificate each."""
    if certificates is None:
        return {}
    return {"ca": f"{certificates}/ca.pem", "certificate": f"{certificates}/{{}}.pem",
            "key": f"{certificates}/{{}}.key"}


class Server:
    """spoke-ipam-server on free ports, with its store in the benchmark's directory unless `store` says
    where. `certificates`: a directory as make_certificates() makes it; without one there is no TLS."""

    def __init__(self, bench, name="server", addresses=ADDRESSES_A_NODE, most=250, *, store=None,
                 certificates=None, pools=POOLS, cooldown="30s"):
        settle_file_limit()
        self.bench = bench
        self.name = name
        self.pools = pools
        self.port = low_port()
        self.admin = bench.path(f"{name}.sock")
        if len(self.admin) > 100:  # A unix socket's path may have 107.
            raise Failure(f"{self.admin} is too long for a socket: check out in a shorter path")
        # The store is its own: beside another server's it would look for what that one knew.
        directory = bench.path(f"{name}.store")
        os.makedirs(directory, exist_ok=True)
        self.database = os.path.join(directory, "server.db")
        self.config = bench.path(f"{name}.yaml")
        rows = "\n".join(f"  - {{name: pool{i}, cidr: {cidr}}}" for i, cidr in enumerate(pools))
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(CONFIG.format(port=self.port, admin=self.admin,
                                    pools=rows, addresses=addresses, most=most, cooldown=cooldown,
                                    store=store or f"{{sqlite: {self.database}}}",
                                    tls=server_tls(certificates)))
        self.process = None
        self.executed = 0.0  # The time when it was started last, as time.time() has it.

    @property
    def pid(self):
        return self.process.pid

    @property
    def target(self):
        return f"ipv4:127.0.0.1:{self.port}"

    def start(self):
        """Starts it and waits until it serves; the seconds that took."""
        self.launch()
        self.await_serving()
        return time.time() - self.executed

    def launch(self):
        self.executed = time.time()
        self.process = self.bench.start(
            [os.path.join(BIN, "spoke-ipam-server"), "--config", self.config],
            log=f"{self.name}.log")

    def await_serving(self):
        wait_until("the agents' port", 120, lambda: self.accepts(), 0.005)
        wait_until("the admin API", 120, lambda: self.ask("status", fail=False), 0.005)

    def accepts(self):
        if self.process.poll() is not None:
            raise Failure(f"the server ended with code {self.process.returncode}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        """Ends the server as a crash would."""
        self.bench.stop(self.process, signal.SIGKILL)

    def stop(self):
        code = self.bench.stop(self.process)
        if code != 0:
            raise Failure(f"the server ended with code {code}")

    def ask(self, *words, fail=True, codes=(0,)):
        """Returns what spokectl says, parsed. None when it fails and `fail` is false."""
        done = subprocess.run([os.path.join(BIN, "spokectl"), "--server", f"unix:{self.admin}",
                               "--timeout", "60", *words, "-o", "json"], check=False,
                              capture_output=True, text=True)
        if done.returncode in codes:
            return json.loads(done.stdout)
        if fail:
            raise Failure(f"spokectl {' '.join(words)}: exit code {done.returncode}: "
                          f"{done.stderr.strip()}")
        return None

    def copy_store(self, name):
        """Copies what is on disk while no server runs, for another Server to look at."""
        other = Server(self.bench, name, pools=self.pools)
        for suffix in ("", "-wal"):
            if os.path.exists(self.database + suffix):
                subprocess.run(["cp", self.database + suffix, other.database + suffix], check=True)
        return other


def count_lost(holdings, addresses):
    """Returns how much of what the swarm knows to be acknowledged (spoke-swarm's holdings file) is not in
    what a server lists (spokectl ip list). The first few are said."""
    listed = {entry["address"]: entry for entry in addresses}
    lost = 0
    with open(holdings, encoding="ascii") as lines:
        for line in lines:
            address, node, state, container, known = line.rstrip("\n").split("\t")
            if state == "withdrawn":
                continue
            entry = listed.get(address)
            kept = entry is not None and entry["node"] == node
            if kept and known == "1" and state == "in_use":
                kept = entry["state"] == "in_use" and entry["container_id"] == container
            elif kept and known == "1":
                kept = entry["state"] != "in_use"
            if not kept:
                lost += 1
                if lost <= 3:
                    say(f"  lost: {line.strip()}; the server has {entry}")
    return lost


class Swarm:
    """A running spoke-swarm for one server or several; its output is read as it comes. `apart`: whether it
    is a group of its own for the kernel, of low priority (sched(7), autogroup), as agents on other
    machines take nothing of the server's: else a program has the more the more threads it has."""

    APART_NICE = 10

    def __init__(self, bench, server, mode, *, apart=False, **options):
        servers = server if isinstance(server, list) else [server]
        arguments = [os.path.join(BIN, "spoke-swarm"), "--servers",
                     ",".join(each.target for each in servers), mode]
        for key, value in options.items():
            flag = "--" + key.replace("_", "-")
            if value is True:
                arguments.append(flag)
            elif value is not False:
                arguments += [flag, str(value)]
        self.bench = bench
        self.process = bench.start(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=apart)
        if apart:
            self._lower_group()
        self.errors = []
        self.reader = threading.Thread(target=self._read_errors, daemon=True)
        self.reader.start()

    def _lower_group(self):
        """Lowers the priority of the generator's group; where the kernel has none, it says so."""
        try:
            with open(f"/proc/{self.process.pid}/autogroup", "w", encoding="ascii") as group:
                group.write(str(self.APART_NICE))
        except FileNotFoundError:
            say("  the kernel has no groups for sessions: the generator is not apart")

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip())
            say("  " + line.rstrip())

    def event(self, name):
        """Waits for the event of that name; anything else that comes first is a failure."""
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"the swarm ended instead of {name}, with code {self.process.wait()}: "
                          + "; ".join(self.errors[-3:]))
        event = json.loads(line)
        if event["event"] != name:
            raise Failure(f"the swarm said {event['event']} instead of {name}")
        return event

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def verdict(self):
        """Its result, whatever it has seen the servers do."""
        self.process.stdin.close()
        result = self.event("result")
        self.reader.join(30)
        self.bench.stop(self.process, patience=60)
        return result

    def result(self):
        """Its result; a Failure when it has seen the server do wrong."""
        self.process.stdin.close()
        result = self.event("result")
        self.reader.join(30)
        code = self.bench.stop(self.process, patience=60)
        if result["violations"]:
            raise Failure(f"{result['violations']} violations: {result['first_violations'][:3]}")
        if code != 0:
            raise Failure(f"the swarm ended with code {code}")
        return result
