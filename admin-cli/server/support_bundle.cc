#include <vector>

#include "admin-cli/output/console.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/run.h"
#include "admin-cli/server/archive.h"
#include "admin-cli/server/saved_output.h"
#include "admin-cli/verbs.h"
#include "lib/base/dns_name.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/units/text.h"

namespace spoke::ctl {
namespace {

constexpr size_t kMaxNodes = 20;

using units::ByteCount;
using units::Rounded;

// A file of the bundle: what a command line prints.
struct Part {
  std::string file;
  std::vector<std::string> words;
  int other_success = 0;  // The code that is an answer too.
};

std::vector<Part> Parts() {
  return {{"version.json", {"version", "-o", "json"}},
          {"status.txt", {"status"}},
          {"status.json", {"status", "-o", "json"}},
          {"pools.json", {"pool", "list", "-o", "json"}},
          {"nodes.json", {"node", "list", "-o", "json"}},
          {"reservations.json", {"reserve", "list", "-o", "json"}},
          {"objects.yaml", {"get", "all", "-o", "yaml"}},
          {"rollout.json", {"rollout", "status", "-o", "json"}},
          {"top.json", {"top", "-o", "json"}},
          {"budgets.json", {"budget", "list", "-o", "json"}},
          {"events.txt", {"events", "--limit", "10000"}},
          {"quarantined.json", {"ip", "list", "--state", "quarantined", "-o", "json"}},
          {"audit.json", {"audit", "-o", "json"}, 1}};
}

// Adds what the agents of some nodes have kept. Errors: kInvalidArgument (too many, or what is no
// node's name).
absl::Status AddNodes(const std::vector<std::string>& nodes, std::vector<Part>& parts) {
  if (nodes.size() > kMaxNodes) {
    return absl::InvalidArgumentError(
        fmt::format("--node: at most {} nodes, not {}", kMaxNodes, nodes.size()));
  }
  for (const std::string& node : nodes) {
    // It becomes part of a file's name.
    if (!base::IsDnsName(node)) {
      return absl::InvalidArgumentError(fmt::format("--node: '{}' is no node's name", node));
    }
    parts.push_back({fmt::format("node-{}-log.txt", node), {"logs", "node", node}});
    parts.push_back({fmt::format("node-{}-state.json", node), {"node", "state", node}});
  }
  return absl::OkStatus();
}

// A console that keeps both outputs; there is nobody at it.
class RecordingConsole final : public Console {
 public:
  void Out(std::string_view text) override { out += text; }
  void Err(std::string_view text) override { err += text; }
  absl::StatusOr<std::string> ReadInput(size_t) override { return std::string(); }
  bool out_is_terminal() const override { return false; }
  bool err_is_terminal() const override { return false; }
  absl::Status written() const override { return absl::OkStatus(); }

