// Checks Spoke's own parts on the node, and what a runtime finds in its directories.
#include <algorithm>
#include <cctype>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/node_checks/checks.h"
#include "lib/node_checks/facts/foreign_files.h"

namespace spoke::node_checks {
namespace {

// The room for an install, more than the plugin takes twice over: it is put beside the old one and
// renamed.
constexpr uint64_t kNeededBytes = uint64_t{16} << 20U;
constexpr uint64_t kNeededFiles = 4;

std::string Quoted(const std::string& path) {
  const bool plain = std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_' || c == '+';
  });
  if (plain) return path;
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Returns the command that gives a file a name that no runtime loads.
std::string PutAside(const std::string& path) {
  return fmt::format("mv {0} {0}.off", Quoted(path));
}

// Returns whether the file comes before ours, where that is or would be among the files.
bool IsBeforeOurs(const ForeignFile& file, const NodeSettings& settings) {
  return file.name < settings.conf_file;
}

void AddOther(const ForeignFile& file, const NetworkConfig& config, bool wins, Findings& findings) {
  if (wins && config.usable) {
    findings.Add({.severity = Severity::kBlocking,
                  .object = file.path,
                  .what = fmt::format("sorts before Spoke's and runs plugin {} (network {})",
                                      config.plugin(), config.network),
                  .why = "runtimes take the first file only: pods that start get its network",
                  .remedy = fmt::format("{}; first see that what wrote it does not come back",
                                        PutAside(file.path))});
    return;
  }
  const std::string problem = file.status.ok()
                                  ? config.problem
                                  : fmt::format("cannot be read: {}", base::MessageOf(file.status));
  if (wins) {
    findings.Add({.severity = Severity::kBlocking,
                  .object = file.path,
                  .what = problem + ", and sorts before Spoke's",
                  .why = "containerd takes the first file or none: no pod starts",
                  .remedy = PutAside(file.path)});
  } else if (!config.usable) {
    findings.Add({.severity = Severity::kWarning,
                  .object = file.path,
                  .what = problem,
                  .why = "were Spoke's gone, no pod would start, or one of another network",
                  .remedy = PutAside(file.path)});
  }
}

// Returns our file; null: there is none.
const ForeignFile* FindOurs(const NodeFacts& facts) {
  for (const ForeignFile& file : facts.cni_files) {
    if (!file.status.ok()) continue;
    const NetworkConfig config = ReadNetworkConfig(file.name, file.text);
    if (config.usable && config.plugin() == kPluginName) return &file;
  }
  return nullptr;
}

}  // namespace

void CheckConfiguration(const NodeFacts& facts, Findings& findings) {
  if (facts.configuration.ok()) return;
  const bool missing = absl::IsNotFound(facts.configuration);
  findings.Add({.severity = missing ? Severity::kWarning : Severity::kBlocking,
                .object = "agent configuration",
                .what = std::string(base::MessageOf(facts.configuration)),
                .why = missing ? "the checks go by what the agent takes without one"
                               : "the agent does not start with it",
                .remedy = missing ? "name it: spokectl doctor --config FILE"
                                  : "spoke-netagent --config FILE --check-config says the same; "
                                    "correct the line"});
}

