// How the ADDs of this node went since the agent's start, for metrics. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/time/time.h"
#include "netagent/attach/attach_traces.h"

namespace spoke::netagent {

enum class AddOutcome : uint8_t {
  kAttached,
  kNoAddress,  // None came for as long as the runtime waited.
  kFailed,     // The kernel refused, or what was asked for cannot be.
  kGivenUp,    // Its plugin was gone before there was an address.
};
inline constexpr AddOutcome kLastAddOutcome = AddOutcome::kGivenUp;
std::string_view NameOf(AddOutcome outcome);

// Durations, counted by how long they are.
struct DurationCounts {
  // Upper bounds, in seconds. An ADD takes one or two milliseconds while nobody waits.
  static constexpr std::array<double, 6> kBuckets = {0.001, 0.0025, 0.01, 0.1, 1, 10};

  std::array<uint64_t, kBuckets.size() + 1> counts = {};  // By bucket; the last: longer ones.
  absl::Duration sum = absl::ZeroDuration();

  void Add(absl::Duration took);
  bool operator==(const DurationCounts&) const = default;
};

struct AddCounts {
  std::array<uint64_t, static_cast<size_t>(kLastAddOutcome) + 1> outcomes = {};  // By AddOutcome.
  // Of those that were attached: all of it, and the steps that can take long. The wait is of those
  // alone that found no address when they came.
  DurationCounts total;
  DurationCounts wait;
  DurationCounts kernel;
  DurationCounts traffic;

  void Add(AddOutcome outcome, const StepTimes& steps);
  bool operator==(const AddCounts&) const = default;
};

}  // namespace spoke::netagent
