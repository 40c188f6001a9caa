"""Runtimes that start and end pods all the time, one a node, and what must hold between all of them at
every moment: an address has one pod, and rests before the next."""

import json
import os
import random
import subprocess
import threading
import time

from ha_lab import Failed, sh

COOLDOWN = 1  # Seconds; the agents' configuration has it.
PATIENCE = 90  # Seconds that a DEL may go on failing once nothing is broken any more.


class Holders:
    """Which pod has which address. Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.pods = {}  # By address: the pod that has it or had it last, and when its DEL began, or None.
        self.broken = []
        self.reused = 0

    def taken(self, address, pod):
        """An ADD has answered that the pod has the address."""
        now = time.monotonic()
        with self.lock:
            before, ended = self.pods.get(address, (None, 0))
            if before is not None and ended is None:
                self.broken.append(f"{address} is given to {pod} while {before} has it")
            elif before is not None and now - ended < COOLDOWN:
                self.broken.append(f"{address} is given to {pod} {now - ended:.2f} s after the DEL of "
                                   f"{before}: its cooldown is {COOLDOWN} s")
            self.reused += before is not None
            self.pods[address] = (pod, None)

    def ending(self, address, pod):
        """A DEL of the pod is about to be asked for."""
        with self.lock:
            if self.pods.get(address, (None, 0))[0] == pod:
                self.pods[address] = (pod, time.monotonic())


class Runtime(threading.Thread):
    """What kubelet and containerd do on one node: a sandbox whose ADD fails is taken down again and
    another one made, and a DEL is repeated until it succeeds."""

    def __init__(self, agent, holders, seed, most=5):
        super().__init__(name=agent.name, daemon=True)
        self.agent = agent
        self.holders = holders
        self.random = random.Random(seed)
        self.most = most
        self.pods = {}  # Their addresses, by the names of their network namespaces.
        self.late = []  # Pods whose DEL is asked for once more, later.
        self.made = 0
        self.killed = 0  # Plugins, in the middle of what they did.
        self.failed = 0  # ADDs.
        self.error = None
        self.churning = threading.Event()
        self.churning.set()

    def run(self):
        try:
            while self.churning.is_set():
                self.step()
                time.sleep(self.random.uniform(0.02, 0.25))
            self.settle()
        except Exception as error:  # Read by the main thread, which fails by it.
            self.error = error

    def step(self):
        if self.late and self.random.random() < 0.5:
            self.call("DEL", self.late.pop())
        elif len(self.pods) < self.random.randint(1, self.most):
            self.start_pod(careless=True)
        else:
            self.end_pod(self.random.choice(sorted(self.pods)))

    def settle(self):
        """Has as many pods as it may, and is patient with nobody."""
        deadline = time.monotonic() + PATIENCE
        while len(self.pods) < self.most:
            if time.monotonic() > deadline:
                raise Failed(f"{self.name} has {len(self.pods)} pods, and gets no more: {self.said}")
            if not self.start_pod(careless=False):
                time.sleep(0.5)

    def call(self, command, pod, careless=False):
        """Whether the plugin succeeds, and what it prints. It may be killed at work."""
        conf = {"cniVersion": "1.0.0", "name": "spoke", "type": "spoke", "socket": self.agent.socket}
        plugin = subprocess.Popen(
            [self.agent.lab.program("spoke")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env={"PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_CONTAINERID": pod,
                 "CNI_NETNS": f"/run/netns/{pod}", "CNI_IFNAME": "eth0",
                 "CNI_PATH": self.agent.lab.programs})
        patience = self.random.uniform(0.001, 0.05) if careless and self.random.random() < 0.1 else 60
        try:
            said, _ = plugin.communicate(json.dumps(conf), timeout=patience)
        except subprocess.TimeoutExpired:
            plugin.kill()
            plugin.communicate()
            self.killed += 1
            return False, "killed"
        return plugin.returncode == 0, said

    def start_pod(self, careless):
        self.made += 1
        pod = f"{self.name}-pod-{self.made}"
        sh("ip", "netns", "add", pod)
        done, self.said = self.call("ADD", pod, careless)
        if done:
            address = json.loads(self.said)["ips"][0]["address"].split("/")[0]
            self.holders.taken(address, pod)
            self.pods[pod] = address
            return True
        self.failed += 1
        self.delete(pod)
        sh("ip", "netns", "delete", pod)
        return False

    def end_pod(self, pod):
        self.holders.ending(self.pods.pop(pod), pod)
        # A sandbox that has crashed leaves no namespace to its DEL.
        crashed = self.random.random() < 0.3
        if crashed:
            sh("ip", "netns", "delete", pod)
        self.delete(pod)
        if not crashed:
            sh("ip", "netns", "delete", pod)
        if self.random.random() < 0.2:
            self.late.append(pod)

    def delete(self, pod):
        deadline = time.monotonic() + PATIENCE
        while True:
            done, said = self.call("DEL", pod)
            if done:
                return
            if not self.churning.is_set() and time.monotonic() > deadline:
                raise Failed(f"DEL of {pod} goes on failing: {said}")
            if self.churning.is_set():
                deadline = time.monotonic() + PATIENCE
            time.sleep(0.2)
