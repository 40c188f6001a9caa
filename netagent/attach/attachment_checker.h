// What the verbs CHECK and STATUS ask: whether the kernel holds what it should.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/ip/address.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// What prevResult says about an interface: what was built, with what plugins chained after ours
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

  // Changes nothing. `pod_netns` is borrowed for the call. OK: everything is as it should be.
  // Errors: kDataLoss (something is missing or different; the message lists it, and so for an
  // attachment that the agent does not know); kUnavailable (the kernel could not be read).
  virtual absl::Status Check(const AttachmentKey& key, const CheckExpectation& expected,
                             int pod_netns) = 0;

  // What keeps the node from carrying its pods' traffic, as far as the last rounds of repairs know;
  // OK: nothing that one pod would not have alone. From memory.
  virtual absl::Status DataPath() const { return absl::OkStatus(); }
};

}  // namespace spoke::netagent
