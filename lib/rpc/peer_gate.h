// Decides which of many peers may connect: how many connections one address may have, and how often
// it may open one, so that no peer takes the places of the others. Pure: time is an argument.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::rpc {

// The factor for a /64. An IPv6 /64 belongs to one machine as well as to a whole subnet of nodes
// and pods: all its addresses together have this many times what one address has.
inline constexpr size_t kNetworkShare = 16;

struct PeerLimits {
  size_t connections = 0;              // The most connections at once, of all peers together.
  size_t connections_per_address = 0;  // The most connections at once of one address.
  // The new connections of one address: so many at once, then so many a second. Each costs us a
  // handshake.
  double burst = 0;
  double per_second = 0;
  // Whether programs of this machine, which come from its loopback addresses, have only the limit
  // of all.
  bool loopback_is_free = false;
};

enum class Refusal : uint8_t {
  kPeerConnections,  // This address, or its /64, has as many as it may.
  kPeerRate,         // It opened too many in too little time.
  kFull,             // All places are taken, by peers that have no more than this one.
  kBytes,            // It sent more than a connection may.
  kUnauthorized,     // It did not show what this port asks of strangers.
};
inline constexpr size_t kRefusals = 5;
std::string_view NameOf(Refusal refusal);

// The counts by Refusal.
using RefusalCounts = std::array<uint64_t, kRefusals>;

// The gate. Not thread-safe. Remembers addresses that have connections, and for some seconds those
// that had.
class PeerGate {
 public:
  explicit PeerGate(const PeerLimits& limits) : limits_(limits) {}

  struct Verdict {
    std::optional<Refusal> refused;  // The reason; nullopt: it is let in, and must Leave().
    // The address whose oldest connection has to be closed to make room; it still has to Leave().
    std::optional<ip::Address> evict;
  };
  Verdict Enter(const ip::Address& peer, absl::Time now);
  // Notes that one connection of `peer` has ended.
  void Leave(const ip::Address& peer);
  // Notes that `peer` has broken a limit: it gets in again after twice the time that its burst
  // takes to refill.
  void Punish(const ip::Address& peer, absl::Time now);

  size_t connections() const { return open_; }
  // Returns how many addresses and networks it remembers.
  size_t remembered() const { return peers_.size(); }

 private:
  struct Peer {
    size_t open = 0;
    double tokens = 0;
    absl::Time counted = absl::InfinitePast();  // The time when `tokens` was right.
  };

  Peer& Find(const ip::Prefix& key, double share, absl::Time now);
  std::optional<Refusal> Check(const Peer& peer, size_t share) const;
  bool IsFree(const ip::Address& peer) const;
  void Forget(absl::Time now);

  const PeerLimits limits_;
  size_t open_ = 0;
  // The peers by host, and for IPv6 by /64 as well.
  std::map<ip::Prefix, Peer> peers_;
  size_t forget_at_ = 1024;
};

}  // namespace spoke::rpc
