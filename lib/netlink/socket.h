// A netlink socket as a value: opened, moved, closed with its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

namespace spoke::netlink {

// The part of the kernel at the other end.
enum class Protocol : uint8_t { kRoute, kNetfilter };

// Owns one descriptor and a receive buffer. Not thread-safe; move it to the thread
// that uses it. Callers want exchange.h: this is the transport below it.
class Socket {
 public:
  // Opens in the calling thread's network namespace, and stays bound to that namespace.
  // Errors: kPermissionDenied (sandboxed), kResourceExhausted (out of descriptors or memory).
  static absl::StatusOr<Socket> Open(Protocol protocol = Protocol::kRoute);

  // Takes over a descriptor that has the kernel's netlink at its other end, or in a test something
  // that plays it. `port_id` is what that answers to.
  static Socket Adopt(os::UniqueFd fd, uint32_t port_id) { return Socket(std::move(fd), port_id); }

  // Makes room for sending so much in one call; what is sent without this call takes at most 200
  // KiB. Errors: kResourceExhausted (more than this process may have).
  absl::Status ReserveToSend(size_t bytes);

  // Sends one or more whole messages in one call. The kernel has worked through all of them when
  // this returns. Errors: kUnavailable (buffer full, send again later); as errno says.
  absl::Status Send(std::span<const uint8_t> messages);

  // Returns the kernel's next datagram; valid until the next call. Errors: kDeadlineExceeded
  // (nothing came for 5 seconds); kResourceExhausted (the kernel had to drop answers); kDataLoss
  // (too long for the buffer).
  absl::StatusOr<std::span<const uint8_t>> Receive();

  // Throws away what is waiting, so that an exchange that failed half-way does not reach into the
  // next one; ends a dump that is still under way.
  void Discard();

  // Returns one more than the last one; wraps.
  uint32_t NextSequence() { return ++sequence_; }
  // Uses up so many numbers, for a sender that numbers its messages itself, from NextSequence() on.
  void SkipSequences(uint32_t count) { sequence_ += count; }
  // The port of this socket. Replies to other ports are not ours.
  uint32_t port_id() const { return port_id_; }

 private:
  Socket(os::UniqueFd fd, uint32_t port_id);

  os::UniqueFd fd_;
  uint32_t port_id_;  // The kernel assigned it.
  uint32_t sequence_ = 0;
  std::unique_ptr<uint8_t[]> buffer_;
};

}  // namespace spoke::netlink
