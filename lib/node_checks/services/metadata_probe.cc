#include "lib/node_checks/services/metadata_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/socket_address.h"
#include "lib/os/clock.h"
#include "lib/os/unique_fd.h"

namespace spoke::node_checks {
namespace {

absl::Status MetadataUnreachable(int error) {
  return absl::UnavailableError(error == ECONNREFUSED
                                    ? std::string("refuses the connection")
                                    : fmt::format("cannot be asked: {}", std::strerror(error)));
}

// Waits until `fd` can do `what`, or nothing where it is -1. Errors: kDeadlineExceeded;
// kCancelled.
absl::Status AwaitSocket(int fd, int16_t what, absl::Time until, int stop) {
  const os::MonotonicClock clock;
  while (true) {
    std::array<pollfd, 2> wanted = {pollfd{.fd = stop, .events = POLLIN, .revents = 0},
                                    pollfd{.fd = fd, .events = what, .revents = 0}};
    const absl::Duration left = std::max(until - clock.Now(), absl::ZeroDuration());
    const int ready =
        ::poll(wanted.data(), wanted.size(), static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready < 0 && errno != EINTR) return base::ErrnoToStatus(errno, "wait for the answer");
    if (ready > 0 && wanted[0].revents != 0) return absl::CancelledError("stopped");
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return absl::DeadlineExceededError("does not answer");
  }
}

absl::Status Connect(int fd, const MetadataService& service, absl::Time until, int stop) {
  const ip::SocketAddress address = ip::ToSocketAddress(service.address, service.port);
  if (::connect(fd, address.get(), address.size) == 0) return absl::OkStatus();
  if (errno != EINPROGRESS) return MetadataUnreachable(errno);
  RETURN_IF_ERROR(AwaitSocket(fd, POLLOUT, until, stop));
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
  return error == 0 ? absl::OkStatus() : MetadataUnreachable(error);
}

absl::Status ReadReply(int fd, absl::Time until, int stop) {
  std::string reply;
  std::array<char, 4096> bytes{};
  while (true) {
    RETURN_IF_ERROR(AwaitSocket(fd, POLLIN, until, stop));
    const ssize_t size = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size < 0) return MetadataUnreachable(errno);
    reply.append(bytes.data(), static_cast<size_t>(size));
    const bool ended = size == 0 || reply.size() >= kMaxMetadataReplyBytes;
    const std::optional<absl::Status> judged = JudgeMetadataReply(reply, ended);
    if (judged || ended) return judged.value_or(absl::UnavailableError("answers without an end"));
  }
}

absl::Status AskOnce(const MetadataService& service, absl::Duration patience, int stop) {
  const absl::Time until = os::MonotonicClock().Now() + patience;
  const int family = service.address.is_v4() ? AF_INET : AF_INET6;
  const os::UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open a socket");
  RETURN_IF_ERROR(Connect(fd.get(), service, until, stop));
  // The request fits into the socket's room as a whole.
  const std::string request = MetadataRequest(service);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return MetadataUnreachable(errno);
  return ReadReply(fd.get(), until, stop);
}

}  // namespace

absl::Status AskMetadata(const MetadataService& service, const MetadataPatience& patience,
                         int stop) {
  absl::Status last;
  for (int left = patience.tries; left > 0; --left) {
    last = AskOnce(service, patience.answer, stop);
    if (last.ok() || absl::IsCancelled(last) || left == 1) break;
    const absl::Status paused =
        AwaitSocket(-1, 0, os::MonotonicClock().Now() + patience.pause, stop);
    if (absl::IsCancelled(paused)) return paused;
  }
  return last;
}

}  // namespace spoke::node_checks
