// Checks what the kernel can, how it is set, and the device it reaches the network by.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "fmt/core.h"
#include "lib/node_checks/checks.h"

namespace spoke::node_checks {
namespace {

// The path of a file of ours, which later packages do not overwrite.
constexpr std::string_view kSysctlFile = "/etc/sysctl.d/90-spoke.conf";

struct FeatureWords {
  KernelFeature feature;
  Severity severity;
  const char* object;
  const char* why;
  const char* modules;
};

constexpr FeatureWords kFeatures[] = {
    {KernelFeature::kVeth, Severity::kBlocking, "veth", "a pod's link is a pair of these", "veth"},
    {KernelFeature::kNftables, Severity::kBlocking, "nf_tables (inet)",
     "the agent counts and isolates with it, and lets no pod out before that works; "
     "traffic.enabled: false in its configuration goes without",
     "nf_tables"},
    {KernelFeature::kTokenBucket, Severity::kWarning, "tbf",
     "pods with ingress bandwidth cannot start", "sch_tbf"},
    {KernelFeature::kClassifiers, Severity::kWarning, "clsact, cls_bpf",
     "traffic of the cluster is routed, which costs more, limits and budgets are not in force, and "
     "pods with egress bandwidth cannot start",
     "sch_ingress cls_bpf"},
    {KernelFeature::kIfb, Severity::kWarning, "ifb",
     "limits and budgets are not in force, and pods with egress bandwidth cannot start", "ifb"},
    {KernelFeature::kHtb, Severity::kWarning, "htb",
     "limits and budgets are not in force, and pods with egress bandwidth cannot start", "sch_htb"},
};

std::optional<uint64_t> Number(const NodeFacts& facts, const std::string& name) {
  const auto found = facts.sysctls.find(name);
  if (found == facts.sysctls.end()) return std::nullopt;
  const std::string& text = found->second;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns the name of a device's sysctl. sysctl(8) writes the dots of a device's name as slashes.
std::string OfDevice(std::string_view before, std::string device, std::string_view setting) {
  std::replace(device.begin(), device.end(), '.', '/');
  return fmt::format("{}.{}.{}", before, device, setting);
}

std::string SetTo(std::string_view name, uint64_t value) {
  return fmt::format("sysctl -w {0}={1}; echo '{0} = {1}' >> {2}", name, value, kSysctlFile);
}

// The agent turns forwarding on when it starts, and again every ten seconds.
Severity UnlessAgentWill(const NodeFacts& facts) {
  const NodeSettings& settings = facts.settings;
  const bool agent_is_there =
      settings.stage == Stage::kAgent || (settings.stage == Stage::kInstalled && facts.agent.ok());
  return agent_is_there ? Severity::kBlocking : Severity::kWarning;
}

// Returns the addresses that may be neighbours at once: those of the NIC's subnet. Azure's largest
// subnets have 65,536.
uint64_t NeighboursOf(const NodeFacts& facts) {
  constexpr int kLargest = 16;
  uint64_t count = facts.settings.pods;
  if (facts.nic && facts.nic->v4_length && *facts.nic->v4_length >= 0) {
    const int bits = std::clamp(32 - *facts.nic->v4_length, 0, kLargest);
    count += uint64_t{1} << static_cast<unsigned>(bits);
  }
  return std::max(count, facts.neighbours.value_or(0));
}

}  // namespace

void CheckFeature(const NodeFacts& facts, KernelFeature feature, Findings& findings) {
  const auto* words =
      std::find_if(std::begin(kFeatures), std::end(kFeatures),
                   [&](const FeatureWords& entry) { return entry.feature == feature; });
  const auto found = facts.kernel.find(feature);
  if (words == std::end(kFeatures) || found == facts.kernel.end()) return;
  const FeatureState& state = found->second;
  if (state.answer == FeatureState::Answer::kPresent) return;
  if (state.answer == FeatureState::Answer::kUnknown) {
    findings.AddUnknown(words->object, absl::PermissionDeniedError(state.words));
    return;
  }
  findings.Add({.severity = words->severity,
                .object = words->object,
                .what = fmt::format("this kernel lacks it: {}", state.words),
                .why = words->why,
                .remedy = fmt::format("modprobe -a {0}; if it is not found, install the kernel's "
                                      "package of extra modules or another kernel",
                                      words->modules)});
}

void CheckForwarding(const NodeFacts& facts, Findings& findings) {
  const std::string of_nic = OfDevice("net.ipv4.conf", facts.settings.nic, "forwarding");
  for (const std::string& name : {std::string("net.ipv4.ip_forward"), of_nic}) {
    const auto value = Number(facts, name);
    if (!value || *value != 0) continue;
    findings.Add({.severity = UnlessAgentWill(facts),
                  .object = name,
                  .what = "is 0",
                  .why = "the node drops what pods send to others, and what others send to pods; "
                         "the agent turns it on as it starts, if it may",
                  .remedy = SetTo(name, 1)});
    return;  // The first turns the second on as well.
  }
}

void CheckForwardingV6(const NodeFacts& facts, Findings& findings) {
  const std::string name = "net.ipv6.conf.all.forwarding";
  const auto value = Number(facts, name);
  if (!value || *value != 0 || !facts.nic || !facts.nic->has_v6) return;
  const std::string accept = OfDevice("net.ipv6.conf", facts.settings.nic, "accept_ra");
  findings.Add(
      {.severity = Severity::kWarning,
       .object = name,
       .what = fmt::format("is 0, and {} has IPv6", facts.settings.nic),
       .why = "pods' IPv6 ends at this node; the agent turns it on as it starts, if it may",
       // A node that forwards listens to router advertisements with 2 only.
       .remedy = fmt::format("sysctl -w {}=2; {}", accept, SetTo(name, 1))});
}

void CheckReversePath(const NodeFacts& facts, Findings& findings) {
  const std::string of_nic = OfDevice("net.ipv4.conf", facts.settings.nic, "rp_filter");
  const uint64_t all = Number(facts, "net.ipv4.conf.all.rp_filter").value_or(0);
  const uint64_t nic = Number(facts, of_nic).value_or(0);
  if (std::max(all, nic) != 1) return;  // The kernel takes the larger.
  findings.Add({.severity = Severity::kWarning,
                .object = all == 1 ? "net.ipv4.conf.all.rp_filter" : of_nic,
                .what = fmt::format("is 1 (strict) for {}", facts.settings.nic),
                .why = "what comes by another device than its answer would take is dropped: with "
                       "several NICs, egress gateways and NAT hosts these differ",
                .remedy = SetTo(of_nic, 2),
                .settings = {{of_nic, "2"}}});
}

void CheckNeighbourTable(const NodeFacts& facts, Findings& findings) {
  const std::string prefix = "net.ipv4.neigh.default.gc_thresh";
  const auto most = Number(facts, prefix + "3");
  if (!most) return;  // It is not in every namespace.
  const uint64_t needed = NeighboursOf(facts) + NeighboursOf(facts) / 4;
  const uint64_t soft = Number(facts, prefix + "2").value_or(*most);
  // The second is made smaller only where it would be above the third.
  const uint64_t third = std::max<uint64_t>(needed, 1024);
  const uint64_t second = std::min(third, std::max({soft, needed - needed / 10, uint64_t{512}}));
  const uint64_t first = std::max<uint64_t>(needed - needed / 5, 128);
  const std::string remedy =
      fmt::format("printf '{0}1 = {1}\\n{0}2 = {2}\\n{0}3 = {3}\\n' >> {4}; sysctl -p {4}", prefix,
                  first, second, third, kSysctlFile);
  if (*most < needed) {
    findings.Add(
        {.severity = Severity::kWarning,
         .object = prefix + "3",
         .what = fmt::format("is {}; {} neighbours are possible here, {} are there now", *most,
                             NeighboursOf(facts), facts.neighbours.value_or(0)),
         .why = "when the table is full, pods and nodes that are not in it cannot be reached",
         .remedy = remedy,
         .settings = {{prefix + "3", fmt::format("{}", third)},
                      {prefix + "2", fmt::format("{}", second)},
                      {prefix + "1", fmt::format("{}", first)}}});
  } else if (soft > *most) {
    findings.Add({.severity = Severity::kWarning,
                  .object = prefix + "2",
                  .what = fmt::format("is {}, above gc_thresh3, which is {}", soft, *most),
                  .why = "the table is full before it is ever cleaned",
                  .remedy = remedy});
  }
}

void CheckConnectionTable(const NodeFacts& facts, Findings& findings) {
  // The least that is enough: as kube-proxy has it for the smallest node, twice over.
  constexpr uint64_t kFewest = 65'536;
  const std::string name = "net.netfilter.nf_conntrack_max";
  const auto most = Number(facts, name);
  if (!most || *most == 0) return;  // Nothing tracks, or nothing limits.
  const uint64_t now = facts.connections.value_or(0);
  const bool nearly_full = now > *most - *most / 5;
  if (!nearly_full && *most >= kFewest) return;
  const uint64_t enough = std::max<uint64_t>(*most * 2, 4 * kFewest);
  findings.Add({.severity = Severity::kWarning,
                .object = name,
                .what = nearly_full
                            ? fmt::format("{} of {} connections are there", now, *most)
                            : fmt::format("is {}, little for {} pods", *most, facts.settings.pods),
                .why = "when the table is full, new connections of pods and of the node fail",
                .remedy = SetTo(name, enough),
                .settings = {{name, fmt::format("{}", enough)}}});
}

void CheckStrictTracking(const NodeFacts& facts, Findings& findings) {
  const std::string name = "net.netfilter.nf_conntrack_tcp_loose";
  if (Number(facts, name) != 0) return;
  findings.Add({.severity = Severity::kWarning,
                .object = name,
                .what = "is 0",
                .why =
                    "a connection that the kernel has not seen begin is invalid to it, so none can "
                    "change between the fast path and the ordinary way: pods that start do not "
                    "take the fast path",
                .remedy = SetTo(name, 1) + "; or traffic.fast_path: off"});
}

void CheckVirtualServices(const NodeFacts& facts, Findings& findings) {
  if (!facts.virtual_services) return;
  findings.Add({.severity = Severity::kWarning,
                .object = "IPVS",
                .what = "translates Services (kube-proxy's mode ipvs)",
                .why = "nf_tables does not see what it translates, so the fast path is off and all "
                       "traffic of the cluster is routed",
                .remedy = "kube-proxy --proxy-mode=nftables, or iptables, then ipvsadm --clear; or "
                          "traffic.fast_path: off, which says that it is meant so"});
}

void CheckNic(const NodeFacts& facts, Findings& findings) {
  const std::string& nic = facts.settings.nic;
  if (!facts.links_status.ok()) {
    findings.AddUnknown(nic, facts.links_status);
  } else if (!facts.nic) {
    findings.Add({.severity = Severity::kBlocking,
                  .object = nic,
                  .what = "there is no such device",
                  .why = "pods' addresses come by it",
                  .remedy = "ip -brief link; then name the right one as nic in "
                            "/etc/spoke/netagent.yaml"});
  } else if (!facts.nic->link.up) {
    findings.Add({.severity = Severity::kBlocking,
                  .object = nic,
                  .what = "is down",
                  .why = "nothing reaches pods from other nodes",
                  .remedy = fmt::format("ip link set {} up", nic)});
  }
}

void CheckMtu(const NodeFacts& facts, Findings& findings) {
  if (!facts.nic || facts.nic->link.mtu == 0) return;
  const uint32_t of_nic = facts.nic->link.mtu;
  const char* const why =
      "pods' longer packets are dropped or cut; connections stand and then hang";
  if (facts.settings.mtu > of_nic) {
    findings.Add({.severity = Severity::kWarning,
                  .object = facts.settings.nic,
                  .what = fmt::format("has MTU {}, and mtu of the agent's configuration is {}",
                                      of_nic, facts.settings.mtu),
                  .why = why,
                  .remedy = "mtu: 0 in /etc/spoke/netagent.yaml takes the NIC's"});
  }
  const auto longer = std::find_if(facts.links.begin(), facts.links.end(), [&](const auto& link) {
    return link.name.rfind(kPodLinkPrefix, 0) == 0 && link.mtu > of_nic;
  });
  if (longer == facts.links.end()) return;
  findings.Add(
      {.severity = Severity::kWarning,
       .object = longer->name,
       .what = fmt::format("has MTU {}, and {} has {}", longer->mtu, facts.settings.nic, of_nic),
       .why = why,
       .remedy = fmt::format("ip link set {} mtu {}, or delete the pods that began before "
                             "the NIC's was lowered",
                             facts.settings.nic, longer->mtu)});
}

}  // namespace spoke::node_checks