void CheckNetworkConfigs(const NodeFacts& facts, Findings& findings) {
  const NodeSettings& settings = facts.settings;
  if (!facts.cni_status.ok()) {
    if (!absl::IsNotFound(facts.cni_status)) {
      return findings.AddUnknown(settings.conf_dir, facts.cni_status);
    }
    findings.Add(
        {.severity =
             settings.stage == Stage::kBeforeInstall ? Severity::kWarning : Severity::kBlocking,
         .object = settings.conf_dir,
         .what = "does not exist",
         .why = "runtimes look there for network configurations, and the agent puts Spoke's there",
         .remedy = fmt::format("mkdir -p {}", Quoted(settings.conf_dir))});
    return;
  }
  const ForeignFile* ours = FindOurs(facts);
  for (const ForeignFile& file : facts.cni_files) {
    const NetworkConfig config =
        file.status.ok() ? ReadNetworkConfig(file.name, file.text) : NetworkConfig();
    if (config.usable && config.plugin() == kPluginName) continue;
    const bool wins = ours != nullptr ? file.name < ours->name : IsBeforeOurs(file, settings);
    // The agent writes over what has its name.
    if (file.name == settings.conf_file) continue;
    AddOther(file, config, wins, findings);
  }
  if (ours != nullptr || settings.stage != Stage::kInstalled) return;
  findings.Add({.severity = Severity::kBlocking,
                .object = fmt::format("{}/{}", settings.conf_dir, settings.conf_file),
                .what = "is not there",
                .why = "no runtime uses Spoke without; the agent writes it once it has addresses, "
                       "if its configuration has a map cni",
                .remedy = "journalctl -u spoke-netagent, or the log of the agent's pod, says what "
                          "it waits for"});
}

void CheckBinDirectory(const NodeFacts& facts, Findings& findings) {
  const std::string& path = facts.settings.bin_dir;
  const PlaceFacts& place = facts.bin_dir;
  // What is in place already goes on working.
  const bool in_place = facts.plugin.exists && facts.plugin.runs;
  // An install makes the directory.
  const bool comes = facts.settings.stage == Stage::kBeforeInstall && !place.exists;
  const Severity severity = in_place || comes ? Severity::kWarning : Severity::kBlocking;
  const char* const why = in_place ? "the next version of the plugin cannot be put there"
                                   : "the plugin cannot be put there, and no pod starts";
  const auto add = [&](std::string what, std::string remedy) {
    findings.Add({.severity = severity,
                  .object = path,
                  .what = std::move(what),
                  .why = why,
                  .remedy = std::move(remedy)});
  };
  if (!place.exists) {
    add("does not exist", fmt::format("mkdir -p {}", Quoted(path)));
  } else if (place.read_only) {
    add("is on a file system that is mounted read-only",
        fmt::format("mount -o remount,rw $(findmnt -no TARGET -T {}); dmesg says whether a fault "
                    "of the disk made it so; else set cni.bin_dir to a directory that is not, in "
                    "the runtime's configuration as well",
                    Quoted(path)));
  } else if (place.free_bytes.value_or(kNeededBytes) < kNeededBytes) {
    add(fmt::format("has {} KiB left", *place.free_bytes >> 10U),
        fmt::format("free space: df -h {0}; du -xh {0} | sort -h | tail", Quoted(path)));
  } else if (place.free_files.value_or(kNeededFiles) < kNeededFiles) {
    add("has room for no more files", fmt::format("remove files: df -i {}", Quoted(path)));
  }
}

void CheckChain(const NodeFacts& facts, Findings& findings) {
  const ForeignFile* ours = FindOurs(facts);
  if (ours == nullptr) return;
  const NetworkConfig config = ReadNetworkConfig(ours->name, ours->text);
  for (size_t i = 1; i < config.plugins.size(); ++i) {
    const std::string& plugin = config.plugins[i];
    if (plugin == "bandwidth") {
      findings.Add({.severity = Severity::kWarning,
                    .object = ours->path,
                    .what = "chains the plugin bandwidth behind Spoke's",
                    .why =
                        "it wants the hook at pods' links where Spoke's guard is (\"create ingress "
                        "qdisc: file exists\"): pods with bandwidth annotations cannot start",
                    .remedy = "take it out of the chain, and give Spoke's own entry its capability "
                              "(\"capabilities\": {\"bandwidth\": true}): Spoke holds the same "
                              "limits by itself"});
    }
    const std::string& wanted = facts.settings.bin_dir;
    const auto found = facts.cni_programs.find(plugin);
    const bool elsewhere = found != facts.cni_programs.end();
    if (elsewhere && found->second == wanted) continue;
    const std::string copy =
        elsewhere ? fmt::format("install -m 0755 {} {}", Quoted(found->second + "/" + plugin),
                                Quoted(wanted + "/"))
                  : fmt::format(
                        "put it into {}: Debian's package "
                        "containernetworking-plugins has the "
                        "reference ones",
                        Quoted(wanted));
    findings.Add(
        {.severity = elsewhere ? Severity::kWarning : Severity::kBlocking,
         .object = fmt::format("{}/{}", wanted, plugin),
         .what = fmt::format("is not there, or cannot be executed, and {} names it", ours->path),
         .why = elsewhere ? fmt::format("it is in {}: runtimes that do not look there "
                                        "start no pod",
                                        found->second)
                          : "the runtime runs the whole chain for each pod, or starts none",
         .remedy = fmt::format("{}; or take it out of the chain", copy)});
  }
}

