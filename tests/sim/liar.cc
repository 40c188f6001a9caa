#include "tests/sim/liar.h"

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "fmt/core.h"

namespace spoke::sim {
namespace {

// The first ones of a pool are those that nodes have.
constexpr uint64_t kSpokenOf = 96;

ip::Address Any(const ip::Prefix& range, Random& random) {
  return ip::Advance(range.base(), 4 + random.Below(std::min(kSpokenOf, range.size() - 4)));
}

uint64_t AnyGeneration(Random& random) {
  return random.Chance(0.3) ? uint64_t{1} << 40U : random.Below(60);
}

void AddTo(std::vector<ip::Address>& addresses, const ip::Prefix& range, Random& random) {
  for (uint64_t i = random.Below(5); i > 0; --i) {
    const ip::Address address = Any(range, random);
    if (std::count(addresses.begin(), addresses.end(), address) == 0) addresses.push_back(address);
  }
}

void AddTo(std::vector<ip::Prefix>& ranges, const ip::Prefix& range, Random& random) {
  std::vector<ip::Address> addresses;
  AddTo(addresses, range, random);
  for (const ip::Address& address : addresses) {
    const auto single = ip::Prefix::Of(address, address.bits());
    if (single.ok() && std::count(ranges.begin(), ranges.end(), *single) == 0) {
      ranges.push_back(*single);
    }
  }
}

void AddTo(std::vector<node_api::Assignment>& assignments, const ip::Prefix& range,
           Random& random) {
  for (uint64_t i = random.Below(5); i > 0; --i) {
    const ip::Address address = Any(range, random);
    const bool there =
        std::any_of(assignments.begin(), assignments.end(),
                    [&address](const auto& entry) { return entry.address == address; });
    if (there) continue;
    assignments.push_back(
        {.address = address,
         .generation = AnyGeneration(random),
         .since = absl::FromUnixSeconds(1'800'000'000),
         .lessee = {.container_id = fmt::format("lie-{}", random.Below(1000)), .ifname = "eth0"}});
  }
}

template <typename Entries>
void LeaveOut(Entries& entries, Random& random) {
  if (entries.empty() || !random.Chance(0.4)) return;
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(random.Below(entries.size())));
}

void AddTo(std::vector<node_api::Release>& releases, const ip::Prefix& range, Random& random) {
  std::vector<ip::Address> addresses;
  AddTo(addresses, range, random);
  for (const ip::Address& address : addresses) {
    const bool there = std::any_of(releases.begin(), releases.end(),
                                   [&](const auto& entry) { return entry.address == address; });
    if (!there) releases.push_back({address, AnyGeneration(random)});
  }
}

}  // namespace

void Twist(node_api::AgentMessage& message, const ip::Prefix& range, Random& random) {
  if (auto* hello = std::get_if<node_api::Hello>(&message)) {
    LeaveOut(hello->in_use, random);
    AddTo(hello->in_use, range, random);
    AddTo(hello->cooldown, range, random);
    if (random.Chance(0.2)) hello->store_token.clear();
    if (random.Chance(0.1)) hello->store_token += "x";
    if (random.Chance(0.2)) hello->node.boot_id += "-or-not";
  } else if (auto* report = std::get_if<node_api::AssignmentReport>(&message)) {
    LeaveOut(report->in_use, random);
    LeaveOut(report->released, random);
    AddTo(report->in_use, range, random);
    AddTo(report->released, range, random);
    AddTo(report->cooled, range, random);
  } else if (auto* answer = std::get_if<node_api::ReclaimAnswer>(&message)) {
    if (random.Chance(0.5)) {
      answer->agreed.insert(answer->agreed.end(), answer->denied.begin(), answer->denied.end());
      answer->denied.clear();
    }
    AddTo(answer->agreed, range, random);
  } else if (auto* inventory = std::get_if<node_api::Inventory>(&message)) {
    LeaveOut(inventory->held, random);
    LeaveOut(inventory->in_use, random);
    AddTo(inventory->held, range, random);
    AddTo(inventory->in_use, range, random);
  } else if (auto* demand = std::get_if<node_api::Demand>(&message)) {
    demand->waiting["default"] = static_cast<uint32_t>(random.Below(5000));
  }
}

std::optional<node_api::AgentMessage> MakeUp(const ip::Prefix& range, Random& random) {
  switch (random.Below(10)) {
    case 0:
      return node_api::ConflictReport{.address = Any(range, random), .other_mac = std::nullopt};
    case 1: {
      node_api::ReclaimAnswer answer{.id = random.Below(8), .agreed = {}, .denied = {}};
      AddTo(answer.agreed, range, random);
      return answer;
    }
    case 2: {
      node_api::Inventory inventory{.id = random.Below(8), .held = {}, .in_use = {}};
      AddTo(inventory.held, range, random);
      return inventory;
    }
    case 3:
      return node_api::Demand{.waiting = {{"default", static_cast<uint32_t>(random.Below(5000))}}};
    default:
      return std::nullopt;
  }
}

}  // namespace spoke::sim
