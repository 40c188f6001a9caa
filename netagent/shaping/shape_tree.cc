#include "netagent/shaping/shape_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/time/time.h"
#include "lib/base/max_min.h"
#include "netagent/shaping/shaping_plan.h"

namespace spoke::netagent {
namespace {

constexpr uint64_t kBurstsASecond = 1000;
constexpr units::ByteCount kMinBurst{16UL << 10};
// The longest burst in seconds: the kernel counts the time that a burst takes in 64 ns, and in 32
// bits: 274 s.
constexpr uint64_t kMaxBurstSeconds = 128;
constexpr units::ByteCount kMaxBurst{64UL << 20};
// The factor within which two levels are the same: rounding makes no larger difference.
constexpr double kSameLevel = 1.02;

template <typename Unit>
double ToDouble(units::Quantity<Unit> quantity) {
  return static_cast<double>(quantity.count());
}

template <typename Unit>
bool Near(units::Quantity<Unit> fresh, units::Quantity<Unit> former, double slack = kSlack) {
  const double before = ToDouble(former);
  return !former.is_zero() && std::abs(ToDouble(fresh) - before) < slack * before;
}

units::ByteCount BurstOf(units::ByteRate rate) {
  const auto burst =
      std::clamp(units::ByteCount(rate.count() / kBurstsASecond), kMinBurst, kMaxBurst);
  if (rate.count() >= kMinBurst.count()) return burst;
  return std::min(burst, units::ByteCount(rate.count() * kMaxBurstSeconds));
}

// Returns what leaves a queue in that time.
units::ByteCount BytesIn(absl::Duration time, units::ByteRate rate) {
  const double bytes = ToDouble(rate) * absl::ToDoubleSeconds(time);
  return units::ByteCount(
      static_cast<uint64_t>(std::clamp(bytes, ToDouble(kMinQueue), ToDouble(kMaxQueue))));
}

class Rater {
 public:
  Rater(const std::vector<ShapeNode>& nodes, const std::map<std::string, ShapeClass>& former)
      : nodes_(nodes), states_(nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (const auto found = former.find(nodes[i].name); found != former.end()) {
        states_[i].former = &found->second;
      }
      if (nodes[i].parent != 0) states_[nodes[i].parent - 1].children.push_back(i);
    }
  }