  std::string out;
  std::string err;
};

constexpr std::string_view kReadMe =
    "A support bundle of Spoke.\n\n"
    "Made at {} by spokectl {}, from the server at {}.\n\n"
    "It has names of nodes, VMs, namespaces and PODS, addresses and CIDR blocks, labels of nodes "
    "and\n"
    "all policy objects. It has no keys, no certificates, and nothing that pods have sent. Look\n"
    "through it before you give it away.\n\n"
    "Each file is what a command printed:\n\n";

absl::StatusOr<int> Bundle(Session& session) {
  std::vector<Part> parts = Parts();
  RETURN_IF_ERROR(AddNodes(session.arguments.All("node"), parts));
  const std::string& path = session.arguments.Text("file");
  SavedOutput file(path, session.world.console);
  RETURN_IF_ERROR(file.Open());
  const int64_t now = absl::ToUnixSeconds(session.now());
  std::string read_me =
      fmt::format(kReadMe, TimeOf(now * 1000), base::kVersion, session.client.server());
  std::string errors;
  std::vector<ArchiveFile> files;
  size_t failed = 0;
  int first_code = 0;
  {
    Progress progress(session.world.console, "support-bundle");
    for (size_t i = 0; i < parts.size(); ++i) {
      progress.Show(i, parts.size(), parts[i].file);
      std::vector<std::string> words = parts[i].words;
      for (const char* option : {"server", "context"}) {
        if (!session.arguments.Has(option)) continue;
        words.insert(words.end(), {fmt::format("--{}", option), session.arguments.Text(option)});
      }
      words.insert(words.end(), {"--color", "never"});
      if (session.arguments.Has("timeout") && parts[i].words[0] != "rollout") {
        words.insert(words.end(), {"--timeout", session.arguments.Text("timeout")});
      }
      RecordingConsole recorded;
      const World world{recorded, session.world.clock, session.world.wait, session.world.variable};
      const int code = Run(words, world);
      files.push_back({fmt::format("spoke-support/{}", parts[i].file), recorded.out});
      read_me += fmt::format("  {:<18} spokectl", parts[i].file);
      for (const std::string& word : parts[i].words) read_me += " " + word;
      read_me += fmt::format("   (code {})\n", code);
      if (code != 0 && code != parts[i].other_success) {
        if (++failed == 1) first_code = code;
        errors += fmt::format("{} (code {}): {}\n", parts[i].file, code, recorded.err);
      }
    }
  }
  if (failed > 0) {
    read_me += fmt::format("\n{} of them could not be had: see errors.txt.\n", failed);
    files.push_back({"spoke-support/errors.txt", errors});
  }
  files.push_back({"spoke-support/README.txt", read_me});
  ASSIGN_OR_RETURN(const std::string packed, TarGz(files, now));
  RETURN_IF_ERROR(file.Append(packed));
  RETURN_IF_ERROR(file.Finish());
  if (failed > 0) {
    session.Note(fmt::format("{} of {} parts could not be had; errors.txt in the bundle says why",
                             failed, parts.size()));
  }
  if (file.is_standard_output()) {
    session.Note(fmt::format("standard output: {}. It names pods, namespaces and nodes",
                             Rounded(ByteCount(packed.size()))));
  } else if (session.is_table()) {
    session.Out(
        fmt::format("{}: {}. It names pods, namespaces and nodes: look through it before you "
                    "give it away\n",
                    Printable(path), Rounded(ByteCount(packed.size()))));
  } else {
    RETURN_IF_ERROR(session.PrintValue({{"file", path},
                                        {"bytes", packed.size()},
                                        {"parts", parts.size()},
                                        {"parts_failed", failed}}));
  }
  return failed == parts.size() ? first_code : 0;  // Such as 3: no server answers.
}

}  // namespace

Command SupportBundleCommand() {
  return {.name = "support-bundle",
          .summary = "Collect what somebody needs to help you, in one file",
          .description =
              "Versions, status and problems, pools, nodes, reservations, policy "
              "objects, rollout, top users, events and an audit (which repairs nothing). "
              "The bundle names pods, namespaces and nodes; it has no keys. What cannot "
              "be had is recorded in it and does not stop the rest. The file must not be "
              "there yet, and only its owner may read it. With - the bundle goes to "
              "standard output.",
          .examples = {"spokectl support-bundle spoke-support.tar.gz",
                       "spokectl support-bundle spoke-support.tar.gz --node node1 --node node2"},
          .positionals = {{.name = "file",
                           .value = "FILE.tar.gz",
                           .help = "A file that is not there yet; - is standard output",
                           .values = Values::kFile,
                           .required = true}},
          .options = {{.name = "node",
                       .value = "NODE",
                       .help = "Also what this node's agent has logged and knows; at most 20",
                       .values = Values::kNode,
                       .repeated = true}},
          .run = Bundle,
          .group = kGroupCare,
          .exit_codes =
              "0 also where some parts could not be had; where none could, that of the first, "
              "such as 3 where no server answers"};
}

}  // namespace spoke::ctl
