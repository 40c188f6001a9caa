// An HTTP port that says whether a role works, for load balancers and for other agents: whatever is
// asked, 200 or 503 with the reason. Closed while the role does not want to be found at all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/status.h"
#include "lib/ip/address.h"
#include "lib/os/event_loop.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {

// The port belongs to the loop's thread.
class HealthPort {
 public:
  // The most who ask at once; beyond it, who came first is cut off.
  static constexpr size_t kMaxAsking = 64;

  // Borrows the loop, which must outlive it.
  HealthPort(os::EventLoop& loop, std::function<absl::Status()> health)
      : loop_(loop), health_(std::move(health)) {}
  HealthPort(const HealthPort&) = delete;
  HealthPort& operator=(const HealthPort&) = delete;
  ~HealthPort() { Close(); }

  // Listens at `address` (any: 0.0.0.0 or ::). Does nothing when it listens already. Port 0 is the
  // kernel's choice. Errors: kUnavailable (somebody else has the port), as errno says.
  absl::Status Open(const ip::Address& address, uint16_t port);
  // Closes the port: nobody gets in any more, and who asks already is cut off.
  void Close();
  bool is_open() const { return listener_.valid(); }
  uint16_t port() const { return port_; }

 private:
  void Accept();
  void Answer(int fd);
  void Drop(int fd);

  os::EventLoop& loop_;
  const std::function<absl::Status()> health_;
  os::UniqueFd listener_;
  uint16_t port_ = 0;
  std::map<uint64_t, os::UniqueFd> asking_;  // The connections, in the order in which they came.
  uint64_t next_ = 0;
};

}  // namespace spoke::netagent
