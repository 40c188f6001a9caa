#!/usr/bin/env python3
"""Writes a container image made of busybox and programs of this machine, without any container tool
or network.

usage: make_image.py OUT.tar REFERENCE [PROGRAM...]

OUT.tar is an OCI image layout with one layer, for `ctr images import`. It runs /pause when it is
given no command, so it serves as a sandbox image too. Each PROGRAM is a path; it is in the image's
/bin, with the libraries that it is started with. The same programs give the same bytes.
"""

import io
import os
import subprocess
import sys
import tarfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "scripts/image"))
from image_files import is_static, libraries, Failure, LINKS  # noqa: E402
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


def add_programs(layer, programs):
    for program in programs:
        with open(program, "rb") as file:
            add(layer, "bin/" + os.path.basename(program), file.read(), mode=0o755)
    needed = [program for program in programs if not is_static(program)]
    if not needed:
        return
    for name in ("lib", "lib64"):
        add(layer, name, type=tarfile.SYMTYPE, linkname=LINKS[name], mode=0o777)
    for inside, library in sorted(libraries(needed).items()):
        with open(library, "rb") as file:
            add(layer, inside, file.read(), mode=0o755)


def make_layer(programs):
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
        add_programs(layer, programs)
    return buffer.getvalue()


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    out, reference, *programs = sys.argv[1:]
    config = {"Env": ["PATH=/bin"], "Entrypoint": ["/pause"], "WorkingDir": "/"}
    try:
        write_image(out, reference, make_layer(programs), {"config": config})
    except (Failure, OSError) as failure:
        sys.exit(f"make_image.py: {failure}")


if __name__ == "__main__":
    main()
