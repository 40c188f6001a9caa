#include "admin-cli/traffic/traffic_rates.h"

#include <algorithm>
#include <array>

#include "admin-cli/output/table.h"

namespace spoke::ctl {
namespace {

// The eight blocks, from one eighth to full.
constexpr std::array<const char*, 8> kBlocks = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                "\u2585", "\u2586", "\u2587", "\u2588"};

TrafficTotal TotalIn(const TrafficTotals& totals, const TrafficKey& key) {
  const auto found = totals.find(key);
  return found == totals.end() ? TrafficTotal() : found->second;
}

double PerSecond(uint64_t before, uint64_t now, int64_t ms) {
  return now <= before ? 0 : static_cast<double>(now - before) * 1000 / static_cast<double>(ms);
}

}  // namespace

void TrafficRates::Add(int64_t now_ms, TrafficTotals totals) {
  if (!readings_.empty() && now_ms <= readings_.back().now_ms) return;
  readings_.push_back({now_ms, std::move(totals)});
  if (readings_.size() > kMaxReadings) readings_.pop_front();
  if (readings_.size() < 2) return;
  for (const auto& [key, total] : readings_.back().totals) {
    const auto rate = RateOf(key);
    std::deque<double>& trend = trends_[key];
    trend.push_back(rate->sent + rate->received);
    if (trend.size() > kTrend) trend.pop_front();
  }
  // Pods come and go for as long as somebody watches.
  std::erase_if(trends_,
                [&](const auto& trend) { return !readings_.back().totals.contains(trend.first); });
}

std::optional<TrafficRate> TrafficRates::RateOf(const TrafficKey& key) const {
  if (readings_.size() < 2) return std::nullopt;
  const Reading& newest = readings_.back();
  const Reading* base = &readings_.front();
  for (const Reading& reading : readings_) {
    if (newest.now_ms - reading.now_ms >= kSpanMs) base = &reading;
  }
  const TrafficTotal before = TotalIn(base->totals, key);
  const TrafficTotal now = TotalIn(newest.totals, key);
  const int64_t ms = newest.now_ms - base->now_ms;
  return TrafficRate{.sent = PerSecond(before.sent, now.sent, ms),
                     .received = PerSecond(before.received, now.received, ms)};
}

std::vector<double> TrafficRates::TrendOf(const TrafficKey& key) const {
  const auto found = trends_.find(key);
  if (found == trends_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::string Sparkline(const std::vector<double>& values) {
  return Sparkline(values, values.empty() ? 0 : *std::max_element(values.begin(), values.end()));
}

std::string Sparkline(const std::vector<double>& values, double full) {
  std::string out;
  for (const double value : values) {
    const double share = full > 0 ? std::clamp(value / full, 0.0, 1.0) : 0;
    const auto block = static_cast<size_t>(share * static_cast<double>(kBlocks.size()));
    out += kBlocks.at(std::min(block, kBlocks.size() - 1));
  }
  return out;
}

}  // namespace spoke::ctl
