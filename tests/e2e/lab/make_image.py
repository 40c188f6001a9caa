#!/usr/bin/env python3
"""Writes a container image made of busybox alone, without any container tool or network.

usage: make_image.py OUT.tar REFERENCE

OUT.tar is an OCI image layout with one layer, for `ctr images import`. It runs /pause when it is
given no command, so it serves as a sandbox image too. The same busybox gives the same bytes.
"""

import hashlib
import io
import json
import platform
import subprocess
import sys
import tarfile

BUSYBOX = "/bin/busybox"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

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


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def to_json(value):
    return json.dumps(value, sort_keys=True).encode()


def add(archive, name, data=b"", **fields):
    """Adds a member with no time and no owner but root, so that the bytes never differ."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.mode = 0o644
    for field, value in fields.items():
        setattr(member, field, value)
    archive.addfile(member, io.BytesIO(data))


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


def descriptor(kind, data):
    return {
        "mediaType": f"application/vnd.oci.image.{kind}",
        "digest": digest(data),
        "size": len(data),
    }


def make_blobs(reference):
    """The image's blobs, and the index that leads to them."""
    layer = make_layer()
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    config = to_json(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Entrypoint": ["/pause"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        }
    )
    manifest = to_json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("config.v1+json", config),
            "layers": [descriptor("layer.v1.tar", layer)],
        }
    )
    entry = descriptor("manifest.v1+json", manifest)
    entry["platform"] = {"architecture": architecture, "os": "linux"}
    entry["annotations"] = {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference.rsplit(":", 1)[-1],
    }
    return (layer, config, manifest), to_json({"schemaVersion": 2, "manifests": [entry]})


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    out, reference = sys.argv[1:]
    blobs, index = make_blobs(reference)
    with tarfile.open(out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        add(archive, "oci-layout", to_json({"imageLayoutVersion": "1.0.0"}))
        add(archive, "index.json", index)
        for blob in blobs:
            add(archive, "blobs/" + digest(blob).replace(":", "/"), blob)


if __name__ == "__main__":
    main()
