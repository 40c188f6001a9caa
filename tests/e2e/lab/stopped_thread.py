"""Stops one thread of a program, as nothing but a fault would, and lets it go on when standard input ends.
Says "stopped" when it is.
usage: stopped_thread.py THREAD"""

import ctypes
import os
import sys

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000  # waitpid(2): threads too.

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, thread):
    if LIBC.ptrace(request, thread, None, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace of thread {thread}: {os.strerror(error)}")


def main():
    thread = int(sys.argv[1])
    ptrace(PTRACE_SEIZE, thread)
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WALL)
    print("stopped", flush=True)
    sys.stdin.read()
    ptrace(PTRACE_DETACH, thread)


if __name__ == "__main__":
    main()
