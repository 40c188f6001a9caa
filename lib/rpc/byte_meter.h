// Decides whether a connection has sent too much: of all bytes, and of those that have not become
// messages, alone and together with the others of its address. Pure: time is an argument.
#pragma once

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/rpc/peer_gate.h"

namespace spoke::rpc {

// The meter. Not thread-safe.
class ByteMeter {
 public:
  // The bytes since the connection began.
  struct Sent {
    uint64_t bytes = 0;
    // Of these, what whole messages are, and what belongs to them. Read it before `bytes`.
    uint64_t whole = 0;
  };
  // What the meter knows of one connection.
  struct Connection {
    ip::Address peer;
    double allowance = 0;  // The bytes that it may send now.
    Sent sent;             // As of the last look.
    double unfinished = 0;
    absl::Time looked = absl::InfinitePast();
  };
  // The unfinished bytes that each connection of an address adds to what all of them may have
  // together, and those that each may have whatever the others have: more than most first messages
  // of agents, so that a fleet behind one address can start at once.
  static constexpr int64_t kShare = 32 << 10;
  static constexpr int64_t kAnyway = 64 << 10;

  explicit ByteMeter(const ListenerLimits& limits) : limits_(limits) {}

  Connection Begin(const ip::Address& peer, absl::Time now) const;
  // Takes what a connection has sent until now. Returns whether that is within the limits.
  bool Look(Connection& connection, const Sent& sent, absl::Time now);
  // Forgets the connection.
  void End(Connection& connection) { SetUnfinished(connection, 0); }

 private:
  void SetUnfinished(Connection& connection, double bytes);

  const ListenerLimits limits_;
  std::map<ip::Address, double> unfinished_;  // The sums of the connections' unfinished bytes.
};

}  // namespace spoke::rpc
