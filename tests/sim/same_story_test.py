#!/usr/bin/env python3
"""The same seed tells the same story in each process: hash maps of absl have another order in each.

usage: same_story_test.py SPOKE_SIM
"""

import difflib
import subprocess
import sys

RUNS = (["--seed", "1"], ["--seed", "12", "--azure"], ["--seed", "34", "--azure"])
LEAST = 200  # Lines of a story.


def story(program, words):
    """All that a run tells, but for how fast it was."""
    done = subprocess.run([program, *words, "--until", "600", "--trace"], check=False, text=True,
                          capture_output=True, timeout=280)
    return done.stdout.splitlines()[:-1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = []
    for words in RUNS:
        first, second = story(sys.argv[1], words), story(sys.argv[1], words)
        if len(first) < LEAST:
            wrong.append(f"{' '.join(words)}: tells {len(first)} lines, fewer than {LEAST}")
        if first != second:
            lines = list(difflib.unified_diff(first, second, lineterm="", n=2))[:20]
            wrong.append(f"{' '.join(words)}: two processes differ\n" + "\n".join(lines))
    for text in wrong:
        print(text)
    print(f"{len(RUNS)} runs told twice, {len(wrong)} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
