"""A node as the rows see it: an agent with addresses, pods, and the plugin as a runtime calls it."""

import json
import os
import re
import signal
import subprocess
import time

from private_node import CLONE_NEWNET, LIBC, die_with_parent, sh, unshare
from checklist import DEFAULT_ADDRESSES

VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
PEERS = "/usr/lib/cni"
AGENT_PATIENCE = 20
PLUGIN_PATIENCE = 60
SETTLED = 5  # Seconds in which the kernel has to have taken away what was deleted.


class Failed(Exception):
    """The behaviour is not there."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def expect_equal(got, want, what):
    if got != want:
        raise Failed(f"{what}:\n  got  {got!r}\n  want {want!r}")


def eventually(what, condition, seconds=SETTLED):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Answer:
    """The output of a plugin, and how it ended."""

    def __init__(self, code, out, err, took):
        self.code = code
        self.out = out
        self.err = err
        self.took = took

    def __repr__(self):
        return f"code {self.code}, stdout {self.out!r}, stderr {self.err!r}"

    @property
    def json(self):
        return json.loads(self.out)

    def succeeded(self):
        expect_equal(self.code, 0, f"exit code ({self!r})")
        return self

    def silent(self):
        self.succeeded()
        expect_equal(self.out, b"", "stdout")
        return self

    def failed(self, *codes):
        """It says what is wrong as the spec has it: one JSON object, one of these codes."""
        expect(self.code != 0, f"it should have failed: {self!r}")
        error = self.json
        expect(isinstance(error, dict), f"one JSON object: {self!r}")
        expect(isinstance(error.get("code"), int) and error.get("msg"), f"code and msg: {self!r}")
        expect(not codes or error["code"] in codes, f"code {codes}: {self!r}")
        return error


class Pod:
    """A pod's network namespace, mounted under a name as runtimes do."""

    def __init__(self, node, number):
        self.id = f"{number:064x}"
        self.netns = os.path.join(node.pods, f"pod{number}")
        with open(self.netns, "wb"):
            pass
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            unshare(CLONE_NEWNET)
            sh("ip", "link", "set", "lo", "up")
            sh("mount", "--bind", "/proc/thread-self/ns/net", self.netns)
        finally:
            if LIBC.setns(home, CLONE_NEWNET) != 0:
                os._exit(70)
            os.close(home)
        self.alive = True

    def run(self, *words):
        return sh("nsenter", f"--net={self.netns}", *words)

    def ip(self, *words):
        return json.loads(self.run("ip", "-j", *words) or "[]")

    def link(self, name="eth0"):
        """The link, or None."""
        return next((link for link in self.ip("-d", "link") if link["ifname"] == name), None)

    def addresses(self, name="eth0"):
        found = [link for link in self.ip("addr") if link.get("ifname") == name]
        return sorted(f"{a['local']}/{a['prefixlen']}" for link in found
                      for a in link["addr_info"] if a["scope"] == "global")

    def routes(self, family=4):
        return self.ip(f"-{family}", "route")

    def destroy(self):
        """The sandbox dies."""
        if self.alive:
            sh("umount", "-l", self.netns)
            os.unlink(self.netns)
            self.alive = False


