#include "lib/rpc/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/socket_address.h"

namespace spoke::rpc {
namespace {

// The backlog; a fleet whose server comes back connects at once.
constexpr int kBacklog = 1024;
constexpr std::string_view kUnix = "unix:";

using Found = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

absl::Status NoSuchAddress(const std::string& address) {
  return absl::InvalidArgumentError(fmt::format("{} is no address to listen at", address));
}

absl::Status CannotListen(const std::string& address, int error) {
  return absl::UnavailableError(
      fmt::format("cannot listen on {}: {}; is it in use, or not an address of this machine?",
                  address, std::strerror(error)));
}

struct Wanted {
  const std::string& address;  // The address as it was asked for.
  int receive_buffer_bytes = 0;
  bool both_families = false;
};

absl::StatusOr<os::UniqueFd> Listen(const Wanted& wanted, const sockaddr* at, socklen_t size) {
  const std::string& address = wanted.address;
  os::UniqueFd fd(::socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return CannotListen(address, errno);
  if (at->sa_family != AF_UNIX) {
    // This lets the next program listen while connections of the last one fade away.
    const int on = 1;
    static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
  }
  if (at->sa_family == AF_INET6) {
    const int only = wanted.both_families ? 0 : 1;
    static_cast<void>(::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)));
  }
  if (wanted.receive_buffer_bytes > 0) {
    // Connections inherit this from the socket.
    const int bytes = wanted.receive_buffer_bytes;
    static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
  }
  if (::bind(fd.get(), at, size) < 0 || ::listen(fd.get(), kBacklog) < 0) {
    return CannotListen(address, errno);
  }
  return fd;
}

absl::StatusOr<ListeningSockets> ListenAtPath(const std::string& address) {
  ListeningSockets out{.sockets = {}, .port = 0, .path = address.substr(kUnix.size())};
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (!out.path.starts_with('/') || out.path.size() >= sizeof(at.sun_path)) {
    return NoSuchAddress(address);
  }
  std::memcpy(at.sun_path, out.path.data(), out.path.size());
  struct stat file {};
  if (::lstat(out.path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode)) ::unlink(out.path.c_str());
  ASSIGN_OR_RETURN(os::UniqueFd fd, Listen({.address = address},
                                           reinterpret_cast<const sockaddr*>(&at), sizeof(at)));
  out.sockets.push_back(std::move(fd));
  return out;
}

int PortOf(const os::UniqueFd& socket) {
  ip::SocketAddress self;
  if (::getsockname(socket.get(), self.get(), &self.size) < 0) return 0;
  const auto bound = ip::FromSocketAddress(self);
  return bound.ok() ? bound->second : 0;
}

// Returns where "host:port" is; the host may be in brackets. Empty: nowhere.
Found Resolve(const std::string& address) {
  Found none(nullptr, &::freeaddrinfo);
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return none;
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &first) != 0) return none;
  return {first, &::freeaddrinfo};
}

bool IsWildcard(const sockaddr* at) {
  if (at->sa_family == AF_INET6) {
    return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(at)->sin6_addr) != 0;
  }
  return reinterpret_cast<const sockaddr_in*>(at)->sin_addr.s_addr == htonl(INADDR_ANY);
}

uint16_t& PortIn(sockaddr* at) {
  return at->sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(at)->sin6_port
                                   : reinterpret_cast<sockaddr_in*>(at)->sin_port;
}

}  // namespace

absl::StatusOr<ListeningSockets> ListenAt(const std::string& address, int receive_buffer_bytes) {
  if (address.starts_with(kUnix)) return ListenAtPath(address);
  const Found found = Resolve(address);
  if (found == nullptr) return NoSuchAddress(address);
  const Wanted wanted{.address = address, .receive_buffer_bytes = receive_buffer_bytes};
  ListeningSockets out;
  if (IsWildcard(found->ai_addr)) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = PortIn(found->ai_addr);
    Wanted both = wanted;
    both.both_families = true;
    absl::StatusOr<os::UniqueFd> fd =
        Listen(both, reinterpret_cast<const sockaddr*>(&any), sizeof(any));
    // A machine without IPv6 has IPv4 alone.
    if (!fd.ok()) fd = Listen(wanted, found->ai_addr, found->ai_addrlen);
    RETURN_IF_ERROR(fd.status());
    out.port = PortOf(*fd);
    out.sockets.push_back(*std::move(fd));
    return out;
  }
  for (addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    if (out.port != 0) PortIn(at->ai_addr) = htons(static_cast<uint16_t>(out.port));
    ASSIGN_OR_RETURN(os::UniqueFd fd, Listen(wanted, at->ai_addr, at->ai_addrlen));
    if (out.port == 0) out.port = PortOf(fd);
    out.sockets.push_back(std::move(fd));
  }
  return out;
}

}  // namespace spoke::rpc
