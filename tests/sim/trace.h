// The story of a run, as text: what two runs of the same seed have to agree about.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "lib/base/fnv1a.h"
#include "tests/sim/schedule.h"

namespace spoke::sim {

// Not thread-safe.
class Trace {
 public:
  // `keep`: whether the text is kept; its hash always is. Borrows `schedule`.
  Trace(const Schedule& schedule, bool keep) : schedule_(schedule), keep_(keep) {}

  template <typename... Arguments>
  void Say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{:13.6f} ",
                   absl::ToDoubleSeconds(schedule_.now() - schedule_.began()));
    fmt::format_to(std::back_inserter(line_), text, std::forward<Arguments>(arguments)...);
    line_ += '\n';
    hash_ = base::Fnv1a(line_, hash_);
    if (keep_) text_ += line_;
  }
  // Counts that `what` has happened, for the promises of scenarios.
  void Count(std::string_view what, uint64_t times = 1) {
    const auto it = counts_.find(what);
    if (it == counts_.end()) {
      counts_.emplace(what, times);
    } else {
      it->second += times;
    }
  }

  uint64_t hash() const { return hash_; }
  const std::string& text() const { return text_; }
  const std::map<std::string, uint64_t, std::less<>>& counts() const { return counts_; }

 private:
  const Schedule& schedule_;
  const bool keep_;
  uint64_t hash_ = base::kFnv1aBasis;
  std::string line_;
  std::string text_;
  std::map<std::string, uint64_t, std::less<>> counts_;
};

}  // namespace spoke::sim
