// The list of the addresses that the host says it has programmed for the node's NIC.
#pragma once

#include <functional>
#include <set>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::netagent {

class HostList {
 public:
  virtual ~HostList() = default;

  using Done = std::function<void(absl::StatusOr<std::set<ip::Address>>)>;

  // Begins a reading and returns at once; `done` is called with its outcome, once, on a thread of
  // the reader's: it must only post to the agent's loop. False: the one before is not done yet, and
  // `done` is not called.
  virtual bool Read(Done done) = 0;
};

}  // namespace spoke::netagent
