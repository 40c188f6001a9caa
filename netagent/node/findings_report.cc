#include "netagent/node/findings_report.h"

#include <algorithm>
#include <utility>

namespace spoke::netagent {
namespace {

using node_api::NodeFinding;
using node_api::NodeFindings;
using node_checks::Severity;

// Numbers in the words of a finding change from look to look, and are no news.
bool IsNews(const NodeFindings& before, const NodeFindings& now) {
  return !std::equal(before.findings.begin(), before.findings.end(), now.findings.begin(),
                     now.findings.end(),
                     [](const NodeFinding& a, const NodeFinding& b) { return a.IsAbout(b); });
}

}  // namespace

NodeFindings SaidOf(const std::vector<node_checks::Finding>& findings) {
  NodeFindings said;
  for (const node_checks::Finding& finding : findings) {
    said.findings.push_back({.check = finding.id,
                             .blocking = finding.severity == Severity::kBlocking,
                             .object = finding.object,
                             .what = finding.what,
                             .remedy = finding.remedy});
  }
  std::stable_partition(said.findings.begin(), said.findings.end(),
                        [](const NodeFinding& finding) { return finding.blocking; });
  return said;
}

void FindingsReport::OnSession() {
  told_ = NodeFindings();
  next_ = absl::InfinitePast();
}

NodeFindings FindingsReport::Settled(std::vector<NodeFinding> found, absl::Time now) {
  const std::vector<Seen> before = std::exchange(seen_, {});
  NodeFindings settled;
  for (NodeFinding& finding : found) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const Seen& seen) {
      return seen.finding.IsAbout(finding);
    });
    const absl::Time since = known == before.end() ? now : known->since;
    if (now - since >= kSettle) {
      settled.findings.push_back(finding);
      settled.findings.back().age = absl::Floor(now - since, absl::Milliseconds(1));
    }
    seen_.push_back({std::move(finding), since});
  }
  return settled;
}

std::vector<NodeFinding> FindingsReport::latest() const {
  std::vector<NodeFinding> findings;
  for (const Seen& seen : seen_) findings.push_back(seen.finding);
  return findings;
}

void FindingsReport::Tick() {
  const absl::Time now = edges_.clock.Now();
  if (!edges_.read || now < next_) return;
  next_ = now + kLook;
  NodeFindings found = Settled(SaidOf(edges_.read()).findings, now);
  if (!IsNews(told_, found)) return;
  told_ = std::move(found);
  edges_.tell(told_);
}

}  // namespace spoke::netagent
