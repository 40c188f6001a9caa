"""Programs for Linux of this machine's architecture, or of another: which it is, what reads and runs them.

For another architecture it takes what scripts/setup.sh --arm64 installs.
"""

import platform
import subprocess

# By the machine's number in an ELF header (e_machine): Debian's name, GNU's, and the loader.
KNOWN = {62: ("amd64", "x86_64-linux-gnu", "/lib64/ld-linux-x86-64.so.2"),
         183: ("arm64", "aarch64-linux-gnu", "/lib/ld-linux-aarch64.so.1")}
EMULATORS = {"arm64": "qemu-aarch64", "amd64": "qemu-x86_64"}
OWN = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def known(path):
    """KNOWN's line of a program. Errors: OSError, and ValueError where it is none of those."""
    with open(path, "rb") as file:
        header = file.read(20)
    number = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or number not in KNOWN:
        raise ValueError(f"{path} is no program for {' or '.join(line[0] for line in KNOWN.values())}")
    return KNOWN[number]


def architecture(path):
    """Debian's name of a program's architecture. Errors: those of known()."""
    return known(path)[0]


def triplet(path):
    """The name that Debian's folders of libraries and its cross tools have. Errors: those of known()."""
    return known(path)[1]


def tool(path, name):
    """The program `name` of binutils or GCC for a program. Errors: those of known()."""
    return name if architecture(path) == OWN else f"{triplet(path)}-{name}"


def command(path, *arguments):
    """The words that run a program here. Errors: those of known()."""
    if architecture(path) == OWN:
        return [path, *arguments]
    return [EMULATORS[architecture(path)], path, *arguments]


def list_libraries(*paths):
    """Runs ldd for programs of one architecture, or what ldd is, its loader: a CompletedProcess."""
    if architecture(paths[0]) == OWN:
        return subprocess.run(["ldd", *paths], capture_output=True, text=True, check=False)
    texts = []
    for path in paths:
        loader = [EMULATORS[architecture(path)], known(path)[2]]
        done = subprocess.run([*loader, "--list", path], capture_output=True, text=True, check=False)
        if done.returncode:
            return done
        texts.append(done.stdout)
    done.stdout = "".join(texts)
    return done
