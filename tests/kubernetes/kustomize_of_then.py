#!/usr/bin/env python3
"""Rewrites the kustomizations below a folder into what kubectl 1.20 takes.

usage: kustomize_of_then.py FOLDER

That kubectl has kustomize 2.0.3, in which a folder is one of `bases` and no resource, and a patch from a file is one of
`patchesStrategicMerge`. Today's kustomize has both as `resources` and `patches`, and warns of the older words. A list is
written with an item a line.
"""

import pathlib
import re
import sys


def taken(text, key):
    """The text without the list of that key, and the list's items."""
    found = re.search(rf"^{key}:\n((?:  - .*\n)+)", text, re.MULTILINE)
    if not found:
        return text, []
    items = [line.removeprefix("  - ") for line in found[1].splitlines()]
    return text[: found.start()] + text[found.end() :], items


def rewritten(text, folder):
    text, resources = taken(text, "resources")
    text, patches = taken(text, "patches")
    lists = {
        "bases": [each for each in resources if (folder / each).is_dir()],
        "resources": [each for each in resources if not (folder / each).is_dir()],
        "patchesStrategicMerge": [each.removeprefix("path: ") for each in patches],
    }
    for key, items in lists.items():
        if items:
            text += f"{key}:\n" + "".join(f"  - {item}\n" for item in items)
    return text


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    for file in pathlib.Path(sys.argv[1]).rglob("kustomization.yaml"):
        file.write_text(rewritten(file.read_text(), file.parent))


main()
