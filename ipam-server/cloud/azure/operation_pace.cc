#include "ipam-server/cloud/azure/operation_pace.h"

#include <algorithm>

namespace spoke::ipam::azure {
namespace {

constexpr absl::Duration kShortest = absl::Seconds(1);
constexpr absl::Duration kLongest = absl::Minutes(2);
// How far an operation moves the pace: steps are small, and a hundred operations settle it.
constexpr double kStep = 0.05;
constexpr int kMostGrowth = 4;

}  // namespace

absl::Duration OperationPace::NextPoll(int polls) const {
  const absl::Duration wait = first_poll_ / 4 * std::clamp(polls, 1, kMostGrowth);
  return std::clamp(wait, 2 * kShortest, kLongest);
}

// Steps down and up weigh so that they balance when just that share is done.
void OperationPace::OnFirstPoll(bool done) {
  const double change = done ? -kStep * (1 - kDoneAtFirstPoll) : kStep * kDoneAtFirstPoll;
  first_poll_ = std::clamp(first_poll_ * (1 + change), kShortest, kLongest);
}

}  // namespace spoke::ipam::azure
