#!/usr/bin/env python3
"""Holds found.txt: each defect of ../mutants.txt has a line there, and the run that it names finds
the defect. Those that no run finds have a reason.

usage: found_test.py SPOKE_SIM
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST = 55  # So many defects have to be found.


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def finds(program, number, run):
    """Why the run does not find the defect; empty: it does."""
    kind, name = run.split(" ", 1)
    words = ["--seed", name, "--seeds", "1"] if kind == "seed" else ["--scenario", name]
    done = subprocess.run([program, *words, "--mutant", str(number)], check=False, text=True,
                          capture_output=True, timeout=280)
    if done.returncode == 1 and re.search(r"law \d+ is broken", done.stdout):
        return ""
    return f"defect {number} is not found by {run}: {(done.stdout + done.stderr).strip()[-300:]}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    defects = {int(number) for number in
               re.findall(r"^== (\d+)[: ]", read(os.path.join(HERE, "..", "mutants.txt")), re.M)}
    found, alive = {}, set()
    for line in read(os.path.join(HERE, "found.txt")).splitlines():
        match = re.match(r"(\d+) (?:by (seed \d+|scenario \S+)|is not: \S.*)$", line)
        if match and match[2]:
            found[int(match[1])] = match[2]
        elif match:
            alive.add(int(match[1]))
        elif line and not line.startswith("#"):
            sys.exit(f"found.txt: not understood: {line}")
    wrong = [f"defect {number} has no line in found.txt" for number in
             sorted(defects - alive - set(found))]
    wrong += [f"found.txt has a defect {number} that there is not" for number in
              sorted((alive | set(found)) - defects)]
    if len(found) < LEAST:
        wrong.append(f"{len(found)} defects are found, fewer than {LEAST}")
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = pool.map(lambda entry: finds(program, *entry), sorted(found.items()))
        wrong += [result for result in results if result]
    for text in wrong:
        print(text)
    print(f"{len(found)} of {len(defects)} defects are said to be found, {len(alive)} not")
    print(f"{len(found) + 1 - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
