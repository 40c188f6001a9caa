#include "netagent/egress/gateways/health_port.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/socket_address.h"

namespace spoke::netagent {
namespace {

constexpr int kBacklog = 64;

}  // namespace

absl::Status HealthPort::Open(const ip::Address& address, uint16_t port) {
  if (is_open()) return absl::OkStatus();
  os::UniqueFd fd(::socket(address.is_v4() ? AF_INET : AF_INET6,
                           SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open the health port");
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  ip::SocketAddress here = ip::ToSocketAddress(address, port);
  if (::bind(fd.get(), here.get(), here.size) < 0 || ::listen(fd.get(), kBacklog) < 0) {
    const std::string what = fmt::format("listen at health port {}", port);
    if (errno == EADDRINUSE) return absl::UnavailableError(what + ": somebody else has it");
    return base::ErrnoToStatus(errno, what);
  }
  ::getsockname(fd.get(), here.get(), &here.size);
  ASSIGN_OR_RETURN(const auto bound, ip::FromSocketAddress(here));
  port_ = bound.second;
  RETURN_IF_ERROR(loop_.AddReader(fd.get(), [this] { Accept(); }));
  listener_ = std::move(fd);
  return absl::OkStatus();
}

void HealthPort::Close() {
  while (!asking_.empty()) Drop(asking_.begin()->second.get());
  if (!listener_.valid()) return;
  loop_.Remove(listener_.get());
  listener_ = os::UniqueFd();
}

void HealthPort::Accept() {
  os::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid()) return;
  if (asking_.size() == kMaxAsking) Drop(asking_.begin()->second.get());
  const int number = fd.get();
  if (!loop_.AddReader(number, [this, number] { Answer(number); }).ok()) return;
  asking_.emplace(next_++, std::move(fd));
}

// Answers upon the first bytes of the request, whatever they are: the answer is always the same.
void HealthPort::Answer(int fd) {
  std::array<char, 2048> request{};
  if (::recv(fd, request.data(), request.size(), 0) > 0) {
    const absl::Status health = health_();
    const std::string body = health.ok() ? "ok\n" : fmt::format("{}\n", base::MessageOf(health));
    const std::string answer = fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n"
        "{}",
        health.ok() ? "200 OK" : "503 Service Unavailable", body.size(), body);
    // So little always fits the buffer of a new connection.
    (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    (void)::shutdown(fd, SHUT_WR);
  }
  Drop(fd);
}

void HealthPort::Drop(int fd) {
  loop_.Remove(fd);
  std::erase_if(asking_, [fd](const auto& entry) { return entry.second.get() == fd; });
}

}  // namespace spoke::netagent
