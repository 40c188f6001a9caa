// A cloud that puts on NICs what servers have chosen, at once and as a whole.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/cloud/provider.h"

namespace spoke::sim {

// Not thread-safe.
class PlainProvider final : public Provider {
 public:
  explicit PlainProvider(Edges edges) : edges_(std::move(edges)) {}

  Vm AddVm(const std::string& node, size_t index, Random& random) override;
  void RemoveVm(const std::string& vm) override { edges_.fabric.RemoveVm(vm); }
  void Reimage(const std::string& vm) override { Overwrite(vm, {}); }
  void TakeOff(const std::string& vm, size_t which) override;
  void WriteBack(const std::string& vm, absl::Duration after) override;
  std::unique_ptr<ipam::Cloud> Connect(const Client& client, ipam::CloudAnswer answer) override;

 private:
  void Overwrite(const std::string& vm, const std::vector<ipam::IpConfiguration>& entries);

  const Edges edges_;
};

}  // namespace spoke::sim
