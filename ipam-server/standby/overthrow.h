// Whether a standby may overthrow the leader at once, or waits for the end of its lease. Pure.
//
// Only a leader whose process is known to be gone is overthrown: it has closed the connection that
// this standby held to it, and nobody listens there any more. Silence says nothing, since it may be
// the network's; the lease is for that.
#pragma once

#include <cstdint>

namespace spoke::ipam {

// What a standby knows by its connection to the leader.
enum class LeaderLink : uint8_t {
  kApart,   // There is no connection: the lease decides.
  kHeld,    // It is there.
  kClosed,  // It was closed; whether somebody still listens is being found out.
  // Somebody has taken the dial that followed. That may still be the process that ends: the kernel
  // closes its connections before what it listens on.
  kTaken,
  kGone,  // Nobody does: the leader may be overthrown.
};

enum class LinkEvent : uint8_t {
  kConnected,
  kRefused,      // The leader's machine says that nobody listens.
  kSilent,       // No answer in time, or an error of the network.
  kClosed,       // The leader has closed a connection that was held for a while.
  kClosedEarly,  // It was closed at once, as by a leader that has too many of them.
};

constexpr LeaderLink Next(LeaderLink link, LinkEvent event) {
  switch (link) {
    case LeaderLink::kApart:
      return event == LinkEvent::kConnected ? LeaderLink::kHeld : LeaderLink::kApart;
    case LeaderLink::kHeld:
      if (event == LinkEvent::kConnected) return LeaderLink::kHeld;
      return event == LinkEvent::kClosed ? LeaderLink::kClosed : LeaderLink::kApart;
    case LeaderLink::kClosed:
      if (event == LinkEvent::kConnected) return LeaderLink::kTaken;
      return event == LinkEvent::kRefused ? LeaderLink::kGone : LeaderLink::kApart;
    case LeaderLink::kTaken:
      if (event == LinkEvent::kConnected) return LeaderLink::kTaken;
      if (event == LinkEvent::kClosed || event == LinkEvent::kClosedEarly) {
        return LeaderLink::kClosed;
      }
      return LeaderLink::kApart;
    case LeaderLink::kGone:
      return LeaderLink::kGone;
  }
  return LeaderLink::kApart;
}

// A leader that was never reached, or that is only silent, is not gone.
static_assert(Next(LeaderLink::kApart, LinkEvent::kRefused) == LeaderLink::kApart);
static_assert(Next(LeaderLink::kApart, LinkEvent::kClosed) == LeaderLink::kApart);
static_assert(Next(LeaderLink::kHeld, LinkEvent::kRefused) == LeaderLink::kApart);
static_assert(Next(LeaderLink::kHeld, LinkEvent::kSilent) == LeaderLink::kApart);
static_assert(Next(LeaderLink::kHeld, LinkEvent::kClosedEarly) == LeaderLink::kApart);
static_assert(Next(LeaderLink::kClosed, LinkEvent::kSilent) == LeaderLink::kApart);
static_assert(Next(LeaderLink::kClosed, LinkEvent::kConnected) == LeaderLink::kTaken);
static_assert(Next(LeaderLink::kTaken, LinkEvent::kSilent) == LeaderLink::kApart);

}  // namespace spoke::ipam
