#include "tests/bench/swarm/waiting.h"

#include <cstdio>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::swarm {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(10);
constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

void Print(const Json& event) {
  fmt::print("{}\n", event.dump());
  (void)std::fflush(stdout);
}

absl::Status Await(const Swarm& swarm, const Plan& plan, std::string_view what,
                   const std::function<bool()>& done) {
  const int64_t started = NowNs();
  int64_t next_line = started + kSecond;
  while (!done()) {
    const int64_t now = NowNs();
    const Ledger::Complaints complaints = swarm.ledger().complaints();
    if (complaints.total > 0 && !plan.count_faults) {
      return absl::DataLossError(fmt::format("{}: the server has done wrong {} times: {}", what,
                                             complaints.total, complaints.first.front()));
    }
    if (now >= next_line) {
      next_line += now - started < 10 * kSecond ? kSecond : 10 * kSecond;
      fmt::print(stderr, "swarm: {}: {} s, {} of {} connected, {} synced\n", what,
                 (now - started) / kSecond, swarm.connected(), swarm.size(), swarm.synced());
    }
    if (now - started > absl::ToInt64Nanoseconds(plan.deadline)) {
      return absl::DeadlineExceededError(
          fmt::format("{}: not within {}: {} of {} connected, {} synced; streams ended: {}", what,
                      absl::FormatDuration(plan.deadline), swarm.connected(), swarm.size(),
                      swarm.synced(), Json(swarm.ends()).dump()));
    }
    absl::SleepFor(kLook);
  }
  return absl::OkStatus();
}

absl::Status AwaitSynced(const Swarm& swarm, const Plan& plan, std::string_view what) {
  return Await(swarm, plan, what, [&] { return swarm.synced() == swarm.size(); });
}

absl::Status AwaitSettled(Swarm& swarm, const Plan& plan, std::string_view what) {
  size_t settled = 0;  // The number of those before it.
  return Await(swarm, plan, what, [&] {
    while (settled < swarm.size() &&
           swarm.agent(settled).WithNode([](const SimNode& node) { return node.settled(); })) {
      ++settled;
    }
    return settled == swarm.size();
  });
}

absl::Status Assign(Swarm& swarm, const Plan& plan) {
  const auto agents = static_cast<uint32_t>(swarm.size());
  for (uint32_t i = 0; i < agents; ++i) {
    const uint32_t share = plan.assign / agents + (i < plan.assign % agents ? 1 : 0);
    const bool in_use = swarm.agent(i).WithNode([&](SimNode& node) {
      for (uint32_t n = 0; n < share; ++n) {
        if (!node.Assign()) return false;
      }
      return true;
    });
    if (!in_use) {
      return absl::FailedPreconditionError(fmt::format("node {} cannot assign {}", i, share));
    }
  }
  return AwaitSettled(swarm, plan, "assign");
}

}  // namespace spoke::swarm