void CheckPlugin(const NodeFacts& facts, Findings& findings) {
  const std::string path = fmt::format("{}/{}", facts.settings.bin_dir, kPluginName);
  const std::string install = fmt::format("install -m 0755 {0} {1}.new && mv {1}.new {1}",
                                          Quoted(facts.settings.plugin), Quoted(path));
  if (!facts.plugin.exists || !facts.plugin.runs) {
    findings.Add({.severity = Severity::kBlocking,
                  .object = path,
                  .what = facts.plugin.exists ? "cannot be executed" : "is not there",
                  .why = "the runtime runs it for each pod that starts or ends",
                  .remedy = facts.plugin.exists ? fmt::format("chmod 0755 {}", Quoted(path))
                                                : install + "; with cni.bin_dir in its "
                                                            "configuration the agent does it"});
  } else if (facts.plugin.same_as_own == false) {
    findings.Add({.severity = Severity::kWarning,
                  .object = path,
                  .what = fmt::format("is not the same as {}", facts.settings.plugin),
                  .why = "an older plugin may not know what this agent says",
                  .remedy = install});
  }
}

void CheckAgent(const NodeFacts& facts, Findings& findings) {
  if (facts.agent.ok()) return;
  if (absl::IsPermissionDenied(facts.agent)) {
    return findings.AddUnknown(facts.settings.cni_socket, facts.agent);
  }
  findings.Add({.severity = Severity::kBlocking,
                .object = facts.settings.cni_socket,
                .what = absl::IsNotFound(facts.agent) ? "is not there"
                                                      : std::string(base::MessageOf(facts.agent)),
                .why = "no pod starts without the agent; those that run keep their network",
                .remedy = "systemctl start spoke-netagent, or kubectl -n spoke-system get pods -l "
                          "app.kubernetes.io/name=spoke-netagent -o wide"});
}

void CheckStateDirectory(const NodeFacts& facts, Findings& findings) {
  const PlaceFacts& place = facts.state_dir;
  if (place.file_system.empty() || place.file_system == "tmpfs" || place.file_system == "ramfs") {
    return;
  }
  findings.Add({.severity = Severity::kWarning,
                .object = facts.settings.state_dir,
                .what = fmt::format("is on {}, not on tmpfs", place.file_system),
                .why = "the agent's journal outlives a reboot there and speaks of pods that are "
                       "gone; each record waits for the disk",
                .remedy = "mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs /run as the node boots "
                          "(systemd does), or set state_dir to a directory on tmpfs"});
}

void CheckServer(const NodeFacts& facts, Findings& findings) {
  if (facts.server.ok()) return;
  // An agent that has served lets the node live on the addresses that it has.
  const bool serves = facts.agent.ok() && FindOurs(facts) != nullptr;
  findings.Add({.severity = serves ? Severity::kWarning : Severity::kBlocking,
                .object = fmt::format("{}", fmt::join(facts.settings.servers, ", ")),
                .what = std::string(base::MessageOf(facts.server)),
                .why = serves ? "the node gets no more addresses than it has"
                              : "the agent gets no addresses for pods",
                .remedy =
                    "is server (or servers) right in the agent's configuration, does it run, and "
                    "does a firewall or network security group keep its port shut?"});
}

}  // namespace spoke::node_checks
