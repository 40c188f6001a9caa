#!/usr/bin/env python3
"""commands_test.py SPOKECTL NETAGENT IPAM_SERVER ROOT: every command of ours that the documents and the alerts show is one that
there is, with the options that are shown: of spokectl, of both daemons and of scripts/*.sh. What they have is what
their --help says."""

import functools
import itertools
import pathlib
import re
import subprocess
import sys

# What ends a command: a pipe, another command, a comment, the end of a code span.
END = re.compile(r"\s#\s|\s[|]\s|;|&&|\)|`|$")
# What a document may put in the place of a verb.
PLACEHOLDER = re.compile(r"^(VERB|\.\.\.|<.*>|-.*|.*[^ -~].*|.*[A-Z/=$].*)$")
DAEMONS = ("spoke-netagent", "spoke-ipam-server")
# A daemon's name is many things' name, so it is a command only where one begins.
COMMANDS = (
    re.compile(r"(?:^|[\s`(])(?<!ln -s )(spokectl)(?= )"),
    re.compile(r"(?:^|[`(|;&]|\s--\s)\s*(?:[A-Z_]+=\S*\s+)*(?:[\w./]*/)?(" + "|".join(DAEMONS) + r")(?=[\s`]|$)"),
    re.compile(r"(?:^|[\s`(\"])(scripts/[a-z0-9_]+\.sh)(?=[\s`)\"]|$)"),
)
OPTION = re.compile(r"^\[?(--?[a-z][a-z0-9-]*)")


@functools.lru_cache(maxsize=None)
def help_of(program, verbs=()):
    """Returns what `PROGRAM VERBS --help` prints; None: there is no such program or verb."""
    if not pathlib.Path(program).is_file():
        return None
    # A script that does not know --help would do its work.
    if program.endswith(".sh") and "--help" not in pathlib.Path(program).read_text():
        return ""
    done = subprocess.run([program, *verbs, "--help"], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout if done.returncode == 0 else None


def code_of_page(text):
    """Yields (line number, code): indented lines, with those that continue them, and code spans."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        first, line = number + 1, lines[number]
        number += 1
        if line.startswith("    "):
            while line.endswith("\\") and number < len(lines):
                line = line[:-1] + lines[number].strip()
                number += 1
            yield first, line
        else:
            for span in re.findall(r"`([^`]+)`", line):
                yield first, f"`{span}`"


def code_of_rules(text):
    """Yields (line number, code) of the code spans in a YAML file, which may go on in the next line."""
    for match in re.finditer(r"`([^`]+)`", text):
        yield text.count("\n", 0, match.start()) + 1, "`" + re.sub(r"\s*\n\s*", " ", match[1]) + "`"


def commands_in(code):
    """Yields (program, its words) of each command in a piece of code."""
    for pattern in COMMANDS:
        for match in pattern.finditer(code.strip() if pattern is COMMANDS[1] else code):
            rest = match.string[match.end(1):]
            yield match[1], rest[:END.search(rest).start()].split()


def alternatives(words):
    """Yields the commands that words such as pool\\|node\\|ip stand for."""
    return itertools.product(*[re.split(r"\\?\|", word) for word in words])


def unknown_option(words, known):
    for option in (match[1] for match in map(OPTION.match, words) if match):
        if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known):
            return option
    return ""


def wrong_with_spokectl(spokectl, words):
    """Returns what is wrong with one command; an empty text: nothing."""
    verbs = ()
    for word in words:
        if PLACEHOLDER.match(word) or (verbs and "\nVerbs:\n" not in help_of(spokectl, verbs)):
            break
        if help_of(spokectl, (*verbs, word)) is None:
            return f"there is no command `{' '.join(('spokectl', *verbs, word))}`"
        verbs = (*verbs, word)
    option = unknown_option(words, (help_of(spokectl, verbs) or "") + help_of(spokectl))
    return f"`spokectl {' '.join(verbs)}` has no option {option}" if option else ""


def wrong_with(name, words, programs, root):
    if name == "spokectl":
        return wrong_with_spokectl(programs[name], words)
    known = help_of(programs.get(name) or str(root / name))
    if known is None:
        return f"there is no {name}"
    # What follows is for another program.
    option = unknown_option(words[:words.index("--")] if "--" in words else words, known)
    return f"{name} has no option {option}" if option else ""


def kind_of(name):
    return "scripts" if name.endswith(".sh") else "daemons" if name in DAEMONS else name


# Wrong commands, each of which has to be found; a test that finds nothing would pass otherwise.
WRONG = (
    "`spokectl node lists`", "    spokectl status --colour", "    kubectl exec spoke-ipam-server-0 -- spokectl nodule show a",
    "    scripts/demo.sh --clouds azure", "`scripts/no_such.sh`", "    scripts/check_test.sh --fast",
    "    scripts/etcd_files.sh -o etcd \\\n      --clients-port 1", "    spoke-netagent --with-pod", "`spoke-netagent --cleanups`",
    "    kubectl exec POD -- /usr/bin/spoke-netagent --probes=readiness", "    LANG=C build/release/bin/spoke-ipam-server --configs a")
RIGHT = (
    "    kubectl scale statefulset spoke-ipam-server spoke-etcd --replicas=0", "    systemctl start spoke-netagent --quiet",
    "    scripts/test.sh chaos -- --minutes 60", "`spoke-ipam-server --config FILE --check-config`", "`spokectl pool\\|node list`")


def judge(pages, programs, root):
    """Returns how many commands of each kind are right, and a sentence for each that is wrong."""
    passed, problems = {"spokectl": 0, "daemons": 0, "scripts": 0}, []
    for page, code in pages:
        for number, piece in code:
            for name, words in commands_in(piece):
                for command in alternatives(words):
                    problem = wrong_with(name, list(command), programs, root)
                    passed[kind_of(name)] += not problem
                    if problem:
                        problems.append(f"{page}:{number}: {name} {' '.join(command)}: {problem}")
    return passed, problems


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    programs, root = dict(zip(("spokectl", *DAEMONS), sys.argv[1:4])), pathlib.Path(sys.argv[4])
    paths = [root / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted((root / "docs").rglob("*.md"))
    pages = [(path.relative_to(root), list(code_of_page(path.read_text()))) for path in paths]
    rules = root / "conf/alerts.yaml"
    passed, problems = judge([*pages, (rules.relative_to(root), code_of_rules(rules.read_text()))], programs, root)
    problems += [f"`{text.strip()}` is not found to be wrong" for text in WRONG
                 if not judge([("", code_of_page(text))], programs, root)[1]]
    problems += judge([("right", code_of_page(text)) for text in RIGHT], programs, root)[1]
    for kind, least in (("spokectl", 400), ("daemons", 15), ("scripts", 60)):
        if passed[kind] < least:
            problems.append(f"only {passed[kind]} commands of {kind} were found, so that little was looked at")
    print("\n".join([*problems, f"{sum(passed.values())} passed {passed}, {len(problems)} failed"]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
