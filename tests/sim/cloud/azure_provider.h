// Azure: the simulated Resource Manager on the fleet's clock. What is on its NICs is mirrored into
// the fabric as it changes, and the servers' real clients speak to it in HTTP messages.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/http/message.h"
#include "tests/azure-sim/arm_model.h"
#include "tests/sim/cloud/provider.h"

namespace spoke::sim {

// The prefix of the names of IP configurations that are the servers'.
inline constexpr const char* kOurPrefix = "spoke-";

// Not thread-safe.
class AzureProvider final : public Provider {
 public:
  // `subnets`: what the subnet of all NICs has, of IPv4, and of IPv6 if there is a second.
  // `blocks`: whether servers may ask for blocks of IPv4. `seed` decides which of Azure's
  // undocumented ways it has.
  AzureProvider(Edges edges, const std::vector<ip::Prefix>& subnets, bool blocks, uint64_t seed);

  Vm AddVm(const std::string& node, size_t index, Random& random) override;
  void RemoveVm(const std::string& vm) override;
  void Reimage(const std::string& vm) override;
  void TakeOff(const std::string& vm, size_t which) override;
  void WriteBack(const std::string& vm, absl::Duration after) override;
  std::unique_ptr<ipam::Cloud> Connect(const Client& client, ipam::CloudAnswer answer) override;

  // Answers a request that arrives now, of the identity `principal`.
  http::Response Handle(http::Request request, const std::string& principal);

 private:
  azure_sim::ScaleSet& scale_set();
  std::string UrlOf(const azure_sim::Instance& instance) const;
  azure_sim::Json* ConfigurationsOf(azure_sim::Json& resource) const;
  azure_sim::Json ReadAsAnother(const std::string& vm);
  void WriteAsAnother(const std::string& vm, const azure_sim::Json& resource, int tries);
  void Settle();
  void Mirror();
  void SetKnobs();

  const Edges edges_;
  const bool blocks_;
  const std::string subnet_id_;
  const bool flexible_;
  azure_sim::Knobs own_;  // As the seed has it, without faults.
  std::unique_ptr<azure_sim::ArmModel> arm_;
  std::map<std::string, azure_sim::Instance*> vms_;  // Those that are there, by VM id.
  std::set<std::string> operations_of_others_;
  uint64_t mirrored_ = 0;  // The version of the wire that the fabric has.
  Alarm alarm_;
};

}  // namespace spoke::sim
