#include "ipam-server/release/breaker.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

// What was freed within one slice of the window counts as one entry: 7,500 nodes that release in
// the same minute must not make 7,500 entries.
constexpr int kSlices = 60;

// The end of the slice that `now` lies in: an entry may count a little too long, never too short.
absl::Time SliceEnd(absl::Time now, absl::Duration window) {
  const absl::Duration slice = window / kSlices;
  return absl::UnixEpoch() + absl::Floor(now - absl::UnixEpoch(), slice) + slice;
}

}  // namespace

MassReleaseBreaker::MassReleaseBreaker(const BreakerPolicy& policy, BreakerState state)
    : policy_(policy), state_(std::move(state)) {
  CHECK(policy.share > 0 && policy.share <= 1 && policy.window > absl::ZeroDuration(),
        "the configuration was validated");
}

uint64_t MassReleaseBreaker::Allowance(uint64_t total, uint64_t floor) const {
  if (policy_.share >= 1) return total;
  const auto share = static_cast<uint64_t>(policy_.share * static_cast<double>(total));
  return std::max(share, std::min(floor, total == 0 ? 0 : total - 1));
}

uint64_t MassReleaseBreaker::FreedSince(absl::Time now) const {
  uint64_t sum = 0;
  for (const auto& freed : state_.freed) {
    if (now - freed.at < policy_.window) sum += freed.addresses;
  }
  return sum;
}

void MassReleaseBreaker::Prune(absl::Time now) {
  while (!state_.freed.empty() && now - state_.freed.front().at >= policy_.window) {
    state_.freed.pop_front();
  }
  // A clock that was set back must not make an entry last longer than the window.
  const absl::Time latest = SliceEnd(now, policy_.window);
  for (auto& freed : state_.freed) freed.at = std::min(freed.at, latest);
  if (!state_.pardon) return;
  state_.pardon->since = std::min(state_.pardon->since, now);
  // It would take what is given back of later passes.
  if (!Pardons(now)) state_.pardon.reset();
}

bool MassReleaseBreaker::Pardons(absl::Time now) const {
  return state_.pardon && now - state_.pardon->since < policy_.window;
}

MassReleaseBreaker::Verdict MassReleaseBreaker::Refuse(BreakerState::Freeze freeze) {
  ++state_.trips;
  state_.freeze = std::move(freeze);
  return {.allowed = false, .reason = state_.freeze->reason};
}

MassReleaseBreaker::Verdict MassReleaseBreaker::Judge(uint64_t total_attached, uint64_t would_free,
                                                      absl::Time now) {
  if (state_.freeze) return {.allowed = false, .reason = state_.freeze->reason};
  Prune(now);
  const uint64_t before = FreedSince(now);
  // What the share is of: the addresses at the beginning of the window, more or less.
  const uint64_t total = total_attached + before;
  const uint64_t allowed = Allowance(total, policy_.floor);
  const uint64_t room = allowed > before ? allowed - before : 0;
  const uint64_t beyond = would_free > room ? would_free - room : 0;
  if (beyond > 0) {
    if (!Pardons(now) || beyond > state_.pardon->refused.addresses) {
      return Refuse(
          {.since = now,
           .reason = fmt::format(
               "one pass would free {} addresses after {} in the last {}, of {} attached; {} may "
               "go in that time ({:g} %, at least {}). Find out whether their pods are really "
               "gone, then run `spokectl unfreeze`",
               would_free, before, absl::FormatDuration(policy_.window), total, allowed,
               policy_.share * 100, policy_.floor),
           .refused = {.addresses = would_free}});
    }
    state_.pardon->refused.addresses -= beyond;
    state_.pardon->drawn += beyond;
  }
  const uint64_t counted = would_free - beyond;
  if (counted == 0) return {.allowed = true};
  const absl::Time slice_end = SliceEnd(now, policy_.window);
  if (!state_.freed.empty() && state_.freed.back().at == slice_end) {
    state_.freed.back().addresses += counted;
  } else {
    state_.freed.push_back({.at = slice_end, .addresses = counted});
  }
  return {.allowed = true};
}

bool MassReleaseBreaker::Counts(absl::Time judged, absl::Time now) const {
  return now - SliceEnd(judged, policy_.window) < policy_.window;
}

void MassReleaseBreaker::GiveBack(uint64_t count) {
  if (state_.pardon) {
    const uint64_t undrawn = std::min(count, state_.pardon->drawn);
    state_.pardon->refused.addresses += undrawn;
    state_.pardon->drawn -= undrawn;
    count -= undrawn;
  }
  while (count > 0 && !state_.freed.empty()) {
    auto& newest = state_.freed.back();
    const uint64_t taken = std::min(count, newest.addresses);
    newest.addresses -= taken;
    count -= taken;
    if (newest.addresses == 0) state_.freed.pop_back();
  }
}

uint64_t MassReleaseBreaker::Headroom(uint64_t total_attached, absl::Time now) const {
  if (state_.freeze) return 0;
  const uint64_t before = FreedSince(now);
  const uint64_t allowed = Allowance(total_attached + before, policy_.floor);
  return allowed > before ? std::min(allowed - before, total_attached) : 0;
}

MassReleaseBreaker::Verdict MassReleaseBreaker::SourceShrank(std::string_view source,
                                                             uint64_t previous, uint64_t now_count,
                                                             absl::Time now) {
  if (state_.freeze) return {.allowed = false, .reason = state_.freeze->reason};
  const uint64_t lost = previous > now_count ? previous - now_count : 0;
  const uint64_t allowed = MayLack(previous);
  if (lost <= allowed) return {.allowed = true};
  if (Pardons(now) && state_.pardon->refused.source == source &&
      now_count >= state_.pardon->refused.source_count) {
    return {.allowed = true};
  }
  return Refuse({.since = now,
                 .reason = fmt::format("{} fell from {} entries to {}, and may lose {} at once "
                                       "({:g} %, at least {}). Find out whether it is complete, "
                                       "then run `spokectl unfreeze`",
                                       source, previous, now_count, allowed, policy_.share * 100,
                                       policy_.source_floor),
                 .refused = {.source = std::string(source), .source_count = now_count}});
}

std::optional<std::string> MassReleaseBreaker::Unfreeze(absl::Time now) {
  if (!state_.freeze) return std::nullopt;
  BreakerState::Freeze freeze = *std::exchange(state_.freeze, std::nullopt);
  BreakerState::Pardon pardon{
      .since = now, .reason = std::move(freeze.reason), .refused = std::move(freeze.refused)};
  if (Pardons(now)) {
    const BreakerState::Refused& left = state_.pardon->refused;
    pardon.refused.addresses += left.addresses;
    pardon.drawn = state_.pardon->drawn;  // Agents may still deny it.
    // One pass can be refused for its source first, and for its addresses once that may be short.
    if (pardon.refused.source.empty()) {
      pardon.refused.source = left.source;
      pardon.refused.source_count = left.source_count;
    }
  }
  state_.pardon = std::move(pardon);
  state_.freed.clear();
  return state_.pardon->reason;
}

}  // namespace spoke::ipam
