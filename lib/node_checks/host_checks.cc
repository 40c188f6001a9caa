// Checks for other programs on the node that touch devices, addresses and routes.
#include <array>
#include <string_view>

#include "fmt/format.h"
#include "lib/node_checks/checks.h"
#include "lib/node_checks/facts/foreign_files.h"

namespace spoke::node_checks {
namespace {

// A pod's link as the agent names it: "spk" and twelve hex digits.
constexpr std::string_view kPodLink = "spk0123456789ab";

struct OtherDevice {
  std::string_view name;  // The name; with "*": its beginning.
  std::string_view plugin;
};

constexpr std::array kOthers = {
    OtherDevice{"cni0", "the bridge plugin (flannel)"},
    OtherDevice{"cbr0", "kubenet"},
    OtherDevice{"flannel*", "flannel"},
    OtherDevice{"azure0", "Azure CNI"},
    OtherDevice{"azv*", "Azure CNI"},
    OtherDevice{"cilium_*", "Cilium"},
    OtherDevice{"lxc*", "Cilium"},
    OtherDevice{"cali*", "Calico"},
    OtherDevice{"vxlan.calico", "Calico"},
    OtherDevice{"tunl0", "Calico (IP in IP)"},
    OtherDevice{"weave", "Weave Net"},
    OtherDevice{"antrea-gw0", "Antrea"},
    OtherDevice{"kube-bridge", "kube-router"},
    OtherDevice{"ovn-k8s-mp0", "OVN-Kubernetes"},
};

const OtherDevice* OtherOf(const LinkFacts& link) {
  for (const OtherDevice& other : kOthers) {
    const bool beginning = other.name.back() == '*';
    const std::string_view name = other.name.substr(0, other.name.size() - (beginning ? 1 : 0));
    const std::string_view text = link.name;
    // The kernel makes tunl0 by itself with its module, and leaves it down.
    if (text == "tunl0" && !link.up) continue;
    if (beginning ? text.substr(0, name.size()) == name : text == name) return &other;
  }
  return nullptr;
}

// Says what of udev's settings changes a link that is there. MACAddressPolicy= is not among them:
// udev leaves an address alone that the link was made with, as pods' links are.
std::string ChangesOf(const std::vector<SystemdSetting>& settings) {
  constexpr std::array<std::string_view, 3> kKeys = {"Name", "MACAddress", "MTUBytes"};
  std::vector<std::string> changes;
  for (const std::string_view key : kKeys) {
    const std::string value = LastValue(settings, "Link", key);
    if (!value.empty()) changes.push_back(fmt::format("{}={}", key, value));
  }
  return fmt::format("{}", fmt::join(changes, " "));
}

// Returns the first file that takes pods' links: udev and networkd look no further.
struct Taker {
  const ForeignFile* file = nullptr;
  std::vector<SystemdSetting> settings;
};

Taker FirstTaker(const std::vector<ForeignFile>& files) {
  for (const ForeignFile& file : files) {
    if (!file.status.ok()) continue;
    Taker taker{&file, ReadSystemdFile(file.text)};
    if (MatchesPodLink(taker.settings, kPodLink)) return taker;
  }
  return {};
}

void AddUnreadable(const std::vector<ForeignFile>& files, Findings& findings) {
  for (const ForeignFile& file : files) {
    if (!file.status.ok()) findings.AddUnknown(file.path, file.status);
  }
}

}  // namespace

void CheckOtherNetworks(const NodeFacts& facts, Findings& findings) {
  for (const OtherDevice& other : kOthers) {
    std::vector<std::string> names;
    for (const LinkFacts& link : facts.links) {
      if (OtherOf(link) == &other) names.push_back(link.name);
    }
    if (names.empty()) continue;
    findings.Add(
        {.severity = Severity::kWarning,
         .object = names.front(),
         .what = fmt::format("{} of {}{}", names.size() == 1 ? "a device" : "devices", other.plugin,
                             names.size() == 1 ? "" : fmt::format(" ({} of them)", names.size())),
         .why = "two plugins on one node may route one address twice, and translate what should "
                "not be; pods that began under the other keep it until they end",
         .remedy = fmt::format("drain the node, remove the other plugin, then: ip link delete {}",
                               names.front())});
  }
}

void CheckCloudInit(const NodeFacts& facts, Findings& findings) {
  if (!facts.cloud_init) return;
  for (const std::string& problem : facts.cloud_init->unreadable) {
    findings.AddUnknown("cloud-init's configuration", absl::UnknownError(problem));
  }
  if (!facts.cloud_init->configures_addresses) return;
  const std::string& by = facts.cloud_init->decided_by;
  findings.Add(
      {.severity = Severity::kWarning,
       .object = by.empty() ? "/etc/cloud/cloud.cfg" : by,
       .what = by.empty() ? "does not switch off secondary addresses, which are on by default"
                          : "lets cloud-init configure secondary addresses",
       .why = "at the next boot the node itself answers for addresses that are pods'",
       .remedy = "echo 'datasource: {Azure: {apply_network_config_for_secondary_ips: false}}' > "
                 "/etc/cloud/cloud.cfg.d/95-spoke.cfg"});
}

void CheckLinkFiles(const NodeFacts& facts, Findings& findings) {
  AddUnreadable(facts.link_files, findings);
  const Taker taker = FirstTaker(facts.link_files);
  if (taker.file == nullptr) return;
  const std::string changes = ChangesOf(taker.settings);
  if (changes.empty()) return;
  findings.Add(
      {.severity = Severity::kWarning,
       .object = taker.file->path,
       .what = fmt::format("matches pods' links ({}*) and sets {}", kPodLinkPrefix, changes),
       .why = "udev changes each pod's link behind the agent's back: CHECK fails, and "
              "packets are lost",
       .remedy = fmt::format("in a file that sorts before it, "
                             "/etc/systemd/network/00-spoke.link: [Match] "
                             "OriginalName={}* [Link] NamePolicy=keep MACAddressPolicy=none",
                             kPodLinkPrefix)});
}

void CheckNetworkFiles(const NodeFacts& facts, Findings& findings) {
  if (!facts.networkd_runs) return;
  AddUnreadable(facts.network_files, findings);
  const Taker taker = FirstTaker(facts.network_files);
  if (taker.file == nullptr) return;
  if (IsTrue(LastValue(taker.settings, "Link", "Unmanaged"), false)) return;
  findings.Add({.severity = Severity::kWarning,
                .object = taker.file->path,
                .what = fmt::format("matches pods' links ({}*)", kPodLinkPrefix),
                .why = "systemd-networkd takes each pod's link for its own and removes the routes "
                       "there that are not in the file",
                .remedy = fmt::format("in a file that sorts before it, "
                                      "/etc/systemd/network/00-spoke.network: [Match] Name={}* "
                                      "[Link] Unmanaged=yes; then networkctl reload",
                                      kPodLinkPrefix)});
}

void CheckNetworkd(const NodeFacts& facts, Findings& findings) {
  if (!facts.networkd_runs) return;
  AddUnreadable(facts.networkd_conf, findings);
  bool routes = true;  // These are the defaults of networkd.conf(5).
  bool rules = true;
  for (const ForeignFile& file : facts.networkd_conf) {
    if (!file.status.ok()) continue;
    const auto settings = ReadSystemdFile(file.text);
    routes = IsTrue(LastValue(settings, "Network", "ManageForeignRoutes"), routes);
    rules = IsTrue(LastValue(settings, "Network", "ManageForeignRoutingPolicyRules"), rules);
  }
  if (!routes && !rules) return;
  const std::string_view what = routes && rules ? "routes and rules" : routes ? "routes" : "rules";
  findings.Add({.severity = Severity::kWarning,
                .object = "systemd-networkd",
                .what = fmt::format("removes {} of others when it starts again", what),
                .why = "an upgrade of systemd takes the agent's away; they are back within ten "
                       "seconds, and until then pods lose packets",
                .remedy = "printf '[Network]\\nManageForeignRoutes=no\\n"
                          "ManageForeignRoutingPolicyRules=no\\n' > "
                          "/etc/systemd/networkd.conf.d/90-spoke.conf (mkdir -p its directory); "
                          "systemctl restart systemd-networkd"});
}

}  // namespace spoke::node_checks
