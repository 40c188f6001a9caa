// The bounds of texts and lists in messages between server and agents. A list has a bounded count
// and a text a bounded length; the size of a whole message is gRPC's to bound. A name or an id
// beyond its bound is an error; a text for people is cut. Bounds of one topic only are in the
// topic's own header. Values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spoke::node_api {

// The longest name: RFC 1123 host names, and plenty for the rest.
inline constexpr size_t kMaxNameBytes = 253;
inline constexpr size_t kMaxIdBytes = 512;      // The longest id; a cloud's VM id is a path.
inline constexpr size_t kMaxErrorBytes = 4096;  // The longest error of an agent, for an operator.
// The most assignments, far above what one node can hold.
inline constexpr int kMaxAssignments = 8192;
// The most entries of a list of addresses or ranges, and the most addresses of one node, blocks
// taken apart.
inline constexpr uint64_t kMaxAddresses = 8192;
// The longest reason. It goes into every waiting pod's error, or into the agent's log. The server
// cuts what it says, and the agent what it takes.
inline constexpr size_t kMaxReasonBytesSaid = 1024;
inline constexpr size_t kMaxReasonBytesTaken = 512;

}  // namespace spoke::node_api
