"""What .proto files say: services, calls, messages, enumerations, their fields and the comments of all these.

A comment belongs to what stands below it, or before it in the same line; one that continues in the next lines
belongs to the first. It reads the form that the files of proto/ have, one declaration a line.
"""

import dataclasses
import re

LINE = re.compile(r"^(?P<code>(?:[^/\"]|\"[^\"]*\"|/(?!/))*?)\s*(?://\s?(?P<comment>.*))?$")
BLOCK = re.compile(r"^(message|enum|oneof|service) (\w+) \{(\})?$")
FIELD = re.compile(r"^(repeated )?([\w.]+|map<\w+, \w+>) (\w+) = (\d+);$")
VALUE = re.compile(r"^(\w+) = (\d+);$")
CALL = re.compile(r"^rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);$")


class Unreadable(Exception):
    """Says which line was not understood."""


@dataclasses.dataclass
class Item:
    """A field, a value of an enumeration or a call: `kind` is its type, or what a call takes and returns."""
    name: str
    kind: str
    number: int
    text: str
    line: int
    choice: str = ""  # The oneof that it is of.


@dataclasses.dataclass
class Block:
    """A message, an enumeration or a service."""
    kind: str
    name: str
    text: str
    line: int
    items: list
    choice: str = ""


@dataclasses.dataclass
class ProtoFile:
    """A file: its opening comment and its blocks, inner ones after the one that they lie in."""
    path: str
    package: str
    text: str
    blocks: list


def paragraphs(lines):
    """Joins the lines of a comment; an empty one begins a paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", "\n".join(lines)) if part.strip())


class Reader:
    """Reads one file, line by line."""

    def __init__(self, path, text):
        self.path = path
        self.comment = []
        self.open = []  # The blocks that the present line lies in; None for a oneof.
        self.choices = []
        self.last = None  # The item that a comment in the next line may continue.
        self.file = ProtoFile(path, "", "", [])
        statement, begin = "", 0
        for number, line in enumerate(text.splitlines(), 1):
            match = LINE.match(line)
            code, comment = match["code"].strip(), match["comment"]
            if not code:
                self.comment_line(comment, statement)
                continue
            if statement.endswith("option"):
                statement = ""
            begin = begin if statement else number
            statement = f"{statement} {code}".strip()
            if statement[-1] in ";{}":
                self.statement(statement, begin, comment)
                statement = ""

    def comment_line(self, comment, statement):
        if statement:
            return
        if comment is None:
            self.comment = []
        else:
            self.comment.append(comment)

    def statement(self, code, line, comment):
        above, self.comment = self.comment, []
        text = paragraphs(above + ([comment] if comment else []))
        if code == "}":
            self.open.pop()
        elif match := BLOCK.match(code):
            self.begin(match, line, text)
        elif match := CALL.match(code):
            kind = f"{match[2] or ''}{match[3]} → {match[4] or ''}{match[5]}"
            self.open[-1].items.append(Item(match[1], kind, 0, text, line))
        elif match := FIELD.match(code):
            block = next(one for one in reversed(self.open) if one.kind != "oneof")
            choice = self.open[-1].name if self.open[-1].kind == "oneof" else ""
            kind = f"{match[1] or ''}{match[2]}"
            block.items.append(Item(match[3], kind, int(match[4]), text, line, choice))
        elif self.open and (match := VALUE.match(code)):
            self.open[-1].items.append(Item(match[1], "", int(match[2]), text, line))
        elif code.startswith("syntax"):
            self.file.text = text
        elif code.startswith("package"):
            self.file.package = code.split()[1].rstrip(";")
        elif not re.match(r"import|option|reserved", code):
            raise Unreadable(f"{self.path}:{line}: {code}")

    def begin(self, match, line, text):
        outer = [one.name for one in self.open if one.kind != "oneof"]
        block = Block(match[1], match[2] if match[1] == "oneof" else ".".join([*outer, match[2]][-2:]), text, line, [])
        if match[1] != "oneof":
            self.file.blocks.append(block)
        if not match[3]:
            self.open.append(block)


def read_proto(root, path):
    """Returns what a file says."""
    return Reader(path, (root / path).read_text()).file
