"""A cluster as the tests of several servers see it: members of etcd and servers, real processes each
in a network namespace of its own on one bridge, and an operator who writes."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "support")]

from private_node import CLONE_NEWNET, CLONE_NEWNS, LIBC, die_with_parent, sh, unshare  # noqa: E402

ETCD_HEARTBEAT_MS = 50
ETCD_ELECTION_MS = 500
TOKEN = "ha"  # Of the cluster of etcd.
START = 60  # Seconds that any start may take on a machine that is busy.

PTRACE_DETACH = 17
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
WALL = 0x40000000  # Of waitpid(2): threads as well.


class Failed(Exception):
    """The behaviour is not there."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def eventually(what, condition, seconds):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def enter_network():
    """From here on this process has files in /run and a network of its own: a bridge, br0."""
    unshare(CLONE_NEWNS | CLONE_NEWNET)
    sh("mount", "--make-rprivate", "/")
    sh("mount", "-t", "tmpfs", "-o", "mode=755", "ha-run", "/run")
    sh("mount", "-t", "sysfs", "sysfs", "/sys")
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "link", "add", "br0", "type", "bridge")
    sh("ip", "address", "add", "10.99.0.1/24", "dev", "br0")
    sh("ip", "link", "set", "br0", "up")


def merged(config, settings):
    """The configuration with the settings in it, which win; maps are merged, all else is replaced, and None
    takes a key away."""
    out = dict(config)
    for key, value in settings.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merged(out[key], value) if both else value
    return {key: value for key, value in out.items() if value is not None}


