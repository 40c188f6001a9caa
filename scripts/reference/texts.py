"""The words of the reference that the code does not have: the files scripts/reference/text/*.txt.

A line at the left margin names a key or a kind. The lines below it, indented, are `is:`, `default:`, `bounds:` or `required:`, each
in place of what the code does not tell, and then whole sentences.
"""

import dataclasses
import re

MARK = re.compile(r"^(is|default|bounds|required): (.*)$")


@dataclasses.dataclass
class Entry:
    """What a file says of one name."""
    line: int
    text: str = ""
    marks: dict = dataclasses.field(default_factory=dict)


class Texts:
    """One file, and what of it has been used."""

    def __init__(self, root, path):
        self.path = path
        self.entries = {}
        self.used = set()
        self.problems = []
        entry = None
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if not line.startswith("  "):
                name = line.strip()
                if name in self.entries:
                    self.problems.append((path, number, f"{name} is described twice: remove one"))
                entry = self.entries[name] = Entry(number)
            elif match := MARK.match(line.strip()):
                entry.marks[match[1]] = match[2]
            else:
                entry.text = f"{entry.text} {line.strip()}".strip()
        for name, one in self.entries.items():
            if not re.search(r"[.:)]$", one.text):
                self.problems.append((path, one.line, f"{name} has no sentence: say what it is for, with a full stop, or a colon before a comment"))

    def find(self, *names):
        """Returns the entry of the first of these names that there is; None: of none."""
        for name in names:
            if name in self.entries:
                self.used.add(name)
                return self.entries[name]
        return None

    def stale(self):
        """Yields (path, line, problem) for what nothing has asked for."""
        for name, entry in self.entries.items():
            if name not in self.used:
                yield self.path, entry.line, f"the code has no {name}, or describes it itself: remove this"
