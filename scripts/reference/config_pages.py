"""The pages of docs/reference/ about the configurations and the kinds of policy: keys, types, defaults and bounds
from the code that reads them, meanings from scripts/reference/text/, examples from conf/."""

import re

from reference import examples
from reference.config_keys import ANY_NAME, READER, CannotFollow, Walk
from reference.cpp_source import Source, Structs

SHARED = ["lib/config/health_field.cc", "lib/config/tls_fields.cc"]
DOCUMENTS = {
    "server": ("ipam-server/config.cc", "ParseServerConfig", [
        "ipam-server/config_azure.cc", "ipam-server/config_etcd.cc", "ipam-server/config_kubernetes.cc", *SHARED]),
    "agent": ("netagent/config.cc", "ParseAgentConfig",
              ["lib/node_checks/services/service_settings.cc", *SHARED]),
}
EXAMPLES = {"server": ["conf/ipam-server.yaml", "conf/ipam-server-azure.yaml", "conf/ipam-server-etcd.yaml"],
            "agent": ["conf/netagent.yaml"]}
KINDS = "ipam-server/policy/kinds/"
KIND_TABLE = "ipam-server/policy/kind.cc"
FIELDS = "ipam-server/policy/fields.cc"
# Code that reads keys of other documents than those of this reference, or none.
ELSEWHERE = {
    "lib/config/config_text.cc": "the readers themselves",
    "lib/node_checks/facts/server_probe.cc": "looks into the agent's configuration for one key",
    "netagent/egress/ip_masq_text.cc": "ip-masq-agent's own files",
    "ipam-server/policy/policy_file.cc": "what all kinds have: the page says it itself",
}
NOTHING = ("none", "nobody")
TYPES = {"text": "text", "true or false": "`true` or `false`", "duration": "duration"}


def structs_of(root):
    return Structs(root, ["lib", "ipam-server", "netagent"])


def sources_of(root, paths):
    return {path: Source(root, path) for path in paths}


class Subject:
    """The keys of one document, and its words."""

    def __init__(self, walk, texts, prefix=""):
        self.keys = {prefix + key.path.removeprefix("spec." if prefix else ""): key for key in walk.keys.values()}
        self.former = {prefix + old.removeprefix("spec."): prefix + new.removeprefix("spec.")
                       for old, new in walk.former.items()} if prefix else walk.former
        self.texts = texts
        self.problems = []

    def entry(self, name):
        entry = self.texts.find(name)
        if entry is None:
            where = self.keys[name].where if name in self.keys else ""
            self.problems.append((self.texts.path, 1, f"{name} ({where}) is not described: say what it is for"))
        return entry

    def row(self, name):
        """Returns the line of a table for a key that is no section."""
        key, entry = self.keys[name], self.entry(name)
        if entry is None:
            return ""
        marks = entry.marks
        for mark, known in (("default", key.default), ("bounds", key.limits)):
            if mark in marks and known is not None:
                self.problems.append((self.texts.path, entry.line,
                                      f"{name}: the code says that `{mark}` is {known}: remove the line"))
        if not key.required and key.default is None and "default" not in marks and "required" not in marks:
            if not name.endswith(f".{ANY_NAME}"):
                self.problems.append((self.texts.path, entry.line,
                                      f"{name}: the code does not tell the default: add a line `default:`"))
        kind = marks.get("is", TYPES.get(key.kind, key.kind))
        bounds = marks.get("bounds", key.limits)
        default = f"`{key.default}`" if key.default is not None else marks.get("default", "")
        default = f"`{default}`" if re.fullmatch(r"[\w./%-]+", default) and default not in NOTHING else default
        if key.required or "required" in marks:
            said = marks.get("required", "yes")
            default = {"yes": "required", "this": f"required: {said}"}.get(said.split()[0], f"required {said}")
        last = name.split(".")[-1]
        return f"| `{last}` | {kind}{', ' + bounds if bounds else ''} | {default} | {entry.text} |"

    def sections(self):
        """Yields (name, names of its keys that are no sections) in the order of the words; the root is ""."""
        order = {name: place for place, name in enumerate(self.texts.entries)}
        names = sorted(self.keys, key=lambda name: order.get(name, len(order)))
        maps = [name for name in names if "map" in self.keys[name].kind]
        yield "", [name for name in names if "." not in name and name not in maps]
        for section in maps:
            yield section, [name for name in names if name not in maps and name.rpartition(".")[0] == section]


def table(subject, names):
    return ["| key | type and bounds | default | meaning |", "|---|---|---|---|",
            *(subject.row(name) for name in names), ""]


def heading(name):
    return name.replace("[]", "")


def walk_document(root, which, structs):
    """Returns the keys of a configuration, as a Walk."""
    path, entry, more = DOCUMENTS[which]
    walk = Walk(sources_of(root, [path, *more]), structs)
    return walk.follow(walk.sources[path].functions[entry], {})


