// Asks a program of ours, or any other, by gRPC's health protocol how it is. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::rpc {

struct Health {
  bool serving = false;
  std::vector<std::string> reasons;  // The reasons why not, a line each; another program says none.

  bool operator==(const Health&) const = default;
};

// Asks. `address` is as HealthService has it, `service` "readiness", "liveness" or "". Errors:
// kUnavailable (nobody listens there), kDeadlineExceeded (no answer `within`), kNotFound (it has no
// such service), kUnimplemented (it does not speak the protocol).
absl::StatusOr<Health> AskHealth(const std::string& address, const std::string& service,
                                 absl::Duration within);

}  // namespace spoke::rpc
