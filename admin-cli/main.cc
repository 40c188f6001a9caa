// spokectl: the operator's hand. Parses the command line and calls one verb.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "admin-cli/commands.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version.h"

namespace spoke::ctl {
namespace {

// Documented in --help, and stable.
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitUnreachable = 3;
constexpr int kExitNoSuchThing = 4;

constexpr const char* kAbout =
    "spokectl shows what spoke-ipam-server knows: pools, nodes, addresses.\n\n"
    "Examples:\n"
    "  spokectl status\n"
    "  spokectl ip list --node node1 --state lent\n"
    "  spokectl ip show 10.1.0.5 -o json\n\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 no server answers, 4 no such thing";

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnreachable;
    case absl::StatusCode::kNotFound:
      return kExitNoSuchThing;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    default:
      return kExitFailure;
  }
}

using Verb = absl::StatusOr<std::string> (*)(const Options&);

struct CommandLine {
  CLI::App app{kAbout};
  Options options;
  std::string output = "table";
  Verb verb = nullptr;

  CommandLine() {
    app.set_version_flag("--version", base::kVersion);
    app.require_subcommand(1);
    app.fallthrough();
    app.add_option("--server", options.server, "The server's admin socket")
        ->envname("SPOKE_SERVER")
        ->capture_default_str();
    app.add_option("-o,--output", output, "How to print")
        ->check(CLI::IsMember({"table", "json", "yaml"}))
        ->capture_default_str();
    app.add_option("--timeout", options.timeout_seconds, "Seconds to wait for the server")
        ->check(CLI::Range(1, 3600))
        ->capture_default_str();

    AddVerb(app, "status", "Is the server well, and how much of what is there", &Status);
    CLI::App& pool = AddNoun("pool", "Pools of addresses");
    AddVerb(pool, "list", "Pools with their counts", &PoolList);
    CLI::App& node = AddNoun("node", "Nodes");
    AddVerb(node, "list", "Nodes with their agents and addresses", &NodeList);
    CLI::App& ip = AddNoun("ip", "Addresses");
    CLI::App& list = AddVerb(ip, "list", "Addresses that are not free", &IpList);
    list.add_option("--node", options.node, "Only those of this node");
    list.add_option("--pool", options.pool, "Only those of this pool");
    list.add_option("--state", options.state, "Only those in this state")
        ->check(CLI::IsMember({"attaching", "idle", "lent", "cooling", "detaching"}));
    CLI::App& show = AddVerb(ip, "show", "All about one address", &IpShow);
    show.add_option("address", options.address, "IPv4 or IPv6 address")->required();
  }

 private:
  CLI::App& AddNoun(const std::string& name, const std::string& about) {
    CLI::App& noun = *app.add_subcommand(name, about);
    noun.require_subcommand(1);
    noun.fallthrough();
    return noun;
  }
  CLI::App& AddVerb(CLI::App& parent, const std::string& name, const std::string& about,
                    Verb function) {
    CLI::App& command = *parent.add_subcommand(name, about);
    command.fallthrough();
    command.callback([this, function] { verb = function; });
    return command;
  }
};

}  // namespace

int Main(int argc, char** argv) {
  CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return line.app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (line.output == "json") line.options.format = Format::kJson;
  if (line.output == "yaml") line.options.format = Format::kYaml;
  const auto text = line.verb(line.options);
  if (!text.ok()) {
    fmt::print(stderr, "spokectl: {}\n", base::MessageOf(text.status()));
    return ExitCodeOf(text.status());
  }
  if (std::fwrite(text->data(), 1, text->size(), stdout) != text->size() ||
      std::fflush(stdout) != 0) {
    return kExitFailure;
  }
  return 0;
}

}  // namespace spoke::ctl

int main(int argc, char** argv) {
  try {
    return spoke::ctl::Main(argc, argv);
  } catch (const std::exception& error) {
    // A library's, and a fault of ours: nothing we call is meant to throw this far.
    std::fputs(error.what(), stderr);
    return 1;
  }
}
