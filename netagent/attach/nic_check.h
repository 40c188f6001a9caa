// Looks whether an address that is meant for pods is on the node's own device. Then the node itself
// would answer for it, so the address is not assigned for as long, and an operator has to hear of
// it: something on the node puts addresses there that it should leave alone, cloud-init as a rule.
// It is never removed here, since we have not put it there.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attachments.h"
#include "netagent/links/links.h"

namespace spoke::netagent {

inline constexpr absl::Duration kNicLook = absl::Seconds(30);

// Not thread-safe; the agent's one loop owns it.
class NicCheck {
 public:
  struct Edges {
    Links& links;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  // `secondaries`: the NIC's other addresses as the cloud says; reported like those the server has
  // listed. Borrows the edges and `attachments`.
  NicCheck(std::string device, std::set<ip::Address> secondaries, const Edges& edges,
           Attachments& attachments);

  // Looks now. Call it before anything that the server has just listed can be assigned. A device
  // that cannot be read leaves what was last seen in force.
  void Look();
  // Looks if the last time is kNicLook ago. Call at NextWake(), or at any time.
  void Tick();
  absl::Time NextWake() const { return next_; }

 private:
  const std::string device_;
  const std::set<ip::Address> secondaries_;
  const Edges edges_;
  Attachments& attachments_;
  absl::Time next_ = absl::InfinitePast();
  std::set<ip::Address> reported_;
  bool unreadable_ = false;
};

}  // namespace spoke::netagent
