#include "ipam-server/cloud/static_cloud.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ipam {
std::string FormatAttachments(const std::map<NodeKey, NicAddresses>& nics) {
  std::vector<std::tuple<ip::Prefix, ip::MacAddress, std::string>> rows;
  for (const auto& [node, nic] : nics) {
    for (const IpConfiguration& configuration : nic.configurations) {
      rows.emplace_back(configuration.range, nic.nic_mac, node.name);
    }
  }
  std::sort(rows.begin(), rows.end());
  std::string text = "# address\tnic\tnode\n";
  for (const auto& [range, mac, node] : rows) {
    text += fmt::format("{}\t{}\t{}\n", range.ToString(), mac.ToString(), node);
  }
  return text;
}

absl::Status StaticCloud::Begin(const std::vector<NicAddresses>& initial) {
  std::map<NodeKey, NicAddresses> nics;
  for (const NicAddresses& nic : initial) {
    nics[nic.node] = nic;
    std::sort(nics[nic.node].configurations.begin(), nics[nic.node].configurations.end());
  }
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Publish(nics));
  nics_ = std::move(nics);
  return absl::OkStatus();
}

absl::StatusOr<NicAddresses> StaticCloud::Apply(const NicRequest& desired) {
  absl::MutexLock lock(&mutex_);
  const auto existing = nics_.find(desired.node);
  NicAddresses target = desired.Configured();
  if (existing != nics_.end() && existing->second == target) return target;
  std::map<NodeKey, NicAddresses> replaced = TakeVmsNamed(desired.node);
  nics_[desired.node] = target;
  const absl::Status published = Publish(nics_);
  if (published.ok()) return target;
  // What the file does not say has not happened, so a failed publication is taken back.
  nics_.erase(desired.node);
  nics_.merge(replaced);
  return published;
}

// Names are unique here, so a VM with the name of another has replaced it, NIC and all.
std::map<NodeKey, NicAddresses> StaticCloud::TakeVmsNamed(const NodeKey& node) {
  std::map<NodeKey, NicAddresses> taken;
  auto it = nics_.lower_bound({node.name, ""});
  while (it != nics_.end() && it->first.name == node.name) {
    taken.insert(nics_.extract(it++));
  }
  return taken;
}

absl::StatusOr<std::vector<NicAddresses>> StaticCloud::List() {
  absl::MutexLock lock(&mutex_);
  std::vector<NicAddresses> nics;
  for (const auto& [node, nic] : nics_) nics.push_back(nic);
  return nics;
}

absl::Status StaticCloud::Publish(const std::map<NodeKey, NicAddresses>& nics) const {
  if (attachments_file_.empty()) return absl::OkStatus();
  // The file is not synced: after a power cut the server writes it anew from its store.
  return base::Annotate(
      os::WriteFileAtomic(attachments_file_, FormatAttachments(nics), os::Durability::kVisible),
      "publish attachments");
}

}  // namespace spoke::ipam
