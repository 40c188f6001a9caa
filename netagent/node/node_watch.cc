#include "netagent/node/node_watch.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"

namespace spoke::netagent {
namespace {

using node_checks::Finding;
using node_checks::Severity;

// A finding stays the same while its numbers change: "1,200 KiB left", "1,196 KiB left".
bool IsSame(const Finding& a, const Finding& b) {
  return a.id == b.id && a.object == b.object && a.severity == b.severity;
}

bool IsAmong(const Finding& finding, const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& other) { return IsSame(finding, other); });
}

}  // namespace

NodeWatch::~NodeWatch() {
  {
    const absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void NodeWatch::Start() {
  thread_ = std::thread([this] { Run(); });
}

void NodeWatch::Run() {
  while (true) {
    Look();
    const absl::Duration pause = counts().blocking > 0 ? kPauseBlocked : kPause;
    const absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stop_), pause)) return;
  }
}

void NodeWatch::Look() {
  node_checks::Report report = examine_();
  LogNotMade(std::move(report.not_made));
  std::vector<Finding> now = std::move(report.findings);
  std::vector<Finding> before;
  {
    const absl::MutexLock lock(&mutex_);
    before = std::exchange(findings_, now);
  }
  Log(before, now);
}

void NodeWatch::LogNotMade(std::vector<node_checks::CheckNotMade> now) {
  for (const node_checks::CheckNotMade& check : now) {
    if (std::find(not_made_.begin(), not_made_.end(), check) != not_made_.end()) continue;
    log_.Info("node_check_not_made", {{"check", check.id}, {"why", check.why}});
  }
  not_made_ = std::move(now);
}

void NodeWatch::Log(const std::vector<Finding>& before, const std::vector<Finding>& now) {
  for (const Finding& finding : now) {
    if (IsAmong(finding, before)) continue;
    if (finding.severity == Severity::kBlocking) {
      log_.Error("node_check_blocking", {{"check", finding.id},
                                         {"object", finding.object},
                                         {"what", finding.what},
                                         {"why", finding.why},
                                         {"remedy", finding.remedy}});
    } else {
      log_.Warn("node_check_warning", {{"check", finding.id},
                                       {"object", finding.object},
                                       {"what", finding.what},
                                       {"why", finding.why},
                                       {"remedy", finding.remedy}});
    }
  }
  for (const Finding& finding : before) {
    if (IsAmong(finding, now)) continue;
    log_.Info("node_check_over", {{"check", finding.id},
                                  {"object", finding.object},
                                  {"severity", NameOf(finding.severity)}});
  }
}

std::vector<std::string> NodeWatch::Reasons() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> reasons;
  for (const Finding& finding : findings_) {
    if (finding.severity != Severity::kBlocking) continue;
    reasons.push_back(fmt::format("{}: {} {}; remedy: {}", finding.id, finding.object, finding.what,
                                  finding.remedy));
  }
  return reasons;
}

std::vector<Finding> NodeWatch::findings() const {
  const absl::MutexLock lock(&mutex_);
  return findings_;
}

NodeFindingCounts NodeWatch::counts() const {
  const absl::MutexLock lock(&mutex_);
  NodeFindingCounts counts;
  for (const Finding& finding : findings_) {
    ++(finding.severity == Severity::kBlocking ? counts.blocking : counts.warnings);
  }
  return counts;
}

}  // namespace spoke::netagent
