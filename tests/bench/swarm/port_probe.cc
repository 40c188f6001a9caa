#include "tests/bench/swarm/port_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "absl/strings/numbers.h"
#include "lib/os/unique_fd.h"

namespace spoke::swarm {

bool TakesConnections(const std::string& target) {
  constexpr std::string_view kScheme = "ipv4:";
  constexpr int kPatienceMs = 50;
  const size_t colon = target.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  uint32_t port = 0;
  if (!target.starts_with(kScheme) || colon <= kScheme.size() ||
      !absl::SimpleAtoi(target.substr(colon + 1), &port) ||
      ::inet_pton(AF_INET, target.substr(kScheme.size(), colon - kScheme.size()).c_str(),
                  &address.sin_addr) != 1) {
    return false;
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  const os::UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return true;
  }
  if (errno != EINPROGRESS) return false;
  pollfd wait{.fd = probe.get(), .events = POLLOUT, .revents = 0};
  int error = 0;
  socklen_t size = sizeof(error);
  return ::poll(&wait, 1, kPatienceMs) == 1 &&
         ::getsockopt(probe.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace spoke::swarm