def document_page(root, which, texts, structs, title, intro):
    """Returns the text of the page of a configuration, and the problems."""
    walk = walk_document(root, which, structs)
    subject = Subject(walk, texts)
    lines = [f"# {title}", "", *intro, ""]
    for section, names in subject.sections():
        if section:
            words = subject.entry(section)
            key = subject.keys[section]
            lines += [f"## {heading(section)}", ""]
            if words:
                extra = [f"required {words.marks['required']}".replace("required yes", "required")] if (
                    "required" in words.marks) else ["required"] if key.required else []
                extra += [f"{words.marks['bounds']}"] if "bounds" in words.marks else []
                extra += [f"without it: {words.marks['default']}"] if "default" in words.marks else []
                note = f" ({'; '.join(extra)})" if extra else ""
                lines += [f"A {key.kind}{note}. {words.text}", ""]
        elif names:
            lines += ["## The outermost keys", "", "Keys that are in no section.", ""]
        if names:
            lines += table(subject, names)
    problems = [*subject.problems, *unfollowed(walk), *examples.of_documents(root, EXAMPLES[which], walk.keys, texts.path)]
    return "\n".join(lines), problems


def unfollowed(walk):
    for path, name in walk.unfollowed():
        yield path, 1, (f"{name}: reads keys that the reference cannot follow: write it as the other readers are, or "
                        "teach scripts/reference/config_keys.py")


def kinds_of(root):
    """Returns (name of a kind, function that reads it) as kind.cc lists them."""
    return re.findall(r'Kind\{"(\w+)", (\w+)\}', (root / KIND_TABLE).read_text())


def example_of(root, kind):
    """Returns the first example of a kind in conf/policies, and its file."""
    for path in sorted((root / "conf/policies").glob("*.yaml")):
        for text in re.split(r"^---$", path.read_text(), flags=re.MULTILINE):
            if re.search(rf"^kind: {kind}$", text, re.MULTILINE):
                lines = [line for line in text.strip().splitlines() if not re.match(r"\s*#", line)]
                return "\n".join(lines), path.relative_to(root).as_posix()
    return None, None


def walk_kinds(root, structs):
    """Yields (kind, its keys as a Walk) for each kind of policy."""
    paths = [path.relative_to(root).as_posix() for path in sorted((root / KINDS).glob("*.cc"))]
    sources = sources_of(root, [*paths, FIELDS])
    for kind, reader in kinds_of(root):
        # A part of a kind may have a reader of the same name, of its map alone.
        function = next(source.functions[reader] for source in sources.values()
                        if reader in source.functions and len(source.functions[reader].parameters) == 2)
        yield kind, Walk(sources, structs).follow(function, {"spec": ["spec"]})


def policy_page(root, texts, structs, intro):
    """Returns the text of the page of the kinds of policy, and the problems."""
    lines, problems, followed, kinds, walk = ["# Policy objects", "", *intro, ""], [], set(), {}, None
    for kind, walk in walk_kinds(root, structs):
        followed |= walk.followed
        kinds[kind] = walk.keys
        subject = Subject(walk, texts, kind + ".")
        words = texts.find(kind)
        if words is None:
            problems.append((texts.path, 1, f"the kind {kind} is not described: say what it is for"))
        lines += [f"## {kind}", "", words.text if words else "", ""]
        example, file = example_of(root, kind)
        if example is None:
            problems.append((KIND_TABLE, 1, f"conf/policies has no example of the kind {kind}: add one"))
        else:
            lines += [f"From [{file}](../../{file}):", "", "```yaml", example, "```", ""]
        lines += kind_tables(subject, kind)
        problems += subject.problems
    walk.followed = followed
    return "\n".join(lines), [*problems, *unfollowed(walk), *examples.of_kinds(root, kinds)]


def kind_tables(subject, kind):
    """Returns the tables of a kind: its own fields, then those of each map in it."""
    sections = dict(subject.sections())
    sections.pop("")
    own = [name for name in subject.keys if name.rpartition(".")[0] == kind and name not in sections]
    order = {name: place for place, name in enumerate(subject.texts.entries)}
    lines = table(subject, sorted(own, key=lambda name: order.get(name, len(order))))
    for section, names in sections.items():
        words = subject.entry(section)
        inner = section.removeprefix(kind + ".")
        note = "; ".join(words.marks[mark] for mark in ("bounds", "default") if mark in words.marks) if words else ""
        lines += [f"### {kind}: {heading(inner)}", "",
                  f"A {subject.keys[section].kind}{f' ({note})' if note else ''}. {words.text if words else ''}", ""]
        lines += table(subject, names) if names else []
    lines += [f"`{old.split('.')[-1]}` is a former name of `{new.split('.')[-1]}`, and is taken with a warning.\n"
              for old, new in subject.former.items()]
    return lines


def unlisted(root):
    """Yields (path, line, problem) for files that read keys and that no page looks at."""
    known = {path for path, _, more in DOCUMENTS.values() for path in (path, *more)} | {FIELDS} | set(ELSEWHERE)
    for folder in ("lib", "ipam-server", "netagent"):
        for file in sorted((root / folder).rglob("*.cc")):
            path = file.relative_to(root).as_posix()
            if path in known or path.startswith(KINDS) or path.endswith("_test.cc") or "/testing/" in path:
                continue
            text = file.read_text()
            if READER.search(text) and re.search(r"\bConfigMap&? \w+", text):
                yield path, 1, ("reads keys of a configuration that the reference does not look at: list it in "
                                "scripts/reference/config_pages.py")


__all__ = ["CannotFollow", "document_page", "policy_page", "structs_of", "unlisted", "walk_document", "walk_kinds"]
