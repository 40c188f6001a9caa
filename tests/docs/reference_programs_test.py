#!/usr/bin/env -S python3 -B
"""reference_programs_test.py SERVER AGENT SPOKECTL ROOT: what the reference says of configurations and policies, which
scripts/check_reference reads out of the code, is what the programs do.

Each section is given a key that there is not, and nothing else: the program answers with the keys that it knows
there, and with those that are missing. Each number and duration is given its least and largest
value, which are taken, and what lies just outside, which is refused."""

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MADE_UP = "madeUp"
LISTED = 12  # A program names so many of the keys that it knows.
UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
LARGEST = 2**32 - 1


def put(document, path, value):
    """Puts a value at the path a.b[].c of a document."""
    for part in path.split(".")[:-1]:
        document = document.setdefault(part.removesuffix("[]"), [{}] if part.endswith("[]") else {})
        document = document[0] if isinstance(document, list) else document
    last = path.split(".")[-1]
    document[last.removesuffix("[]")] = [value] if last.endswith("[]") else value


def shown(path):
    """Returns how programs write a path."""
    return path.replace("[]", "[0]")


def milliseconds(text):
    number, unit = re.fullmatch(r"(\d+)(h|ms|m|s)", text).groups()
    return int(number) * UNITS[unit]


def values_around(key):
    """Returns (values that are taken, values that are refused) of a key with bounds."""
    ends = key.limits.removesuffix(" and more").split(" to ")
    if key.kind == "duration":
        taken = [milliseconds(end) for end in ends]
        refused = ([taken[0] - 1] if taken[0] else []) + [value + 1000 for value in taken[1:]]
        return [f"{value}ms" for value in taken], [f"{value}ms" for value in refused]
    if key.kind == "number":
        taken = [float(end) for end in ends]
        return taken, [taken[0] - 0.0005, *[value + 0.01 for value in taken[1:]]]
    taken = [int(end) for end in ends]
    return taken, ([taken[0] - 1] if taken[0] else []) + [value + 1 for value in taken[1:] if value < LARGEST]


class Comparison:
    """The keys of one document, compared with a program. `answer(document)` returns what it says is wrong."""

    def __init__(self, what, walk, answer, top):
        self.what = what
        self.keys = {key.path: key for key in walk.keys.values()}
        self.former = {path.split(".")[-1] for path in walk.former}
        self.answer = answer
        self.top = top  # The section that is the document for its readers: "" or "spec".
        self.passed = 0
        self.failed = []

    def expect(self, condition, message):
        if condition:
            self.passed += 1
        else:
            self.failed.append(f"{self.what}: {message}")

    def sections(self):
        """Yields (path of a section, the keys in it); none for those whose keys are data."""
        for section in [self.top, *(path for path, key in self.keys.items() if "map" in key.kind)]:
            inner = {path.rpartition(".")[2].removesuffix("[]"): key for path, key in self.keys.items()
                     if path.rpartition(".")[0] == section}
            if "NAME" not in inner:
                yield section, inner

    def compare_keys(self, section, inner):
        """Compares the keys that the program knows in a section, and those that it requires."""
        document, place = {}, f"{shown(section)}." if section else ""
        put(document, f"{section}.{MADE_UP}" if section else MADE_UP, 1)
        answer = self.answer(document)
        missing = set(re.findall(rf": {re.escape(place)}(\w+): is required but missing", answer))
        required = {name for name, key in inner.items() if key.required}
        self.expect(missing == required, f"{section or 'the root'} requires {missing}, and the reference says {required}")
        match = re.search(rf": {re.escape(place)}{MADE_UP}: unknown key; known here: (.*)", answer)
        known = [name for name in match[1].split(", ") if name not in self.former] if match else []
        expected = sorted(inner)
        if known[-1:] == ["..."]:
            expected = expected[:LISTED] + ["..."]
        self.expect(known == expected, f"{section or 'the root'} has {known}, and the reference {expected}")
        for name in sorted(inner)[LISTED:]:
            document = {}
            put(document, f"{section}.{name}" if section else name, 1)
            self.expect(f": {place}{name}: unknown key" not in self.answer(document), f"{place}{name} is not known")

    def compare_bounds(self):
        bounded = {path: values_around(key) for path, key in self.keys.items() if key.limits}
        for end in (0, 1):
            for taken in (True, False):
                chosen = {path: values[0 if taken else 1][end:][:1] for path, values in bounded.items()}
                chosen = {path: values[0] for path, values in chosen.items() if values}
                document = {}
                for path, value in chosen.items():
                    put(document, path, value)
                answer = self.answer(document)
                self.expect(" more\n" not in answer, "there were too many mistakes for one answer")
                for path, value in chosen.items():
                    refused = re.search(rf": {re.escape(shown(path))}: must be (a whole number |a number )?from ", answer)
                    self.expect(bool(refused) != taken, f"{path}: {value} is {'refused' if refused else 'taken'}, and "
                                f"the reference says {self.keys[path].limits}")

    def run(self):
        for section, inner in self.sections():
            self.compare_keys(section, inner)
        self.compare_bounds()
        return self


