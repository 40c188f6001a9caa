// The fabric: which addresses are on the NIC of which machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ipam-server/cloud/nic_request.h"

namespace spoke::sim {

// Not thread-safe.
class Fabric {
 public:
  // Called with what has left a NIC, once it has.
  using OnDetached = std::function<void(const std::string& vm, const ip::Prefix& range)>;
  void Watch(OnDetached on_detached) { on_detached_ = std::move(on_detached); }

  // `instance`: the cloud's own name of the VM; empty where it has none.
  void AddVm(const ipam::NodeKey& node, const ip::MacAddress& mac, std::string instance = {});
  void RemoveVm(const std::string& vm);
  bool Has(const std::string& vm, const ip::Address& address) const;
  bool Exists(const std::string& vm) const { return nics_.contains(vm); }

  // The cloud makes the NIC hold `configurations`, but for addresses that another NIC has.
  void Change(const std::string& vm, std::vector<ipam::IpConfiguration> configurations);
  // Makes the NIC hold what is desired, but for addresses that another NIC has. `order`: an
  // operation is refused once a later one has been carried out there, as by its ETag. Errors:
  // kNotFound (no such VM), kAborted (too late).
  absl::StatusOr<ipam::NicAddresses> Apply(const ipam::NicRequest& desired, uint64_t order);
  uint64_t NextOrder() { return ++last_order_; }
  std::vector<ipam::NicAddresses> List() const;
  const ipam::NicAddresses* Find(const std::string& vm) const;
  // Another writer than ours makes the NIC hold `configurations`, but for addresses that another
  // NIC has. Our operations that are under way there are refused. Nobody is called. Returns what
  // has left the NIC.
  std::vector<ip::Prefix> Overwrite(const std::string& vm,
                                    std::vector<ipam::IpConfiguration> configurations);

 private:
  struct Nic {
    ipam::NicAddresses holds;
    uint64_t order = 0;
  };
  std::vector<ip::Prefix> Replace(const std::string& vm, std::vector<ipam::IpConfiguration> next);

  std::map<std::string, Nic> nics_;  // Keyed by VM id.
  // The VM, keyed by first address.
  absl::flat_hash_map<ip::Address, std::string, ip::AddressHash> holders_;
  uint64_t last_order_ = 0;
  OnDetached on_detached_;
};

}  // namespace spoke::sim
