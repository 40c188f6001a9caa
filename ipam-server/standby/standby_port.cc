#include "ipam-server/standby/standby_port.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/standby/keepalive.h"
#include "lib/base/status.h"
#include "lib/ip/address.h"
#include "lib/ip/socket_address.h"
#include "lib/rpc/listening_sockets.h"

namespace spoke::ipam {
namespace {

// Until another connection is taken where there are no descriptors.
constexpr int kPauseMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<StandbyPort>> StandbyPort::Open(const std::string& address) {
  ASSIGN_OR_RETURN(rpc::ListeningSockets listening, rpc::ListenAt(address));
  os::UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return base::ErrnoToStatus(errno, "make an eventfd");
  std::unique_ptr<StandbyPort> port(
      new StandbyPort(std::move(listening.sockets), std::move(wake), listening.port));
  port->thread_ = std::thread([&self = *port] { self.Run(); });
  return port;
}

StandbyPort::StandbyPort(std::vector<os::UniqueFd> sockets, os::UniqueFd wake, int port)
    : sockets_(std::move(sockets)), wake_(std::move(wake)), port_(port) {}

StandbyPort::~StandbyPort() {
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

// Takes connections, and drops those that end or say something.
void StandbyPort::Run() {
  std::vector<os::UniqueFd> standbys;
  while (true) {
    std::vector<pollfd> waiting = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    for (const os::UniqueFd& fd : sockets_) waiting.push_back({fd.get(), POLLIN, 0});
    for (const os::UniqueFd& fd : standbys) waiting.push_back({fd.get(), POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[0].revents != 0) return;
    const size_t first = 1 + sockets_.size();
    for (size_t i = standbys.size(); i-- > 0;) {
      if (waiting[first + i].revents == 0) continue;
      standbys.erase(standbys.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (size_t i = 1; i < first; ++i) {
      if (waiting[i].revents == 0) continue;
      os::UniqueFd standby(::accept4(waiting[i].fd, nullptr, nullptr, SOCK_CLOEXEC));
      if (!standby.valid()) {
        // Without descriptors the connection stays where it is, and poll() says so all the time.
        ::poll(waiting.data(), 1, kPauseMs);
      } else if (standbys.size() < kMostConnections) {
        KeepAlive(standby.get());
        standbys.push_back(std::move(standby));
      }
    }
  }
}

namespace {

// Returns the address of ours from which `endpoint` is reached; nullopt: from none.
std::optional<ip::Address> OwnAddressTo(const etcd::Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found) != 0) return std::nullopt;
  std::optional<ip::Address> own;
  for (const addrinfo* it = found; it != nullptr && !own; it = it->ai_next) {
    // Nothing is sent: the kernel picks the route, and with it the address.
    const os::UniqueFd socket(::socket(it->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ip::SocketAddress self;
    if (!socket.valid() || ::connect(socket.get(), it->ai_addr, it->ai_addrlen) < 0 ||
        ::getsockname(socket.get(), self.get(), &self.size) < 0) {
      continue;
    }
    own = ip::PeerAddress(self);
  }
  ::freeaddrinfo(found);
  return own;
}

}  // namespace

std::string ReachedAt(const std::string& listen, int port,
                      const std::vector<etcd::Endpoint>& endpoints) {
  const auto parsed = etcd::ParseEndpoint("http://" + listen);
  if (!parsed.ok()) return "";
  etcd::Endpoint reached = *parsed;
  reached.port = static_cast<uint16_t>(port);
  const auto host = ip::Address::Parse(reached.host);
  const bool everywhere = host.ok() && (host->ToString() == "0.0.0.0" || host->ToString() == "::");
  if (host.ok() && !everywhere) return reached.HostAndPort();
  std::optional<ip::Address> best;
  for (const etcd::Endpoint& endpoint : endpoints) {
    const std::optional<ip::Address> own = OwnAddressTo(endpoint);
    if (!own || (best && ip::IsLoopback(*own))) continue;
    best = own;
    if (!ip::IsLoopback(*own)) break;
  }
  if (!best) return "";
  reached.host = best->ToString();
  return reached.HostAndPort();
}

}  // namespace spoke::ipam
