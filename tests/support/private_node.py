"""A network and a /run of one's own, for a Python program that plays a node: nothing it does to the
network or to files in /run is seen outside, and all of it goes when its last process ends."""

import ctypes
import os
import signal
import subprocess

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def sh(*words, **keywords):
    """Returns what a command prints. An error names it and what it said."""
    done = subprocess.run(words, check=False, capture_output=True, text=True, **keywords)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def die_with_parent():
    """Runs in a child, before it execs: it ends with the program that started it, however that ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def unshare(flags):
    if LIBC.unshare(flags) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"unshare: {os.strerror(error)}")


def enter_node():
    """From here on this process, and all it starts, is on a node with lo, and with eth0 at
    10.250.0.4/16, up, with a default route."""
    unshare(CLONE_NEWNS | CLONE_NEWNET)
    sh("mount", "--make-rprivate", "/")
    sh("mount", "-t", "tmpfs", "-o", "mode=755", "node-run", "/run")
    sh("mount", "-t", "sysfs", "sysfs", "/sys")
    for words in ("link set lo up", "link add eth0 mtu 1500 type veth peer name wire0",
                  "address add 10.250.0.4/16 dev eth0", "link set eth0 up", "link set wire0 up",
                  "route add default via 10.250.0.1 dev eth0"):
        sh("ip", *words.split())
