#include "admin-cli/budget/rate_history.h"

#include "fmt/core.h"

namespace spoke::ctl {

std::string FormatShare(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  const double percent = static_cast<double>(part) * 100 / static_cast<double>(whole);
  if (part > 0 && percent < 1) return "<1 %";
  return fmt::format("{:.0f} %", percent);
}

void RateHistory::Add(const std::map<Key, uint64_t>& reading) {
  std::erase_if(rates_, [&](const auto& known) { return !reading.contains(known.first); });
  for (const auto& [key, rate] : reading) {
    std::deque<double>& rates = rates_[key];
    rates.push_back(static_cast<double>(rate));
    if (rates.size() > kReadings) rates.pop_front();
  }
}

std::vector<double> RateHistory::Of(const Key& key) const {
  const auto found = rates_.find(key);
  if (found == rates_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

}  // namespace spoke::ctl
