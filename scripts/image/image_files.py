"""The contents of the image: each path in it, with its bytes or where it points."""

import glob
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import elf_programs  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The mode of a file that is not a program, of one that is, and of a folder that anybody writes to.
PLAIN, EXECUTABLE, SHARED = 0o644, 0o755, 0o1777

PROGRAMS = ("spoke-netagent", "spoke-ipam-server", "spokectl")
SIMULATOR = "spoke-azure-sim"
PLUGIN = "spoke"
# The agent talks to nft tables itself; for iptables-legacy it runs these.
LEGACY_IPTABLES = "usr/sbin/xtables-legacy-multi"
# Where the packages are that hold what goes into the image beside our programs and their libraries. What
# cannot be installed beside the machine's own is only unpacked (scripts/image/arm64_iptables.sh).
UNPACKED = {"arm64": os.path.join(ROOT, "build/tools/iptables-arm64")}
LEGACY_NAMES = ("iptables-legacy", "iptables-legacy-save", "ip6tables-legacy-save")
# The authorities that Debian ships, not those that this machine has added to them.
AUTHORITIES = "/usr/share/ca-certificates/mozilla"

# A line as ldd prints it: "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)", and the loader's path
# alone.
LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)
MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)

TEXTS = {
    "etc/passwd": "root:x:0:0:root:/:/usr/sbin/nologin\n"
                  "nonroot:x:65532:65532:nonroot:/:/usr/sbin/nologin\n"
                  "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
FOLDERS = ("etc/spoke", "run/spoke", "usr/bin", "usr/lib", "usr/sbin", "var/lib/spoke", "proc", "sys",
           "dev")
# The places where Debian has had its programs and libraries before, and where the loader's name still
# is.
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


class Failure(Exception):
    """The image cannot be made; says why and what to do."""


class Entry:
    """One path of the image: a folder, a link (`target`) or a file (`data`). `source`: the file of this
    machine that the data is taken from; "" for a file that is ours."""

    def __init__(self, mode, data=None, target=None, source=""):
        self.mode = mode
        self.data = data
        self.target = target
        self.source = source


def read(path, remedy):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}; {remedy}") from error


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def stripped(path, remedy):
    """The program without its symbols, and with nothing of the machine that built it."""
    read(path, remedy)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, os.path.basename(path))
        code, _, errors = output_of(elf_programs.tool(path, "strip"), "--strip-all", "-o", copy, path)
        if code:
            raise Failure(f"strip {path}: {errors}")
        return read(copy, remedy)


def refuse_sanitized(path, data):
    """A build for tests runs nowhere else, and is slow."""
    if b"libasan.so" in data or b"libtsan.so" in data:
        raise Failure(f"{path} is built with a sanitizer: give a release build")


def is_static(path):
    """Returns whether a program needs no loader: it runs on any node, whatever is installed there."""
    code, text, errors = output_of("readelf", "--wide", "--program-headers", path)
    if code:
        raise Failure(f"readelf {path}: {errors}")
    return " INTERP " not in text


def libraries(paths):
    """The shared objects these are started with: name in the image to file on this machine."""
    done = elf_programs.list_libraries(*paths)
    text = done.stdout
    if done.returncode:
        raise Failure(f"ldd {' '.join(paths)}: {done.stderr.strip()}")
    missing = sorted(set(MISSING.findall(text)))
    if missing:
        raise Failure(f"there is no {', '.join(missing)} on this machine: install the packages that "
                      f"the programs were built with (scripts/setup.sh)")
    found = {}
    for library in LIBRARY.findall(text):
        inside = library if library.startswith("/usr/") else "/usr" + library
        found[inside.lstrip("/")] = library
    return found


def authorities():
    """The bundle as update-ca-certificates would write it on an untouched machine."""
    paths = sorted(glob.glob(AUTHORITIES + "/*.crt"))
    if not paths:
        raise Failure(f"{AUTHORITIES} holds no certificates: install ca-certificates")
    return b"".join(read(path, "install ca-certificates") for path in paths)


def add_legacy_iptables(entries, needed, sample):
    """`sample`: a program of the image's architecture."""
    architecture = elf_programs.architecture(sample)
    root = "/" if architecture == elf_programs.OWN else UNPACKED[architecture]
    program = os.path.join(root, LEGACY_IPTABLES)
    entries[LEGACY_IPTABLES] = Entry(EXECUTABLE, read(program, "install iptables"), source=program)
    needed.append(program)
    for name in LEGACY_NAMES:
        entries["usr/sbin/" + name] = Entry(0o777, target="xtables-legacy-multi")
    folder = os.path.join(root, "usr/lib", elf_programs.triplet(sample), "xtables")
    extensions = glob.glob(folder + "/*.so")
    if not extensions:
        raise Failure(f"iptables has no extensions in {folder}: install iptables")
    for path in extensions:
        inside = os.path.relpath(path, root)
        if os.path.islink(path):
            entries[inside] = Entry(0o777, target=os.readlink(path))
        else:
            entries[inside] = Entry(PLAIN, read(path, "install iptables"), source=path)
            needed.append(path)


def add_parents(entries):
    for path in list(entries):
        while path := os.path.dirname(path):
            entries.setdefault(path, Entry(EXECUTABLE))


def add_plugin(entries, bin_folder, remedy):
    path = os.path.join(bin_folder, PLUGIN)
    read(path, remedy)
    if not is_static(path):
        raise Failure(f"{path} is not static, so it would not run on every node: give a release build")
    entries["usr/lib/cni/spoke"] = Entry(EXECUTABLE, stripped(path, remedy))


def collect(bin_folder, simulator):
    """Path to Entry for everything in the image, folders too; raises Failure. `simulator`: that
    program's image, in place of the four's."""
    entries = {path: Entry(EXECUTABLE) for path in FOLDERS}
    entries["tmp"] = Entry(SHARED)
    entries.update((path, Entry(0o777, target=target)) for path, target in LINKS.items())
    entries.update((path, Entry(PLAIN, text.encode())) for path, text in TEXTS.items())
    entries["etc/ssl/certs/ca-certificates.crt"] = Entry(PLAIN, authorities(), source=AUTHORITIES)
    entries["usr/share/spoke/10-spoke.conflist"] = Entry(
        PLAIN, read(os.path.join(ROOT, "conf/10-spoke.conflist"), "it belongs to the tree"))

    needed = []
    remedy = "build it: scripts/build.sh release"
    for name in (SIMULATOR,) if simulator else PROGRAMS:
        path = os.path.join(bin_folder, name)
        entries["usr/bin/" + name] = Entry(EXECUTABLE, stripped(path, remedy))
        refuse_sanitized(path, entries["usr/bin/" + name].data)
        needed.append(path)
    if not simulator:
        entries["usr/bin/kubectl-spoke"] = Entry(0o777, target="spokectl")
        add_plugin(entries, bin_folder, remedy)
        add_legacy_iptables(entries, needed, needed[0])

    for inside, outside in libraries(needed).items():
        mode = EXECUTABLE if os.path.basename(inside).startswith("ld-") else PLAIN
        entries[inside] = Entry(mode, read(outside, "install its package"), source=outside)
    add_parents(entries)
    return entries
