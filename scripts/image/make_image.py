"""Writes the image as an OCI layout in a tar file; scripts/image.sh is how it is run."""

import argparse
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import elf_programs  # noqa: E402
from debian_packages import Packages, UnknownPackage  # noqa: E402
from image_files import ROOT, UNPACKED, Failure, collect  # noqa: E402
from oci_layout import add, write_image  # noqa: E402

REPOSITORY = "docker.io/library/spoke"
# Debian lays out the libraries of arm64 for pages of 64 KiB, which costs up to as much in each of some 90.
MAX_MIB = {"amd64": 60, "arm64": 68}
MEBIBYTE = 1 << 20


def image_time():
    text = os.environ.get("SOURCE_DATE_EPOCH") or "0"
    if not re.fullmatch(r"\d{1,11}", text):
        raise Failure(f'SOURCE_DATE_EPOCH is "{text}": it takes seconds since 1970')
    return int(text)


def read_version(bin_folder):
    """Returns what the programs say of themselves, so that the tag cannot lie."""
    program = os.path.join(bin_folder, "spokectl")
    try:
        command = elf_programs.command(program, "--version")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failure(f"{program}: {error.strerror}; build it: scripts/build.sh release") from error
    match = re.fullmatch(r"spokectl ([0-9][\w.-]*)\n", done.stdout)
    if done.returncode or not match:
        raise Failure(f'{program} --version prints "{done.stdout.strip()}", not a version')
    return match.group(1)


def make_layer(entries, when):
    """A tar of the entries in order of their names: a folder comes before what is in it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as layer:
        for path, entry in sorted(entries.items()):
            fields = {"mode": entry.mode, "mtime": when}
            if entry.target is not None:
                add(layer, path, type=tarfile.SYMTYPE, linkname=entry.target, **fields)
            elif entry.data is None:
                add(layer, path, type=tarfile.DIRTYPE, **fields)
            else:
                add(layer, path, entry.data, **fields)
    return buffer.getvalue()


def describe(version, when):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    return {
        "created": created,
        "config": {
            "Env": ["PATH=/usr/bin:/usr/sbin"],
            "Cmd": ["/usr/bin/spokectl", "--help"],
            "WorkingDir": "/",
            "Labels": {"org.opencontainers.image.title": "spoke",
                       "org.opencontainers.image.version": version},
        },
        "history": [{"created": created, "created_by": "scripts/image.sh"}],
    }


def list_contents(name, architecture, digest, entries):
    """What the image consists of, for scripts/release/spdx: each file, and the Debian package that it is from."""
    packages = Packages(architecture, [UNPACKED[architecture]] if architecture in UNPACKED else [])
    files, components = [], {}
    for path, entry in sorted(entries.items()):
        if entry.data is None:
            continue
        file = {"path": path, "sha1": hashlib.sha1(entry.data).hexdigest(),
                "sha256": hashlib.sha256(entry.data).hexdigest()}
        if entry.source:
            package = packages.find(entry.source)
            if package not in components:
                components[package] = packages.component(package)
            file["package"] = components[package]["bom-ref"]
        files.append(file)
    return {"image": name, "architecture": architecture, "digest": digest, "files": files,
            "components": [components[package] for package in sorted(components)]}


def make(bin_folder, out, simulator, contents):
    """Writes the image; what it is, for print_result()."""
    repository = f"{REPOSITORY}-azure-sim" if simulator else REPOSITORY
    when = image_time()
    version = read_version(bin_folder)
    architecture = elf_programs.architecture(os.path.join(bin_folder, "spokectl"))
    suffix = "" if architecture == elf_programs.OWN else f"-{architecture}"
    out = out or os.path.join(ROOT, f"build/{os.path.basename(repository)}-{version}{suffix}.tar")
    entries = collect(bin_folder, simulator)
    unpacked = sum(len(entry.data) for entry in entries.values() if entry.data)
    limit = MAX_MIB[architecture]
    if unpacked > limit * MEBIBYTE:
        largest = sorted(((len(e.data), path) for path, e in entries.items() if e.data), reverse=True)
        names = ", ".join(f"{path} {size / MEBIBYTE:.1f}" for size, path in largest[:5])
        raise Failure(f"{unpacked / MEBIBYTE:.1f} MiB unpacked, and {limit} is the limit; the largest "
                      f"files, in MiB: {names}")
    name = f"{repository}:{version}"
    digest = write_image(out, name, make_layer(entries, when), describe(version, when), when,
                         architecture)
    if contents:
        with open(contents, "w", encoding="utf-8") as file:
            json.dump(list_contents(name, architecture, digest, entries), file, indent=1, sort_keys=True)
    return {"name": name, "architecture": architecture, "digest": digest, "file": out, "files": len(entries),
            "file_bytes": os.path.getsize(out), "unpacked_bytes": unpacked, "limit_mib": limit}


def print_result(made, as_json):
    if as_json:
        print(json.dumps(made))
        return
    print(f"image     {made['name']}")
    print(f"digest    {made['digest']}")
    print(f"file      {made['file']}")
    print(f"size      {made['file_bytes'] / MEBIBYTE:.1f} MiB, "
          f"{made['unpacked_bytes'] / MEBIBYTE:.1f} MiB unpacked (at most {made['limit_mib']})")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="the folder of the four programs")
    parser.add_argument("--out", default="", help="the tar file")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--contents", help="the file that is to say which files are in the image, and whose")
    parser.add_argument("--simulator", action="store_true")
    arguments = parser.parse_args()
    try:
        print_result(make(arguments.bin, arguments.out, arguments.simulator,
                          arguments.contents), arguments.json)
    except (Failure, UnknownPackage, OSError, ValueError) as failure:
        sys.exit(f"image.sh: {failure}")


if __name__ == "__main__":
    main()
