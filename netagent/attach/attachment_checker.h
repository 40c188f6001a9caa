// The interface behind the verbs CHECK and STATUS: whether the kernel holds what it should.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/ip/address.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// The contents of prevResult for an interface: what was built, with what plugins chained after ours
// have changed since and recorded there (a MAC, say). Empty or 0: it does not say.
struct CheckExpectation {
  std::string host_link;
  std::optional<ip::MacAddress> pod_mac = std::nullopt;
  uint32_t mtu = 0;  // Bytes.
  std::vector<ip::Address> addresses = {};

  bool operator==(const CheckExpectation&) const = default;
};

// Not thread-safe; called on the agent's loop.
class AttachmentChecker {
 public:
  virtual ~AttachmentChecker() = default;

  // Compares; changes nothing. `pod_netns` is borrowed for the call. OK: all is as it should be.
  // Errors: kDataLoss (something is missing or different; the message lists it; also when the agent
  // does not know the attachment); kUnavailable (the kernel could not be read).
  virtual absl::Status Check(const AttachmentKey& key, const CheckExpectation& expected,
                             int pod_netns) = 0;

  // Says from memory what keeps the node from carrying its pods' traffic, as far as the last rounds
  // of repairs know; OK: nothing, or only what one pod has alone.
  virtual absl::Status DataPath() const { return absl::OkStatus(); }
};

}  // namespace spoke::netagent
