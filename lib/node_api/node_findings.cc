#include "lib/node_api/node_findings.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/node_api/fields.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {

using base::CutText;

void ToWire(const NodeFindings& in, v1::NodeFindings& out) {
  const size_t count = std::min(in.findings.size(), static_cast<size_t>(kMaxFindings));
  for (size_t i = 0; i < count; ++i) {
    const NodeFinding& finding = in.findings[i];
    v1::NodeFinding& to = *out.add_findings();
    to.set_check(finding.check);
    to.set_blocking(finding.blocking);
    to.set_object(CutText(finding.object, kMaxFindingBytes));
    to.set_what(CutText(finding.what, kMaxFindingBytes));
    to.set_remedy(CutText(finding.remedy, kMaxFindingBytes));
    to.set_age_ms(absl::ToInt64Milliseconds(finding.age));
  }
}

absl::StatusOr<NodeFindings> FromWire(const v1::NodeFindings& in) {
  NodeFindings findings;
  for (int i = 0; i < std::min(in.findings_size(), kMaxFindings); ++i) {
    const v1::NodeFinding& finding = in.findings(i);
    if (absl::Status named = CheckName("check", finding.check(), kMaxNameBytes); !named.ok()) {
      return At("findings", i, named);
    }
    findings.findings.push_back({.check = finding.check(),
                                 .blocking = finding.blocking(),
                                 .object = CutText(finding.object(), kMaxFindingBytes),
                                 .what = CutText(finding.what(), kMaxFindingBytes),
                                 .remedy = CutText(finding.remedy(), kMaxFindingBytes),
                                 .age = std::clamp(absl::Milliseconds(finding.age_ms()),
                                                   absl::ZeroDuration(), kMaxFindingAge)});
  }
  return findings;
}

}  // namespace spoke::node_api
