// Asks the cloud's metadata service for the versions that it has.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/node_checks/services/metadata_reply.h"

namespace spoke::node_checks {

struct MetadataPatience {
  // How long one try waits for the whole answer: as long as TCP takes when its first packet, and
  // another one, are lost.
  absl::Duration answer = absl::Seconds(3);
  int tries = 2;
  absl::Duration pause = absl::Seconds(1);  // The pause between two of them.
};

// Asks until an answer is as it should be. Never by way of a proxy. A second thread may make the
// descriptor `stop` readable, which ends it at once. Thread-safe (no state). Errors: as
// JudgeMetadataReply(); kUnavailable (refused, or no way there); kDeadlineExceeded (no answer, or
// only its beginning); kCancelled (stopped).
absl::Status AskMetadata(const MetadataService& service, const MetadataPatience& patience,
                         int stop);

}  // namespace spoke::node_checks
