#include "ipam-server/standby/leader_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "ipam-server/standby/keepalive.h"
#include "ipam-server/store/etcd/endpoint.h"
#include "lib/ip/address.h"

namespace spoke::ipam {
namespace {

std::optional<ip::SocketAddress> Parse(const std::string& address) {
  const auto endpoint = etcd::ParseEndpoint("http://" + address);
  if (!endpoint.ok()) return std::nullopt;
  const auto host = ip::Address::Parse(endpoint->host);
  if (!host.ok()) return std::nullopt;
  return ip::ToSocketAddress(*host, endpoint->port);
}

// What an error of a socket says of the leader's process.
LinkEvent EventOf(int error) {
  return error == ECONNREFUSED ? LinkEvent::kRefused : LinkEvent::kSilent;
}

}  // namespace

LeaderConnection::LeaderConnection(const std::string& address) : address_(Parse(address)) {
  if (!address_) due_ms_ = INT64_MAX;
}

short LeaderConnection::events() const {
  return static_cast<short>(connected_ ? POLLIN | POLLRDHUP : POLLOUT);
}

LeaderLink LeaderConnection::Step(int64_t now_ms) {
  while (const std::optional<LinkEvent> event = StepOnce(now_ms)) {
    const bool was_taken = link_ == LeaderLink::kTaken;
    link_ = Next(link_, *event);
    connected_ = *event == LinkEvent::kConnected;
    if (connected_) {
      connected_ms_ = now_ms;
      due_ms_ = INT64_MAX;
      continue;
    }
    socket_.Reset();
    due_ms_ = now_ms + kPauseMs;
    if (link_ == LeaderLink::kClosed) due_ms_ = now_ms + (was_taken ? kAgainMs : 0);
  }
  return link_;
}

// Returns what has happened; nullopt: there is nothing to do now.
std::optional<LinkEvent> LeaderConnection::StepOnce(int64_t now_ms) {
  if (link_ == LeaderLink::kGone) {
    due_ms_ = INT64_MAX;
    return std::nullopt;
  }
  if (connected_) return Look(now_ms);
  if (socket_.valid()) return FinishDial(now_ms);
  return now_ms < due_ms_ ? std::nullopt : Dial(now_ms);
}

std::optional<LinkEvent> LeaderConnection::Dial(int64_t now_ms) {
  socket_ = os::UniqueFd(
      ::socket(address_->get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  KeepAlive(socket_.get());
  due_ms_ = now_ms + kPatienceMs;
  if (::connect(socket_.get(), address_->get(), address_->size) == 0) return LinkEvent::kConnected;
  if (errno == EINPROGRESS) return FinishDial(now_ms);
  return EventOf(errno);
}

std::optional<LinkEvent> LeaderConnection::FinishDial(int64_t now_ms) {
  pollfd done{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&done, 1, 0) <= 0) {
    return now_ms < due_ms_ ? std::nullopt : std::optional(LinkEvent::kSilent);
  }
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? LinkEvent::kConnected : EventOf(error);
}

std::optional<LinkEvent> LeaderConnection::Look(int64_t now_ms) const {
  std::array<char, 64> ignored{};
  const ssize_t got = ::recv(socket_.get(), ignored.data(), ignored.size(), MSG_DONTWAIT);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return std::nullopt;
  if (got < 0 && errno != ECONNRESET) return LinkEvent::kSilent;
  return now_ms - connected_ms_ < kHeldMs ? LinkEvent::kClosedEarly : LinkEvent::kClosed;
}

}  // namespace spoke::ipam