  std::vector<RatedClass> Rate() {
    for (size_t i = nodes_.size(); i-- > 0;) Gather(i);
    for (size_t i = 0; i < nodes_.size(); ++i) SetCeil(i);
    for (size_t i = nodes_.size(); i-- > 0;) RaiseUnlimited(i);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].parent == 0) TakeCeil(i);
      ShareOut(i);
    }
    std::vector<RatedClass> rated;
    rated.reserve(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) rated.push_back(Finished(i));
    return rated;
  }

 private:
  struct State {
    const ShapeClass* former = nullptr;
    std::vector<size_t> children;
    uint64_t leaves = 0;
    double weight = 0;
    double demand = 0;
    bool limited = false;
    units::ByteRate ceil;
    units::ByteRate rate;
    units::ByteRate expected;
    units::ByteCount quantum = kMinQuantum;
  };

  // Adds up, from the leaves upwards: how many, how heavy, how much they want.
  void Gather(size_t i) {
    const ShapeNode& node = nodes_[i];
    State& state = states_[i];
    if (node.leaf) {
      state.leaves = 1;
      state.weight = std::max<uint32_t>(node.weight, 1);
      state.demand = ToDouble(node.demand);
    }
    if (!node.limit.is_zero()) state.demand = std::min(state.demand, ToDouble(node.limit));
    if (node.parent == 0) return;
    State& parent = states_[node.parent - 1];
    parent.leaves += state.leaves;
    parent.weight += state.weight;
    parent.demand += state.demand;
  }

  void SetCeil(size_t i) {
    const ShapeNode& node = nodes_[i];
    State& state = states_[i];
    const State* parent = node.parent == 0 ? nullptr : &states_[node.parent - 1];
    state.limited = !node.limit.is_zero() || (parent != nullptr && parent->limited);
    if (!state.limited) {
      state.ceil = kUnlimitedRate;
      return;
    }
    state.ceil = units::ByteRate(std::numeric_limits<uint64_t>::max());
    if (!node.limit.is_zero()) {
      state.ceil = std::max({node.limit, kMinLimit, state.leaves * kMinLeafRate});
    }
    if (parent != nullptr && parent->limited) state.ceil = std::min(state.ceil, parent->ceil);
  }

  // Raises the ceil of what is not limited, so that it holds all that is below it.
  void RaiseUnlimited(size_t i) {
    State& state = states_[i];
    if (state.limited) return;
    units::ByteRate sum;
    for (const size_t child : state.children) sum += states_[child].ceil;
    state.ceil = std::max(state.ceil, sum);
  }

  void TakeCeil(size_t i) {
    State& state = states_[i];
    state.rate = state.ceil;
    state.expected = state.ceil;
  }

  // Gives the children of a node that has its rates their rates.
  void ShareOut(size_t i) {
    State& state = states_[i];
    if (state.children.empty()) return;
    SetQuanta(state);
    units::ByteRate ceils;
    for (const size_t child : state.children) {
      ceils += std::min(states_[child].ceil, state.ceil);
    }
    if (!state.limited || ceils <= state.rate) {
      for (const size_t child : state.children) TakeCeil(child);
      return;
    }
    const std::vector<base::Claimant> claimants = ClaimsOn(state);
    double least = 0;
    for (const base::Claimant& claimant : claimants) least += claimant.min;
    const double rate = ToDouble(state.rate);
    const double expected = ToDouble(state.expected);
    const auto shares = base::WeightedMaxMin(std::max(kAssured * rate, least), claimants);
    SetRates(state, claimants, shares);
    const auto hopes = base::WeightedMaxMin(expected, HopesOf(state, claimants));
    for (size_t c = 0; c < claimants.size(); ++c) {
      State& child = states_[state.children[c]];
      // Whoever wants more than it did gets its part by weight, whatever the others want.
      const double part = expected * child.weight / state.weight;
      const double hope = std::max(hopes[c], std::min(part, claimants[c].max));
      child.expected = std::min(units::ByteRate(static_cast<uint64_t>(hope)), child.ceil);
      child.expected = std::max(child.expected, child.rate);
    }
  }

  std::vector<base::Claimant> ClaimsOn(const State& state) const {
    const double part = ToDouble(state.rate) / state.weight;
    std::vector<base::Claimant> claimants;
    for (const size_t i : state.children) {
      const State& child = states_[i];
      const double ceil = ToDouble(child.ceil);
      const double idle =
          std::max(kIdlePart * part * child.weight, ToDouble(child.leaves * kMinLeafRate));
      const double least = std::min(idle, ceil);
      claimants.push_back({.demand = std::max(child.demand, least),
                           .weight = child.weight,
                           .min = least,
                           .max = ceil});
    }
    return claimants;
  }

  // Returns what the children may hope for. Who wants little leaves to the others also what it has
  // as its own.
  std::vector<base::Claimant> HopesOf(const State& state,
                                      std::vector<base::Claimant> claimants) const {
    for (size_t c = 0; c < claimants.size(); ++c) {
      claimants[c].demand = states_[state.children[c]].demand;
      claimants[c].min = 0;
    }
    return claimants;
  }

  // Sets the rates. Children that get less than they want share by weight: their rates stay only
  // all together.
  void SetRates(const State& state, const std::vector<base::Claimant>& claimants,
                const std::vector<double>& shares) {
    std::vector<size_t> sharing;
    units::ByteRate sum;
    for (size_t c = 0; c < claimants.size(); ++c) {
      State& child = states_[state.children[c]];
      child.rate = units::ByteRate(std::max<uint64_t>(static_cast<uint64_t>(shares[c]), 1));
      const double most = std::min(claimants[c].demand, claimants[c].max);
      if (shares[c] < most * 0.999 && shares[c] > claimants[c].min * 1.001) sharing.push_back(c);
    }
    std::vector<units::ByteRate> kept;
    const bool keep_sharing = MayKeep(state, sharing);
    for (size_t c = 0; c < claimants.size(); ++c) {
      const State& child = states_[state.children[c]];
      const bool shares_level = std::binary_search(sharing.begin(), sharing.end(), c);
      const bool keep = shares_level
                            ? keep_sharing
                            : child.former != nullptr && Near(child.rate, child.former->rate);
      kept.push_back(keep
                         ? std::clamp(child.former->rate,
                                      std::min(child.leaves * kMinLeafRate, child.ceil), child.ceil)
                         : child.rate);
      sum += kept.back();
    }
    for (size_t c = 0; c < claimants.size(); ++c) {
      State& child = states_[state.children[c]];
      child.rate = sum <= state.rate ? kept[c] : std::min(kept[c], child.rate);
    }
  }

  bool MayKeep(const State& state, const std::vector<size_t>& sharing) const {
    double lowest = std::numeric_limits<double>::max();
    double highest = 0;
    for (const size_t c : sharing) {
      const State& child = states_[state.children[c]];
      if (child.former == nullptr || !Near(child.rate, child.former->rate, kLevelSlack)) {
        return false;
      }
      const double level = ToDouble(child.former->rate) / child.weight;
      lowest = std::min(lowest, level);
      highest = std::max(highest, level);
    }
    return highest <= lowest * kSameLevel;
  }

  // Sets the quanta of leaves: the kernel knows no turns of inner classes.
  void SetQuanta(const State& state) {
    double lightest = std::numeric_limits<double>::max();
    for (const size_t child : state.children) {
      if (nodes_[child].leaf) lightest = std::min(lightest, states_[child].weight);
    }
    for (const size_t child : state.children) {
      if (!nodes_[child].leaf) continue;
      const double quanta =
          std::min(states_[child].weight / lightest, static_cast<double>(kMaxQuanta));
      states_[child].quantum =
          units::ByteCount(static_cast<uint64_t>(ToDouble(kMinQuantum) * quanta));
    }
  }

  RatedClass Finished(size_t i) const {
    const State& state = states_[i];
    RatedClass rated{.shape = {.rate = state.rate,
                               .ceil = state.ceil,
                               .burst = BurstOf(state.rate),
                               .quantum = state.quantum},
                     .expected = state.expected};
    if (nodes_[i].leaf) rated.shape.queue = QueueOf(state);
    return rated;
  }

  static units::ByteCount QueueOf(const State& state) {
    const units::ByteCount most = BytesIn(kLongQueueTime, state.expected);
    const bool shares = state.rate < state.ceil;
    const auto least = std::min(shares ? kInFlight * kOffloadedPacket : kMinQueue, most);
    const auto queue = std::max(BytesIn(kQueueTime, state.expected), least);
    if (queue <= kMinQueue || state.former == nullptr) return queue;
    const auto former = state.former->queue;
    return Near(queue, former) && former >= least && former <= most ? former : queue;
  }

  const std::vector<ShapeNode>& nodes_;
  std::vector<State> states_;
};

}  // namespace

std::vector<RatedClass> RateTree(const std::vector<ShapeNode>& nodes,
                                 const std::map<std::string, ShapeClass>& former) {
  return Rater(nodes, former).Rate();
}

}  // namespace spoke::netagent
