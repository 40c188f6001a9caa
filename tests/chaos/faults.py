"""What may happen to a lab, each as something that begins and is over: programs killed and paused,
machines cut off, packets lost, disks full, nodes drained."""

import errno
import os
import signal

from ha_lab import sh


class Fault:
    """Something that befalls a machine, from begin() to end()."""

    def __init__(self, machine):
        self.machine = machine

    def __str__(self):
        return f"{type(self).__name__.lower()} {self.machine.name}"

    # Whether its program must not be started again before the end.
    holds_down = False


class Killed(Fault):
    """Its program is killed, and started again at the end."""

    holds_down = True

    def begin(self):
        self.machine.kill()

    def end(self):
        self.machine.start()


class Paused(Fault):
    """Its program stands still, all threads of it, and goes on as if nothing had been."""

    def begin(self):
        if self.machine.runs():
            self.machine.signal(signal.SIGSTOP)

    def end(self):
        if self.machine.runs():
            self.machine.signal(signal.SIGCONT)


class Cut(Fault):
    """Nothing gets to it and nothing from it."""

    def begin(self):
        self.machine.cut()

    def end(self):
        self.machine.cut(off=False)


class Lossy(Fault):
    """A quarter of the packets that it sends are lost."""

    def begin(self):
        name = self.machine.name
        sh("nft", "-f", "-", input=f"""
            table netdev chaos-{name} {{
              chain lost {{
                type filter hook ingress device v{name} priority 0;
                numgen random mod 100 < 25 counter drop
              }}
            }}""")

    def end(self):
        sh("nft", "delete", "table", "netdev", f"chaos-{self.machine.name}")


class Full(Fault):
    """There is no room left where it writes."""

    def filler(self):
        return os.path.join(self.machine.disk, "filler")

    def begin(self):
        with open(self.filler(), "wb", buffering=0) as file:
            try:
                while file.write(bytes(65536)) == 65536:
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def end(self):
        os.unlink(self.filler())


class Drained(Fault):
    """An operator drains the node, and takes that back."""

    def ask(self, verb):
        lab = self.machine.lab
        for server in lab.servers:
            if server.runs() and server.spokectl("node", verb, self.machine.name)[0]:
                return

    def begin(self):
        self.ask("drain")

    def end(self):
        self.ask("undrain")


def give_disk(machine, megabytes):
    """Puts what the machine writes on a disk of its own, apart from its log."""
    machine.disk = os.path.join(machine.directory, "disk")
    os.makedirs(machine.disk)
    sh("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", f"disk-{machine.name}", machine.disk)


def take_disks(lab):
    """Unmounts them; nothing runs any more."""
    for machine in lab.members + lab.agents + lab.servers:
        if machine.disk != machine.directory and os.path.ismount(machine.disk):
            sh("umount", machine.disk)


def choose(random, lab, under_way):
    """Something that may happen now. A machine suffers one thing at a time."""
    suffering = {fault.machine for fault in under_way}
    kinds = [(kind, machines) for kind, machines in (
        (Killed, lab.servers), (Paused, lab.servers), (Cut, lab.servers), (Lossy, lab.servers),
        (Full, lab.servers),
        (Killed, lab.agents), (Paused, lab.agents), (Cut, lab.agents), (Lossy, lab.agents),
        (Full, lab.agents), (Drained, lab.agents),
        (Killed, lab.members), (Paused, lab.members), (Cut, lab.members), (Lossy, lab.members),
        (Full, lab.members))]
    kind, machines = random.choice(kinds)
    machine = random.choice(machines)
    return None if machine in suffering else kind(machine)
