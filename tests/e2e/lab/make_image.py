#!/usr/bin/env python3
"""Writes a container image made of busybox and programs of this machine, without any container tool
or network.

usage: make_image.py OUT.tar REFERENCE [PROGRAM | --package PACKAGE | --file PATH=FILE]...

OUT.tar is an OCI image layout with one layer, for `ctr images import`. It runs /pause when it is
given no command, so it serves as a sandbox image too. Each PROGRAM is a path; it is in the image's
/bin, with the libraries that it is started with. Each PACKAGE is an installed package of Debian's; its
files are where they are on this machine, without documents and services, and with the libraries of its
programs and modules, which alone take no package. Each FILE is at PATH, with its mode. The same programs give the same bytes.
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

# What packages have for people and for the machine's own start.
LEFT_OUT = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/lintian/", "/usr/share/bug/",
            "/lib/systemd/", "/usr/lib/systemd/", "/etc/init.d/", "/etc/pam.d/", "/etc/default/")

FILES = {
    "etc/passwd": b"root:x:0:0:root:/:/bin/sh\nsshd:x:100:65534:sshd:/run/sshd:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n",
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
    """Returns those that need libraries."""
    for program in programs:
        with open(program, "rb") as file:
            add(layer, "bin/" + os.path.basename(program), file.read(), mode=0o755)
    return [program for program in programs if not is_static(program)]


def files_of(package):
    """The paths of an installed package's files and links that a container may have a use for."""
    done = subprocess.run(["dpkg-query", "--listfiles", package], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"there is no package {package} on this machine: scripts/setup.sh --also {package}")
    # /lib is a link too, but of the machine's.
    return [path for path in done.stdout.splitlines() if path.count("/") > 1
            and not path.startswith(LEFT_OUT) and (os.path.islink(path) or os.path.isfile(path))]


def add_packages(layer, packages):
    """Returns the programs and modules among the packages' files."""
    needed = []
    for path in sorted({path for package in packages for path in files_of(package)}):
        top, rest = path.lstrip("/").split("/", 1)
        inside = os.path.join(LINKS.get(top, top), rest)
        if os.path.islink(path):
            add(layer, inside, type=tarfile.SYMTYPE, linkname=os.readlink(path), mode=0o777)
            continue
        with open(path, "rb") as file:
            data = file.read()
        add(layer, inside, data, mode=os.stat(path).st_mode & 0o755)
        if data.startswith(b"\x7fELF"):
            needed.append(path)
    return needed


def add_files(layer, files):
    for word in files:
        inside, _, path = word.partition("=")
        with open(path, "rb") as file:
            add(layer, inside.lstrip("/"), file.read(), mode=os.stat(path).st_mode & 0o777)


def add_libraries(layer, needed):
    if not needed:
        return
    for name in ("lib", "lib64"):
        add(layer, name, type=tarfile.SYMTYPE, linkname=LINKS[name], mode=0o777)
    there = set(layer.getnames())
    for inside, library in sorted(libraries(needed).items()):
        if inside in there:
            continue
        with open(library, "rb") as file:
            add(layer, inside, file.read(), mode=0o755)


def make_layer(programs, packages, files):
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
        add_files(layer, files)
        add_libraries(layer, add_programs(layer, programs) + add_packages(layer, packages))
    return buffer.getvalue()


def parse_words(words):
    """Programs, packages and files."""
    lists = {"": [], "--package": [], "--file": []}
    words = iter(words)
    for word in words:
        if word in lists:
            lists[word].append(next(words, ""))
        else:
            lists[""].append(word)
    return lists.values()


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    out, reference, *words = sys.argv[1:]
    config = {"Env": ["PATH=/bin:/usr/bin:/usr/sbin"], "Entrypoint": ["/pause"], "WorkingDir": "/"}
    try:
        write_image(out, reference, make_layer(*parse_words(words)), {"config": config})
    except (Failure, OSError) as failure:
        sys.exit(f"make_image.py: {failure}")


if __name__ == "__main__":
    main()
