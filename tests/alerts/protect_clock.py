#!/usr/bin/env python3
"""Runs a program that may not ask the kernel about its clock, or set it, as with ProtectClock= of
systemd.exec(5), which the agent's unit has. Whether anybody keeps the clock of the machine that runs a test
is no matter of the test.

usage: protect_clock.py PROGRAM [ARGUMENT...]
"""

import ctypes
import errno
import os
import platform
import struct
import sys

CALLS = {"x86_64": (159, 305), "aarch64": (171, 266)}  # adjtimex(2), clock_adjtime(2).
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
LOAD_NUMBER = (0x20, 0, 0, 0)  # BPF_LD | BPF_W | BPF_ABS: the number of the call (seccomp(2)).
ALLOW = (0x06, 0, 0, 0x7FFF0000)
REFUSE = (0x06, 0, 0, 0x00050000 | errno.EPERM)


class Filter(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def protect():
    first, second = CALLS[platform.machine()]
    program = [LOAD_NUMBER, (0x15, 2, 0, first), (0x15, 1, 0, second), ALLOW, REFUSE]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Filter(len(program), code)), 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    protect()
    os.execv(sys.argv[1], sys.argv[1:])
