#include "tests/ha/history/history_check.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "fmt/core.h"

namespace spoke::ha {
namespace {

using Kind = Event::Kind;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// An interval in which `node` held the address for certain.
struct Hold {
  uint32_t node = 0;
  int64_t from = 0;
  int64_t to = kNever;  // When it gave it up.
  bool missed = false;  // It was told that it does not have it.
};

// A change of the address's pod, which took effect between the two times.
struct Change {
  uint32_t node = 0;
  uint64_t generation = 0;
  bool ends = false;
  int64_t begun = 0;
  int64_t stored = kNever;

  // What the store has from then on.
  uint64_t value() const { return ends ? 0 : generation; }
};

void Say(std::string text, Verdict& verdict) {
  if (verdict.first.size() < kTextsKept) verdict.first.push_back(std::move(text));
}

// One address's events, in order.
class Register {
 public:
  Register(const ip::Address& address, Verdict& verdict) : address_(address), verdict_(verdict) {}

  void Take(const Event& event) {
    switch (event.kind) {
      case Kind::kHeld:
        return TakeHeld(event);
      case Kind::kGivenUp:
        if (Hold* hold = OpenHold(event.node); hold != nullptr) hold->to = event.at;
        return;
      case Kind::kMissing:
        return TakeMissing(event);
      case Kind::kUseBegun:
      case Kind::kEndBegun:
        changes_.push_back({.node = event.node,
                            .generation = event.generation,
                            .ends = event.kind == Kind::kEndBegun,
                            .begun = event.at});
        return;
      case Kind::kUseStored:
      case Kind::kEndStored:
        return TakeStored(event);
    }
  }

  // Call it after the last event.
  void FindDoubled() {
    for (auto hold = holds_.begin(); hold != holds_.end(); ++hold) {
      for (auto other = holds_.begin(); other != hold; ++other) {
        if (other->node == hold->node || other->to <= hold->from || hold->to <= other->from) {
          continue;
        }
        ++verdict_.doubled;
        Say(fmt::format("doubled: {} is node {}'s since {} ns, and node {}'s as well since {} ns",
                        address_.ToString(), other->node, other->from, hold->node, hold->from));
      }
    }
  }

  void Compare(const Reading& reading) {
    const auto found = reading.addresses.find(address_);
    const Stored* stored = found == reading.addresses.end() ? nullptr : &found->second;
    const bool owned = CompareOwner(reading, stored);
    const bool used = ComparePod(reading, stored);
    if (owned || used) ++verdict_.compared;
  }

 private:
  void TakeHeld(const Event& event) {
    if (Hold* hold = OpenHold(event.node); hold != nullptr) {
      hold->missed = false;  // It is told again.
      return;
    }
    ++verdict_.holds;
    if (!holds_.empty() && holds_.back().node != event.node) ++verdict_.moves;
    holds_.push_back({.node = event.node, .from = event.at});
  }

  // The node may go on using it, so that it still holds it.
  void TakeMissing(const Event& event) {
    Hold* hold = OpenHold(event.node);
    if (hold == nullptr || hold->missed) return;
    hold->missed = true;
    ++verdict_.lost;
    Say(fmt::format("lost: {} of node {} at {} ns: it has never given it up", address_.ToString(),
                    event.node, event.at));
  }

  void TakeStored(const Event& event) {
    const bool ends = event.kind == Kind::kEndStored;
    for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
      if (change->node != event.node || change->generation != event.generation ||
          change->ends != ends) {
        continue;
      }
      if (change->stored == kNever && !ends) ++verdict_.uses;
      change->stored = std::min(change->stored, event.at);
      return;
    }
  }

  Hold* OpenHold(uint32_t node) {
    for (Hold& hold : holds_) {
      if (hold.node == node && hold.to == kNever) return &hold;
    }
    return nullptr;
  }

  // Returns whether a node held the address during all of the reading. What it has been told that
  // it does not have was counted then.
  bool CompareOwner(const Reading& reading, const Stored* stored) {
    for (const Hold& hold : holds_) {
      if (hold.from > reading.from || hold.to <= reading.to || hold.missed) continue;
      if (stored != nullptr && stored->node == hold.node) return true;
      ++verdict_.lost;
      Say(fmt::format("lost: {} is node {}'s since {} ns; the store, read at {} to {} ns, has {}",
                      address_.ToString(), hold.node, hold.from, reading.from, reading.to,
                      Describe(stored)));
      return true;
    }
    return false;
  }

  // Returns whether the pod was known: some change was stored by then.
  bool ComparePod(const Reading& reading, const Stored* stored) {
    const Change* last = nullptr;
    for (const Change& change : changes_) {
      if (change.stored <= reading.from) last = &change;
    }
    if (last == nullptr) return false;
    const uint64_t value = stored == nullptr ? 0 : stored->generation;
    // Those after it, which have begun, may or may not have happened.
    for (const Change* it = last; it != changes_.data() + changes_.size(); ++it) {
      if (it != last && it->begun > reading.to) continue;
      const bool same_node = value == 0 || stored->node == it->node;
      if (value == it->value() && same_node) return true;
    }
    ++verdict_.lost;
    Say(
        fmt::format("lost: the {} of assignment {} of node {} to {}, stored at {} ns; the store, "
                    "read at {} to {} ns, has {}",
                    last->ends ? "end" : "begin", last->generation, last->node, address_.ToString(),
                    last->stored, reading.from, reading.to, Describe(stored)));
    return true;
  }

  static std::string Describe(const Stored* stored) {
    if (stored == nullptr) return "no node for it";
    return fmt::format("node {} and assignment {}", stored->node, stored->generation);
  }

  void Say(std::string text) { ha::Say(std::move(text), verdict_); }

  const ip::Address address_;
  Verdict& verdict_;
  std::vector<Hold> holds_;
  std::vector<Change> changes_;
};

}  // namespace

Verdict CheckHistory(std::vector<Event> events, const std::vector<Reading>& readings) {
  std::stable_sort(events.begin(), events.end(), [&](const Event& a, const Event& b) {
    return a.address != b.address ? a.address < b.address : a.at < b.at;
  });
  Verdict verdict;
  for (auto first = events.begin(); first != events.end();) {
    const auto end = std::find_if(
        first, events.end(), [&](const Event& event) { return event.address != first->address; });
    Register one(first->address, verdict);
    for (const Event& event : std::span(first, end)) one.Take(event);
    one.FindDoubled();
    for (const Reading& reading : readings) one.Compare(reading);
    first = end;
  }
  for (const Reading& reading : readings) {
    verdict.doubled += reading.doubled.size();
    for (const ip::Address& address : reading.doubled) {
      Say(fmt::format("doubled: {} is stored for two nodes, read at {} to {} ns",
                      address.ToString(), reading.from, reading.to),
          verdict);
    }
  }
  return verdict;
}

}  // namespace spoke::ha
