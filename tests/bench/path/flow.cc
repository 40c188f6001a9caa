#include "tests/bench/path/flow.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "lib/base/status.h"
#include "lib/ip/socket_address.h"

namespace spoke::path_bench {
namespace {

constexpr int kConnectPatienceMs = 5'000;

// Makes a socket bound to `address` and a port; 0: one that the kernel chooses.
absl::StatusOr<os::UniqueFd> OpenBound(const netns::Netns& where, int type,
                                       const ip::Address& address, uint16_t port) {
  os::UniqueFd fd;
  const absl::Status status = where.Run([&]() -> absl::Status {
    fd = os::UniqueFd(
        ::socket(address.is_v4() ? AF_INET : AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return base::ErrnoToStatus(errno, "open a socket");
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const ip::SocketAddress self = ip::ToSocketAddress(address, port);
    if (::bind(fd.get(), self.get(), self.size) < 0) {
      return base::ErrnoToStatus(errno, "bind to " + address.ToString());
    }
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(status);
  return fd;
}

// Returns the port the kernel chose.
absl::StatusOr<uint16_t> PortOf(const os::UniqueFd& fd) {
  ip::SocketAddress self;
  if (::getsockname(fd.get(), self.get(), &self.size) < 0) {
    return base::ErrnoToStatus(errno, "read a socket's address");
  }
  ASSIGN_OR_RETURN(const auto bound, ip::FromSocketAddress(self));
  return bound.second;
}

absl::Status ConnectTo(const os::UniqueFd& fd, const ip::Address& address, uint16_t port) {
  const ip::SocketAddress peer = ip::ToSocketAddress(address, port);
  if (::connect(fd.get(), peer.get(), peer.size) < 0 && errno != EINPROGRESS) {
    return base::ErrnoToStatus(errno, "connect to " + address.ToString());
  }
  return absl::OkStatus();
}

absl::Status WaitFor(const os::UniqueFd& fd, int16_t events, const char* what) {
  pollfd poll{fd.get(), events, 0};
  if (::poll(&poll, 1, kConnectPatienceMs) != 1) {
    return absl::DeadlineExceededError(std::string(what) + ": not within 5 s");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Flow> OpenUdp(const Ends& ends) {
  Flow flow;
  ASSIGN_OR_RETURN(flow.receiver, OpenBound(ends.to, SOCK_DGRAM, ends.destination, ends.port));
  ASSIGN_OR_RETURN(flow.sender, OpenBound(ends.from, SOCK_DGRAM, ends.source, 0));
  RETURN_IF_ERROR(ConnectTo(flow.sender, ends.destination, ends.port));
  ASSIGN_OR_RETURN(const uint16_t port, PortOf(flow.sender));
  RETURN_IF_ERROR(ConnectTo(flow.receiver, ends.source, port));
  return flow;
}

absl::StatusOr<Flow> OpenTcp(const Ends& ends) {
  ASSIGN_OR_RETURN(const os::UniqueFd listener,
                   OpenBound(ends.to, SOCK_STREAM, ends.destination, ends.port));
  if (::listen(listener.get(), 1) < 0) return base::ErrnoToStatus(errno, "listen");
  Flow flow;
  ASSIGN_OR_RETURN(flow.sender, OpenBound(ends.from, SOCK_STREAM, ends.source, 0));
  constexpr char kCongestion[] = "reno";
  if (::setsockopt(flow.sender.get(), IPPROTO_TCP, TCP_CONGESTION, kCongestion,
                   sizeof kCongestion - 1) < 0) {
    return base::ErrnoToStatus(errno, "choose congestion control reno");
  }
  RETURN_IF_ERROR(ConnectTo(flow.sender, ends.destination, ends.port));
  RETURN_IF_ERROR(WaitFor(listener, POLLIN, "the connection arrives"));
  flow.receiver = os::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
  if (!flow.receiver.valid()) return base::ErrnoToStatus(errno, "accept");
  RETURN_IF_ERROR(WaitFor(flow.sender, POLLOUT, "the connection is made"));
  return flow;
}

absl::Status PinTo(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  if (::sched_setaffinity(0, sizeof set, &set) < 0) {
    return base::ErrnoToStatus(errno, "stay on processor " + std::to_string(processor));
  }
  return absl::OkStatus();
}

int64_t ThreadCpuNs() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (time.tv_sec * 1'000'000'000LL) + time.tv_nsec;
}

int64_t NowNs() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return (time.tv_sec * 1'000'000'000LL) + time.tv_nsec;
}

}  // namespace spoke::path_bench
