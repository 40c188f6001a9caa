#include "lib/netlink/socket.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <limits>
#include <string_view>

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

}  // namespace spoke::netlink
