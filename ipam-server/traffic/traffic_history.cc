#include "ipam-server/traffic/traffic_history.h"

#include <algorithm>
#include <iterator>

#include "lib/node_api/traffic_classes.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kAll = "all";

double RateOf(uint64_t before, uint64_t now, int64_t ms) {
  return now <= before ? 0 : static_cast<double>(now - before) * 8000 / static_cast<double>(ms);
}

// Keeps the names with the highest rates.
void KeepMost(std::map<std::string, double>& rates, size_t most) {
  if (rates.size() <= most) return;
  std::vector<double> values;
  for (const auto& [name, rate] : rates) values.push_back(rate);
  const auto last = values.begin() + static_cast<ptrdiff_t>(most - 1);
  std::nth_element(values.begin(), last, values.end(), [](double a, double b) { return a > b; });
  std::erase_if(rates, [lowest = *last](const auto& rate) { return rate.second < lowest; });
  while (rates.size() > most) rates.erase(std::prev(rates.end()));
}

}  // namespace

void TrafficHistory::Add(int64_t now_ms, ClassTotals totals) {
  if (has_last_ && now_ms < last_ms_) {
    has_last_ = false;
    points_.clear();
  }
  if (!IsDue(now_ms)) return;
  if (has_last_) {
    Point point{.ms = now_ms, .classes = {}};
    for (const auto& [key, total] : totals) {
      const auto before = last_.find(key);
      const double rate =
          RateOf(before == last_.end() ? 0 : before->second, total, now_ms - last_ms_);
      if (rate <= 0) continue;
      point.classes[key.first][key.second] += rate;
      point.classes[std::string(kAll)][key.second] += rate;
      if (node_api::IsExternalTraffic(key.first)) {
        point.classes[std::string(node_api::kExternalTraffic)][key.second] += rate;
      }
    }
    for (auto& [name, rates] : point.classes) KeepMost(rates, kMostNames);
    points_.push_back(std::move(point));
  }
  while (!points_.empty() && now_ms - points_.front().ms > kKeptMs) points_.pop_front();
  last_ms_ = now_ms;
  last_ = std::move(totals);
  has_last_ = true;
}

TrafficCourse TrafficHistory::Of(std::string_view traffic_class, size_t most) const {
  TrafficCourse course;
  const std::string wanted(traffic_class);
  std::map<std::string, double> sums;
  for (const Point& point : points_) {
    course.times_ms.push_back(point.ms);
    const auto found = point.classes.find(wanted);
    if (found == point.classes.end()) continue;
    for (const auto& [name, rate] : found->second) sums[name] += rate;
  }
  KeepMost(sums, std::min(most, kMostNames));
  for (const auto& [name, sum] : sums) {
    TrafficCourse::Line& line = course.lines.emplace_back();
    line.name = name;
    for (const Point& point : points_) {
      const auto found = point.classes.find(wanted);
      const bool has = found != point.classes.end() && found->second.contains(name);
      line.bits_per_second.push_back(has ? found->second.at(name) : 0);
    }
  }
  std::stable_sort(course.lines.begin(), course.lines.end(),
                   [&](const auto& a, const auto& b) { return sums.at(a.name) > sums.at(b.name); });
  return course;
}

std::vector<std::string> TrafficHistory::Classes() const {
  std::map<std::string, bool> seen;
  for (const Point& point : points_) {
    for (const auto& [name, rates] : point.classes) seen[name] = true;
  }
  std::vector<std::string> names;
  for (const auto& [name, yes] : seen) names.push_back(name);
  return names;
}

}  // namespace spoke::ipam
