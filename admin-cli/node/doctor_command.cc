// The verb `doctor`: will pods work on this node? No server is asked; nothing is changed.
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"
#include "lib/node_checks/examine.h"
#include "lib/node_checks/facts/facts_reader.h"
#include "lib/node_checks/facts/network_facts.h"
#include "lib/node_checks/facts/server_probe.h"
#include "lib/node_checks/services/service_prober.h"
#include "lib/os/file.h"

namespace spoke::ctl {
namespace {

using node_checks::Finding;
using node_checks::NodeFacts;
using node_checks::NodeSettings;
using node_checks::Report;
using node_checks::Severity;

constexpr const char* kConfigFile = "/etc/spoke/netagent.yaml";
constexpr size_t kMaxConfigBytes = size_t{1} << 20U;
constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr absl::Duration kServerPatience = absl::Seconds(2);

// The SMBIOS asset tag of every Azure VM.
constexpr std::string_view kAzureTag = "7783-7084-3265-9085-8269-3286-77";

bool IsAzureVm() {
  const auto tag = os::ReadFile("/sys/class/dmi/id/chassis_asset_tag", 256);
  return tag.ok() && tag->substr(0, kAzureTag.size()) == kAzureTag;
}

absl::StatusOr<std::string> RootOf(const Arguments& arguments) {
  if (!arguments.Has("root")) return node_checks::DefaultRoot();
  std::string root = arguments.Text("root");
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  std::error_code ignored;
  if (!std::filesystem::is_directory(root, ignored)) {
    return absl::InvalidArgumentError(fmt::format("--root: {} is no directory", root));
  }
  return root;
}

// Reads the agent's configuration into `settings`. A pod has its own, beside the node's root.
absl::Status ReadConfiguration(const Session& session, const std::string& root,
                               NodeSettings& settings) {
  const Arguments& arguments = session.arguments;
  std::string path = arguments.Has("config") ? arguments.Text("config") : kConfigFile;
  auto text = os::ReadFile(path, kMaxConfigBytes);
  if (absl::IsNotFound(text.status()) && !arguments.Has("config") && root != "/") {
    path = root + kConfigFile;
    text = os::ReadFile(path, kMaxConfigBytes);
  }
  if (!text.ok()) return text.status();
  const auto variable = [&session](const std::string& name) -> std::optional<std::string> {
    std::string value = session.world.variable(name);
    if (value.empty()) return std::nullopt;
    return value;
  };
  return node_checks::TakeAgentSettings(*text, path, variable, settings);
}

absl::StatusOr<NodeFacts> Look(const Session& session) {
  const Arguments& arguments = session.arguments;
  ASSIGN_OR_RETURN(const std::string root, RootOf(arguments));
  NodeSettings settings;
  settings.stage = arguments.Has("before-install") ? node_checks::Stage::kBeforeInstall
                                                   : node_checks::Stage::kInstalled;
  if (const auto uplink = node_checks::ReadUplink(); uplink.ok()) settings.nic = *uplink;
  const absl::Status configuration = ReadConfiguration(session, root, settings);
  if (arguments.Has("config") && absl::IsNotFound(configuration)) {
    return absl::InvalidArgumentError(fmt::format("--config: {}", base::MessageOf(configuration)));
  }
  if (absl::IsNotFound(configuration) && IsAzureVm()) {
    settings.azure = true;
    settings.metadata_url = node_checks::kAzureMetadataUrl;
  }
  if (arguments.Has("nic")) settings.nic = arguments.Text("nic");
  if (arguments.Has("ipam-server")) settings.servers = {arguments.Text("ipam-server")};
  settings.pods = arguments.Count("pods");
  node_checks::FactsReader reader({.root = root}, settings);
  // What is counted is that between two looks.
  (void)reader.Read();
  (void)session.world.wait(kBetweenLooks);
  NodeFacts facts = reader.Read();
  facts.configuration = configuration;
  // A failure counts when two looks have it.
  node_checks::ServiceProber prober(root, settings);
  facts.services = prober.Probe();
  if (AnyFailed(*facts.services)) facts.services = prober.Probe();
  // One that answers is enough: of several, only the one that leads takes connections.
  for (const std::string& server : settings.servers) {
    facts.server = node_checks::TryToConnect(server, kServerPatience);
    if (facts.server.ok()) break;
  }
  return facts;
}

// Returns "blocking", "warning" or "ok".
std::string_view StateOf(const Report& report, const std::string& check) {
  std::string_view state = "ok";
  for (const Finding& finding : report.findings) {
    if (finding.id == check && state != "blocking") state = NameOf(finding.severity);
  }
  return state;
}

Json ToJson(const Report& report) {
  Json value = {{"pods_will_work", report.pods_will_work()},
                {"blocking", report.Count(Severity::kBlocking)},
                {"warnings", report.Count(Severity::kWarning)},
                {"findings", Json::array()},
                {"checks", Json::array()}};
  for (const Finding& finding : report.findings) {
    value["findings"].push_back({{"check", finding.id},
                                 {"severity", NameOf(finding.severity)},
                                 {"object", finding.object},
                                 {"what", finding.what},
                                 {"why", finding.why},
                                 {"remedy", finding.remedy}});
  }
  for (const auto& check : report.checks) {
    value["checks"].push_back(
        {{"check", check.id}, {"state", StateOf(report, check.id)}, {"about", check.about}});
  }
  for (const auto& check : report.not_made) {
    value["checks"].push_back({{"check", check.id}, {"state", "not made"}, {"about", check.why}});
  }
  return value;
}

Cell SeverityCell(Severity severity) {
  const bool blocking = severity == Severity::kBlocking;
  return {std::string(NameOf(severity)), blocking ? Tone::kBad : Tone::kWarning};
}

std::string Findings(const Session& session, const Report& report) {
  std::vector<Row> rows;
  for (const Finding& finding : report.findings) {
    rows.push_back(
        {SeverityCell(finding.severity), {finding.id}, {finding.object}, {finding.what}});
  }
  if (session.format == Format::kWide || session.arguments.Has("verbose")) {
    for (const auto& check : report.checks) {
      if (StateOf(report, check.id) != "ok") continue;
      rows.push_back({{"ok", Tone::kGood}, {check.id}, {""}, {check.about, Tone::kFaint}});
    }
    for (const auto& check : report.not_made) {
      rows.push_back({{"not made"}, {check.id}, {""}, {check.why, Tone::kFaint}});
    }
  }
  if (rows.empty()) return "";
  return FormatTable({"STATE", "CHECK", "OBJECT", "WHAT"}, rows,
                     {.colours = session.colours, .header = session.header}) +
         "\n";
}

// Returns the remedies, which stand under the table, since none of them fits a column.
std::string Remedies(const Session& session, const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    const Tone tone = finding.severity == Severity::kBlocking ? Tone::kBad : Tone::kWarning;
    text += fmt::format("{}: {}\n    {}\n\n",
                        Coloured(fmt::format("{} {}", finding.id, Printable(finding.object)), tone,
                                 session.colours),
                        Printable(finding.why), Printable(finding.remedy));
  }
  return text;
}

std::string Summary(const Session& session, const Report& report) {
  const size_t blocking = report.Count(Severity::kBlocking);
  const size_t warnings = report.Count(Severity::kWarning);
  const std::string not_made =
      report.not_made.empty() ? "" : fmt::format(", {} not made (-v)", report.not_made.size());
  const std::string text =
      fmt::format("{} checks{}, {} blocking, {} {}: pods {}", report.checks.size(), not_made,
                  blocking, warnings, warnings == 1 ? "warning" : "warnings",
                  blocking == 0 ? "will work" : "will not work");
  return Coloured(text, blocking == 0 ? Tone::kGood : Tone::kBad, session.colours) + "\n";
}

absl::StatusOr<int> Examine(Session& session) {
  ASSIGN_OR_RETURN(const NodeFacts facts, Look(session));
  const Report report = node_checks::Examine(facts);
  const int code = report.pods_will_work() ? 0 : 1;
  if (!session.is_table()) {
    RETURN_IF_ERROR(session.PrintValue(ToJson(report)));
    return code;
  }
  session.Out(Findings(session, report));
  session.Out(Remedies(session, report));
  session.Out(Summary(session, report));
  return code;
}

std::vector<Parameter> Options() {
  return {
      {.name = "root",
       .value = "DIR",
       .help = "Where the node's root directory is mounted. Without it: /, and /host in a "
               "container that has the node's root there",
       .values = Values::kDirectory},
      {.name = "config",
       .value = "FILE",
       .help = "The agent's configuration. Without it: /etc/spoke/netagent.yaml, if it is there",
       .values = Values::kFile},
      {.name = "nic",
       .value = "DEVICE",
       .help = "The device that has the addresses. Without it: the configuration's, else that "
               "of the default route"},
      {.name = "ipam-server",
       .value = "HOST:PORT",
       .help = "Where the agent finds the server. Without it: the configuration's"},
      {.name = "pods",
       .value = "NUMBER",
       .help = "How many pods the node is to have",
       .values = Values::kCount,
       .fallback = "110"},
      {.name = "before-install",
       .help = "Spoke is not installed yet: do not look for its agent, plugin and files"},
      {.name = "verbose",
       .help = "Show the checks that found nothing, or were not made, as well, as -o wide",
       .letter = 'v'}};
}

}  // namespace

