// CNI's CHECK: one attachment, held against what was built and what the runtime was told.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/attach/assignments.h"
#include "netagent/attach/attachment_checker.h"
#include "netagent/attach/attachments.h"
#include "netagent/attach/repairer.h"
#include "netagent/links/inspector.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it. Nothing is changed by it: what it finds on a node
// that runs is mended by the Repairer soon after.
class AttachmentCheck final : public AttachmentChecker {
 public:
  using SpecOf = std::function<absl::StatusOr<AttachSpec>(const Assignment&)>;

  // Borrows all but `spec_of`.
  AttachmentCheck(SpecOf spec_of, Inspector& inspector, const Attachments& attachments,
                  const Repairer& repairer);

  // The message of kDataLoss has the first three differences and how many more there are.
  absl::Status Check(const AttachmentKey& key, const CheckExpectation& expected,
                     int pod_netns) override;

  absl::Status DataPath() const override;

 private:
  const SpecOf spec_of_;
  Inspector& inspector_;
  const Attachments& attachments_;
  const Repairer& repairer_;
};

}  // namespace spoke::netagent
