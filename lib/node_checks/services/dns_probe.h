// Asks resolvers over UDP, all of them at once.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/node_checks/services/service_answers.h"

namespace spoke::node_checks {

struct DnsPatience {
  // How long one try waits for an answer. A resolver that has to ask others takes up to some
  // hundred milliseconds.
  absl::Duration answer = absl::Seconds(1);
  // How often a resolver is asked that does not answer, or not as it should, so that one or two
  // lost packets accuse nobody.
  int tries = 3;
};

// Returns what came of each question, in their order. A resolver that answered is not asked again;
// the others once per `answer`, so that all takes `tries` times as long at most. A second thread
// may make the descriptor `stop` readable, which ends it at once. Thread-safe (no state). Errors:
// as JudgeDnsReply(); kInvalidArgument (no name that could be asked for); kUnavailable (nobody
// listens at port 53, or no way there); kDeadlineExceeded (no answer); kCancelled (stopped).
std::vector<absl::Status> AskResolvers(const std::vector<ResolverQuestion>& questions,
                                       const DnsPatience& patience, int stop);

}  // namespace spoke::node_checks
