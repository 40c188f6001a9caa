#include "lib/node_checks/examine.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/node_checks/checks.h"

namespace spoke::node_checks {
namespace {

struct Entry {
  const char* id;
  const char* about;
  void (*check)(const NodeFacts&, Findings&);
  bool (*applies)(const NodeFacts&) = nullptr;  // Says whether the check is made; null: always.
};

template <KernelFeature kFeature>
void OfFeature(const NodeFacts& facts, Findings& findings) {
  CheckFeature(facts, kFeature, findings);
}

bool IsCounted(const NodeFacts& facts) { return facts.settings.counts; }
bool FastPathYields(const NodeFacts& facts) { return IsCounted(facts) && facts.settings.fast_path; }
bool IsInstalled(const NodeFacts& facts) { return facts.settings.stage == Stage::kInstalled; }
bool HasConfDirectory(const NodeFacts& facts) { return !facts.settings.conf_dir.empty(); }
bool HasBinDirectory(const NodeFacts& facts) { return !facts.settings.bin_dir.empty(); }
bool HasChain(const NodeFacts& facts) { return HasConfDirectory(facts) && HasBinDirectory(facts); }
bool HasPlugin(const NodeFacts& facts) { return IsInstalled(facts) && HasBinDirectory(facts); }
bool HasServer(const NodeFacts& facts) {
  return !facts.settings.servers.empty() && facts.settings.stage != Stage::kAgent;
}
bool IsAzure(const NodeFacts& facts) { return facts.settings.azure; }

constexpr Entry kEntries[] = {
    {"kernel-veth", "the kernel makes links for pods", &OfFeature<KernelFeature::kVeth>},
    {"kernel-nftables", "the kernel counts and isolates with nf_tables",
     &OfFeature<KernelFeature::kNftables>, &IsCounted},
    {"kernel-tbf", "the kernel can limit a pod's link", &OfFeature<KernelFeature::kTokenBucket>},
    // Limits that a pod is attached with hold on every node, whatever is switched off there.
    {"kernel-bpf", "the kernel runs programs at tc's hooks",
     &OfFeature<KernelFeature::kClassifiers>},
    {"kernel-ifb", "the kernel has devices to queue at", &OfFeature<KernelFeature::kIfb>},
    {"kernel-htb", "the kernel has trees of classes", &OfFeature<KernelFeature::kHtb>},
    {"nic", "the device with the addresses is there and up", &CheckNic},
    {"mtu", "pods' packets fit through the NIC", &CheckMtu},
    {"gateway", "the gateway answers", &CheckGateways},
    {"nic-errors", "the NIC loses no packets", &CheckNicErrors},
    {"nic-carrier", "the NIC's link stays up", &CheckCarrier},
    {"nic-speed", "the NIC is as fast as it was", &CheckSpeed},
    {"tcp-resent", "little has to be sent again", &CheckRetransmissions},
    {"ports", "the node has ports left", &CheckPorts},
    {"forwarding", "the node forwards IPv4", &CheckForwarding},
    {"forwarding-v6", "the node forwards IPv6", &CheckForwardingV6},
    {"rp-filter", "answers may come another way", &CheckReversePath},
    {"neighbour-table", "the neighbour table holds the network", &CheckNeighbourTable},
    {"connection-table", "the table of connections has room", &CheckConnectionTable},
    {"strict-tracking", "connections may change their way", &CheckStrictTracking, &FastPathYields},
    {"ipvs", "Services are translated where the agent sees it", &CheckVirtualServices,
     &FastPathYields},
    {"forward-rules", "no firewall drops what pods send and get", &CheckForwardRules},
    {"other-networks", "no other network plugin has left devices", &CheckOtherNetworks},
    {"agent-config", "the agent's configuration can be read", &CheckConfiguration, &IsInstalled},
    {"cni-config", "runtimes choose Spoke's network configuration", &CheckNetworkConfigs,
     &HasConfDirectory},
    {"cni-bin-dir", "the directory of plugins can be written", &CheckBinDirectory,
     &HasBinDirectory},
    {"cni-chain", "the plugins behind Spoke's are there", &CheckChain, &HasChain},
    {"cni-plugin", "the plugin is in its place", &CheckPlugin, &HasPlugin},
    {"agent", "the agent answers", &CheckAgent, &IsInstalled},
    {"state-dir", "the agent's memory ends with the boot", &CheckStateDirectory},
    {"server", "the server can be reached", &CheckServer, &HasServer},
    {"cloud-init", "cloud-init leaves pods' addresses alone", &CheckCloudInit, &IsAzure},
    {"udev-link", "udev leaves pods' links alone", &CheckLinkFiles},
    {"networkd-network", "systemd-networkd leaves pods' links alone", &CheckNetworkFiles},
    {"networkd-foreign", "systemd-networkd leaves the agent's routes alone", &CheckNetworkd},
};

}  // namespace

std::string_view NameOf(Severity severity) {
  return severity == Severity::kBlocking ? "blocking" : "warning";
}

void Findings::AddUnknown(std::string object, const absl::Status& status) {
  const bool permission = absl::IsPermissionDenied(status);
  Add({.severity = Severity::kWarning,
       .object = std::move(object),
       .what = fmt::format("could not be looked at: {}", base::MessageOf(status)),
       .why = "whether this is well is not known",
       .remedy = permission ? "run it as root, on the node or in a privileged pod on its network"
                            : "see the message"});
}

size_t Report::Count(Severity severity) const {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return finding.severity == severity; }));
}

Report Examine(const NodeFacts& facts) {
  Report report;
  for (const Entry& entry : kEntries) {
    if (entry.applies != nullptr && !entry.applies(facts)) continue;
    report.checks.push_back({entry.id, entry.about});
    Findings findings(entry.id, report.findings);
    entry.check(facts, findings);
  }
  return report;
}

}  // namespace spoke::node_checks
