// Network namespaces as values: opened, told apart, entered and left, and known again at their
// path.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netns/trace.h"
#include "lib/os/unique_fd.h"

namespace spoke::netns {

// The identity of a namespace: equal for two handles exactly when they are of one namespace. This
// holds only as long as one of them is open: the kernel gives the number of a dead namespace to a
// new one.
struct Identity {
  uint64_t device = 0;
  uint64_t inode = 0;

  auto operator<=>(const Identity&) const = default;
};

// Keeps one network namespace alive by a descriptor of it. Thread-safe (never changes).
class Netns {
 public:
  // Opens the one the calling thread is in. Errors: as errno says.
  static absl::StatusOr<Netns> Current();

  // Opens a file such as /proc/PID/ns/net or what a runtime mounted. Does not block on a FIFO and
  // does not care for a link's target: verify where the path comes from. Errors: kNotFound,
  // kPermissionDenied, kFailedPrecondition (not a network namespace).
  static absl::StatusOr<Netns> Open(const std::string& path);

  // Makes a new one with nothing in it but a loopback device that is down; it ends with its last
  // descriptor. The calling thread is for a moment in it, and then back as after Run(). Errors:
  // kPermissionDenied (no CAP_SYS_ADMIN); kResourceExhausted; as errno says.
  static absl::StatusOr<Netns> Create();

  // Copies a descriptor: the caller keeps its own. Errors: kFailedPrecondition (not open, or not of
  // a network namespace); kResourceExhausted.
  static absl::StatusOr<Netns> FromDescriptor(int fd);

  const Identity& identity() const { return identity_; }
  // Returns the descriptor, borrowed.
  int fd() const { return fd_.get(); }

  // Returns the number that the kernel gives to no other namespace before it boots
  // (SO_NETNS_COOKIE), never 0. Errors: kUnimplemented (before Linux 5.14); as Run() and errno say.
  absl::StatusOr<uint64_t> Cookie() const;

  // Runs `inside` in this namespace, on the calling thread, and comes back: afterwards the thread
  // is where it was, or the program has ended (CHECK), since what it does next would be done to a
  // pod. Other threads do not notice. Sockets opened inside stay bound to it; /proc/sys/net is the
  // namespace's while inside.
  // Errors: kPermissionDenied (no CAP_SYS_ADMIN); what `inside` returns.
  absl::Status Run(absl::FunctionRef<absl::Status()> inside) const;

 private:
  Netns(os::UniqueFd fd, Identity identity) : fd_(std::move(fd)), identity_(identity) {}

  // Takes over `fd` if it is a network namespace's. `what` names it in an error.
  static absl::StatusOr<Netns> Verify(os::UniqueFd fd, const std::string& what);

  os::UniqueFd fd_;
  Identity identity_;
};

// Looks at what is at `path` now: the directory in which it ends, and the namespace that it leads
// to. Both parts are 0 where there is no such directory, the namespace's where there is nothing of
// that name. Errors: kInvalidArgument (a path that is not absolute); kFailedPrecondition (there is
// something else than a network namespace: from within a container, one whose mount is not seen);
// kPermissionDenied; what errno says.
absl::StatusOr<Trace> LookAt(const std::string& path);

// Looks at `path` if it leads to the namespace of the descriptor `netns`, which is borrowed; if it
// does not, or cannot be looked at, returns a trace by which nothing is known again. Takes some ten
// microseconds.
Trace TraceOf(const std::string& path, int netns);

}  // namespace spoke::netns
