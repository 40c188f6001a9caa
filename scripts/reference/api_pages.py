"""The pages of docs/reference/ about the gRPC API, from the comments of proto/."""

import re

from reference.proto_source import read_proto

FOLDER = "proto/spoke/v1/"
PAGES = {  # Of each: its title, its introduction and its files.
    "api-operators.md": (
        "The operators' API",
        "What `spokectl` asks of the server: gRPC on the unix socket `listen.admin`, and over TLS on `listen.operators`. Each caller "
        "has a role, viewer, operator or admin ([CLI.md](../CLI.md) says which commands take which).",
        [FOLDER + name + ".proto" for name in (
        "admin", "admin_identity", "admin_node", "admin_policy", "admin_reachability", "admin_usage", "operator", "recovery")]),
    "api-agents.md": (
        "The agents' API",
        "What agents ask of the server: one stream a node on `listen.agents`, over TLS with a certificate that bears the node's "
        "name, and certificates on `enroll.address`. It is no interface for other programs: server and agents may be one minor "
        "version apart.",
        [FOLDER + name + ".proto" for name in ("node", "policy", "enroll")]),
    "api-health.md": (
        "The health API",
        "The gRPC health protocol, which both programs serve on the address of the key `health`. Plain HTTP, beside it: `/livez` "
        "and `/readyz` on `health_http` answer 200, or 503 and the reasons; `/metrics` on `listen.metrics` and `metrics.address` "
        "answers Prometheus, and so do the addresses of `metrics.iptables_exporter`.",
        ["proto/grpc/health/v1/health.proto"]),
}
UNNAMED = re.compile(r"UNSPECIFIED$")
# A comment that tells only what a special value means, or which code a call fails with, or lists the words that it may
# be: it does not say what the field or call is for, and counts as none.
PARTIAL = re.compile(r"[a-z\"]|(Empty|None|False|none|\d+|[A-Z_]{5,})(: |; |\.$| of )")
# Half of a sentence that the next field goes on with.
BROKEN = re.compile(r",$|^and ")
FEW_WORDS = 3  # "Nodes only.", "Bytes.": no sentence.


def anchor(name):
    return name.replace(".", "").lower()


def cell(text):
    return text.replace("\n\n", " ").replace("|", "\\|")


class Api:
    """All files of the API."""

    def __init__(self, root):
        self.files = {path: read_proto(root, path) for _, _, paths in PAGES.values() for path in paths}
        self.page_of = {}
        self.blocks = {}
        self.problems = []
        for page, (_, _, paths) in PAGES.items():
            for path in paths:
                for block in self.files[path].blocks:
                    self.blocks[block.name] = block
                    self.page_of[block.name] = (page, path)
        self.calls = {}  # Message -> what it is to calls.
        for block in self.blocks.values():
            for item in block.items if block.kind == "service" else ():
                for role, message in zip(("request", "answer"), self.types_of(item.kind)):
                    self.calls.setdefault(message, []).append(f"{role} of `{item.name}`")
        self.reached = self.reach()

    @staticmethod
    def types_of(kind):
        return [word for word in re.findall(r"[\w.]+", kind) if word not in ("stream", "repeated", "map")]

    def named(self, name, inside):
        """Returns the full name of a type that is named inside of a message."""
        outer = inside.split(".")[0]
        for candidate in (f"{inside}.{name}", f"{outer}.{name}", name):
            if candidate in self.blocks:
                return candidate
        return ".".join(name.split(".")[-2:]) if ".".join(name.split(".")[-2:]) in self.blocks else name

    def reach(self):
        """Returns the names of the services and of all that their calls can carry."""
        reached, left = set(), [block.name for block in self.blocks.values() if block.kind == "service"]
        while left:
            name = left.pop()
            if name in reached:
                continue
            reached.add(name)
            for item in self.blocks[name].items:
                left += [full for word in self.types_of(item.kind) if (full := self.named(word, name)) in self.blocks]
        return reached

    def link(self, name, page):
        target, _ = self.page_of[name]
        return f"[{name}]({'' if target == page else target}#{anchor(name)})"

    def linked(self, kind, inside, page):
        """Returns a type with links to its messages."""
        return re.sub(r"[\w.]+", lambda word: self.link(full, page) if (
            full := self.named(word[0], inside)) in self.blocks else word[0], kind)

    def words_of_block(self, block):
        if block.text:
            return block.text
        if block.name in self.calls:
            return f"The {' and the '.join(self.calls[block.name])}."
        self.missing(block.name, block.line, block.name)
        return ""

    def words_of_item(self, block, item):
        """Returns what an item is for: its comment, or what is said of its type."""
        partial = bool(PARTIAL.match(item.text)) or len(item.text.split()) <= FEW_WORDS or bool(BROKEN.search(item.text))
        if item.text and not partial:
            return item.text
        if block.kind == "enum" and UNNAMED.search(item.name):
            return "Nothing is said."
        types = [self.named(word, block.name) for word in self.types_of(item.kind)]
        inner = self.blocks.get(types[-1]) if types else None
        if inner and inner.kind == "message" and inner.text and not item.text:
            return re.split(r"(?<=[.:]) |\n", inner.text)[0].rstrip(":.") + "."
        self.missing(block.name, item.line, f"{block.name}.{item.name}")
        return ""

    def missing(self, block, line, name):
        self.problems.append((self.page_of[block][1], line,
                              f"{name} has no description: write a comment there that says what it is for"))


def rows_of(api, block, page):
    if block.kind == "service":
        yield "| call | takes → answers | what it does |"
        yield "|---|---|---|"
        for item in block.items:
            yield f"| `{item.name}` | {api.linked(item.kind, block.name, page)} | {cell(api.words_of_item(block, item))} |"
    elif block.kind == "enum":
        yield "| value | number | meaning |"
        yield "|---|---|---|"
        for item in block.items:
            yield f"| `{item.name}` | {item.number} | {cell(api.words_of_item(block, item))} |"
    else:
        yield "| field | type | number | meaning |"
        yield "|---|---|---|---|"
        for item in block.items:
            words = cell(api.words_of_item(block, item))
            yield f"| `{item.name}` | {api.linked(item.kind, block.name, page)} | {item.number} | {words} |"


def choice_of(block):
    """Returns a sentence about the fields of a message that exclude each other."""
    names = [f"`{item.name}`" for item in block.items if item.choice]
    if not names:
        return ""
    of = "its fields" if len(names) == len(block.items) else ", ".join(names)
    return f" Of {of} one is set at a time."


def pages(root, notice):
    """Returns the texts of the pages by name, and (path, line, problem) for what is not described."""
    api = Api(root)
    out = {}
    for page, (title, introduction, paths) in PAGES.items():
        lines = [notice, "", f"# {title}", "", introduction, ""]
        blocks = [block for path in paths for block in api.files[path].blocks if block.name in api.reached]
        files = ", ".join(f"[{path.split('/')[-1]}](../../{path})" for path in paths)
        lines += [f"Package `{api.files[paths[0]].package}`, from {files}.", ""]
        for path in paths:
            lines += [api.files[path].text, ""] if any(api.page_of[one.name][1] == path for one in blocks) else []
        lines += ["## Services and messages", ""]
        for block in sorted(blocks, key=lambda one: one.kind != "service"):
            lines += [f"### {block.name}", "", f"{api.words_of_block(block)}{choice_of(block)}", ""]
            lines += [*rows_of(api, block, page), ""] if block.items else ["It has no fields.", ""]
        out[page] = "\n".join(lines).rstrip() + "\n"
    return out, api.problems
