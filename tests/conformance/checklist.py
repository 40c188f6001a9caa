"""The rows of the checklist, and how a row is written.

    @row("A1", "VERSION answers without looking at anything else")
    def version_needs_nothing(node):
        ...

A row's function is given a Node (lab.py) and raises when the behaviour is not there. `addresses`
and `agent` say what node it wants.
"""

import importlib

SECTIONS = {
    "A": ("protocol", 20), "B": ("add", 38), "C": ("delete", 25), "D": ("check", 19),
    "E": ("garbage", 13), "F": ("status", 9), "G": ("stack", 9),
}
# Enough for a handful of pods of both families.
DEFAULT_ADDRESSES = tuple(f"10.250.1.{i}" for i in range(1, 9))
DUAL = tuple(f"fd10:250::{i}=six" for i in range(1, 9))
DUAL_RULE = "six=fd10:250::/64=dual"

ROWS = {}


class Row:
    def __init__(self, name, behaviour, function, options):
        self.name = name
        self.behaviour = behaviour
        self.function = function
        self.options = options


def row(name, behaviour, **options):
    def register(function):
        if name in ROWS:
            raise ValueError(f"row {name} is there twice")
        ROWS[name] = Row(name, behaviour, function, options)
        return function
    return register


def load():
    """All rows, in order. An error when the checklist has a row that is not here, or the reverse."""
    for module, _ in SECTIONS.values():
        importlib.import_module(f"rows.{module}")
    wanted = [f"{letter}{number}" for letter, (_, count) in SECTIONS.items()
              for number in range(1, count + 1)]
    missing = [name for name in wanted if name not in ROWS]
    surplus = [name for name in ROWS if name not in wanted]
    if missing or surplus:
        raise ValueError(f"rows missing: {missing}; rows too many: {surplus}")
    return [ROWS[name] for name in wanted]
