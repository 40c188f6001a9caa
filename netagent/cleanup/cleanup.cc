#include "netagent/cleanup/cleanup.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

// The settings that stay: others may have come to rely on them, and nobody knows what they were
// before.
constexpr const char* kSettingsThatStay[] = {"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding",
                                             "net.ipv6.conf.*.accept_ra"};

std::string PodLine(const CleanupOptions& options, const std::string& link) {
  const auto pod = options.pod_of_link.find(link);
  return pod == options.pod_of_link.end() ? link : fmt::format("{} ({})", link, pod->second);
}

}  // namespace

CleanupReport CleanUp(CleanupEdge& edge, const CleanupOptions& options) {
  CleanupReport report;
  NodeTraces traces;
  for (const absl::Status& unread : edge.Read(traces)) {
    report.failed.push_back({.what = "", .error = std::string(base::MessageOf(unread))});
  }
  CleanupPlan plan = PlanCleanup(traces);
  if (!plan.pods_links.empty() && !options.with_pods) {
    report.refused =
        "pods use links of ours: move them to another node first, or say --with-pods "
        "and they lose their network";
    for (const std::string& link : plan.pods_links) report.pods.push_back(PodLine(options, link));
    return report;
  }
  report.left = std::move(plan.left);
  for (Removal& removal : plan.removals) {
    const absl::StatusOr<bool> removed = edge.Remove(removal);
    if (!removed.ok()) {
      report.failed.push_back({.what = fmt::format("{} {}", NameOf(removal.kind), removal.what),
                               .error = std::string(base::MessageOf(removed.status()))});
    } else if (*removed) {
      report.removed.push_back(std::move(removal));
    }
  }
  return report;
}

std::string CleanupTable(const CleanupReport& report) {
  std::string text;
  for (const Removal& removal : report.removed) {
    text += fmt::format("removed  {:13}  {}\n", NameOf(removal.kind), removal.what);
  }
  for (const LeftAlone& left : report.left) {
    text += fmt::format("left     {}: {}\n", left.what, left.why);
  }
  for (const CleanupFailure& failure : report.failed) {
    text += fmt::format("failed   {}{}{}\n", failure.what, failure.what.empty() ? "" : ": ",
                        failure.error);
  }
  if (!report.refused.empty()) {
    text += fmt::format("refused: {}\n", report.refused);
    for (const std::string& pod : report.pods) text += fmt::format("  {}\n", pod);
  } else if (report.removed.empty() && report.failed.empty()) {
    text += "nothing to remove\n";
  } else if (!report.removed.empty()) {
    text += "settings stay as they are:";
    for (const char* setting : kSettingsThatStay) text += fmt::format(" {}", setting);
    text += "\n";
  }
  return text;
}

std::string CleanupJson(const CleanupReport& report) {
  nlohmann::ordered_json json;
  json["refused"] = report.refused;
  json["pods"] = report.pods;
  json["removed"] = nlohmann::ordered_json::array();
  for (const Removal& removal : report.removed) {
    json["removed"].push_back({{"kind", NameOf(removal.kind)}, {"what", removal.what}});
  }
  json["left"] = nlohmann::ordered_json::array();
  for (const LeftAlone& left : report.left) {
    json["left"].push_back({{"what", left.what}, {"why", left.why}});
  }
  json["failed"] = nlohmann::ordered_json::array();
  for (const CleanupFailure& failure : report.failed) {
    json["failed"].push_back({{"what", failure.what}, {"error", failure.error}});
  }
  json["settings_that_stay"] = kSettingsThatStay;
  // Paths need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace spoke::netagent
