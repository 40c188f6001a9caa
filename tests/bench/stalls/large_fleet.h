// The server's loop over its real store with thousands of nodes, and the operators' service before
// it, in one process: agents and cloud are played, and every turn of the loop is measured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::stalls {

// The turns of the loop, without the time in which it waits for somebody to say something.
struct Turns {
  absl::Duration longest;      // The longest turn by the wall clock: so long everybody else waited.
  absl::Duration longest_cpu;  // The longest CPU time of the loop's thread.
  absl::Duration all;
  uint64_t count = 0;
};

// The fleet. Its functions are for one thread, except operators(), which is for any.
class LargeFleet {
 public:
  static constexpr uint32_t kAddressesANode = 27;

  // Makes a store in the new file `database` and `nodes` connected nodes, each with kAddressesANode
  // addresses of which 13 are assigned. The loop then runs. Errors: those of the store; kInternal
  // (the loop did not do as it was asked).
  static absl::StatusOr<std::unique_ptr<LargeFleet>> Create(const std::string& database,
                                                            uint32_t nodes);
  virtual ~LargeFleet() = default;

  // Returns the turns while `work` runs, and until nothing is left to do. Errors: those of `work`;
  // kDeadlineExceeded (there is always something left).
  virtual absl::StatusOr<Turns> Measure(const std::function<absl::Status()>& work) = 0;

  // Lets every node report at once that it assigns, or has taken back, so many addresses: in turns,
  // so that it never assigns more than 13 + `changes`. Waits for the acknowledgements. Errors:
  // kInternal (not all came).
  virtual absl::Status ReportAll(uint32_t changes) = 0;

  // Lets the first `nodes` nodes come back at once. Waits until all are welcomed. Errors: kInternal
  // (not all are).
  virtual absl::Status ReconnectSome(uint32_t nodes) = 0;

  // Lets the cloud list all NICs, as they are. Returns at once.
  virtual absl::Status ListNics() = 0;

  // Lets a commit fail, so that the server reads its store anew; returns when it takes writes
  // again. Errors: kInternal (it does not).
  virtual absl::Status FailStore() = 0;

  virtual v1::AdminService::Stub& operators() = 0;
};

}  // namespace spoke::stalls
