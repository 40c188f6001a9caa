#!/usr/bin/env -S python3 -B
"""role_test.py ROOT: the role that conf/azure/spoke-role.json defines has the actions that the table in
docs/operations/azure.md has, each once and no other, and is assignable where the reader says."""

import json
import pathlib
import re
import sys

ROLE, TABLE = "conf/azure/spoke-role.json", "docs/operations/azure.md"
# A role that allows more than named actions is refused: `*` and a whole provider.
ACTION = re.compile(r"Microsoft\.[A-Za-z]+(/[A-Za-z]+)+/(read|write|action)")
# What the reader replaces by the subscription of the nodes.
SCOPE = "/subscriptions/00000000-0000-0000-0000-000000000000"


def actions_of_table(text):
    """Yields the actions of the first column. `.../write` stands for the action before with another ending."""
    for row in re.findall(r"^\| (`Microsoft\.[^|]*) \|", text, re.MULTILINE):
        last = ""
        for action in re.findall(r"`([^`]+)`", row):
            last = action if action.startswith("Microsoft.") else last.rpartition("/")[0] + action.removeprefix("...")
            yield last


def problems(role, table):
    """Yields a sentence for each thing that is wrong."""
    named, told = role["Actions"], list(actions_of_table(table))
    for action in (*named, *told):
        if not ACTION.fullmatch(action):
            yield f"{action} is not one action by its full name"
    for action in sorted(set(told) - set(named)):
        yield f"{ROLE} lacks {action}, which {TABLE} has"
    for action in sorted(set(named) - set(told)):
        yield f"{ROLE} has {action}, which {TABLE} lacks"
    for name, actions in ((ROLE, named), (TABLE, told)):
        if len(actions) != len(set(actions)):
            yield f"{name} has an action twice"
    if len(told) < 10:
        yield f"{TABLE} has only {len(told)} actions"
    for key in ("NotActions", "DataActions", "NotDataActions"):
        if role[key]:
            yield f"{ROLE}: {key} is not empty"
    if role["AssignableScopes"] != [SCOPE]:
        yield f"{ROLE}: AssignableScopes is not the placeholder {SCOPE}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    role, table = json.loads((root / ROLE).read_text()), (root / TABLE).read_text()
    failed = list(problems(role, table))
    # Each difference is found.
    first = role["Actions"][0]
    for name, changed, text in (
            ("an action less", {**role, "Actions": role["Actions"][1:]}, table),
            ("an action more", {**role, "Actions": [*role["Actions"], "Microsoft.Compute/disks/read"]}, table),
            ("all actions of a provider", {**role, "Actions": [*role["Actions"], "Microsoft.Network/*"]}, table),
            ("an action twice", {**role, "Actions": [first, *role["Actions"]]}, table),
            ("a table without it", role, table.replace(f"`{first}`", "`nothing`")),
            ("another scope", {**role, "AssignableScopes": ["/"]}, table)):
        if not list(problems(changed, text)):
            failed.append(f"{name} is not found")
    print("\n".join([*failed, f"{len(role['Actions'])} actions, {len(failed)} problems"]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
