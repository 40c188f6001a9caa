"""The keys that code reads with lib/config/config_text.h, followed from the function that reads a document.

The code is followed as it is written: a ConfigMap is a place in the document, a call of one of its readers is
a key, and a function that is given a ConfigMap is followed in turn. A call that cannot be followed is
refused, and so is one in a function that nobody has come to (unfollowed()): no key is left out in silence.
"""

import dataclasses
import re

from reference.cpp_source import CONSTANT, closing, split_arguments, text_of_value

READERS = {"String": "text", "Bool": "true or false", "Uint32": "whole number", "Double": "number",
           "Duration": "duration", "Map": "map", "MapList": "list of maps", "StringList": "list of texts",
           "Custom": "text", "CustomList": "list of texts"}
READER = re.compile(r"(?:\.|->)(" + "|".join(READERS) + r")\(")
CALL = re.compile(r"(?<![\w.>:])((?:\w+::)*)(\w+)(?:<[\w:]+>)?\(")
NAME = r"(?:\.|->)?\w+"
MAP_TYPES = ("config::ConfigMap", "ConfigMap")
ANY_NAME = "NAME"  # Stands in a path for a key that is data.


class CannotFollow(Exception):
    """Says which piece of code was not understood."""


@dataclasses.dataclass
class Key:
    """A key as the code reads it. The default and the limits are texts; None: the code does not tell."""
    path: str
    kind: str
    required: bool
    default: str = None
    limits: str = None
    custom: bool = False  # The code's own words decide what is allowed.
    where: str = ""


class Scope:
    """What is known of the names in a function that is being followed."""

    def __init__(self, function, maps, keys, values):
        self.function = function
        self.maps = maps      # Name -> paths of maps.
        self.keys = keys      # Name -> texts that it may be.
        self.values = values  # Name of a parameter -> (expression of the caller, its scope).


