"""The things that every benchmark needs: a place on a real disk, processes that never outlive it, figures.

A benchmark is a file NAME.py here with a function run(bench) that fills bench.figures; it is started
by scripts/bench.sh as a program of its own.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("SPOKE_BIN", os.path.join(ROOT, "build/release/bin"))
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """A figure that cannot be measured, or a program that failed: the benchmark fails."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def median(values):
    return statistics.median(values)


def spread(values):
    """The distance from least to most, as a share of the median."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def low_port(first=12000, count=8000):
    """A free port below those that connecting sockets get: a server that is killed finds it again, and no
    client that tries to reach a dead server connects to itself. Each call gives another one."""
    start = low_port.next = getattr(low_port, "next", os.getpid() * 7) + 1
    for i in range(count):
        port = first + (start + i) % count
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        low_port.next = start + i
        return port
    raise Failure("no port is free")


def wait_until(what, seconds, condition, pause=0.02):
    """The first true value of condition(); a Failure that names `what` when it takes too long."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {seconds} s")
        time.sleep(pause)


def cpu_seconds(pid):
    """User and system time of a process so far, its ended children left out."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_exact(pid):
    """As cpu_seconds(), to the nanosecond: for what uses little."""
    return time.clock_gettime((~pid << 3) | 2)  # The process's clock, as clock_getcpuclockid() has it.


def memory_kib(pid, field):
    """VmRSS or VmHWM of a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    raise Failure(f"/proc/{pid}/status has no {field}")


def die_with_parent():
    """Runs in the child: even kill -9 of the benchmark must leave nothing behind."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Bench:
    """One run of one benchmark: its directory, its processes, its figures. Use as a context."""

    def __init__(self, name, quick, above=os.path.join(ROOT, "build/bench")):
        self.name = name
        self.quick = quick
        self.figures = {}
        self.context = {"quick": quick, "kernel": os.uname().release, "cpus": os.cpu_count()}
        self.rows = []
        self.directory = os.path.join(above, f"{name}.{os.getpid()}")
        self.processes = []

    def __enter__(self):
        self.remove_abandoned()
        os.makedirs(self.directory)
        self.context["filesystem"] = subprocess.run(
            ["findmnt", "-n", "-o", "FSTYPE", "-T", self.directory], check=True,
            capture_output=True, text=True).stdout.strip()
        self.context["load_before"] = round(os.getloadavg()[0], 2)
        say(f"{self.name}: works in {self.directory} ({self.context['filesystem']}), load "
            f"{self.context['load_before']} on {os.cpu_count()} CPUs")
        return self

    def remove_abandoned(self):
        """Removes what a benchmark has left that was killed without a chance to clean up."""
        above = os.path.dirname(self.directory)
        for name in os.listdir(above) if os.path.isdir(above) else ():
            pid = name.rpartition(".")[2]
            if name == f"{self.name}.{pid}" and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                shutil.rmtree(os.path.join(above, name))

    def demand_disk(self):
        """A Failure where syncing costs nothing, since then nothing would be measured."""
        if self.context["filesystem"] in ("tmpfs", "ramfs"):
            raise Failure(f"{self.directory} is on {self.context['filesystem']}, not on a disk")

    def __exit__(self, kind, error, trace):
        if kind is not None and kind is not SystemExit:
            self.show_logs()
        for process in list(reversed(self.processes)):
            self.stop(process)
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def start(self, arguments, log=None, **keywords):
        """Starts a program that ends with the benchmark. `log`: the file its output goes to."""
        if log:
            with open(self.path(log), "ab") as output:
                process = subprocess.Popen(arguments, stdout=output, stderr=output,
                                           preexec_fn=die_with_parent, **keywords)
        else:
            process = subprocess.Popen(arguments, preexec_fn=die_with_parent, **keywords)
        self.processes.append(process)
        return process

    def stop(self, process, how=signal.SIGTERM, patience=20):
        """Ends a process and forgets it; its exit code."""
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.processes:
            self.processes.remove(process)
        return process.returncode

    def show_logs(self):
        """The ends of all logs, for whoever has to find out what failed."""
        for name in sorted(os.listdir(self.directory)):
            if not name.endswith(".log"):
                continue
            with open(self.path(name), encoding="utf-8", errors="replace") as log:
                lines = log.readlines()[-15:]
            say(f"--- {name}\n" + "".join(lines).rstrip())

    def row(self, what, figure, target="", note=""):
        """A line of the table for people. It is said at once too, so that what fails later loses nothing."""
        say(f"{self.name}: {what}: {figure}" + (f" ({note})" if note else ""))
        self.rows.append((what, figure, target, note))

    def print_result(self):
        """The table, and last the line for machines."""
        for key, value in self.figures.items():
            if not isinstance(value, (int, float)) or value != value:
                raise Failure(f"figure {key} is {value!r}, not a number")
        self.context["load_after"] = round(os.getloadavg()[0], 2)
        rows = [("what", "measured", "target", "")] + self.rows
        widths = [max(len(str(row[i])) for row in rows) for i in range(3)]
        print(f"\n{self.name}")
        for row in rows:
            line = "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths))
            print(f"  {line}  {row[3]}".rstrip())
        print(json.dumps({"bench": self.name, "figures": self.figures, "context": self.context}),
              flush=True)


def leave_on_signals():
    """Turns the signals that end a program into an exception, so that everything is cleaned up."""
    def leave(number, _frame):
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def main(name, run):
    """The program around run(bench). Exit status: 0 measured, 1 not, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench.sh {name}")
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    arguments = parser.parse_args()

    leave_on_signals()
    try:
        with Bench(name, arguments.quick) as bench:
            bench.demand_disk()
            run(bench)
        bench.print_result()
    except Failure as failure:
        say(f"{name}: FAILED: {failure}")
        sys.exit(1)
