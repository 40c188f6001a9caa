// Microsoft.Network: NICs of scale sets (to read only), NICs of their own, subnets and VNets. Pure;
// not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/http/message.h"
#include "tests/azure-sim/backend.h"

namespace spoke::azure_sim {

class Network {
 public:
  explicit Network(Backend& backend) : backend_(backend) {}

  // Handles paths below "/providers/Microsoft.Network", as Compute::Handle() does.
  http::Response Handle(Call& call, ResourceGroup* group, size_t rest);

  // Handles paths below a scale set that Network answers, though Compute's name is in them.
  http::Response HandleBelowScaleSet(Call& call, ResourceGroup& group);

  // Another writer adds a backend pool to the NIC's primary IP configuration.
  void WriteAsForeigner(Nic& nic);

 private:
  // -- NICs of scale sets (network_scale_sets.cc).
  http::Response ListOfSet(Call& call, ScaleSet& set);
  http::Response ListOfInstance(Call& call, Instance& instance);
  http::Response OneOfInstance(Call& call, Instance& instance);

  // -- NICs of their own (network_nics.cc).
  http::Response ListNics(Call& call, ResourceGroup* group);
  http::Response OneNic(Call& call, ResourceGroup& group);
  http::Response GetNic(Call& call, Nic& nic, size_t below);
  http::Response PutNic(Call& call, ResourceGroup& group, Nic* nic);
  http::Response PatchNic(Call& call, Nic& nic);
  http::Response DeleteNic(Call& call, ResourceGroup& group, Nic& nic);
  std::optional<http::Response> RefuseWrite(Call& call, const Nic* nic);
  std::optional<http::Response> Preempt(Nic& nic, absl::Time now);
  // Writes a NIC, which takes effect at once, or runs on an attached NIC for a while.
  http::Response Write(Call& call, Nic& nic, std::vector<IpConfig> wanted, bool created);
  void Carry(Nic& nic, std::vector<IpConfig> wanted, const std::string& operation,
             const Backend::Fate& fate);

  // -- VNets and subnets (network_subnets.cc).
  http::Response Networks(Call& call, ResourceGroup* group, size_t rest);
  http::Response OneNetwork(Call& call, ResourceGroup& group, VirtualNetwork& network);
  http::Response WriteNetwork(Call& call, const ResourceGroup& group, VirtualNetwork& network);
  http::Response Subnets(Call& call, ResourceGroup& group, VirtualNetwork& network);
  http::Response PutSubnet(Call& call, ResourceGroup& group, VirtualNetwork& network);
  http::Response Usages(Call& call, VirtualNetwork& network);
  std::vector<std::string> IpConfigurationsOf(const Subnet& subnet, size_t most);

  std::optional<http::Response> Ask(Call& call, std::string_view subscription,
                                    std::string_view region);
  // Answers the list of NICs as a page, with what faults do to it.
  Json NicJson(Renderer& renderer, const Nic& nic);

  Backend& backend_;
};

}  // namespace spoke::azure_sim
