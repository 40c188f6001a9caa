#include "admin-cli/dashboard/present_rates.h"

#include <utility>

namespace spoke::ctl {
namespace {

// The readings that are closer to each other than this are of no use.
constexpr int64_t kPresentStepMs = 2'000;

double RateOf(uint64_t before, uint64_t now, int64_t ms) {
  return now <= before ? 0 : static_cast<double>(now - before) * 8000 / static_cast<double>(ms);
}

}  // namespace

void PresentRates::Add(int64_t now_ms, std::map<std::string, uint64_t> totals) {
  if (!readings_.empty() && now_ms < readings_.back().ms) readings_.clear();
  if (!readings_.empty() && now_ms - readings_.back().ms < kPresentStepMs) return;
  readings_.push_back({now_ms, std::move(totals)});
  while (readings_.size() > 2 && now_ms - readings_[1].ms >= kSpanMs) readings_.pop_front();
}

std::map<std::string, double> PresentRates::BitsPerSecond() const {
  std::map<std::string, double> rates;
  if (readings_.size() < 2) return rates;
  const Reading& base = readings_.front();
  const Reading& newest = readings_.back();
  for (const auto& [name, total] : newest.totals) {
    const auto before = base.totals.find(name);
    rates[name] =
        RateOf(before == base.totals.end() ? 0 : before->second, total, newest.ms - base.ms);
  }
  return rates;
}

}  // namespace spoke::ctl
