#!/usr/bin/env python3
"""commands_test.py SPOKECTL ROOT: every command of spokectl that the documents show is one that it has,
with the options that are shown. What it has is what its --help says."""

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


@functools.lru_cache(maxsize=None)
def help_of(spokectl, verbs):
    """Returns what `spokectl VERBS --help` prints; None: there is no such verb."""
    done = subprocess.run([spokectl, *verbs, "--help"], capture_output=True, text=True, check=False,
                          timeout=60)
    return done.stdout if done.returncode == 0 else None


def commands_in(text):
    """Yields (line number, words of a command behind the name spokectl)."""
    for number, line in enumerate(text.splitlines(), 1):
        code = line if line.startswith("    ") else " ".join(
            f"`{span}`" for span in re.findall(r"`([^`]+)`", line))
        for match in re.finditer(r"(?:^|[\s`(])(?<!ln -s )spokectl ([^`]*)", code):
            words = match[1][:END.search(match[1]).start()].split()
            if words:
                yield number, words


def alternatives(words):
    """Yields the commands that words such as pool\\|node\\|ip stand for."""
    return itertools.product(*[re.split(r"\\?\|", word) for word in words])


def wrong_with(spokectl, words):
    """Returns what is wrong with one command; an empty text: nothing."""
    verbs = ()
    for word in words:
        if PLACEHOLDER.match(word) or (verbs and "\nVerbs:\n" not in help_of(spokectl, verbs)):
            break
        if help_of(spokectl, (*verbs, word)) is None:
            return f"there is no command `{' '.join(('spokectl', *verbs, word))}`"
        verbs = (*verbs, word)
    known = (help_of(spokectl, verbs) or "") + help_of(spokectl, ())
    for option in (word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)):
        if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known):
            return f"`spokectl {' '.join(verbs)}` has no option {option}"
    return ""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    spokectl, root = sys.argv[1], pathlib.Path(sys.argv[2])
    passed = failed = 0
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        for number, words in commands_in(page.read_text()):
            for command in alternatives(words):
                problem = wrong_with(spokectl, command)
                if problem:
                    failed += 1
                    print(f"{page.relative_to(root)}:{number}: spokectl {' '.join(command)}: {problem}")
                else:
                    passed += 1
    if passed < 100:
        failed += 1
        print(f"only {passed} commands were found, so that little was looked at")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
