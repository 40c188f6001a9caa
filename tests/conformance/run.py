#!/usr/bin/env python3
"""Runs rows of the conformance checklist: what a CNI plugin owes to its runtime.

usage: run.py --bin DIRECTORY [--released DIRECTORY] [ROW...]     run.py --list

Each row runs on a node of its own, in namespaces that nobody else sees. Prints a line a row; exit
status 0 when all passed.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "support")]

import checklist  # noqa: E402
from lab import Node  # noqa: E402
from private_node import enter_node  # noqa: E402


def run_here(row, programs, released):
    """Enters, in a child, namespaces of its own, so that one row cannot disturb another."""
    enter_node()
    with tempfile.TemporaryDirectory(dir="/run") as scratch, Node(programs, scratch,
                                                                  **row.options) as node:
        node.released = released
        try:
            row.function(node)
        except BaseException:
            traceback.print_exc()
            node.show_logs()
            return 1
    return 0


def run(row, programs, released):
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = run_here(row, programs, released)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    passed = os.waitpid(child, 0)[1] == 0
    print(f"{row.name:4} {'passed' if passed else 'FAILED'} {time.monotonic() - began:5.1f}s  "
          f"{row.behaviour}", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="where the programs are")
    parser.add_argument("--released", help="where those are that users get; default: the same")
    parser.add_argument("--list", action="store_true", help="the names of all rows, and no more")
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_args()
    rows = checklist.load()
    if arguments.list:
        print("\n".join(row.name for row in rows))
        return 0
    known = {row.name: row for row in rows}
    unknown = [name for name in arguments.rows if name not in known]
    if unknown or not arguments.bin:
        parser.error(f"no such row: {' '.join(unknown)}" if unknown else "--bin is needed")
    wanted = [known[name] for name in arguments.rows] or rows
    programs = os.path.abspath(arguments.bin)
    released = os.path.abspath(arguments.released or arguments.bin)
    failed = [row.name for row in wanted if not run(row, programs, released)]
    if len(wanted) > 1:
        print(f"{len(wanted) - len(failed)} passed, {len(failed)} failed")
    if failed:
        print("failed:", " ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
