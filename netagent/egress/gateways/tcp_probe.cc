#include "netagent/egress/gateways/tcp_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "lib/ip/socket_address.h"

namespace spoke::netagent {
void SocketTcpProbe::Begin(const TcpProbeTarget& target, absl::Time now) {
  os::UniqueFd fd(::socket(target.address.is_v4() ? AF_INET : AF_INET6,
                           SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // Closing resets: the other side need not keep what says nothing.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  // Without its mark it would ask somebody else.
  if (target.mark != 0 &&
      ::setsockopt(fd.get(), SOL_SOCKET, SO_MARK, &target.mark, sizeof(target.mark)) < 0) {
    fd = os::UniqueFd();
  }
  if (fd.valid()) {
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    const ip::SocketAddress there = ip::ToSocketAddress(target.address, target.port);
    if (::connect(fd.get(), there.get(), there.size) < 0 && errno != EINPROGRESS)
      fd = os::UniqueFd();
  }
  attempts_.insert_or_assign(target, Attempt{std::move(fd), now});
}

std::vector<std::pair<TcpProbeTarget, bool>> SocketTcpProbe::Collect(absl::Time now) {
  std::vector<std::pair<TcpProbeTarget, bool>> ended;
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    const Attempt& attempt = at->second;
    pollfd ready{.fd = attempt.fd.get(), .events = POLLOUT, .revents = 0};
    bool over = !attempt.fd.valid();
    bool works = false;
    if (!over && ::poll(&ready, 1, 0) > 0) {
      int error = 0;
      socklen_t size = sizeof(error);
      over = true;
      works =
          ::getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    }
    if (!over && now - attempt.began < kPatience) {
      ++at;
      continue;
    }
    ended.emplace_back(at->first, works);
    at = attempts_.erase(at);
  }
  return ended;
}

}  // namespace spoke::netagent
