#include "ipam-server/traffic/traffic_book.h"

#include <string_view>

#include "absl/strings/str_cat.h"

namespace spoke::ipam {
namespace {

absl::string_view Abseil(std::string_view text) { return {text.data(), text.size()}; }

ClassTotals TotalsOf(const TrafficSums& sums) {
  ClassTotals totals;
  for (const TrafficSums::NamedSums& of : sums.Namespaces()) {
    for (const auto& [traffic_class, volume] : of.volumes) {
      totals[{traffic_class, of.name}] = volume.sent + volume.received;
    }
  }
  return totals;
}

}  // namespace

void TrafficBook::Take(const NodeKey& node, const node_api::TrafficReport& report) {
  absl::MutexLock lock(&mutex_);
  const auto count = [&](std::string_view kind, std::string_view name,
                         const TrafficDelta& delta) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string key =
        absl::StrCat(Abseil(kind), "/", Abseil(name), "/", Abseil(delta.traffic_class));
    auto found = counters_.find(key);
    if (found == counters_.end()) {
      const auto of = kind == "n" ? TrafficOf::kNamespace : TrafficOf::kTeam;
      found = counters_
                  .emplace(key, metrics_->TrafficBytes(of, std::string(name),
                                                       std::string(delta.traffic_class)))
                  .first;
    }
    found->second.first.Add(static_cast<double>(delta.volume.sent));
    found->second.second.Add(static_cast<double>(delta.volume.received));
  };
  sums_.Take(node, report, clock_.Now(),
             [&](const TrafficDelta& delta) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
               if (metrics_ == nullptr) return;
               count("n", delta.pod_namespace, delta);
               count("t", delta.team, delta);
             });
  const int64_t now_ms = absl::ToUnixMillis(clock_.Now());
  if (history_.IsDue(now_ms)) history_.Add(now_ms, TotalsOf(sums_));
}

TrafficCourse TrafficBook::CourseOf(std::string_view traffic_class, size_t most) const {
  absl::MutexLock lock(&mutex_);
  return history_.Of(traffic_class, most);
}

std::vector<std::string> TrafficBook::Classes() const {
  absl::MutexLock lock(&mutex_);
  return history_.Classes();
}

void TrafficBook::SetTeams(std::map<std::string, std::string> team_by_namespace) {
  absl::MutexLock lock(&mutex_);
  sums_.SetTeams(std::move(team_by_namespace));
}

void TrafficBook::Look(const std::function<void(const TrafficSums&, absl::Time now)>& look) const {
  absl::MutexLock lock(&mutex_);
  look(sums_, clock_.Now());
}

}  // namespace spoke::ipam
