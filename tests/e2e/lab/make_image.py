#!/usr/bin/env python3
"""Writes a container image made of busybox alone, without any container tool or network.

usage: make_image.py OUT.tar REFERENCE

OUT.tar is an OCI image layout with one layer, for `ctr images import`. It runs /pause when it is
given no command, so it serves as a sandbox image too. The same busybox gives the same bytes.
"""

import io
import os
import subprocess
import sys
import tarfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "scripts/image"))
from oci_layout import add, write_image  # noqa: E402

BUSYBOX = "/bin/busybox"

# The shell waits in the foreground for nothing, so it can take the signal that ends a sandbox: as
# pid 1 it would not die of one that it does not handle.
PAUSE = b"""#!/bin/sh
trap 'exit 0' TERM INT
while :; do sleep 1000000 & wait $!; done
"""

FILES = {
    "etc/passwd": b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": b"root:x:0:\nnobody:x:65534:\n",
    # A static glibc loads name service modules at run time, and crashes where there are none.
    "etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
}


def read_busybox():
    with open(BUSYBOX, "rb") as file:
        data = file.read()
    # A dynamic one names its loader, which the image has not got.
    if b"/ld-linux" in data or b"/ld-musl" in data:
        sys.exit(f"make_image.py: {BUSYBOX} is not static: install busybox-static")
    applets = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True)
    return data, sorted(set(applets.stdout.split()) - {"busybox"})


def make_layer():
    busybox, applets = read_busybox()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as layer:
        for name in ("bin", "dev", "etc", "proc", "run", "sys", "var"):
            add(layer, name, type=tarfile.DIRTYPE, mode=0o755)
        add(layer, "tmp", type=tarfile.DIRTYPE, mode=0o1777)
        add(layer, "bin/busybox", busybox, mode=0o755)
        for applet in applets:
            add(layer, "bin/" + applet, type=tarfile.SYMTYPE, linkname="busybox", mode=0o777)
        add(layer, "pause", PAUSE, mode=0o755)
        for name, data in sorted(FILES.items()):
            add(layer, name, data)
    return buffer.getvalue()


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    out, reference = sys.argv[1:]
    config = {"Env": ["PATH=/bin"], "Entrypoint": ["/pause"], "WorkingDir": "/"}
    write_image(out, reference, make_layer(), {"config": config})


if __name__ == "__main__":
    main()
