"""The files that the checks look at, and how a check reports: one line a finding, exit code 1.

A check is called with the root of a tree (default: the one it lies in), so that check_test.sh can
show it a bad one.
"""

import os
import re
import subprocess
import sys

PROGRAMS = ("ipam-server", "netagent", "cni-plugin", "admin-cli")
SKIPPED_FOLDERS = {".git", "build", "corpus"}  # Fuzz seeds are data.


def list_files(root):
    """All files that are or could be committed, as paths from the root."""
    if os.path.exists(os.path.join(root, ".git")):
        command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others",
                   "--exclude-standard"]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()
        # A file that was deleted but not yet committed is still listed.
        found = [path for path in output.split("\0") if os.path.isfile(os.path.join(root, path))]
    else:
        found = []
        for folder, _, names in os.walk(root):
            found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(path for path in set(found) if not SKIPPED_FOLDERS & set(path.split("/")[:-1]))


def read_lines(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def is_script(root, path):
    """Returns whether a file without a suffix is a script."""
    name = os.path.basename(path)
    if "." in name.lstrip("."):
        return False
    with open(os.path.join(root, path), "rb") as file:
        return file.read(2) == b"#!"


INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def list_includes(root, path):
    """(line number, "<" or '"', what is included) for each include."""
    for number, line in enumerate(read_lines(root, path), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def run_check(check):
    """Runs check(root), which yields (path, line, message), and exits."""
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        print(f"usage: {os.path.basename(sys.argv[0])} [ROOT]\n\n{check.__doc__}")
        sys.exit(0 if sys.argv[1] in ("-h", "--help") else 2)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    root = sys.argv[1] if len(sys.argv) == 2 else here
    findings = list(check(root))
    for path, line, message in findings:
        print(f"{path}:{line}: {message}")
    sys.exit(1 if findings else 0)
