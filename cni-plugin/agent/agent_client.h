// Makes one exchange with the agent: a request packet, with the pod's namespace as a descriptor,
// and an answer packet, under a deadline.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cni-plugin/expected.h"
#include "lib/cni_api/wire.h"

namespace spoke::cni {

// The times to try, in milliseconds; each is within the deadline too.
struct Patience {
  int deadline_ms = 0;  // The time for the whole exchange.
  int absent_ms = 0;    // The time while nobody listens on the socket: the agent may be starting.
  int hung_up_ms = 0;   // The time after the agent has first gone away without an answer.
  // The time after an agent has stopped in order (see cni::StoppedMark): another replaces it, as a
  // rule.
  int replaced_ms = 0;
  // The time beyond the deadline: the agent answers at it, and an answer says more.
  int grace_ms = 0;
};

// The most that a request may have: 5,000 attachments of a GC fit.
inline constexpr size_t kMaxRequestBytes = 1 << 20;

// Returns the milliseconds of CLOCK_MONOTONIC.
int64_t MonotonicMs();

// Asks the agent at `socket`, again under the same `attempt` where it goes away before it answers.
// Sets the request's deadline. `netns` is borrowed; negative: none. An error that the agent answers
// is a response like others.
// Errors: code 11 where it may work later (no agent, or none that answers in time: `message` says
// which and what to do); 100: the answer is none, or the request is too large.
Expected<Response> Ask(const std::string& socket, Request request, int netns,
                       const Patience& patience);

// A DEL that no agent has heard of yet, kept on disk, so that a pod goes away while the agent is
// down, and the agent frees what it held when it is back.

// Returns the name of the file for an attachment: 16 hexadecimal digits of FNV-1a-64 over container
// id, a NUL, and interface name.
std::string TombstoneName(const std::string& container_id, const std::string& ifname);

// Returns where the tombstones of the agent at `socket` are: "tombstones" beside it.
std::string TombstoneFolder(const std::string& socket);

// Writes `del`, encoded, for the agent at `socket`. It appears whole or not at all, readable for
// its owner alone, in a folder that is made if it is missing. A second call for the same attachment
// replaces the first's. `del.attempt` makes the temporary name.
// Errors: code 11 (the attachment is not freed and the runtime should ask again).
std::optional<Error> LeaveTombstone(const std::string& socket, const Request& del);

// Standard input and output, of which others have the other end: read whole and written whole,
// under a deadline.

inline constexpr size_t kMaxInputBytes = 4 << 20;

// Reads all of `fd` up to its end. The result lies in `buffer` if it is smaller, else in
// `overflow`. Errors: code 5 (unreadable, longer than kMaxInputBytes, or not closed within
// `deadline_ms`).
Expected<std::string_view> ReadWhole(int fd, int deadline_ms, std::span<char> buffer,
                                     std::string& overflow);

// Returns false when not all was taken, because the other end is closed, full for `deadline_ms`, or
// broken.
bool WriteWhole(int fd, std::string_view text, int deadline_ms);

}  // namespace spoke::cni
