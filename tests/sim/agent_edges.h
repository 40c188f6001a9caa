// The agent's edges to its node: its journal and its kernel. Each step at which it touches what
// outlives it is one at which it can die.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netagent/journal/journal.h"
#include "netagent/links/links.h"
#include "tests/sim/node_state.h"
#include "tests/sim/process.h"

namespace spoke::sim {

// Keeps the frames of the real journal on the node's tmpfs. A death while a frame is written leaves
// a part of it.
class SimJournal final : public netagent::Journal {
 public:
  SimJournal(Basis& basis, Process& process, NodeState& node)
      : basis_(basis), process_(process), node_(node) {}

  absl::Status Append(const netagent::Event& event) override;
  absl::Status Compact(const std::vector<netagent::Event>& events) override;
  size_t size() const override { return node_.journal.size(); }

  // What a restart reads.
  static std::vector<netagent::Event> Replay(Basis& basis, NodeState& node);

 private:
  bool IsLost(const netagent::Event& event) const;

  Basis& basis_;
  Process& process_;
  NodeState& node_;
};

// The node's kernel, which refuses at times. Tells the judge which pods have which addresses.
class SimLinks final : public netagent::Links {
 public:
  SimLinks(Basis& basis, Process& process, NodeState& node)
      : basis_(basis), process_(process), node_(node) {}

  absl::StatusOr<std::map<std::string, netagent::HostSide>> Read() override {
    return node_.kernel->Read();
  }
  absl::StatusOr<netagent::PodSide> ReadPod(const netagent::AttachSpec& spec,
                                            int pod_netns) override {
    return node_.kernel->ReadPod(spec, pod_netns);
  }
  uint32_t IndexOf(const std::string& host_link) const override {
    return node_.kernel->IndexOf(host_link);
  }
  netagent::HostSide Recall(const std::string& host_link) const override {
    return node_.kernel->Recall(host_link);
  }
  absl::Status Apply(const netagent::AttachSpec& spec, const netagent::LinkOperations& plan,
                     std::optional<int> pod_netns) override;
  absl::Status SetUnreachable(const std::vector<ip::Address>& addresses) override {
    return node_.kernel->SetUnreachable(addresses);
  }
  absl::StatusOr<uint32_t> SetNicTable(const ip::MacAddress& nic) override {
    return node_.kernel->SetNicTable(nic);
  }
  absl::StatusOr<netagent::Nic> ReadNic(const std::string& name) override {
    return node_.kernel->ReadNic(name);
  }

 private:
  Basis& basis_;
  Process& process_;
  NodeState& node_;
};

}  // namespace spoke::sim
