#include "netagent/fastpath/translated_pairs.h"

#include <time.h>

#include <array>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "lib/base/status.h"
#include "lib/os/unique_fd.h"
#include "netagent/bpf/maps.h"
#include "netagent/bpf/programs.h"

namespace spoke::netagent {
namespace {

using Counts = std::array<uint32_t, SPOKE_MAX_PODS>;

// The slots of pods that have not ended, by address.
class SlotsByAddress {
 public:
  explicit SlotsByAddress(const std::map<uint32_t, spoke_slot>& pods) {
    for (const auto& [slot, pod] : pods) {
      if (pod.ended != 0) continue;
      if (pod.has_v4 != 0) slots_.emplace(Text(pod.v4), slot);
      if (pod.has_v6 != 0) slots_.emplace(Text(pod.v6), slot);
    }
  }

  // Counts a pair of these two for each that is a pod's.
  void Count(const spoke_address& one, const spoke_address& other, Counts& counts) const {
    for (const spoke_address& address : {one, other}) {
      const auto at = slots_.find(Text(address));
      if (at != slots_.end()) ++counts.at(at->second);
    }
  }

 private:
  static std::string Text(const spoke_address& address) {
    return {reinterpret_cast<const char*>(&address), sizeof(address)};
  }
  std::unordered_map<std::string, uint32_t> slots_;
};

std::array<spoke_address, 2> Ends(const spoke_pair4& pair) {
  return {spoke_address{.word = {pair.low}}, spoke_address{.word = {pair.high}}};
}
std::array<spoke_address, 2> Ends(const spoke_pair6& pair) { return {pair.low, pair.high}; }

template <typename Pair>
absl::Status Copy(int from, int to) {
  absl::Status status;
  ForEachElement<Pair, uint64_t>(from, SPOKE_MAX_PAIRS, [&](const Pair& pair, uint64_t last) {
    if (status.ok()) status = Put(to, pair, last, "fast path: take over a pair");
  });
  return status;
}

// Erases what was last written before `oldest`, and counts the rest.
template <typename Pair>
absl::Status SweepMap(int map, uint64_t oldest, const SlotsByAddress& slots, Counts& counts) {
  std::vector<Pair> old;
  ForEachElement<Pair, uint64_t>(map, SPOKE_MAX_PAIRS, [&](const Pair& pair, uint64_t last) {
    if (last < oldest) {
      old.push_back(pair);
    } else {
      const auto ends = Ends(pair);
      slots.Count(ends[0], ends[1], counts);
    }
  });
  for (const Pair& pair : old) RETURN_IF_ERROR(Erase(map, pair, "fast path: forget a pair"));
  return absl::OkStatus();
}

uint64_t MonotonicNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

absl::Status TranslatedPairs::Begin(uint32_t slot) const {
  RETURN_IF_ERROR(Put(counts, slot, uint32_t{0}, "fast path: count a pod's pairs"));
  return Put(over_share, slot, uint32_t{0}, "fast path: give a pod a share of the pairs");
}

bool TranslatedPairs::IsOverShare(uint32_t slot) const {
  uint32_t is_over = 0;
  return bpf_map_lookup_elem(over_share, &slot, &is_over) == 0 && is_over != 0;
}

absl::Status TranslatedPairs::TakeOver(uint32_t program_id,
                                       const std::map<uint32_t, spoke_slot>& pods) const {
  const os::UniqueFd from4 = FindMap(program_id, "spoke_pairs4", sizeof(uint64_t));
  const os::UniqueFd from6 = FindMap(program_id, "spoke_pairs6", sizeof(uint64_t));
  if (from4.valid()) RETURN_IF_ERROR(Copy<spoke_pair4>(from4.get(), v4));
  if (from6.valid()) RETURN_IF_ERROR(Copy<spoke_pair6>(from6.get(), v6));
  return Sweep(absl::InfiniteDuration(), pods);
}

absl::Status TranslatedPairs::Sweep(absl::Duration age,
                                    const std::map<uint32_t, spoke_slot>& pods) const {
  const uint64_t now = MonotonicNs();
  const bool is_all_young = age > absl::Nanoseconds(static_cast<int64_t>(now));
  const uint64_t oldest =
      is_all_young ? 0 : now - static_cast<uint64_t>(absl::ToInt64Nanoseconds(age));
  const SlotsByAddress slots(pods);
  Counts pairs{};
  RETURN_IF_ERROR(SweepMap<spoke_pair4>(v4, oldest, slots, pairs));
  RETURN_IF_ERROR(SweepMap<spoke_pair6>(v6, oldest, slots, pairs));
  for (const auto& [slot, pod] : pods) {
    RETURN_IF_ERROR(Put(counts, slot, pairs.at(slot), "fast path: count a pod's pairs"));
  }
  return absl::OkStatus();
}

}  // namespace spoke::netagent
