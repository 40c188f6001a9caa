#!/usr/bin/env -S python3 -B
"""reference_test.py ROOT: scripts/check_reference takes the tree as it is, and refuses a tree in which the reference
and the code differ: each change below is made to a copy, and the message that it has to bring about is looked for."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

SERVER, AGENT = "ipam-server/config.cc", "netagent/config.cc"
WORDS = "scripts/reference/text/"
# (What it shows, file, what is replaced, by what, part of a message.)
CHANGES = (
    ("a key that the server takes and nobody describes", SERVER, '  map.Duration("idle",',
     '  map.Duration("rest", &out.release.idle_time, Need::kOptional);\n  map.Duration("idle",',
     "release.rest (ipam-server/config.cc: ReadRelease()) is not described"),
    ("a key that the agent takes and nobody describes", AGENT, '  root.Bool("debug",',
     '  root.Bool("quiet", &out.debug, Need::kOptional);\n  root.Bool("debug",', "quiet (netagent/config.cc"),
    ("a key of a policy that nobody describes", "ipam-server/policy/kinds/team.cc", "  if (spec.IsEmptyList",
     '  spec.Bool("frozen", &frozen, Need::kOptional);\n  if (spec.IsEmptyList', "Team.frozen"),
    ("a key that is gone", SERVER, '  map.Duration("jitter", &out.release.jitter_spread, Need::kOptional, {absl::ZeroDuration()});\n',
     "", "the code has no release.jitter"),
    ("another default", "netagent/config.h", "cni_wait = absl::Seconds(20)", "cni_wait = absl::Seconds(21)",
     "docs/reference/agent-config.md:1: differs"),
    ("other bounds", AGENT, "{absl::ZeroDuration(), absl::Minutes(4)}", "{absl::ZeroDuration(), absl::Minutes(5)}",
     "docs/reference/agent-config.md:1: differs"),
    ("a default of a policy", "ipam-server/budget/budget_spec.h", "refresh = absl::Seconds(5)", "refresh = absl::Seconds(6)",
     "docs/reference/policy.md:1: differs"),
    ("a bound behind a name", "ipam-server/policy/kinds/egress_fields.cc", "kMaxPort = 65535", "kMaxPort = 65534",
     "docs/reference/policy.md:1: differs"),
    ("code that the reference cannot follow", AGENT, "  const ConfigMap map = root.Map(\"shaping\", Need::kOptional);",
     "  const ConfigMap map = Anywhere();", "which key is read by"),
    ("a reader that nobody calls", SERVER, "  ReadHistory(root, out.history);\n", "",
     "ReadHistory: reads keys that the reference cannot follow"),
    ("a file of keys that the reference does not know", "netagent/attach/new_config.cc", None,
     'void Read(const ConfigMap& root) { root.Bool("a", &a, Need::kOptional); }\n', "does not look at: list it"),
    ("a new kind of policy", "ipam-server/policy/kind.cc", '    Kind{"Team", ReadTeam},',
     '    Kind{"Team", ReadTeam},\n    Kind{"Crew", ReadTeam},', "the kind Crew is not described"),
    ("an empty description", WORDS + "agent.txt", "  The server, if there is one.\n", "", "server has no sentence"),
    ("a default that the code tells better", WORDS + "agent.txt", "cni_socket\n", "cni_socket\n  default: /tmp/cni\n",
     "the code says that `default` is /run/spoke/cni.sock"),
    ("a default that nobody tells", WORDS + "agent.txt", "vnet\n  default: none\n", "vnet\n", "does not tell the default"),
    ("a field of the API that nobody describes", "proto/spoke/v1/admin.proto", "message GetNodeRequest {\n",
     "message GetNodeRequest {\n  uint32 depth = 9;\n", "GetNodeRequest.depth has no description"),
    ("a call that nobody describes", "proto/spoke/v1/admin.proto", "  // Lists the pools with",
     "  rpc Reload(ListPoolsRequest) returns (ListPoolsResponse);\n  // Lists the pools with",
     "AdminService.Reload has no description"),
    ("a comment that tells less than all", "proto/spoke/v1/admin.proto", "message GetNodeRequest {\n",
     "message GetNodeRequest {\n  uint32 depth = 9;  // 0: all.\n", "GetNodeRequest.depth has no description"),
    ("a changed comment", "proto/spoke/v1/node.proto", "// The first message of an agent, and only the first.",
     "// The first message.", "docs/reference/api-agents.md:1: differs"),
    ("a message of the API that nobody describes", "proto/spoke/v1/admin.proto",
     "// A limit that new nodes could meet.\nmessage WhatIfLimit {\n", "message WhatIfLimit {\n", "WhatIfLimit has no description"),
    ("a comment that goes on at the next field", "proto/spoke/v1/admin.proto", "message GetNodeRequest {\n",
     "message GetNodeRequest {\n  uint32 depth = 9;  // The depth of all that is asked for,\n", "GetNodeRequest.depth has no description"),
    ("words for what is not there", WORDS + "policy.txt", "Team.namespaces\n", "Team.names\n", "the code has no Team.names"),
    ("a page that somebody has edited", "docs/reference/policy.md", "# Policy objects", "# Policies",
     "docs/reference/policy.md:1: differs"),
    ("an example with another default", "conf/netagent.yaml", "poll: 1s", "poll: 2s", "maintenance.poll is shown as 2s"),
    ("a field that no example shows", "conf/policies/egress.yaml", "  fallback: Drop\n", "",
     "EgressPolicy spec.fallback is in no example"),
    ("a key that no example shows", "conf/netagent.yaml", "lost_del_after: 5m", "", "lost_del_after is in no example"),
)
COPIED = ("lib", "ipam-server", "netagent", "proto", "conf", "docs/reference", "scripts/reference")


def wrong(root, tree):
    """Returns what check_reference prints about a tree; an empty text: it is right."""
    done = subprocess.run([root / "scripts/check_reference", tree], capture_output=True, text=True, check=False,
                          timeout=120)
    output = done.stdout + done.stderr
    return output or "nothing was printed" if done.returncode else ""


def failure(root, tree, change):
    """Makes a change, looks for its message, and takes the change back. Returns what is wrong with that."""
    shows, name, old, new, message = change
    path = tree / name
    before = path.read_text() if old is not None else ""
    if old is not None and old not in before:
        return f"{name} has no {old!r}: the test has to be changed with it"
    path.write_text(before.replace(old, new, 1) if old is not None else new)
    output = wrong(root, tree)
    if old is not None:
        path.write_text(before)
    else:
        path.unlink()
    if message in output:
        return ""
    return f"{shows}: {output.strip() or 'was not refused'}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for name in COPIED:
            shutil.copytree(root / name, tree / name)
        problem = wrong(root, tree)
        if problem:
            failed += 1
            print(f"the tree as it is: {problem}")
        for change in CHANGES:
            problem = failure(root, tree, change)
            if problem:
                failed += 1
                print(problem)
    print(f"{len(CHANGES) + 1 - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