class Node:
    """The node this process has entered (private_node.enter_node). Use as a context."""

    def __init__(self, programs, scratch, addresses=DEFAULT_ADDRESSES, rules=(), agent=True,
                 cooldown="1s", settings=""):
        self.programs = programs
        self.plugins = programs  # The folder of the plugin that is executed.
        self.scratch = scratch
        self.pods = "/run/netns"
        self.socket = "/run/spoke/cni.sock"
        self.state = "/run/spoke/netagent"
        self.conf_dir = os.path.join(scratch, "net.d")
        for directory in (self.pods, self.state, self.conf_dir):
            os.makedirs(directory, exist_ok=True)
        self.journal = os.path.join(self.state, "journal")
        self.log = os.path.join(scratch, "agent.log")
        self.cooldown = cooldown
        self.settings = settings  # More lines of the agent's configuration.
        self.made = 0
        self.agent = None
        self.fault = ""
        self.tool("spoke-journal", "seed", self.journal, *addresses,
                  *[word for rule in rules for word in ("--rule", rule)])
        if agent:
            self.start_agent()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop_agent(signal.SIGKILL)

    def tool(self, name, *words):
        return sh(os.path.join(self.programs, name), *words)

    def show_logs(self):
        if os.path.exists(self.log):
            with open(self.log, encoding="utf-8", errors="replace") as log:
                print("--- agent.log\n" + "".join(log.readlines()[-25:]))

    # The agent.

    def start_agent(self, wait=True, **environment):
        config = os.path.join(self.scratch, "agent.yaml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(f"node_name: node1\nvm_id: vm1\nnic: eth0\nserver: 127.0.0.1:1\n"
                      f"tls: {{insecure: true}}\nhealth: off\ncni_socket: {self.socket}\n"
                      f"state_dir: {self.state}\ncooldown: {self.cooldown}\n"
                      # There is no server that could say that there is no policy.
                      f"traffic: {{require_policy: false}}\n{self.settings}\n")
        with open(self.log, "ab") as log:
            self.agent = subprocess.Popen(
                [os.path.join(self.programs, "spoke-netagent"), "--config", config], stdout=log,
                stderr=log, preexec_fn=die_with_parent, env={**os.environ, **environment})
        if wait:
            eventually("the agent listens", self.listens, AGENT_PATIENCE)

    def listens(self):
        expect(self.agent.poll() is None, f"the agent ended with code {self.agent.returncode}")
        return self.listens_now()

    def listens_now(self):
        # The kernel knows the socket by the name it was bound to, before it was renamed.
        return f" {self.socket}.new " in sh("ss", "--no-header", "--listening", "--unix")

    def fault_reached(self):
        """Returns whether the step that was to fail (SPOKE_FAULT) has come."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return any(line.startswith("fault step=") for line in log)

    def stop_agent(self, how=signal.SIGTERM):
        if self.agent is not None and self.agent.poll() is None:
            self.agent.send_signal(how)
            self.agent.wait(AGENT_PATIENCE)
        self.agent = None

    def assignments(self):
        """Returns what the agent's journal says: in_use, cooldown, unfinished, attached."""
        return json.loads(self.tool("spoke-journal", "show", self.journal))

    def in_use(self):
        """The addresses of each (container, ifname)."""
        return {(entry["container"], entry["ifname"]): entry["addresses"]
                for entry in self.assignments()["in_use"]}

    # Pods.

    def pod(self):
        self.made += 1
        return Pod(self, self.made)

    # The plugin.

    def conf(self, **keys):
        """A request configuration. A key that is None is left out."""
        conf = {"cniVersion": "1.1.0", "name": "spoke", "type": "spoke", "socket": self.socket}
        conf.update(keys)
        return {key.replace("cni_dev_", "cni.dev/"): value for key, value in conf.items()
                if value is not None}

    def exec(self, environment, stdin=b"", program="spoke", stdout=subprocess.PIPE):
        """One exec with exactly this environment. `stdin`: bytes, or an open file."""
        path = os.path.join(self.plugins if program == "spoke" else PEERS, program)
        keywords = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
        began = time.monotonic()
        done = subprocess.run([path], env=environment, stdout=stdout, stderr=subprocess.PIPE,
                              check=False, timeout=PLUGIN_PATIENCE, **keywords)
        return Answer(done.returncode, done.stdout or b"", done.stderr, time.monotonic() - began)

    def environment(self, command, pod=None, ifname="eth0", **variables):
        """Returns the environment as a runtime sets it. A variable that is None is left out."""
        environment = {"CNI_COMMAND": command, "CNI_PATH": self.programs + ":" + PEERS,
                       "PATH": os.environ["PATH"]}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                environment[name] = os.environ[name]
        if pod is not None:
            environment.update(CNI_CONTAINERID=pod.id, CNI_NETNS=pod.netns, CNI_IFNAME=ifname)
        environment.update(variables)
        return {name: value for name, value in environment.items() if value is not None}

    def cni(self, command, pod=None, conf=None, ifname="eth0", program="spoke", **variables):
        """One call as a runtime makes it. `conf`: a dictionary, or the bytes of standard input."""
        if conf is None:
            conf = self.conf()
        stdin = conf if isinstance(conf, bytes) else json.dumps(conf).encode()
        return self.exec(self.environment(command, pod, ifname, **variables), stdin, program)

    def add(self, pod, ifname="eth0", args=None, **keys):
        """An ADD that has to work; its result."""
        return self.cni("ADD", pod, self.conf(**keys), ifname, CNI_ARGS=args).succeeded().json

    def delete(self, pod, ifname="eth0", **keys):
        return self.cni("DEL", pod, self.conf(**keys), ifname).silent()

    # Functions for what is in the kernel.

    def ip(self, *words):
        return json.loads(sh("ip", "-j", *words) or "[]")

    def links(self):
        """Our pod links that are not on their way out."""
        return sorted(link["ifname"] for link in self.ip("-d", "link")
                      if re.fullmatch("spk[0-9a-f]{12}", link["ifname"])
                      and link.get("group", "default") == "default")

    def objects(self):
        """Every line of the kernel's tables that a pod could leave something in."""
        lines = []
        for words in ("-o link", "-4 route show table all", "-6 route show table all", "-4 rule",
                      "-6 rule", "neigh show nud permanent"):
            lines += [f"{words}: {line}" for line in sh("ip", *words.split()).splitlines()]
        lines += sh("tc", "qdisc").splitlines()
        return sorted(re.sub(r"qlen \d+|\s+$", "", line) for line in lines
                      if "fe80:" not in line and "ff00::" not in line)

    def connections(self, address):
        """Returns what the node's kernel tracks of an address."""
        with open("/proc/thread-self/net/nf_conntrack", encoding="ascii") as table:
            return [line for line in table if f"={address} " in line]

    def settles_to(self, before, what="what was there before"):
        """Waits until the kernel holds exactly `before` (of objects()) again."""
        last = []

        def same():
            last[:] = self.objects()
            return last == before
        try:
            eventually(what, same)
        except Failed:
            surplus = sorted(set(last) - set(before))
            missing = sorted(set(before) - set(last))
            raise Failed(f"{what}: left over {surplus}, missing {missing}") from None

    def ping(self, pod, target="10.250.0.4"):
        """From the pod; an error when nothing comes back."""
        pod.run("ping", "-n", "-c", "1", "-W", "2", target)
