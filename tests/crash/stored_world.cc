#include "tests/crash/stored_world.h"

#include <memory>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/store/record_codec.h"
#include "ipam-server/store/sqlite_store.h"
#include "lib/base/status.h"

namespace spoke::crash {
namespace {

using swarm::SimNode;

// Returns the name that the server uses.
std::string_view NameOf(SimNode::Use use) {
  switch (use) {
    case SimNode::Use::kAvailable:
      return "available";
    case SimNode::Use::kInUse:
      return "in_use";
    case SimNode::Use::kCooldown:
      return "cooldown";
    case SimNode::Use::kWithdrawn:
      return "given up";
    case SimNode::Use::kGone:
      break;
  }
  return "gone";
}

// The comparison of one node.
class Comparison {
 public:
  Comparison(const ipam::NodeRecord& record, const SimNode& node, Moment moment,
             std::vector<std::string>& out)
      : record_(record), node_(node), moment_(moment), out_(out) {}

  void Run() {
    if (record_.session_epoch < node_.session_epoch()) {
      Say(fmt::format("session epoch {} was told, {} is stored", node_.session_epoch(),
                      record_.session_epoch));
    }
    size_t held = 0;
    for (const SimNode::Held& address : node_.held()) {
      if (address.use == SimNode::Use::kGone) continue;
      if (address.use == SimNode::Use::kWithdrawn && moment_ == Moment::kKilled) continue;
      ++held;
      CompareAddress(address);
    }
    // An agent that has not been told yet may hold fewer.
    if (moment_ == Moment::kAtRest && held != record_.configurations.size()) {
      Say(fmt::format("the agent holds {} addresses, {} are stored", held,
                      record_.configurations.size()));
    }
  }

 private:
  // The agent was told that it has it, and has not agreed to be rid of it.
  void CompareAddress(const SimNode::Held& held) {
    const std::string address = held.address.ToString();
    const ipam::Configuration* configuration = record_.Holding(held.address);
    if (configuration == nullptr) return Say(fmt::format("{} is forgotten", address));
    if (configuration->state != ipam::AddressState::kAttached) {
      return Say(fmt::format("{} is stored as {}, and the agent was told that it is attached",
                             address, ipam::NameOf(configuration->state, ipam::Use::kAvailable)));
    }
    const ipam::Slot& slot = configuration->At(held.address);
    if (slot.generation > node_.last_generation()) {
      Say(fmt::format("{} has generation {}, which the agent has not come to", address,
                      slot.generation));
    }
    if (!held.settled) {
      if (moment_ == Moment::kAtRest) Say(fmt::format("{} was never acknowledged", address));
      return;  // What the agent has said of it may or may not have come.
    }
    const std::string_view stored = ipam::NameOf(configuration->state, slot.use);
    const bool in_use = held.use == SimNode::Use::kInUse;
    if (in_use != (slot.use == ipam::Use::kInUse) ||
        (moment_ == Moment::kAtRest && NameOf(held.use) != stored)) {
      return Say(
          fmt::format("{}: the agent has it {}, generation {}, and that was acknowledged; "
                      "stored is {}, generation {}",
                      address, NameOf(held.use), held.generation, stored, slot.generation));
    }
    const std::string container = swarm::ContainerOf(node_.node(), held.generation);
    if (in_use && (slot.generation != held.generation || slot.lessee->container_id != container)) {
      Say(fmt::format("{} is assigned to {}, generation {}; stored is {}, generation {}", address,
                      container, held.generation, slot.lessee->container_id, slot.generation));
    }
  }

  void Say(const std::string& text) {
    out_.push_back(fmt::format("{}: {}", record_.key.name, text));
  }

  const ipam::NodeRecord& record_;
  const SimNode& node_;
  const Moment moment_;
  std::vector<std::string>& out_;
};

void FindHeldTwice(const StoredNodes& nodes, std::vector<std::string>& out) {
  std::map<ip::Address, std::string> holders;
  for (const auto& [name, record] : nodes) {
    for (const auto& [base, configuration] : record.configurations) {
      for (size_t i = 0; i < configuration.slots.size(); ++i) {
        const ip::Address address = configuration.AddressAt(i);
        const auto [it, inserted] = holders.emplace(address, name);
        if (inserted) continue;
        out.push_back(
            fmt::format("{} is stored for {} and {}", address.ToString(), it->second, name));
      }
    }
  }
}

}  // namespace

absl::StatusOr<StoredNodes> ReadStore(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ipam::Store> store, ipam::OpenSqliteStore(path));
  StoredNodes nodes;
  absl::Status first_error;
  RETURN_IF_ERROR(
      store->List(ipam::kNodeKeyPrefix, [&](std::string_view, const ipam::StoredRecord& stored) {
        auto record = ipam::DecodeNode(stored.value);
        first_error.Update(record.status());
        if (!record.ok()) return;
        std::string name = record->key.name;
        if (!nodes.emplace(std::move(name), *std::move(record)).second) {
          first_error.Update(absl::DataLossError("two records have one name"));
        }
      }));
  RETURN_IF_ERROR(first_error);
  return nodes;
}

std::vector<std::string> FindDisagreements(const StoredNodes& nodes, swarm::Swarm& swarm,
                                           Moment moment) {
  std::vector<std::string> out;
  FindHeldTwice(nodes, out);
  for (size_t i = 0; i < swarm.size(); ++i) {
    swarm.agent(i).WithNode([&](const SimNode& node) {
      const std::string name = swarm::NamesOf(node.node()).name;
      const auto record = nodes.find(name);
      if (record != nodes.end()) {
        Comparison(record->second, node, moment, out).Run();
      } else if (node.session_epoch() != 0) {
        out.push_back(fmt::format("{} is forgotten", name));
      }
      return true;
    });
  }
  return out;
}

}  // namespace spoke::crash