Command DoctorCommand() {
  return {
      .name = "doctor",
      .summary = "Whether pods will work on this node, and what to do if not",
      .description =
          "Looks at the node it runs on: what the kernel can do and how it is set, firewalls of "
          "others, other network plugins and their configurations, cloud-init, udev and "
          "systemd-networkd, resolvers, the cloud's metadata service and the clock, and Spoke's "
          "own "
          "parts. Each finding names what was seen where, why "
          "it matters, and the remedy. Blocking ones keep pods from having a network; warnings "
          "do not. The agent makes the same checks each minute. Some seconds pass where a resolver "
          "or the metadata service is silent.\n\n"
          "Run it as root on the node, or in a privileged pod on the node's network. It changes "
          "nothing: features of the kernel are tried in a network namespace of its own, which "
          "may load modules.",
      .examples = {"spokectl doctor",
                   "spokectl doctor --before-install --nic eth0     # is this node fit for Spoke?",
                   "kubectl -n spoke-system exec ds/spoke-netagent -- spokectl doctor --root /host",
                   "spokectl doctor -o json | jq -r '.findings[].remedy'"},
      .options = Options(),
      .run = Examine,
      .group = kGroupCare,
      .exit_codes =
          "0 pods will work, warnings or not; 1 they will not; 2 wrong usage, or it could "
          "not be looked at.",
      .failure_code = 2};
}

}  // namespace spoke::ctl
