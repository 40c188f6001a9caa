// How long the texts and lists in messages between server and agents may be. Of many values the
// count is bounded, of texts the length; what a whole message may have is gRPC's to bound. A name
// or an id beyond its bound is an error; a text for people is cut. Bounds of one topic only are in
// the topic's own header. Values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spoke::node_api {

inline constexpr size_t kMaxNameBytes = 253;    // RFC 1123 host names, and plenty for the rest.
inline constexpr size_t kMaxIdBytes = 512;      // A cloud's VM id is a path.
inline constexpr size_t kMaxErrorBytes = 4096;  // Errors of an agent, for an operator.
inline constexpr int kMaxAssignments = 8192;    // Far above what one node can hold.
// Of a list of addresses or ranges; and of the addresses of one node, blocks taken apart.
inline constexpr uint64_t kMaxAddresses = 8192;
// A reason goes into every waiting pod's error, or into the agent's log. The server cuts what it
// says, and the agent what it takes.
inline constexpr size_t kMaxReasonBytesSaid = 1024;
inline constexpr size_t kMaxReasonBytesTaken = 512;

}  // namespace spoke::node_api
