// The story of a run: every event, message and word of the programs' logs, as lines of text. A hash
// of all of it tells whether two runs were the same.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "lib/telemetry/log.h"
#include "tests/sim/schedule.h"

namespace spoke::sim {

// Not thread-safe.
class Trace {
 public:
  // Borrows `schedule`. `print`: every line is written to standard output too.
  Trace(const Schedule& schedule, bool print) : schedule_(schedule), print_(print) {}

  template <typename... Args>
  void Tell(std::string_view who, fmt::format_string<Args...> format, Args&&... args) {
    Line(who, fmt::format(format, std::forward<Args>(args)...));
  }
  void Line(std::string_view who, std::string_view what) {
    const int64_t at = absl::ToInt64Microseconds(schedule_.now() - begun_);
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{:>5}.{:06} {:<10} {}\n", at / 1'000'000,
                   at % 1'000'000, who, what);
    for (const char c : line_) hash_ = (hash_ ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
    ++lines_;
    if (print_) std::fwrite(line_.data(), 1, line_.size(), stdout);
    last_.push_back(line_);
    if (last_.size() > kKept) last_.pop_front();
  }

  uint64_t hash() const { return hash_; }
  uint64_t lines() const { return lines_; }
  // The end of the story, for whoever reports a violation.
  std::string End() const {
    std::string text;
    for (const std::string& line : last_) text += line;
    return text;
  }

 private:
  static constexpr size_t kKept = 40;

  const Schedule& schedule_;
  const absl::Time begun_ = schedule_.now();
  const bool print_;
  std::string line_;
  uint64_t hash_ = 0xCBF29CE484222325ULL;
  uint64_t lines_ = 0;
  std::deque<std::string> last_;
};

// A program's log, as part of the story.
class TracedLog final : public telemetry::Log {
 public:
  TracedLog(Trace& trace, std::string who) : trace_(trace), who_(std::move(who)) {}

  void Write(telemetry::Level level, std::string_view event,
             std::initializer_list<telemetry::Field> fields) override {
    if (level == telemetry::Level::kDebug) return;
    trace_.Line(who_, "says " + telemetry::FormatEvent(event, fields));
  }

 private:
  Trace& trace_;
  const std::string who_;
};

}  // namespace spoke::sim
