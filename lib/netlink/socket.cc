#include "lib/netlink/socket.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::netlink {
namespace {

// The kernel fills a dump's datagrams up to 32 KiB, and goes beyond only for one message that is
// longer. With less than 32 KiB a datagram is cut off and its dump cannot be ended.
constexpr size_t kBufferBytes = 64UL << 10;
// The room for the answers to one batch: the kernel queues all of them before Send() returns, and
// each counts with its bookkeeping.
constexpr int kSocketBufferBytes = 1 << 20;
// The time limit for an answer. Answers are there when Send() returns; this only keeps a lost one
// from stopping the program.
constexpr time_t kReceiveTimeoutSeconds = 5;
// The most datagrams that are thrown away, more than the longest dump has.
constexpr int kMaxDiscarded = 100'000;

absl::Status SetOption(int fd, int level, int name, int value, std::string_view what) {
  if (::setsockopt(fd, level, name, &value, sizeof(value)) < 0) {
    return base::ErrnoToStatus(errno, what);
  }
  return absl::OkStatus();
}

absl::Status Configure(int fd) {
  // Makes the kernel say why it refused, and spares us a copy of what it refused.
  RETURN_IF_ERROR(SetOption(fd, SOL_NETLINK, NETLINK_EXT_ACK, 1, "enable netlink extended acks"));
  RETURN_IF_ERROR(SetOption(fd, SOL_NETLINK, NETLINK_CAP_ACK, 1, "enable capped netlink acks"));
  // Lets the kernel filter dumps. Before Linux 4.20 it sends everything, so readers filter as well.
  static_cast<void>(
      SetOption(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1, "enable strict netlink dumps"));
  // FORCE goes past rmem_max but needs CAP_NET_ADMIN; reading works with the smaller one too.
  if (!SetOption(fd, SOL_SOCKET, SO_RCVBUFFORCE, kSocketBufferBytes, "grow buffer").ok()) {
    static_cast<void>(SetOption(fd, SOL_SOCKET, SO_RCVBUF, kSocketBufferBytes, "grow buffer"));
  }
  const timeval timeout{.tv_sec = kReceiveTimeoutSeconds, .tv_usec = 0};
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0) {
    return base::ErrnoToStatus(errno, "set netlink receive timeout");
  }
  return absl::OkStatus();
}

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

Socket::Socket(os::UniqueFd fd, uint32_t port_id)
    : fd_(std::move(fd)),
      port_id_(port_id),
      // The buffer is not zeroed: one is made for every attachment.
      buffer_(std::make_unique_for_overwrite<uint8_t[]>(kBufferBytes)) {}

absl::StatusOr<Socket> Socket::Open(Protocol protocol) {
  const int number = protocol == Protocol::kRoute ? NETLINK_ROUTE : NETLINK_NETFILTER;
  os::UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, number));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open netlink socket");
  RETURN_IF_ERROR(Configure(fd.get()));

  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  socklen_t size = sizeof(self);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), size) < 0) {
    return base::ErrnoToStatus(errno, "bind netlink socket");
  }
  // bind() does not write back the port it chose.
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&self), &size) < 0) {
    return base::ErrnoToStatus(errno, "read netlink port id");
  }
  return Socket(std::move(fd), self.nl_pid);
}

absl::Status Socket::ReserveToSend(size_t bytes) {
  // The kernel wants its own bookkeeping in it as well, and doubles what it is asked for.
  if (bytes > static_cast<size_t>(std::numeric_limits<int>::max()) / 4) {
    return absl::ResourceExhaustedError("more than a netlink socket can send at once");
  }
  const int wanted = static_cast<int>(bytes);
  if (SetOption(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, wanted, "grow buffer").ok()) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(SetOption(fd_.get(), SOL_SOCKET, SO_SNDBUF, wanted, "grow netlink send buffer"));
  int granted = 0;  // Without the right to more, the kernel grants less in silence.
  socklen_t size = sizeof(granted);
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &granted, &size) < 0) {
    return base::ErrnoToStatus(errno, "read netlink send buffer");
  }
  if (granted < wanted) {
    return absl::ResourceExhaustedError("netlink send buffer is limited by net.core.wmem_max");
  }
  return absl::OkStatus();
}

absl::Status Socket::Send(std::span<const uint8_t> messages) {
  // A message without a destination goes to the kernel.
  while (::send(fd_.get(), messages.data(), messages.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return base::ErrnoToStatus(errno, "send netlink messages");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const uint8_t>> Socket::Receive() {
  while (true) {
    sockaddr_nl from{};
    iovec part{buffer_.get(), kBufferBytes};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof(from);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t got = ::recvmsg(fd_.get(), &message, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return absl::DeadlineExceededError("no answer from netlink");
      return base::ErrnoToStatus(errno, "receive netlink messages");
    }
    if (from.nl_pid != 0) continue;  // Another process may write to our port; only 0 is the kernel.
    if ((message.msg_flags & MSG_TRUNC) != 0) {
      return absl::DataLossError("netlink datagram is longer than the buffer");
    }
    return std::span<const uint8_t>(buffer_.get(), static_cast<size_t>(got));
  }
}

void Socket::Discard() {
  for (int i = 0; i < kMaxDiscarded; ++i) {
    // Reading also makes the kernel go on with a dump. An error other than "nothing there"
    // (ENOBUFS) is reported once and then cleared.
    if (::recv(fd_.get(), buffer_.get(), kBufferBytes, MSG_DONTWAIT) < 0 && errno == EAGAIN) return;
  }
}

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
