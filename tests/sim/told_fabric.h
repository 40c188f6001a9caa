// A cloud that takes the addresses it is told, and lists the machines that exist.
#pragma once

#include <map>
#include <vector>

#include "tests/sim/fabric.h"

namespace spoke::sim {

class ToldFabric final : public Fabric {
 public:
  explicit ToldFabric(Basis& basis) : basis_(basis) {}

  std::optional<CloudMachine> AddMachine(const std::string& node, uint64_t number) override;
  void RemoveMachine(const NodeKey& machine) override;
  std::unique_ptr<ipam::Cloud> NewClient(CloudClientEdges edges) override;

  // Makes the NIC hold just what is configured. Errors: kFailedPrecondition (no such machine).
  absl::StatusOr<ipam::NicAddresses> Apply(const ipam::NicRequest& desired);
  std::vector<ipam::NicAddresses> List() const;

 private:
  Basis& basis_;
  std::map<NodeKey, ipam::NicAddresses> machines_;
};

// Calls take time, fail, and lose their answers.
class ToldCloud final : public ipam::Cloud {
 public:
  ToldCloud(Basis& basis, ToldFabric& fabric, CloudClientEdges edges)
      : basis_(basis), fabric_(fabric), edges_(std::move(edges)) {}

  void Request(ipam::NicRequest desired) override;
  void List(ipam::CloudListed listed) override;
  absl::Duration listing_period() const override { return absl::Seconds(60); }
  std::string Describe() const override { return "simulated"; }
  void Stop() override {}

 private:
  void BeginNext(const NodeKey& node);
  void CarryOut(const NodeKey& node, const ipam::NicRequest& request);
  absl::Duration Delay();

  Basis& basis_;
  ToldFabric& fabric_;
  const CloudClientEdges edges_;
  std::map<NodeKey, ipam::NicRequest> waiting_;
  std::map<NodeKey, bool> under_way_;
  bool was_short_ = false;  // Two short listings in a row are more than anybody could see through.
};

}  // namespace spoke::sim
