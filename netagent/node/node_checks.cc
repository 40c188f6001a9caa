#include "netagent/node/node_checks.h"

#include <optional>
#include <string>
#include <utility>

#include "lib/node_checks/examine.h"
#include "lib/node_checks/facts/facts_reader.h"
#include "lib/node_checks/facts/pod_packets.h"
#include "lib/node_checks/services/service_prober.h"
#include "netagent/node/settings_keeper.h"

namespace spoke::netagent {
namespace {

// The settings that the checks of the node go by.
node_checks::NodeSettings SettingsOf(const AgentConfig& config) {
  node_checks::NodeSettings settings;
  settings.nic = config.nic;
  settings.mtu = config.mtu;
  settings.cni_socket = config.cni_socket;
  settings.state_dir = config.state_dir;
  settings.servers = config.servers;
  settings.counts = config.traffic.enabled;
  settings.fast_path = config.traffic.fast_path && config.traffic.yields;
  settings.azure = config.azure.has_value();
  if (config.azure) settings.metadata_url = config.azure->imds;
  settings.services = config.service_checks;
  settings.bin_dir.clear();  // Checked only if we are told to put the plugin there.
  settings.stage = node_checks::Stage::kAgent;
  if (config.cni) {
    settings.conf_dir = config.cni->conf_dir;
    settings.conf_file = config.cni->conf_file;
    settings.bin_dir = config.cni->bin_dir;
    settings.plugin = config.cni->plugin;
  } else {
    settings.conf_dir.clear();  // Checked only if we are told where the runtime looks.
  }
  return settings;
}

// Asks the services that the node depends on, on a thread of its own. Borrows `clock`.
std::unique_ptr<ServiceWatch> WatchServices(const AgentConfig& config, ServerClock& clock) {
  const auto prober =
      std::make_shared<node_checks::ServiceProber>(config.host_root, SettingsOf(config));
  auto watch = std::make_unique<ServiceWatch>(
      ServiceWatch::Edges{.probe = [prober] { return prober->Probe(); },
                          .ask_clock = [&clock] { return clock.Ask(); },
                          .interrupt =
                              [prober, &clock] {
                                prober->Interrupt();
                                clock.Interrupt();
                              }});
  watch->Start();
  return watch;
}

}  // namespace

void LogSettings(const NodeSetupReport& made, telemetry::Log& log) {
  for (const ChangedSetting& setting : made.changed) {
    log.Info("sysctl_set",
             {{"name", setting.name}, {"before", setting.before}, {"after", setting.after}});
  }
  for (const absl::Status& failure : made.failed) log.Error("sysctl_failed", {{"error", failure}});
}

NodeChecks::NodeChecks(const AgentConfig& config, telemetry::Log& log)
    : services_(WatchServices(config, server_clock_)),
      reach_({.clock = clock_,
              .random = [this] { return std::uniform_real_distribution<double>()(random_); }}),
      node_(Examine(config, log), log) {
  reach_.Start();
  node_.Start();
}

NodeWatch::Examine NodeChecks::Examine(const AgentConfig& config, telemetry::Log& log) const {
  const auto reader = std::make_shared<node_checks::FactsReader>(
      node_checks::NodeView{.root = config.host_root}, SettingsOf(config));
  const auto looks = std::make_shared<node_checks::PodPacketLooks>();
  const auto examine = [this, reader, looks] {
    node_checks::NodeFacts facts = reader->Read();
    ServiceWatch::Latest latest = services_->latest();
    facts.services = std::move(latest.services);
    facts.server_clock = latest.clock;
    facts.reach = reach_.latest();
    const uint64_t counted = counted_;
    facts.pod_packets =
        looks->Add(std::move(facts.link_packets),
                   counted == kNotCounted ? std::nullopt : std::optional<uint64_t>(counted));
    return node_checks::Examine(facts);
  };
  if (!config.own_settings) return examine;
  const auto keeper = std::make_shared<SettingsKeeper>(SysctlRoot(config.host_root));
  return [examine, keeper, &log] {
    node_checks::Report report = examine();
    const NodeSetupReport made = keeper->Mend(report);
    LogSettings(made, log);
    return made.changed.empty() ? report : examine();
  };
}

}  // namespace spoke::netagent
