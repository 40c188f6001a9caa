// Requests and their answers: a batch in one send, one object, or a whole dump.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/message.h"
#include "lib/netlink/request.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

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
