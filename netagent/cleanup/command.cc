#include "netagent/cleanup/command.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/environment.h"
#include "lib/os/signals.h"
#include "lib/os/subprocess.h"
#include "netagent/cleanup/cleanup.h"
#include "netagent/cleanup/node_cleaner.h"
#include "netagent/cni/cni_installer.h"
#include "netagent/iptables/legacy_iptables.h"
#include "netagent/iptables/nft_iptables.h"
#include "netagent/journal/journal.h"

namespace spoke::netagent {
namespace {

constexpr const char* kWithPods = "--with-pods";

absl::StatusOr<os::ProgramResult> RunProgram(const std::vector<std::string>& command) {
  return os::RunProgram(command);
}

NodeCleaner::Settings SettingsOf(const AgentConfig& config) {
  NodeCleaner::Settings settings;
  CleanupPaths& paths = settings.paths;
  paths.state_dir = config.state_dir;
  paths.lasting_dir = config.lasting_dir;
  paths.cni_socket = config.cni_socket;
  // These files are what an operator has put there, not what the server has signed.
  if (!config.enroll) paths.keep = {config.tls.ca, config.tls.certificate, config.tls.key};
  if (config.health.rfind("unix:", 0) == 0) paths.health_socket = config.health.substr(5);
  if (config.cni) {
    const CniInstallSettings installed{.plugin_source = config.cni->plugin,
                                       .plugin_directory = config.cni->bin_dir,
                                       .conf_source = config.cni->content,
                                       .conf_directory = config.cni->conf_dir,
                                       .conf_file = config.cni->conf_file};
    paths.conflist = installed.ConfPath();
    paths.conflist_source = installed.conf_source;
    paths.plugin = installed.PluginPath();
    paths.plugin_source = installed.plugin_source;
  }
  if (config.metrics.iptables_exporter.cluster) {
    settings.published = PublishedRules(*config.metrics.iptables_exporter.cluster);
  }
  return settings;
}

// Returns "shop/web-1 10.0.0.5", or the container where a runtime names no pods.
std::string NameOf(const Assignment& assignment) {
  std::string name = assignment.pod.name.empty()
                         ? "container " + assignment.key.container_id
                         : assignment.pod.pod_namespace + "/" + assignment.pod.name;
  for (const ip::Address& address : assignment.addresses) name += " " + address.ToString();
  return name;
}

// Returns the journal, held so that no agent starts meanwhile, or null when none has ever been
// here. Names the pods that it knows. Errors: kFailedPrecondition (an agent has it); those of
// OpenJournal().
absl::StatusOr<std::unique_ptr<Journal>> HoldJournal(const AgentConfig& config,
                                                     CleanupOptions& options) {
  const std::string path = config.state_dir + "/journal";
  // Opening it would make it.
  if (::access((path + ".lock").c_str(), F_OK) != 0) return nullptr;
  ASSIGN_OR_RETURN(OpenedJournal opened, OpenJournal(path));
  Assignments assignments(config.cooldown);
  for (const Event& event : opened.events) assignments.Apply(event);
  for (const Assignment& assignment : assignments.Built()) {
    options.pod_of_link.emplace(HostLinkName(assignment.key), NameOf(assignment));
  }
  return std::move(opened.journal);
}

CleanupReport Clean(const AgentConfig& config, CleanupOptions options) {
  const absl::StatusOr<std::unique_ptr<Journal>> held = HoldJournal(config, options);
  if (absl::IsFailedPrecondition(held.status())) {
    return {.refused =
                fmt::format("the agent runs: stop it first ({})", base::MessageOf(held.status()))};
  }
  if (!held.ok()) {
    return {.refused = fmt::format("whether an agent runs is not known: {}",
                                   base::MessageOf(held.status()))};
  }
  NftIptables nft;
  LegacyIptables legacy({.programs = FindLegacyPrograms("", &RunProgram), .run = &RunProgram});
  const auto cleaner = NodeCleaner::Open(SettingsOf(config), nft, legacy);
  if (!cleaner.ok()) return {.failed = {{.error = std::string(base::MessageOf(cleaner.status()))}}};
  return CleanUp(**cleaner, options);
}

int Run(const AgentConfig& config, const daemon::CommandRequest& request) {
  const CleanupReport report = Clean(config, {.with_pods = request.flags.contains(kWithPods)});
  const std::string text = request.json ? CleanupJson(report) : CleanupTable(report);
  const bool printed = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return printed && report.ok() ? 0 : daemon::kExitFailure;
}

int Hold() {
  const os::SignalWaiter signals({SIGINT, SIGTERM});
  signals.Wait();
  return 0;
}

// Parses the configuration. Directories that are gone already are no mistake.
absl::StatusOr<AgentConfig> Parse(std::string_view text, const std::string& file) {
  return ParseAgentConfig(
      text, file, [](const std::string&) { return absl::OkStatus(); }, &os::EnvironmentVariable);
}

}  // namespace

daemon::Command CleanupCommand() {
  return {.option = "--cleanup",
          .help =
              "Remove everything of the agent's from this node, and print what; refused while "
              "an agent runs, and while pods use it",
          .flags = {{kWithPods, "With --cleanup: also while pods use it; they lose their network"}},
          .run = daemon::WithConfig(&Parse, &Run)};
}

daemon::Command HoldCommand() {
  return {.option = "--hold",
          .help =
              "Wait for a signal and do nothing else: for the pods of a manifest whose work is "
              "done before, as conf/kubernetes/cleanup has it",
          .run = [](std::string_view, const std::string&, const daemon::CommandRequest&) {
            return Hold();
          }};
}

}  // namespace spoke::netagent
