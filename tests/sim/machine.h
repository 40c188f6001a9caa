// A machine's clocks and boots. Its uptime drifts; its time of day is set, ahead and back.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "fmt/core.h"
#include "lib/os/clock.h"
#include "tests/sim/schedule.h"

namespace spoke::sim {

class DriftingClock final : public os::Clock {
 public:
  DriftingClock(const Schedule& schedule, int64_t parts_per_million)
      : schedule_(schedule), begun_(schedule.now()), drift_(parts_per_million) {}

  absl::Time Now() const override {
    const int64_t passed = absl::ToInt64Microseconds(schedule_.now() - begun_);
    return begun_ + set_ahead_ + absl::Microseconds(passed + passed / 1000 * drift_ / 1000);
  }
  void Set(absl::Duration ahead) { set_ahead_ += ahead; }
  // How much true time passes while this clock goes on by `wait`, rounded up.
  absl::Duration TrueWait(absl::Duration wait) const {
    if (wait <= absl::ZeroDuration()) return absl::ZeroDuration();
    const int64_t by_clock = absl::ToInt64Microseconds(absl::Ceil(wait, absl::Microseconds(1)));
    return absl::Microseconds(by_clock - by_clock / 1000 * drift_ / 1000 + by_clock / 1000000 + 1);
  }

 private:
  const Schedule& schedule_;
  const absl::Time begun_;
  const int64_t drift_;
  absl::Duration set_ahead_;
};

class Machine {
 public:
  Machine(const Schedule& schedule, std::string name, int64_t drift)
      : name_(std::move(name)), uptime_(schedule, drift), time_of_day_(schedule, drift) {}

  const std::string& name() const { return name_; }
  const DriftingClock& uptime() const { return uptime_; }
  const DriftingClock& time_of_day() const { return time_of_day_; }
  // Somebody sets the time of day.
  void SetClock(absl::Duration ahead) { time_of_day_.Set(ahead); }
  std::string boot_id() const { return fmt::format("{}-boot-{}", name_, boots_); }
  void CountBoot() { ++boots_; }

 private:
  const std::string name_;
  DriftingClock uptime_;
  DriftingClock time_of_day_;
  int boots_ = 1;
};

}  // namespace spoke::sim
