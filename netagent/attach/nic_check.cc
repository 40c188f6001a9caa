#include "netagent/attach/nic_check.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/core.h"

namespace spoke::netagent {

NicCheck::NicCheck(std::string device, std::set<ip::Address> secondaries, const Edges& edges,
                   Attachments& attachments)
    : device_(std::move(device)),
      secondaries_(std::move(secondaries)),
      edges_(edges),
      attachments_(attachments) {}

void NicCheck::Tick() {
  if (edges_.clock.Now() >= next_) Look();
}

void NicCheck::Look() {
  next_ = edges_.clock.Now() + kNicLook;
  const auto nic = edges_.links.ReadNic(device_);
  if (!nic.ok()) {
    if (!unreadable_) {
      edges_.log.Error("nic_unreadable", {{"nic", device_}, {"error", nic.status()}});
    }
    unreadable_ = true;
    return;
  }
  unreadable_ = false;
  const std::vector<ip::Address> attached = attachments_.assignments().Attached();
  std::set<ip::Address> found;
  for (const ip::Address& address : nic->addresses) {
    if (secondaries_.contains(address) ||
        std::binary_search(attached.begin(), attached.end(), address)) {
      found.insert(address);
    }
  }
  attachments_.OnNicAddresses({nic->addresses.begin(), nic->addresses.end()});
  for (const ip::Address& address : found) {
    if (reported_.contains(address)) continue;
    edges_.log.Error(
        "address_on_nic",
        {{"address", address.ToString()},
         {"device", device_},
         {"remedy", fmt::format("keep it from coming back (cloud-init: datasource, Azure, "
                                "apply_network_config_for_secondary_ips: false in a file of "
                                "/etc/cloud/cloud.cfg.d), then: ip address delete {}/PREFIX dev {}",
                                address.ToString(), device_)}});
  }
  for (const ip::Address& address : reported_) {
    if (found.contains(address)) continue;
    edges_.log.Info("address_off_nic", {{"address", address.ToString()}, {"device", device_}});
  }
  reported_ = std::move(found);
}

}  // namespace spoke::netagent
