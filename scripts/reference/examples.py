"""The keys and values that the examples of conf/ show, those in comments included.

It reads the form that these files have: a key a line, maps by indentation or as {a: b}, one item of a list at "- ".
A line of a comment counts where it is a key that is known at its place; other lines are words for people."""

import re

LINE = re.compile(r"^( *)(- )?\"?([\w/.-]+)\"?:(?: +(.*))?$")
PAIR = re.compile(r"(\w+): ")
UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def plain(value):
    """Returns a value without quotes and without what is said behind it."""
    value = re.sub(r"\s+#.*$", "", value or "").strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value


def shown(text, known):
    """Returns the values of the keys that a file shows, by path; a map and a list have an empty one. `known` are the
    paths that there are, of which one that ends in "[]" is a list of maps."""
    found, places = {}, []  # Indentation and path of the maps that the present line lies in.
    for line in text.splitlines():
        comment = False
        while re.match(r" *#", line):
            line, comment = re.sub(r"^( *)# ?", r"\1", line), True
        match = LINE.match(line)
        if not match:
            continue
        indent = len(match[1]) + len(match[2] or "")
        while places and places[-1][0] >= indent:
            places.pop()
        outer = places[-1][1] + "." if places else ""
        path = outer + match[3]
        path += "[]" if path + "[]" in known else ""
        if path not in known and f"{outer}NAME" in known:
            path = f"{outer}NAME"
        if path not in known:
            continue
        value = match[4] or ""
        found.setdefault(path, "" if value.startswith("{") else plain(value))
        places.append((indent, path))
        for inner in PAIR.finditer(value) if value.startswith("{") else ():
            end = re.compile(r"[^,}]*").match(value, inner.end())
            found.setdefault(f"{path}.{inner[1]}", plain(end[0]))
    return found


def comparable(value):
    """Returns what makes "60s" and "1m" the same, and "0.50" and "0.5"."""
    if match := re.fullmatch(r"(\d+)(h|ms|m|s)", value):
        return int(match[1]) * UNITS[match[2]], "ms"
    return float(value) if re.fullmatch(r"\d+(\.\d+)?", value) else value


def of_documents(root, files, keys, words):
    """Yields (path, line, problem) for keys that the examples of a configuration do not show, or show with another
    default than that of the code. The first file that shows a key has its default."""
    first = {}
    for file in files:
        for path, value in shown((root / file).read_text(), keys).items():
            first.setdefault(path, (file, value))
    for path, key in keys.items():
        if path not in first:
            yield words, 1, f"{path} is in no example ({', '.join(files)}): show it there"
            continue
        file, value = first[path]
        if key.default is not None and comparable(value) != comparable(key.default):
            yield file, 1, f"{path} is shown as {value or 'a map'}, and the code's default is {key.default}"


def of_kinds(root, kinds):
    """Yields (path, line, problem) for fields of policies that no example shows. `kinds` are their keys by kind."""
    seen = {kind: set() for kind in kinds}
    for file in sorted((root / "conf/policies").glob("*.yaml")):
        for text in re.split(r"^---$", file.read_text(), flags=re.MULTILINE):
            match = re.search(r"^kind: (\w+)$", text, re.MULTILINE)
            if match and match[1] in kinds:
                seen[match[1]] |= set(shown(text, {"spec": None, **kinds[match[1]]}))
    for kind, keys in kinds.items():
        for path in keys:
            if path not in seen[kind]:
                yield "conf/policies", 1, f"{kind} {path} is in no example: show it there"
