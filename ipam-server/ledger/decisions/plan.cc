#include "ipam-server/ledger/decisions/plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/promises.h"
#include "ipam-server/ledger/targets.h"
#include "ipam-server/release/release_plan.h"

namespace spoke::ipam {
namespace {

// The entry has a name before the cloud hears of it, so that an answer that is lost costs nothing:
// what the NIC says under the name is the answer.
void Want(Fleet& fleet, NodeRecord& record, size_t pool, Effects& effects, absl::Time now) {
  const AddressPool& from = fleet.ledger.pools()[pool].pool;
  const auto block = static_cast<int>(from.spec().block_length);
  const WantedEntry wanted{.pool = from.spec().name,
                           .family = from.spec().cidr.family(),
                           .prefix_length = block != 0 ? block : from.spec().cidr.base().bits(),
                           .since = now};
  fleet.ledger.SetWanted(record, NextName(fleet, record, block), wanted);
  effects.changed.insert(record.key);
  effects.attach.insert(record.key);
  if (!fleet.reservations.all().empty()) {
    fleet.reservations.OnDelivered(record.key.name, wanted.family,
                                   static_cast<uint32_t>(wanted.size()));
  }
}

// Pools are drawn from in the order of the configuration.
void Grow(Fleet& fleet, NodeRecord& record, const GroupState& state, Effects& effects,
          absl::Time now) {
  uint64_t have = state.counts.staying();
  for (const size_t index : state.group->pools) {
    if (have >= state.target) return;
    const AddressPool& pool = fleet.ledger.pools()[index].pool;
    uint64_t left = FreeFor(fleet, record, index);
    while (have < state.target && left >= pool.unit_size()) {
      const size_t entries = record.configurations.size() + record.wanted.size();
      if (entries >= fleet.policy.nic_configurations) return;
      if (fleet.policy.cloud_chooses) {
        Want(fleet, record, index, effects, now);
      } else {
        Configuration* const taken = fleet.ledger.Take(record, index, now);
        if (taken == nullptr) break;
        BeginAttaching(fleet, record, *taken, effects);
      }
      have += pool.unit_size();
      left -= pool.unit_size();
    }
  }
}

// What the node has of one group's pools and is not losing, and which ranges these are.
struct GroupHoldings {
  NodeHoldings holdings;
  std::vector<ip::Prefix> ranges;
  std::vector<size_t> pools;  // Of each of them.
};

GroupHoldings HoldingsOf(const Fleet& fleet, const NodeRecord& record, const GroupState& state,
                         const Scarcity* scarcity) {
  GroupHoldings out{.holdings = {.target = state.target}};
  const std::vector<size_t>& of_group = state.group->pools;
  for (const auto& [base, configuration] : record.configurations) {
    const size_t pool = fleet.ledger.pools().IndexOf(configuration.pool);
    if (configuration.state == AddressState::kDetaching ||
        std::find(of_group.begin(), of_group.end(), pool) == of_group.end()) {
      continue;
    }
    // What is withheld is asked for by itself, and is none of what a node that stays has too much.
    const uint64_t of_use = CountOfUse(fleet, configuration).staying();
    if (of_use == 0 && !IsLeaving(fleet, record)) continue;
    out.holdings.units.push_back(
        {.size = static_cast<uint32_t>(of_use == 0 ? configuration.slots.size() : of_use),
         .available = configuration.state == AddressState::kAttached && configuration.IsAvailable(),
         .available_since = configuration.AvailableSince(),
         .denied_until = configuration.denied_until,
         .scarce = scarcity != nullptr && scarcity->Of({pool}) > 0});
    out.ranges.push_back(configuration.range);
    out.pools.push_back(pool);
  }
  if (scarcity != nullptr) out.holdings.wanted = scarcity->Of(of_group);
  return out;
}

// What a node has too much of, and how much of that the breaker has not been asked about.
struct Surplus {
  std::vector<ip::Prefix> ranges;
  uint64_t unjudged = 0;
};

// What goes sooner since others wait for it is as much as the breaker lets go without a freeze.
Surplus SurplusOf(const Fleet& fleet, const NodeRecord& record, const Review& review, bool leaving,
                  absl::Time now) {
  Surplus out;
  Scarcity* const scarcity =
      review.scarcity == nullptr || review.scarcity->missing.empty() ? nullptr : review.scarcity;
  for (const GroupState& state : GroupStatesOf(fleet, record)) {
    GroupHoldings group = HoldingsOf(fleet, record, state, scarcity);
    group.holdings.jitter = review.jitter;
    group.holdings.draining = leaving;
    if (group.holdings.wanted > 0) {
      const uint64_t may_go = fleet.breaker.Headroom(AddressesHeld(fleet), now);
      group.holdings.wanted =
          std::min(group.holdings.wanted, may_go - std::min(may_go, out.unjudged));
    }
    for (const size_t index : PlanRelease(fleet.policy.release, group.holdings, now)) {
      const ip::Prefix& range = group.ranges[index];
      out.ranges.push_back(range);
      if (IsJudged(fleet, range, now)) continue;
      out.unjudged += range.size();
      if (scarcity != nullptr) scarcity->Subtract(group.pools[index], range.size());
    }
  }
  return out;
}

void Shrink(Fleet& fleet, NodeRecord& record, const Review& review, Effects& effects,
            absl::Time now) {
  const bool draining = record.mode == NodeMode::kDraining;
  const bool leaving = draining || IsEnding(fleet, record.key);
  if (leaving && !record.wanted.empty()) {
    StopWantingAll(fleet, record, effects);
    // The cloud is asked what was given nevertheless, to give back what is of no use.
    effects.attach.insert(record.key);
  }
  if (!review.connected) return;
  Surplus surplus = SurplusOf(fleet, record, review, leaving, now);
  if (surplus.ranges.empty() || fleet.breaker.frozen()) return;
  // Many agents may say at once that their machines are about to be deleted. What may go without a
  // freeze does; the rest is free again when the machines are gone.
  if (leaving && !draining &&
      surplus.unjudged > fleet.breaker.Headroom(AddressesHeld(fleet), now)) {
    return;
  }
  // Draining is what an operator wants of this node; the breaker guards against what nobody wants.
  // What was asked for a moment before, and is not answered, was judged then.
  if (!draining) {
    if (surplus.unjudged > 0 && !MayFree(fleet, surplus.unjudged, record.key, effects, now)) return;
    for (const ip::Prefix& range : surplus.ranges) {
      if (!IsJudged(fleet, range, now)) fleet.judged.insert_or_assign(range, now);
    }
  }
  effects.reclaim.emplace(record.key, std::move(surplus.ranges));
}

// The agent went without an answer: what it was asked for has not gone.
void TakeBackUnanswered(Fleet& fleet, const NodeRecord& record, Effects& effects, absl::Time now) {
  if (fleet.judged.empty()) return;
  for (const auto& [base, configuration] : record.configurations) {
    TakeBack(fleet, configuration.range, effects, now);
  }
}

}  // namespace

Effects PlanNode(Fleet& fleet, const NodeKey& key, absl::Time now) {
  Effects effects;
  NodeRecord* const node = fleet.ledger.Find(key);
  if (fleet.hold.active || node == nullptr || node->mode != NodeMode::kActive) return effects;
  if (IsEnding(fleet, key)) return effects;
  // What its NIC has already, from the scale set's model say, may be all it needs.
  if (fleet.policy.cloud_chooses && !node->nic_read) return effects;
  for (const GroupState& state : GroupStatesOf(fleet, *node)) {
    Grow(fleet, *node, state, effects, now);
  }
  return effects;
}

Effects ReviewNode(Fleet& fleet, const NodeKey& key, const Review& review, absl::Time now) {
  Effects effects = PlanNode(fleet, key, now);
  NodeRecord* const node = fleet.ledger.Find(key);
  if (fleet.hold.active || node == nullptr || node->mode == NodeMode::kFrozen ||
      node->mode == NodeMode::kRetired) {
    return effects;
  }
  NodeRecord& record = *node;
  if (!review.connected) TakeBackUnanswered(fleet, record, effects, now);
  Shrink(fleet, record, review, effects, now);
  if (review.connected) AskForWithheld(fleet, record, effects, now);
  const bool suspect =
      !fleet.off_nic.empty() &&
      std::any_of(record.configurations.begin(), record.configurations.end(),
                  [&](const auto& entry) { return fleet.off_nic.contains(entry.first); });
  if (suspect || (fleet.policy.cloud_chooses && !record.nic_read)) effects.attach.insert(key);
  return effects;
}

uint64_t AddressesHeld(const Fleet& fleet) {
  uint64_t held = 0;
  for (const PoolEntry& entry : fleet.ledger.pools()) held += entry.pool.held();
  return held;
}

uint64_t AddressesHeld(const NodeRecord& record) {
  uint64_t held = 0;
  for (const auto& [base, configuration] : record.configurations) {
    held += configuration.range.size();
  }
  return held;
}

bool MayFree(Fleet& fleet, uint64_t would_free, const NodeKey& node, Effects& effects,
             absl::Time now) {
  const bool was_frozen = fleet.breaker.frozen();
  const auto verdict = fleet.breaker.Judge(AddressesHeld(fleet), would_free, now);
  // What may go counts against the window, after a restart as well.
  effects.breaker = effects.breaker || verdict.allowed || fleet.breaker.frozen() != was_frozen;
  if (fleet.breaker.frozen() != was_frozen) {
    effects.findings.push_back({Finding::Kind::kFrozen, node, ip::Address(), verdict.reason});
  }
  return verdict.allowed;
}

bool IsJudged(const Fleet& fleet, const ip::Prefix& range, absl::Time now) {
  const auto judged = fleet.judged.find(range);
  return judged != fleet.judged.end() && fleet.breaker.Counts(judged->second, now);
}

void TakeBack(Fleet& fleet, const ip::Prefix& range, Effects& effects, absl::Time now) {
  const bool counts = IsJudged(fleet, range, now);
  fleet.judged.erase(range);
  if (!counts) return;
  fleet.breaker.GiveBack(range.size());
  effects.breaker = true;
}

}  // namespace spoke::ipam
