"""What the reference has to know of C++ code: functions, structs and constants, as clang-format writes them.

This is no parser of C++. It reads code in the one form that scripts/check.sh lets into the tree: definitions
begin at the left margin, and their ends are a line of their own. What it cannot read it refuses.
"""

import re

FUNCTION = re.compile(r"^(?!namespace|class|struct|enum|union|using|constexpr|inline|static|#|//|\}|template)"
                      r"[\w:<>,&* ]+?[ &*]((?:\w+::)*\w+)\(", re.MULTILINE)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
CONSTANT = re.compile(r"^ *(?:inline |static )?(?:constexpr|const) [\w:<>, ]+? (k[A-Z]\w*)(?:\[\])?(?: =)? ?(.*?); *$",
                      re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"^([\w:]+(?:<[\w:<>, ]+>)?) (\w+)(?: = (.*)|(\{.*\}))?$", re.DOTALL)


def without_comments(text):
    """Returns the text with blanks in the place of comments and of characters ('{'); texts in quotes stay."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|(?<!\w)\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
    return pattern.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0]), text)


def closing(text, begin):
    """Returns the place of the bracket that closes the one at `begin`."""
    pairs, depth, at, quoted = {"(": ")", "{": "}", "[": "]"}, 0, begin, False
    while at < len(text):
        char = text[at]
        if char == '"':
            quoted = not quoted
        elif char == "\\" and quoted:
            at += 1
        elif not quoted and char in pairs:
            depth += 1
        elif not quoted and char in pairs.values():
            depth -= 1
            if depth == 0:
                return at
        at += 1
    raise ValueError(f"no bracket closes {text[begin:begin + 40]!r}")


def split_arguments(text):
    """Returns the parts of a list of arguments."""
    parts, begin, at = [], 0, 0
    while at < len(text):
        if text[at] in "({[":
            at = closing(text, at)
        elif text[at] == '"':
            at = re.compile(r'"(?:\\.|[^"\\])*"').match(text, at).end() - 1
        elif text[at] == ",":
            parts.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    last = text[begin:].strip()
    return parts + [last] if last else parts


class Function:
    """A function: where it is, the names and types of its parameters, and its body in one line."""

    def __init__(self, path, name, parameters, body):
        self.path = path
        self.name = name
        self.types = {}
        self.parameters = []
        for parameter in split_arguments(parameters):
            match = re.match(r"(?:const )?(.*?)\s*[&*]* ?(\w+)(?: = .*)?$", parameter)
            if match and not parameter.endswith("*/"):
                self.types[match[2]] = match[1].strip()
                self.parameters.append(match[2])
            else:
                self.parameters.append("")
        self.body = body


class Source:
    """The functions and constants of one file."""

    def __init__(self, root, path):
        self.path = path
        self.text = without_comments((root / path).read_text())
        self.functions = {}
        self.constants = {match[1]: " ".join(match[2].split()) for match in CONSTANT.finditer(self.text)}
        for match in FUNCTION.finditer(self.text):
            end = closing(self.text, match.end() - 1)
            tail = re.compile(r"\)\s*(?:const )?(?:override )?\{").match(self.text, end)
            if not tail:
                continue
            last = closing(self.text, tail.end() - 1)
            parameters = " ".join(self.text[match.end():end].split())
            body = " ".join(self.text[tail.end():last].split())
            self.functions[match[1]] = Function(path, match[1], parameters, body)


def members(body):
    """Yields (type, name, initial value or None) of each member of a struct."""
    for statement in re.sub(r"\{[^{}]*\breturn\b.*?\n  \}", ";", body, flags=re.DOTALL).split(";"):
        match = MEMBER.match(" ".join(statement.split()))
        if match and match[1] not in ("return", "using", "explicit"):
            yield match[1], match[2], match[3] or match[4]


class Structs:
    """The structs of all headers below some folders."""

    def __init__(self, root, folders):
        self.all = {}
        for folder in folders:
            for header in sorted((root / folder).rglob("*.h")):
                text = without_comments(header.read_text())
                for match in STRUCT.finditer(text):
                    fields = {name: (kind, value) for kind, name, value in members(match[2])}
                    self.all.setdefault(match[1], []).append((header.relative_to(root).as_posix(), fields))

    def find(self, kind, near):
        """Returns the fields of the struct that `kind` names where it is used in the file `near`; None: unknown."""
        inner = re.match(r"std::(?:optional|vector)<(.*)>$", kind)
        name = (inner[1] if inner else kind).split("::")[-1]
        found = self.all.get(name, [])
        program = near.split("/")[0]
        ranked = sorted(found, key=lambda one: (not one[0].startswith(program + "/"), one[0]))
        return ranked[0][1] if ranked else None


def text_of_value(value, constants):
    """Returns how a configuration says an initial value: "30s", "[a, b]"; None: it cannot be told."""
    value = value.strip()
    if value in constants:
        return text_of_value(constants[value], constants)
    if match := re.fullmatch(r'(?:std::string\()?"(.*)"\)?', value):
        return match[1]
    if re.fullmatch(r"-?[\d']+(\.\d+)?[uUlL]*", value):
        return re.sub(r"['uUlL]", "", value)
    if value in ("true", "false"):
        return value
    units = {"Hours": "h", "Minutes": "m", "Seconds": "s", "Milliseconds": "ms"}
    if value == "absl::ZeroDuration()":
        return "0s"
    if match := re.fullmatch(r"absl::(Hours|Minutes|Seconds|Milliseconds)\(([\d' *]+)\)", value):
        number = 1
        for factor in match[2].replace("'", "").split("*"):
            number *= int(factor)
        return f"{number}{units[match[1]]}"
    if match := re.match(r'[\w:]+::Parse\("([^"]*)"\)', value):
        return match[1]
    if value.startswith("{") and value.endswith("}"):
        parts = [text_of_value(part, constants) for part in split_arguments(value[1:-1])]
        return None if None in parts else f"[{', '.join(parts)}]"
    if match := re.fullmatch(r"(\d+)U? << (\d+)U?", value):
        return str(int(match[1]) << int(match[2]))
    return None
