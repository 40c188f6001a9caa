// A netlink socket as a value (opened, moved, closed with its owner), and the exchanges over it:
// requests and their answers, as a batch in one send, one object, or a whole dump.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/message.h"
#include "lib/os/unique_fd.h"

namespace spoke::netlink {

// The part of the kernel at the other end.
enum class Protocol : uint8_t { kRoute, kNetfilter };

// Owns one descriptor and a receive buffer. Not thread-safe; move it to the thread that uses it.
// Callers want the exchanges below: this is the transport for them.
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

// The most requests of a batch, so that its answers fit the socket's buffer, all of them refusals
// included.
inline constexpr size_t kMaxBatch = 256;

// The outcome of a batch.
struct BatchResult {
  // OK when every request was done, or refused with the errno it tolerates. Otherwise the first
  // refusal: "<what> (request 2 of 5, kernel: <its words>): <strerror>", or why the answers did not
  // come, in which case any of the requests may have been done.
  absl::Status status;
  // The first refused request; nullopt when all were done and when the answers did not come.
  std::optional<size_t> refused;
};

// Sends all requests in one call and reads the answers. Only the last is asked for an
// acknowledgement: the kernel works in order and reports every error unasked.
//
// This is no transaction: after a refusal the kernel goes on with the next request, so the caller
// undoes. There are at most kMaxBatch requests (CHECK); an empty batch is done.
BatchResult SendBatch(Socket& socket, std::span<const Request> batch);

// Returns the one object that `request` asks for, as the payload of a message of type `type`,
// copied. Errors: the kernel's refusal (kNotFound for an unknown name or index); kDeadlineExceeded;
// kDataLoss.
absl::StatusOr<std::vector<uint8_t>> GetOne(Socket& socket, const Request& request, uint16_t type);

// Reads all messages of a dump, whole and from one state of the kernel's list, or fails: a dump the
// kernel marks as interrupted (NLM_F_DUMP_INTR: the list changed under it) is thrown away and
// started again. `restart` is called before each attempt and must forget what `each` was given.
// Errors: kUnavailable (still interrupted after kMaxDumpAttempts); what `each` returns; the
// kernel's refusal; kDeadlineExceeded; kDataLoss.
inline constexpr int kMaxDumpAttempts = 16;
absl::Status Dump(Socket& socket, const Request& request, absl::FunctionRef<void()> restart,
                  absl::FunctionRef<absl::Status(const Message&)> each);

// Turns the messages of type `type` of a Dump() into values. `parse` turns a payload into a value,
// or into nothing for an object that the caller did not ask for.
template <typename T, typename Parse>
absl::StatusOr<std::vector<T>> DumpAs(Socket& socket, const Request& request, uint16_t type,
                                      Parse parse) {
  std::vector<T> values;
  const absl::Status status = Dump(
      socket, request, [&values] { values.clear(); },
      [&](const Message& message) -> absl::Status {
        if (message.type != type) return absl::OkStatus();
        absl::StatusOr<std::optional<T>> value = parse(message.payload);
        if (!value.ok()) return value.status();
        if (value->has_value()) values.push_back(std::move(**value));
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return values;
}

}  // namespace spoke::netlink
