// The limits of what a peer may take of each port of ours, and why so much. All limits of a kind
// are in one place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "lib/rpc/peer_gate.h"

namespace spoke::rpc {

// The bytes of a handshake: enough for any start of TLS and HTTP/2 together with gRPC's largest
// headers.
inline constexpr int kMaxHeaderBytes = 8 << 10;

struct ListenerLimits {
  PeerLimits peers;
  // The bytes on the wire that one connection may send: so much at once, then so much a second; 0:
  // no limit. A reset of a stream, and a piece of a header, are bytes as well: gRPC bounds neither.
  int64_t burst_bytes = 0;
  int64_t bytes_per_second = 0;
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
// for a while. Its first message is 2 MiB at most, its reports some hundred bytes a pod. `peers` is
// as the configuration has it, since a whole fleet may come through one translated address.
constexpr ListenerLimits AgentLimits(size_t connections_per_address) {
  const auto share = static_cast<double>(connections_per_address);
  return {.peers = {.connections = 16'384,
                    .connections_per_address = connections_per_address,
                    .burst = 2 * share,
                    .per_second = share / 4,
                    .loopback_is_free = true},
          .burst_bytes = 32 << 20,
          .bytes_per_second = 256 << 10,
          .max_streams = 8,
          .memory_bytes = size_t{2} << 30U,
          .max_threads = 0,
          .idle = absl::Minutes(5)};
}
inline constexpr size_t kAgentConnectionsPerAddress = 64;

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