class Machine:
    """A network namespace on the bridge, and one program in it at a time."""

    def __init__(self, directory, name, address):
        self.name = name
        self.address = address
        self.directory = os.path.join(directory, name)
        self.disk = self.directory  # Where its program writes, but for the log.
        self.log = os.path.join(self.directory, "log")
        self.process = None
        self.clock = {}  # Its time of day (set_clock()).
        self.traced = None  # A thread that this program has stopped.
        os.makedirs(self.directory)
        sh("ip", "netns", "add", name)
        sh("ip", "link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        sh("ip", "link", "set", f"v{name}", "master", "br0", "up")
        for words in (f"address add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            sh("ip", "-n", name, *words.split())

    def exec(self, words, **variables):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, *words], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, preexec_fn=die_with_parent, env={**os.environ, **self.clock, **variables})

    def set_clock(self, library, ahead=0, drift=0):
        """Has what is started here from now on see another time of day, which is ahead by so many
        seconds, and by so many more each second; its other clocks go on as they are."""
        self.clock = {"LD_PRELOAD": library, "SHIFTED_CLOCK_S": str(ahead),
                      "SHIFTED_CLOCK_DRIFT": str(drift)}

    def runs(self):
        if self.traced is not None:
            # Until its tracer has taken notice of that thread's end, the process has not ended.
            done, _ = os.waitpid(self.traced, os.WNOHANG | WALL)
            self.traced = None if done else self.traced
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            if self.traced is not None:
                os.waitpid(self.traced, WALL)
                self.traced = None
            self.process.wait()

    def stop_thread(self, task):
        """Stops one thread of the program, as nothing but a fault would. Only the thread that calls
        this may have it go on."""
        for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
            if LIBC.ptrace(request, task, None, None) != 0:
                raise OSError(ctypes.get_errno(), "ptrace")
        os.waitpid(task, WALL)
        self.traced = task

    def resume_thread(self):
        if LIBC.ptrace(PTRACE_DETACH, self.traced, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
        self.traced = None

    def stop(self, patience=15):
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self.process.wait(timeout=patience)

    def cut(self, off=True):
        """Takes the machine off the bridge: it hears nothing, and nobody gets an answer."""
        sh("ip", "link", "set", f"v{self.name}", "down" if off else "up")

    def events(self, name):
        """The lines of the log with this event."""
        return [line for line in self.said().splitlines() if re.search(rf"\b{name}\b", line)]

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()


class Member(Machine):
    """A member of etcd."""

    def __init__(self, lab, index):
        super().__init__(lab.directory, f"m{index}", f"10.99.0.{20 + index}")
        self.lab = lab
        self.url = f"http://{self.address}:2379"
        self.peer = f"http://{self.address}:2380"

    def start(self, *flags):
        everybody = ",".join(f"{member.name}={member.peer}" for member in self.lab.members)
        self.exec(["/usr/bin/etcd", "--name", self.name,
                   "--data-dir", os.path.join(self.disk, "data"),
                   "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                   "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer,
                   "--initial-cluster", everybody, "--initial-cluster-token", TOKEN,
                   "--heartbeat-interval", str(ETCD_HEARTBEAT_MS),
                   "--election-timeout", str(ETCD_ELECTION_MS), "--logger", "zap", *flags])


    def save(self):
        """Takes a snapshot, which restore() puts in the place of what the member has by then."""
        self.lab.ctl("snapshot", "save", os.path.join(self.directory, "snapshot"), members=[self])

    def restore(self):
        """Restores a cluster of this one member; for etcd it is the same cluster as before."""
        data = os.path.join(self.disk, "data")
        shutil.rmtree(data)
        self.lab.ctl("snapshot", "restore", os.path.join(self.directory, "snapshot"),
                     "--name", self.name, "--data-dir", data,
                     "--initial-cluster", f"{self.name}={self.peer}",
                     "--initial-cluster-token", TOKEN, "--initial-advertise-peer-urls", self.peer)

    def forget(self):
        """Removes all that the member has, which then is a new one."""
        shutil.rmtree(os.path.join(self.disk, "data"))

    def restart(self):
        """Kills and starts it, and waits until it takes part again."""
        self.kill()
        self.start()
        self.await_health()

    def await_health(self):
        eventually(f"{self.name} is back", lambda: self.lab.ctl(
            "endpoint", "health", members=[self], fail=False) is not None, 30)


class Server(Machine):
    """A spoke-ipam-server."""

    def __init__(self, lab, index):
        super().__init__(lab.directory, f"server-{chr(ord('a') + index)}", f"10.99.0.{10 + index}")
        self.lab = lab
        self.title = self.name  # The name that it has in its configuration.
        self.tls = {"insecure": True}
        self.admin = f"unix:{self.directory}/admin.sock"
        self.health = f"unix:{self.directory}/health.sock"
        self.config = os.path.join(self.directory, "server.yaml")
        self.pool = "10.60.0.0/24"
        self.settings = {}  # What else its configuration has; what is here wins.

    def store(self, **changes):
        """Where its records are, as the configuration has it."""
        return {"etcd": {"endpoints": [member.url for member in self.lab.members],
                         "directory": self.disk, "name": self.title,
                         "lease": f"{self.lab.lease}s", **changes}}

    def configure(self, **changes):
        config = {"listen": {"agents": "0.0.0.0:7443", "admin": self.admin,
                             "metrics": "127.0.0.1:9464"},
                  "health": self.health, "tls": self.tls, "store": self.store(**changes),
                  "cloud": {"static": {}}, "pools": [{"name": "p", "cidr": self.pool}]}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(merged(config, self.settings), file)  # Which is YAML as well.

    def start(self):
        self.exec([self.lab.program("spoke-ipam-server"), "--config", self.config])

    def spokectl(self, *words, timeout="5s"):
        """Whether it succeeds, and what it says."""
        done = subprocess.run([self.lab.program("spokectl"), "--server", self.admin, "--timeout",
                               timeout, *words], check=False, capture_output=True, text=True)
        return done.returncode == 0, done.stdout + done.stderr

    def leads(self):
        return self.runs() and self.spokectl("pool", "list")[0]

    def await_deposed(self, seconds):
        """Until the server has ended, since another one leads, and has said so."""
        eventually(f"{self.name} ends", lambda: not self.runs(), seconds)
        expect(self.process.returncode == 1, f"it ended with {self.process.returncode}")
        expect(self.events("leadership_lost"), "it does not say why it ends")

    def probe(self, what):
        """Whether it is so, and the reasons."""
        done = subprocess.run([self.lab.program("spoke-ipam-server"), "--config", self.config,
                               "--probe", what], check=False, capture_output=True, text=True)
        return done.returncode == 0, done.stdout + done.stderr

    def metrics(self):
        done = subprocess.run(["ip", "netns", "exec", self.name, "curl", "-s", "--max-time", "5",
                               "http://127.0.0.1:9464/metrics"], check=False, capture_output=True,
                              text=True)
        return dict(re.findall(r"^(spoke_ipam_[^ ]+) ([^ ]+)$", done.stdout, re.M))

    def listens(self, port):
        """Whether the server listens at this TCP port of its namespace."""
        return f":{port} " in sh("ip", "netns", "exec", self.name, "ss", "-Htln")

    def stop_loop(self):
        """Stops the one thread that decides, as nothing but a fault would; it never goes on."""
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/comm", encoding="utf-8") as comm:
                if comm.read().strip() != "fleet-loop":
                    continue
            self.stop_thread(int(task))
            return
        raise Failed(f"{self.name} has no thread fleet-loop")


class Agent(Machine):
    """A node: a spoke-netagent that knows all servers, and pods."""

    def __init__(self, lab, index):
        super().__init__(lab.directory, f"node-{index}", f"10.99.0.{30 + index}")
        self.lab = lab
        self.tls = {"insecure": True}
        self.socket = os.path.join(self.directory, "cni.sock")
        self.health = f"unix:{self.directory}/health.sock"
        self.config = os.path.join(self.directory, "agent.yaml")
        self.cooldown = "1s"
        self.servers = lab.servers  # Those that it knows.
        self.settings = {}  # What else its configuration has; what is here wins.
        self.pods = {}  # Their addresses, by the names of their network namespaces.
        self.made = 0

    def start(self):
        config = {"node_name": self.name, "vm_id": f"vm-{self.name}", "nic": "eth0",
                  "servers": [f"{server.address}:7443" for server in self.servers],
                  "server_name": "spoke-ipam-server", "tls": self.tls, "health": self.health,
                  "cni_socket": self.socket, "state_dir": os.path.join(self.disk, "state"),
                  "cooldown": self.cooldown, "traffic": {"require_policy": False}}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(merged(config, self.settings), file)
        os.makedirs(os.path.join(self.disk, "state"), exist_ok=True)
        self.exec([self.lab.program("spoke-netagent"), "--config", self.config])

    def cni(self, command, pod):
        """Whether the plugin succeeds, and what it prints."""
        conf = {"cniVersion": "1.0.0", "name": "spoke", "type": "spoke", "socket": self.socket}
        done = subprocess.run(
            [self.lab.program("spoke")], check=False, capture_output=True, text=True,
            input=json.dumps(conf), timeout=START,
            env={"PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_CONTAINERID": pod,
                 "CNI_NETNS": f"/run/netns/{pod}", "CNI_IFNAME": "eth0",
                 "CNI_PATH": self.lab.programs})
        return done.returncode == 0, done.stdout + done.stderr

    def add(self):
        """A pod with an address, as soon as the node has one."""
        self.made += 1
        pod = f"{self.name}-pod-{self.made}"
        sh("ip", "netns", "add", pod)
        said = []

        def added():
            done, text = self.cni("ADD", pod)
            said[:] = [text]
            return done
        try:
            eventually(f"ADD on {self.name}", added, START)
        except Failed as failure:
            raise Failed(f"{failure}: {said}") from None
        self.pods[pod] = json.loads(said[0])["ips"][0]["address"].split("/")[0]

    def delete(self, pod):
        done, said = self.cni("DEL", pod)
        expect(done, f"DEL on {self.name}: {said}")
        del self.pods[pod]
        sh("ip", "netns", "delete", pod)


class Lab:
    """Members, servers and nodes. Use as a context."""

    def __init__(self, programs, directory, servers=2, members=3, lease=3, agents=0):
        self.programs = os.path.abspath(programs)
        self.directory = directory
        self.lease = lease
        self.members = []
        for index in range(members):
            self.members.append(Member(self, index))
        self.servers = [Server(self, index) for index in range(servers)]
        self.agents = [Agent(self, index) for index in range(agents)]
        self.written = []  # What was acknowledged.

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            for machine in self.servers:
                print(f"--- {machine.name}: {machine.metrics()}\n"
                      f"{machine.said() if machine.process else ''}"[-6000:], file=sys.stderr)
            for machine in self.agents:
                print(f"--- {machine.name}\n{machine.said()}"[-6000:], file=sys.stderr)
        for machine in self.agents + self.servers + self.members:
            machine.kill()
            subprocess.run(["ip", "netns", "delete", machine.name], check=False)

    def program(self, name):
        return os.path.join(self.programs, name)

    def start_etcd(self, *flags):
        for member in self.members:
            member.start(*flags)
        eventually("etcd is healthy", lambda: self.ctl("get", "x", fail=False) is not None, START)

    def start_servers(self):
        """The first one leads; the others stand by. They share the key that signs marks."""
        first, *others = self.servers
        first.configure()
        first.start()
        eventually(f"{first.name} leads", first.leads, START)
        for server in others:
            server.configure()
            shutil.copy(os.path.join(first.disk, "store.key"), server.disk)
            server.start()
            self.await_standby(server)

    def await_standby(self, server, leader=None):
        leader = leader or self.leader()
        eventually(f"{server.name} stands by {leader.name}",
                   lambda: server.events("standing_by") and
                   f"server {leader.title} leads" in server.probe("readiness")[1], START)

    def leader(self):
        leading = [server for server in self.servers if server.leads()]
        expect(len(leading) <= 1, f"{[server.name for server in leading]} lead")
        return leading[0] if leading else None

    def ctl(self, *words, fail=True, members=None):
        """What etcdctl prints; None when it fails and `fail` is false."""
        urls = ",".join(member.url for member in members or self.members)
        done = subprocess.run(["/usr/bin/etcdctl", "--endpoints", urls, "--command-timeout=5s",
                               *words], check=False, capture_output=True, text=True,
                              env={**os.environ, "ETCDCTL_API": "3"})
        if done.returncode == 0:
            return done.stdout
        if fail:
            raise Failed(f"etcdctl {' '.join(words)}: {done.stderr.strip()}")
        return None

    def etcd_leader(self):
        def find():
            for member in self.members:
                text = self.ctl("endpoint", "status", "-w", "json", members=[member], fail=False)
                status = json.loads(text)[0]["Status"] if text else {}
                if status and status.get("leader") == status["header"]["member_id"]:
                    return member
            return None
        return eventually("a member leads", find, START)

    def write(self, server, timeout="5s"):
        """Writes one object through this server; whether that was acknowledged."""
        name = f"t{len(self.written)}-{time.monotonic_ns()}"
        path = os.path.join(self.directory, "team.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"apiVersion: spoke/v1\nkind: Team\nmetadata: {{name: {name}}}\n"
                       f"spec: {{namespaces: [{name}]}}\n")
        done, said = server.spokectl("apply", "-f", path, timeout=timeout)
        if done:
            self.written.append(name)
        return done, said

    def write_some(self, server, count=1):
        """Writes so many objects through this server, each of which has to be acknowledged."""
        for _ in range(count):
            done, said = self.write(server)
            expect(done, f"a write through {server.name}: {said}")

    def await_write(self, seconds, servers=None):
        """Until a write is acknowledged by any of the servers; who took it, and after how long."""
        begun = time.monotonic()

        def written():
            for server in servers or self.servers:
                if server.runs() and self.write(server, timeout="2s")[0]:
                    return server
            return None
        server = eventually("a write is acknowledged", written, seconds)
        return server, time.monotonic() - begun

    def mirrored(self, standby):
        """Whether the standby has as many records as etcd."""
        records = self.ctl("get", "/spoke/data/", "--prefix", "--keys-only").split()
        return standby.metrics().get("spoke_ipam_mirror_records") == str(len(records))

    def check_written(self):
        """Nothing that was acknowledged is lost."""
        leader = eventually("a server leads", self.leader, START)
        done, said = leader.spokectl("get", "team", "-o", "name")
        expect(done, f"get team: {said}")
        lost = [name for name in self.written if name not in said]
        expect(not lost, f"acknowledged and lost: {lost}")


@contextlib.contextmanager
def running(programs, directory, **options):
    """A lab whose members and servers all run: the first server leads."""
    with Lab(programs, directory, **options) as lab:
        lab.start_etcd()
        lab.start_servers()
        yield lab


def run(programs, case, cases):
    """Runs the case of this name in a network of its own."""
    import tempfile
    enter_network()
    with tempfile.TemporaryDirectory(dir="/run") as directory:
        cases[case](programs, directory)
