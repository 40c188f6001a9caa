// The runs the swarm can make.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/bench/swarm/measures.h"
#include "tests/bench/swarm/swarm.h"

namespace spoke::swarm {

struct Plan {
  // The timeout is that of a real agent's connect deadline.
  absl::Duration agent_timeout = absl::Seconds(20);
  absl::Duration deadline = absl::Minutes(3);  // The deadline of each step of a run.
  absl::Duration duration = absl::Seconds(10);
  absl::Duration warm_up = absl::Seconds(2);
  uint32_t pods = 1;    // The pods of a node, assigned and given back in turn.
  uint32_t assign = 0;  // The number to assign in all, before anything else.
  // Whether faults of the server are counted, and do not end the run.
  bool count_faults = false;
  // Where the servers keep their records, to be read behind their backs; none: nowhere that can be.
  std::vector<std::string> etcd;
};

// Each starts the swarm, prints events on standard output as JSON, one a line, and returns the
// result. Errors: kDeadlineExceeded (a step took longer than the plan's deadline; how far it came
// is in the message) and those of the standard streams.

// Connects all and waits until each has its addresses.
absl::StatusOr<Json> RunStorm(Swarm& swarm, const Plan& plan);
// Does what RunStorm() does, then keeps still for `duration`.
absl::StatusOr<Json> RunSteady(Swarm& swarm, const Plan& plan);
// Does what RunStorm() does, then assigns and releases as fast as the server acknowledges, for
// `duration`.
absl::StatusOr<Json> RunChurn(Swarm& swarm, const Plan& plan);
// Does what RunStorm() does, assigns, then obeys standard input, a command a line, until its end:
//   killed         the server is dead: what is synced from now on counts
//   wait           until all are synced since, and nothing is unacknowledged; prints "synced"
//   holdings FILE  writes what the nodes hold (WriteHoldings)
//   work           starts `pods` a node that come and go
//   rest           lets them come to an end; prints "resting"
absl::StatusOr<Json> RunRecover(Swarm& swarm, const Plan& plan);
// Does what RunStorm() does, assigns, then obeys standard input while servers, of which one leads,
// are killed and stopped:
//   pods N         so many pods a second come and go from now on
//   strike PID N   sends signal N to that process; what is acknowledged from now on is measured
//   await SHARE    until so great a share of the agents has had a write acknowledged since; prints
//                  "answered"
//   watch SECONDS  measures so long since the strike, whoever has an answer; prints "answered"
//   read           reads what the leader at the last strike has left, for the judgement at the end;
//                  prints "read"
// The result has the judgement of every address's history (tests/ha/history): doubled, lost.
absl::StatusOr<Json> RunHa(Swarm& swarm, const Plan& plan);

}  // namespace spoke::swarm