def answer_of_program(program, folder):
    def answer(document):
        file = folder / "configuration.yaml"
        file.write_text(json.dumps(document))
        done = subprocess.run([program, "--config", file, "--check-config"], capture_output=True, text=True, check=False,
                              timeout=60)
        return done.stdout + done.stderr + "\n"
    return answer


def answer_of_apply(spokectl, admin, folder, kind):
    def answer(document):
        file = folder / "policy.yaml"
        file.write_text(json.dumps({"apiVersion": "spoke/v1", "kind": kind, "metadata": {"name": "a"},
                                    "spec": document.get("spec", {})}))
        done = subprocess.run([spokectl, "--server", admin, "apply", "--dry-run", "-f", file], capture_output=True,
                              text=True, check=False, timeout=60)
        return done.stdout + done.stderr + "\n"
    return answer


@contextlib.contextmanager
def serving(server, folder):
    """Runs a server, and yields the address where operators ask it."""
    socket = folder / "admin.sock"
    file = folder / "server.yaml"
    file.write_text(json.dumps({
        "listen": {"agents": f"unix:{folder}/agents.sock", "admin": f"unix:{socket}", "metrics": "off"},
        "tls": {"insecure": True}, "store": {"sqlite": f"{folder}/ipam.db"}, "cloud": {"static": {}},
        "health": "off", "health_http": "off"}))
    with open(folder / "log", "w", encoding="utf-8") as log, subprocess.Popen(
            [server, "--config", file], stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + 60
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"the server does not serve:\n{(folder / 'log').read_text()}")
                time.sleep(0.1)
            yield f"unix:{socket}"
        finally:
            process.terminate()
            process.wait(30)


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    server, agent, spokectl = sys.argv[1:4]
    root = pathlib.Path(sys.argv[4]).resolve()
    sys.path.insert(0, str(root / "scripts"))
    from reference import config_pages  # pylint: disable=import-outside-toplevel
    structs = config_pages.structs_of(root)
    done = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for which, program in (("server", server), ("agent", agent)):
            walk = config_pages.walk_document(root, which, structs)
            done.append(Comparison(which, walk, answer_of_program(program, folder), "").run())
        with serving(server, folder) as admin:
            for kind, walk in config_pages.walk_kinds(root, structs):
                answer = answer_of_apply(spokectl, admin, folder, kind)
                done.append(Comparison(kind, walk, answer, "spec").run())
    failed = [problem for one in done for problem in one.failed]
    for problem in failed:
        print(problem)
    passed = sum(one.passed for one in done)
    if passed < 200:
        failed.append("")
        print(f"only {passed} things were compared, so that little was looked at")
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