class Walk:
    """One document, followed through `sources` from a function whose first ConfigMap is its root."""

    def __init__(self, sources, structs):
        self.sources = sources
        self.structs = structs
        self.keys = {}
        self.former = {}  # Former name of a key -> its name.
        self.followed = set()

    def follow(self, function, maps, keys=None, values=None):
        """Follows a function with what its names stand for."""
        scope = Scope(function, dict(maps), dict(keys or {}), dict(values or {}))
        self.followed.add((function.path, function.name))
        body = function.body
        for at in sorted({match.start() for match in READER.finditer(body)}
                         | {match.start() for match in CALL.finditer(body)}
                         | {match.start() for match in re.finditer(r"\w+ (?=[=:] )|auto& \[", body)}):
            self.declare(body, at, scope)
            if match := READER.match(body, at):
                self.read(body, match, scope)
            elif match := CALL.match(body, at):
                self.call(body, match, scope)
        return self

    # Names

    def declare(self, body, at, scope):
        """Takes up what a declaration at this place gives a name to."""
        if re.search(r"for \([\w:<>& ]* $", body[:at]) and (match := re.compile(r"(\w+) : ").match(body, at)):
            name, over = match[1], body[match.end():self.end_of_for(body, match.end())]
            if paths := self.places(over, scope):
                scope.maps[name] = paths
            elif texts := self.texts_of_list(over, scope):
                scope.keys[name] = texts
        elif match := re.compile(r"(\w+) = ").match(body, at):
            expression = body[match.end():self.end_of_statement(body, match.end())]
            if paths := self.places(expression, scope):
                scope.maps[match[1]] = paths
            elif renamed := re.match(r'(\w+)\.Renamed\("(\w+)", "(\w+)"\)', expression):
                scope.keys[match[1]] = [renamed[3]]
                for path in self.places(renamed[1], scope):
                    self.former[join(path, renamed[2])] = join(path, renamed[3])
        elif match := re.compile(r"auto& \[(\w+), \w+\] : (\w+)\)").match(body, at):
            scope.keys[match[1]] = self.first_column(match[2], scope)

    @staticmethod
    def end_of_for(body, at):
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(body[at], 0)
            at += 1
        return at - 1

    @staticmethod
    def end_of_statement(body, at):
        while body[at] != ";":
            at = closing(body, at) if body[at] in "({[" else at
            at += 1
        return at

    def source(self, scope):
        return self.sources[scope.function.path]

    def texts_of_list(self, expression, scope):
        """The texts of {"a", "b"}; for MAP.Keys() any name."""
        if re.search(r"\bKeys\(\)$", expression) or re.search(
                rf"\b{re.escape(expression)} = \w+\.Keys\(\)", scope.function.body):
            return [ANY_NAME]
        if expression.startswith("{"):
            return [text_of_value(part, {}) for part in split_arguments(expression[1:-1])]
        return []

    def first_column(self, table, scope):
        """The first text of each row of a table: {{"a", x}, {"b", y}}."""
        source = self.source(scope)
        match = re.search(rf"\b{table}(?:\[\])? = \{{", scope.function.body)
        text = scope.function.body if match else source.text
        match = match or re.search(rf"\b{table}(?:\[\])? = \{{", source.text)
        if not match:
            return []
        rows = split_arguments(text[match.end():closing(text, match.end() - 1)])
        cells = [split_arguments(row[row.index("{") + 1:-1])[0] for row in rows]
        return [text_of_value(cell, source.constants) for cell in cells]

    def texts_of_key(self, expression, scope):
        """What a key may be."""
        if expression in scope.keys:
            return scope.keys[expression]
        if match := re.fullmatch(r"(k\w+)\[\w+\]\.key", expression):
            return self.first_column(match[1], scope)
        text = text_of_value(expression, self.source(scope).constants)
        if text is None or not re.fullmatch(r"\w+", text):
            return []
        return [text]

    # Places in the document

    def places(self, expression, scope):
        """The paths of the maps that an expression stands for; []: it is no map, or an unknown one."""
        expression = expression.strip()
        if re.fullmatch(r"\w+", expression):
            return scope.maps.get(expression, [])
        if expression.endswith(".Root()"):
            return [""]
        if match := re.fullmatch(r"[^?]+ \? (.+?) : (.+)", expression):
            return sorted({*self.places(match[1], scope), *self.places(match[2], scope)})
        found = [match for match in READER.finditer(expression) if match[1] in ("Map", "MapList")]
        if not found or closing(expression, found[-1].end() - 1) != len(expression) - 1:
            return []
        match = found[-1]
        key = split_arguments(expression[match.end():-1])[0]
        suffix = "[]" if match[1] == "MapList" else ""
        return [join(path, text) + suffix for path in self.places(expression[:match.start()], scope)
                for text in self.texts_of_key(key, scope)]

    # Keys

    def read(self, body, match, scope):
        """Takes down what a call of a reader reads."""
        receiver = body[self.begin_of_receiver(body, match.start()):match.start()]
        arguments = split_arguments(body[match.end():closing(body, match.end() - 1)])
        places = self.places(receiver, scope)
        texts = self.texts_of_key(arguments[0], scope)
        where = f"{scope.function.path}: {scope.function.name}()"
        if not places or not texts:
            raise CannotFollow(f"{where}: which key is read by {body[match.start() - 20:match.end() + 40]!r}?")
        need = next((part for part in arguments[1:] if "Need::" in part or part == "need"), "")
        need = scope.values.get(need, (need,))[0]
        for place in places:
            for text in texts:
                path = join(place, text) + ("[]" if match[1] == "MapList" else "")
                # A section that the code looks for first may be left out.
                looked_for = "Map" in match[1] and f'Has("{text}")' in body
                key = Key(path, READERS[match[1]], need.endswith("kRequired") and not looked_for, where=where,
                          custom=match[1].startswith("Custom"))
                if "Map" not in match[1]:
                    key.default = self.default_of(arguments[1:], scope, key.custom)
                    if match[1] == "Uint32":
                        key.limits = "0 to 4294967295"
                    if len(arguments) == 4:
                        key.limits = self.limits_of(arguments[3], scope)
                        if key.default == "0" and key.limits[0] != "0":
                            key.default = None  # It means that there is none.
                self.keys.setdefault(path, key)

    @staticmethod
    def begin_of_receiver(body, at):
        """The place where the expression before `at` begins: map, or map.Map("a", need)."""
        while True:
            while body[at - 1] == " ":
                at -= 1
            if body[at - 1] == ")":
                depth = 0
                while True:
                    at -= 1
                    depth += {")": 1, "(": -1}.get(body[at], 0)
                    if depth == 0:
                        break
            while at > 0 and re.match(r"\w", body[at - 1]):
                at -= 1
            if body[at - 1] == ".":
                at -= 1
            else:
                return at

    def limits_of(self, expression, scope):
        """Returns "1 to 5", "1s and more"."""
        if expression in scope.values:
            return self.limits_of(*scope.values[expression])
        constants = dict(self.source(scope).constants)
        constants.update((one[1], one[2]) for one in re.finditer(
            r"constexpr [\w:]+ (k\w+) = (.*?);", scope.function.body))
        expression = constants.get(expression, expression)
        parts = split_arguments(expression.strip("{}"))
        parts = [re.sub(r"^(k\w+) - 1$", lambda one: str(int(constants[one[1]]) - 1), part) for part in parts]
        texts = [text_of_value(part, constants) for part in parts]
        if None in texts:
            raise CannotFollow(f"{scope.function.path}: {scope.function.name}(): what are the limits {expression}?")
        texts = [re.sub(r"\.0$", "", text) for text in texts]
        return f"{texts[0]} to {texts[1]}" if len(texts) == 2 else f"{texts[0]} and more"

    # Defaults

    def default_of(self, arguments, scope, custom):
        """Returns the initial value of the field that a reader's arguments name; None: unknown.

        A word that the code translates (`custom`) is no number and no truth value in the configuration."""
        chains = re.findall(r"(?<![\w:.>\"])[&*]?((?:\w+(?:\.|->))*\w+)(?![\w(:\"])", " ".join(arguments))
        for chain in chains:
            value = self.initial(chain, scope)
            if value is not None and not (custom and re.fullmatch(r"[\d.]+|true|false", value)):
                return value
        return None

    def initial(self, chain, scope, depth=0):
        """Returns the initial value of `a.b->c`, as a configuration says it; None: unknown."""
        parts = re.split(r"\.|->", chain)
        constants = self.source(scope).constants
        if depth > 8:
            return None
        if len(parts) > 1 and (assigned := self.assigned_before(chain, scope)):
            return text_of_value(assigned, constants)
        if parts[0] in scope.values:
            expression, caller = scope.values[parts[0]]
            return self.initial(".".join([expression.lstrip("&*"), *parts[1:]]), caller, depth + 1)
        if len(parts) == 1:
            match = re.search(rf"\b(?:uint32_t|absl::Duration|double|auto) {parts[0]} = (.*?);", scope.function.body)
            if not match:
                return None
            inner = re.sub(r"^static_cast<\w+>\((.*)\)$", r"\1", match[1]).lstrip("*&")
            if not re.fullmatch(r"\w+((\.|->)\w+)*", inner):
                return text_of_value(inner, constants)
            return self.initial(inner, scope, depth + 1)
        return self.initial_of_member(self.type_of(parts[0], scope), parts[1:], scope)

    def initial_of_member(self, kind, parts, scope):
        """Returns the initial value of the member that `parts` lead to from a struct."""
        given = {}  # What the member's own initial value says of its members: {.a = 1}.
        for part in parts:
            fields = self.structs.find(kind, scope.function.path) if kind else None
            if not fields or part not in fields:
                return None
            kind, value = fields[part]
            value = given.get(part, value)
            given = dict(re.findall(r"\.(\w+) = ([^,{}]+)", value or ""))
        if value is None:
            return "0s" if kind == "absl::Duration" else None
        return text_of_value(value, self.source(scope).constants)

    @staticmethod
    def assigned_before(chain, scope):
        """Returns what a function puts into a field before it reads the key."""
        body = scope.function.body
        use = re.search(rf"\b{re.escape(chain)}[,)]", body)
        match = re.search(rf"\b{re.escape(chain)} = (?!text\b|std::string\(text|\*)([^;]+);", body)
        return match[1] if match and (not use or match.start() < use.start()) else None

    def type_of(self, name, scope):
        """Returns the type of a name in a function."""
        if name in scope.function.types:
            return scope.function.types[name]
        match = re.search(rf"(?:^|[;{{}}] )(?:const )?([\w:]+(?:<[\w:<>, ]+>)?)&? {name}(?: = [^;]*|\{{[^;]*)?;",
                          scope.function.body)
        return match[1] if match else None

    # Functions

    def call(self, body, match, scope):
        """Follows a function that is given a map."""
        name = match[2]
        function = self.find(name, scope.function.path)
        if function is None:
            return
        arguments = split_arguments(body[match.end():closing(body, match.end() - 1)])
        maps, keys, values = {}, {}, {}
        for parameter, argument in zip(function.parameters, arguments):
            if places := self.places(argument, scope):
                maps[parameter] = places
                continue
            values[parameter] = (argument, scope)
            if texts := self.texts_of_key(argument, scope):
                keys[parameter] = texts
            if argument in scope.values:
                values[parameter] = scope.values[argument]
        if maps:
            self.follow(function, maps, keys, values)

    def find(self, name, near):
        """Returns the function of that name: of the same file, or of the only other one that has it."""
        if name in self.sources[near].functions:
            return self.sources[near].functions[name]
        found = [source.functions[name] for source in self.sources.values() if name in source.functions]
        program = near.split("/")[0]
        own = [function for function in found if function.path.split("/")[0] == program] or found
        return own[0] if len(own) == 1 else None

    def unfollowed(self):
        """Yields (path, function) of code that reads keys and that nobody has come to."""
        for source in self.sources.values():
            reads = len(READER.findall(source.text))
            for function in source.functions.values():
                here = len(READER.findall(function.body))
                reads -= here
                if here and (source.path, function.name) not in self.followed:
                    yield source.path, function.name
            if reads:
                yield source.path, f"{reads} calls outside of functions that could be read"


def join(path, key):
    return f"{path}.{key}" if path else key


__all__ = ["ANY_NAME", "CannotFollow", "CONSTANT", "Key", "Walk", "join"]
