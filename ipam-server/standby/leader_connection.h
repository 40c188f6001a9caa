// A standby's connection to the leader, by whose end it notices that the leader's process is gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ipam-server/standby/overthrow.h"
#include "lib/ip/socket_address.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam {

// Not thread-safe. It never waits: its owner polls fd() for events(), until wake_ms() at most, and
// then calls Step(). Times are CLOCK_MONOTONIC's milliseconds.
class LeaderConnection {
 public:
  static constexpr int64_t kPatienceMs = 500;  // For an answer to a connect.
  static constexpr int64_t kPauseMs = 1000;    // Until the next, where there was no connection.
  static constexpr int64_t kHeldMs = 1000;     // What ends before was closed early.
  static constexpr int64_t kAgainMs = 20;  // Until a dial that was taken and let go is repeated.

  // `address`: host:port with a numeric host. With any other, or none, it stays kApart.
  explicit LeaderConnection(const std::string& address);

  int fd() const { return socket_.get(); }  // -1: nothing to poll for.
  short events() const;
  int64_t wake_ms() const { return due_ms_; }

  // Does what can be done now.
  LeaderLink Step(int64_t now_ms);

 private:
  std::optional<LinkEvent> StepOnce(int64_t now_ms);
  std::optional<LinkEvent> Dial(int64_t now_ms);
  std::optional<LinkEvent> FinishDial(int64_t now_ms);
  std::optional<LinkEvent> Look(int64_t now_ms) const;

  std::optional<ip::SocketAddress> address_;
  os::UniqueFd socket_;  // Dialing, or held.
  bool connected_ = false;
  int64_t connected_ms_ = 0;
  int64_t due_ms_ = 0;  // The next dial, or the end of the patience with this one.
  LeaderLink link_ = LeaderLink::kApart;
};

}  // namespace spoke::ipam
