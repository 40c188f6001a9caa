// Decides which of many peers may connect: how many connections one address may have, and how often
// it may open one, so that no peer takes the places of the others; says what these limits are at
// each port of ours. Pure: time is an argument.
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
  // How long an address stays out that has broken another limit; zero: for the time in which its
  // burst comes back.
  absl::Duration penalty = absl::ZeroDuration();
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
  // Notes that `peer` has broken a limit: it stays out for the penalty.
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

// The limits of what a peer may take of each port of ours, and why so much. All limits of a kind
// are in one place.

// The bytes of a handshake: enough for any start of TLS and HTTP/2 together with gRPC's largest
// headers.
inline constexpr int kMaxHeaderBytes = 8 << 10;

struct ListenerLimits {
  PeerLimits peers;
  // The bytes on the wire that one connection may send: so much at once, then so much a second; 0:
  // no limit. A reset of a stream, and a piece of a header, are bytes as well: gRPC bounds neither.
  int64_t burst_bytes = 0;
  int64_t bytes_per_second = 0;
  // The bytes on the wire of one connection that have not become whole messages, and of what
  // belongs to these (MessageCounter): so much at once, then so much a second; 0: no limit. Several
  // connections of one address have little more together. gRPC copies all of an unfinished header
  // for each piece of it that arrives, so that the cost grows with the square of this.
  int64_t unfinished_bytes = 0;
  int64_t unfinished_bytes_per_second = 0;
  // The bytes that the kernel keeps of one connection for us to read, which gRPC reads even after a
  // connection was cut; 0: as much as the kernel likes, some megabytes.
  int receive_buffer_bytes = 0;
  int max_streams = 0;  // The most streams at once, of one connection.
  int max_header_bytes = kMaxHeaderBytes;
  // The bytes that gRPC may keep for all connections together; it refuses streams when that is used
  // up.
  size_t memory_bytes = 0;
  int max_threads = 0;                           // The most threads of gRPC's, for calls.
  absl::Duration handshake = absl::Seconds(10);  // The time for TLS and the beginning of HTTP/2.
  // The time after which a peer is cut that takes nothing of what it is sent, or is gone without a
  // word.
  absl::Duration unread = absl::Seconds(20);
  absl::Duration idle = absl::InfiniteDuration();  // The time without a stream.
  // The longest life of a connection, whatever it does.
  absl::Duration lifetime = absl::InfiniteDuration();
};

// Returns the limits of enrollment: anybody may come, asks once for some kilobytes, and goes.
// Agents of thousands of nodes start at once, each from an address of its own.
inline constexpr ListenerLimits kEnrollLimits{
    .peers = {.connections = 1024, .connections_per_address = 8, .burst = 16, .per_second = 4},
    .burst_bytes = 48 << 10,
    .bytes_per_second = 4 << 10,
    .receive_buffer_bytes = 16 << 10,
    .max_streams = 4,
    .memory_bytes = 64U << 20U,
    .max_threads = 20,
    .handshake = absl::Seconds(5),
    .unread = absl::Seconds(10),
    .idle = absl::Seconds(15),
    .lifetime = absl::Minutes(2)};

// Returns the limits of agents: one connection a node, for days; an agent that starts again has two
// for a while. A message is 2 MiB at most, and only the first comes near; its reports are some
// hundred bytes a pod. `connections_per_address` is as the configuration has it, since a whole
// fleet may come through one translated address.
constexpr ListenerLimits AgentLimits(size_t connections_per_address) {
  const auto share = static_cast<double>(connections_per_address);
  return {.peers = {.connections = 20'480,
                    .connections_per_address = connections_per_address,
                    .burst = 2 * share,
                    .per_second = share / 4,
                    .penalty = absl::Minutes(5),
                    .loopback_is_free = true},
          .burst_bytes = 32 << 20,
          .bytes_per_second = 256 << 10,
          .unfinished_bytes = (2 << 20) + (256 << 10),
          .unfinished_bytes_per_second = 1 << 10,
          .receive_buffer_bytes = 128 << 10,
          .max_streams = 8,
          .memory_bytes = size_t{2} << 30U,
          .max_threads = 0,
          .idle = absl::Minutes(5)};
}
inline constexpr size_t kAgentConnectionsPerAddress = 64;

// Returns the limits of operators who come over the network with a certificate, some at once from
// behind one address. Policy files have 3 MiB at most.
inline constexpr ListenerLimits kOperatorLimits{
    .peers =
        {
            .connections = 256,
            .connections_per_address = 32,
            .burst = 64,
            .per_second = 8,
            .penalty = absl::Minutes(5),
        },
    .burst_bytes = 32 << 20,
    .bytes_per_second = 1 << 20,
    .unfinished_bytes = (4 << 20) + (256 << 10),
    .unfinished_bytes_per_second = 1 << 10,
    .receive_buffer_bytes = 128 << 10,
    .max_streams = 64,
    .memory_bytes = 512U << 20U,
    .max_threads = 64,
    .idle = absl::Minutes(5),
};

// Returns the limits of operators, who come through a socket that only root opens: against
// mistakes, not against enemies.
inline constexpr ListenerLimits kAdminLimits{
    .peers = {.connections = 256, .connections_per_address = 256, .burst = 1024, .per_second = 256},
    .burst_bytes = 0,
    .bytes_per_second = 0,
    .max_streams = 64,
    .memory_bytes = size_t{1} << 30U,
    .max_threads = 0};

}  // namespace spoke::rpc
