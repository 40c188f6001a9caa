#include "admin-cli/budget/bit_rate.h"

#include <array>

#include "fmt/core.h"

namespace spoke::ctl {

std::string FormatBitRate(uint64_t bits_per_second) {
  constexpr std::array<const char*, 4> kUnits = {"kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  if (bits_per_second < 1000) return fmt::format("{} bit/s", bits_per_second);
  double value = static_cast<double>(bits_per_second) / 1000;
  size_t unit = 0;
  // From 999.5 on three digits would say 1000.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  int digits = 0;
  if (value < 99.95) digits = 1;
  if (value < 9.995) digits = 2;
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (digits > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return fmt::format("{} {}", text, kUnits.at(unit));
}

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
