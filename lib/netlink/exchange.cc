#include "lib/netlink/exchange.h"

#include <linux/netlink.h>

#include <cstring>
#include <limits>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::netlink {
namespace {

// Writes what only the sender knows into the copy of a request.
void Stamp(uint8_t* message, uint32_t sequence, uint16_t more_flags) {
  nlmsghdr header;
  std::memcpy(&header, message, sizeof(header));
  header.nlmsg_seq = sequence;
  header.nlmsg_flags = static_cast<uint16_t>(header.nlmsg_flags | more_flags);
  std::memcpy(message, &header, sizeof(header));
}

absl::Status Refusal(const Acknowledgement& ack, std::string what) {
  if (!ack.text.empty()) what += fmt::format(" (kernel: {})", ack.text);
  return base::ErrnoToStatus(ack.error, what);
}

// Calls `each` with every message for this socket that answers one of the `count` requests from
// `first` on, until it returns true or a datagram cannot be had. `each` gets the request's index.
absl::Status ReadAnswers(Socket& socket, uint32_t first, size_t count,
                         absl::FunctionRef<absl::StatusOr<bool>(size_t, const Message&)> each) {
  while (true) {
    auto datagram = socket.Receive();
    if (!datagram.ok()) return datagram.status();
    MessageReader reader(*datagram);
    while (const auto message = reader.Next()) {
      const uint32_t index = message->sequence - first;
      // It answers an older exchange.
      if (message->port_id != socket.port_id() || index >= count) continue;
      const absl::StatusOr<bool> done = each(index, *message);
      if (!done.ok()) return done.status();
      if (*done) return absl::OkStatus();
    }
    if (reader.malformed()) return absl::DataLossError("malformed netlink datagram");
  }
}

// Reads one dump to its end. Returns true when it was whole.
absl::StatusOr<bool> ReadDump(Socket& socket, const Request& request, uint32_t sequence,
                              absl::FunctionRef<absl::Status(const Message&)> each) {
  bool interrupted = false;
  absl::Status first_error;
  const absl::Status read =
      ReadAnswers(socket, sequence, 1, [&](size_t, const Message& message) -> absl::StatusOr<bool> {
        interrupted = interrupted || (message.flags & NLM_F_DUMP_INTR) != 0;
        if (message.type == NLMSG_ERROR) {
          const auto ack = ParseAcknowledgement(message);
          if (!ack.ok()) return ack.status();
          if (ack->error != 0 && !request.Tolerates(ack->error)) {
            first_error.Update(Refusal(*ack, request.what()));
          }
          return true;
        }
        if (message.type == NLMSG_DONE) {
          // A dump that fails on the way ends with a negative errno.
          const auto error = ReadStruct<int32_t>(message.payload).value_or(0);
          if (error < 0 && error != std::numeric_limits<int32_t>::min() &&
              !request.Tolerates(-error)) {
            first_error.Update(base::ErrnoToStatus(-error, request.what()));
          }
          return true;
        }
        // An error does not end the reading: the kernel allows no second dump before the end of
        // this one.
        if (!interrupted && first_error.ok()) first_error.Update(each(message));
        return false;
      });
  RETURN_IF_ERROR(read);
  if (interrupted) return false;  // An error that each() made of half a list is none to report.
  RETURN_IF_ERROR(first_error);
  return true;
}

}  // namespace

BatchResult SendBatch(Socket& socket, std::span<const Request> batch) {
  if (batch.empty()) return {};
  CHECK(batch.size() <= kMaxBatch, "a netlink batch is bounded");
  std::vector<uint8_t> messages;
  uint32_t first = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const uint32_t sequence = socket.NextSequence();
    if (i == 0) first = sequence;
    const std::span<const uint8_t> bytes = batch[i].bytes();
    messages.insert(messages.end(), bytes.begin(), bytes.end());
    const bool last = i + 1 == batch.size();
    Stamp(messages.data() + messages.size() - bytes.size(), sequence, last ? NLM_F_ACK : 0);
  }

  BatchResult result;
  absl::Status exchanged = socket.Send(messages);
  if (exchanged.ok()) {
    exchanged = ReadAnswers(
        socket, first, batch.size(),
        [&](size_t index, const Message& message) -> absl::StatusOr<bool> {
          if (message.type != NLMSG_ERROR) return false;
          const auto ack = ParseAcknowledgement(message);
          if (!ack.ok()) return ack.status();
          if (ack->error != 0 && !batch[index].Tolerates(ack->error) && !result.refused) {
            result.refused = index;
            std::string what = batch[index].what();
            if (batch.size() > 1) {
              what += fmt::format(" (request {} of {})", index + 1, batch.size());
            }
            result.status = Refusal(*ack, std::move(what));
          }
          return index + 1 == batch.size();
        });
  }
  if (!exchanged.ok()) {
    socket.Discard();
    // A refusal that did arrive says more.
    if (!result.refused) result.status = base::Annotate(exchanged, batch.front().what());
  }
  return result;
}

absl::StatusOr<std::vector<uint8_t>> GetOne(Socket& socket, const Request& request, uint16_t type) {
  const std::span<const uint8_t> bytes = request.bytes();
  std::vector<uint8_t> message(bytes.begin(), bytes.end());
  const uint32_t sequence = socket.NextSequence();
  // With the acknowledgement behind it there is one way to see the end, found or not.
  Stamp(message.data(), sequence, NLM_F_ACK);

  std::optional<std::vector<uint8_t>> object;
  absl::Status refusal;
  absl::Status exchanged = socket.Send(message);
  if (exchanged.ok()) {
    exchanged = ReadAnswers(socket, sequence, 1,
                            [&](size_t, const Message& answer) -> absl::StatusOr<bool> {
                              if (answer.type == type) {
                                object.emplace(answer.payload.begin(), answer.payload.end());
                              }
                              if (answer.type != NLMSG_ERROR) return false;
                              const auto ack = ParseAcknowledgement(answer);
                              if (!ack.ok()) return ack.status();
                              if (ack->error != 0) refusal = Refusal(*ack, request.what());
                              return true;
                            });
  }
  if (!exchanged.ok()) {
    socket.Discard();
    return base::Annotate(exchanged, request.what());
  }
  RETURN_IF_ERROR(refusal);
  if (!object) return absl::DataLossError(request.what() + ": the kernel answered with nothing");
  return *std::move(object);
}

absl::Status Dump(Socket& socket, const Request& request, absl::FunctionRef<void()> restart,
                  absl::FunctionRef<absl::Status(const Message&)> each) {
  const std::span<const uint8_t> bytes = request.bytes();
  for (int attempt = 0; attempt < kMaxDumpAttempts; ++attempt) {
    restart();
    std::vector<uint8_t> message(bytes.begin(), bytes.end());
    const uint32_t sequence = socket.NextSequence();
    Stamp(message.data(), sequence, NLM_F_DUMP);
    RETURN_IF_ERROR(base::Annotate(socket.Send(message), request.what()));
    const absl::StatusOr<bool> whole = ReadDump(socket, request, sequence, each);
    if (!whole.ok()) {
      socket.Discard();
      return whole.status();
    }
    if (*whole) return absl::OkStatus();
  }
  restart();
  return absl::UnavailableError(fmt::format("{}: the list changed during each of {} attempts",
                                            request.what(), kMaxDumpAttempts));
}

}  // namespace spoke::netlink
