#include "netagent/fastpath/translated_pairs.h"

#include <bpf/bpf.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/base/status.h"
#include "netagent/bpf/maps.h"

namespace spoke::netagent {
namespace {

using Counts = std::array<uint32_t, SPOKE_MAX_PODS>;

// The pods that have not ended, by address.
class PodsByAddress {
 public:
  explicit PodsByAddress(const std::map<uint32_t, spoke_slot>& pods) {
    for (const auto& [slot, pod] : pods) {
      if (pod.ended != 0) continue;
      if (pod.has_v4 != 0) pods_.emplace(std::to_array(pod.v4.word), Pod{slot, pod.begun});
      if (pod.has_v6 != 0) pods_.emplace(std::to_array(pod.v6.word), Pod{slot, pod.begun});
    }
  }

  std::optional<uint32_t> SlotOf(const spoke_address& address) const {
    const auto at = pods_.find(std::to_array(address.word));
    if (at == pods_.end()) return std::nullopt;
    return at->second.slot;
  }

  // Counts a pair of these two for each that is a pod's. Returns false, and counts nothing, where
  // neither is, or one has become a pod's after `last`.
  bool Count(const std::array<spoke_address, 2>& ends, uint64_t last, Counts& counts) const {
    const auto one = pods_.find(std::to_array(ends[0].word));
    const auto other = pods_.find(std::to_array(ends[1].word));
    const auto is_newer = [&](auto at) { return at != pods_.end() && last < at->second.begun; };
    if ((one == pods_.end() && other == pods_.end()) || is_newer(one) || is_newer(other)) {
      return false;
    }
    for (const auto at : {one, other}) {
      if (at != pods_.end()) ++counts.at(at->second.slot);
    }
    return true;
  }

 private:
  struct Pod {
    uint32_t slot = 0;
    uint64_t begun = 0;
  };
  absl::flat_hash_map<std::array<uint32_t, 4>, Pod> pods_;
};

std::array<spoke_address, 2> Ends(const spoke_pair4& pair) {
  return {spoke_address{.word = {pair.low}}, spoke_address{.word = {pair.high}}};
}
std::array<spoke_address, 2> Ends(const spoke_pair6& pair) { return {pair.low, pair.high}; }

// Puts what is not there yet, since what is there is newer. Where no room is left, it is the pods'
// loss.
template <typename Pair>
absl::Status Copy(int from, int to, const PodsByAddress& pods, int over_share) {
  constexpr std::string_view kWhat = "fast path: take over a pair";
  absl::Status status;
  const auto put = [&](const Pair& pair, uint64_t last) {
    if (bpf_map_update_elem(to, &pair, &last, BPF_NOEXIST) == 0 || errno == EEXIST) return;
    if (errno != E2BIG) status.Update(MapError(errno, kWhat));
    for (const spoke_address& end : Ends(pair)) {
      if (const auto slot = pods.SlotOf(end)) status.Update(Put(over_share, *slot, 1U, kWhat));
    }
  };
  RETURN_IF_ERROR((ForEachElement<Pair, uint64_t>(from, kWhat, put)));
  return status;
}

// Erases what was last written before `oldest` or concerns no pod, and counts the rest.
template <typename Pair>
absl::Status SweepMap(int map, uint64_t oldest, const PodsByAddress& pods, Counts& counts) {
  const auto count = [&](const Pair& pair, uint64_t last) {
    return last >= oldest && pods.Count(Ends(pair), last, counts);
  };
  std::vector<Pair> unwanted;
  const auto look = [&](const Pair& pair, uint64_t last) {
    if (!count(pair, last)) unwanted.push_back(pair);
  };
  RETURN_IF_ERROR((ForEachElement<Pair, uint64_t>(map, "fast path: read the pairs", look)));
  for (const Pair& pair : unwanted) {
    // A new pod may have a connection with whom the pod before it had one.
    uint64_t last = 0;
    if (bpf_map_lookup_elem(map, &pair, &last) == 0 && count(pair, last)) continue;
    RETURN_IF_ERROR(Erase(map, pair, "fast path: forget a pair"));
  }
  return absl::OkStatus();
}

}  // namespace

// Returns the time as bpf_ktime_get_coarse_ns() does: a finer clock would be ahead of what the
// programs write.
uint64_t PairClockNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

absl::Status TranslatedPairs::Begin(uint32_t slot) const {
  RETURN_IF_ERROR(Put(counts, slot, uint32_t{0}, "fast path: count a pod's pairs"));
  return Put(over_share, slot, uint32_t{0}, "fast path: give a pod a share of the pairs");
}

bool TranslatedPairs::IsOverShare(uint32_t slot) const {
  uint32_t is_over = 0;
  return bpf_map_lookup_elem(over_share, &slot, &is_over) == 0 && is_over != 0;
}

absl::Status TranslatedPairs::TakeOver(const FormerPairs& former,
                                       const std::map<uint32_t, spoke_slot>& pods) const {
  const PodsByAddress by_address(pods);
  if (former.v4.valid()) {
    RETURN_IF_ERROR(Copy<spoke_pair4>(former.v4.get(), v4, by_address, over_share));
  }
  if (former.v6.valid()) {
    RETURN_IF_ERROR(Copy<spoke_pair6>(former.v6.get(), v6, by_address, over_share));
  }
  return Sweep(absl::InfiniteDuration(), pods);
}

absl::Status TranslatedPairs::Sweep(absl::Duration age,
                                    const std::map<uint32_t, spoke_slot>& pods) const {
  const uint64_t now = PairClockNs();
  const bool is_all_young = age > absl::Nanoseconds(static_cast<int64_t>(now));
  const uint64_t oldest =
      is_all_young ? 0 : now - static_cast<uint64_t>(absl::ToInt64Nanoseconds(age));
  const PodsByAddress by_address(pods);
  Counts pairs{};
  RETURN_IF_ERROR(SweepMap<spoke_pair4>(v4, oldest, by_address, pairs));
  RETURN_IF_ERROR(SweepMap<spoke_pair6>(v6, oldest, by_address, pairs));
  for (const auto& [slot, pod] : pods) {
    RETURN_IF_ERROR(Put(counts, slot, pairs.at(slot), "fast path: count a pod's pairs"));
  }
  return absl::OkStatus();
}

}  // namespace spoke::netagent
