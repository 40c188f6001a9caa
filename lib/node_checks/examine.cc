#include "lib/node_checks/examine.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/node_checks/check_ids.h"
#include "lib/node_checks/checks.h"

namespace spoke::node_checks {
namespace {

struct Entry {
  const char* id;
  const char* about;
  void (*check)(const NodeFacts&, Findings&);
  bool (*applies)(const NodeFacts&) = nullptr;  // Says whether the check is made; null: always.
  // Says why it is not made where it does not apply; null, or empty: that goes without saying.
  std::string_view (*why_not)(const NodeFacts&) = nullptr;
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

bool IsCompared(const NodeFacts& facts) {
  return facts.settings.counts && facts.settings.stage == Stage::kAgent;
}
bool HasNodeResolvers(const NodeFacts& facts) {
  return facts.services && !facts.services->node_resolvers.empty();
}
bool HasClusterResolvers(const NodeFacts& facts) {
  return facts.services && !facts.services->cluster_resolvers.empty();
}
bool HasMetadata(const NodeFacts& facts) { return facts.services && facts.services->metadata; }
bool HasClock(const NodeFacts& facts) { return facts.services && facts.services->clock; }
bool HasServerClock(const NodeFacts& facts) { return facts.server_clock.has_value(); }
bool HasHub(const NodeFacts& facts) { return facts.reach && !facts.reach->hub.empty(); }
bool HasPeerSpokes(const NodeFacts& facts) {
  return facts.reach && !facts.reach->peer_spoke.empty();
}

// Until services have been asked for the first time there is nothing to say of those that are not.
std::string_view OnceAsked(const NodeFacts& facts, std::string_view why) {
  return facts.services ? why : "";
}
std::string_view WhyNotCompared(const NodeFacts& facts) {
  return OnceAsked(facts,
                   facts.settings.counts
                       ? "only the agent compares what it counts: see spokectl node show NODE"
                       : "traffic.enabled of the agent's configuration is false");
}
std::string_view WhyNoNodeResolvers(const NodeFacts& facts) {
  return OnceAsked(facts, "/etc/resolv.conf names no resolver");
}
std::string_view WhyNoClusterResolvers(const NodeFacts& facts) {
  return OnceAsked(facts,
                   "node_checks.cluster_dns.servers of the agent's configuration names none");
}
std::string_view WhyNoMetadata(const NodeFacts& facts) {
  return OnceAsked(facts, facts.settings.metadata_url.empty()
                              ? "no cloud is configured that has such a service (azure)"
                              : "azure.imds of the agent's configuration names no address");
}
std::string_view WhyNoClock(const NodeFacts& facts) {
  return OnceAsked(facts,
                   "this process may not ask the kernel (ProtectClock= of its unit, or seccomp)");
}
std::string_view WhyNoServerClock(const NodeFacts& facts) {
  return OnceAsked(facts, facts.settings.stage == Stage::kAgent
                              ? "the server has not said what time it is"
                              : "only the agent asks the server, in its own connection");
}

// The agent has the policy that says what to try, and has nothing to say before its first look.
std::string_view WhyNotTried(const NodeFacts& facts, std::string_view why) {
  if (facts.reach) return why;
  if (facts.settings.stage == Stage::kAgent) return "";
  return OnceAsked(facts, "only the agent tries it: see spokectl node show NODE");
}
std::string_view WhyNoHub(const NodeFacts& facts) {
  return WhyNotTried(facts, "no ClusterNetwork names a target (probes.hub)");
}
std::string_view WhyNoPeerSpokes(const NodeFacts& facts) {
  return WhyNotTried(facts, "no ClusterNetwork names a target (probes.peerSpoke)");
}

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
    {"counters", "pods' traffic is counted", &CheckCounters, &IsCompared, &WhyNotCompared},
    {"dns-node", "the node's resolvers answer", &CheckNodeResolvers, &HasNodeResolvers,
     &WhyNoNodeResolvers},
    {"dns-cluster", "the cluster's resolvers answer", &CheckClusterResolvers, &HasClusterResolvers,
     &WhyNoClusterResolvers},
    {"metadata", "the cloud's metadata service answers", &CheckMetadata, &HasMetadata,
     &WhyNoMetadata},
    {"clock-kept", "somebody keeps the node's clock", &CheckKeptClock, &HasClock, &WhyNoClock},
    {"clock-server", "the node's clock is the server's", &CheckServerClock, &HasServerClock,
     &WhyNoServerClock},
    {"hub", "the hub is reached", &CheckHub, &HasHub, &WhyNoHub},
    {"peer-spoke", "no peer spoke is reached", &CheckPeerSpokes, &HasPeerSpokes, &WhyNoPeerSpokes},
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

constexpr bool HasEachCheckOnce() {
  size_t place = 0;
  for (const Entry& entry : kEntries) {
    if (PlaceOfCheck(entry.id) != place++) return false;
  }
  return place == kCheckIds.size();
}
static_assert(HasEachCheckOnce(), "check_ids.h names the checks in their order");

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
    if (entry.applies != nullptr && !entry.applies(facts)) {
      const std::string_view why = entry.why_not == nullptr ? "" : entry.why_not(facts);
      if (!why.empty()) report.not_made.push_back({entry.id, std::string(why)});
      continue;
    }
    report.checks.push_back({entry.id, entry.about});
    Findings findings(entry.id, report.findings);
    entry.check(facts, findings);
  }
  return report;
}

}  // namespace spoke::node_checks
