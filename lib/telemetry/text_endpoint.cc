#include "lib/telemetry/text_endpoint.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/clock.h"

namespace spoke::telemetry {
namespace {

constexpr size_t kMaxRequestBytes = 8192;
constexpr int kBacklog = 16;

struct AddressList {
  addrinfo* first = nullptr;
  AddressList() = default;
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;
  ~AddressList() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

absl::StatusOr<os::UniqueFd> Listen(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon == std::string::npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  AddressList found;
  if (host.empty() ||
      ::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found.first) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} is no address and port to listen on", address));
  }
  os::UniqueFd fd(::socket(found.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open a socket for metrics");
  // So that the next program can listen while connections of the last one fade away.
  const int on = 1;
  static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
  if (::bind(fd.get(), found.first->ai_addr, found.first->ai_addrlen) < 0 ||
      ::listen(fd.get(), kBacklog) < 0) {
    return absl::UnavailableError(fmt::format(
        "{}", base::MessageOf(base::ErrnoToStatus(errno, "serve metrics on " + address))));
  }
  return fd;
}

int PortOf(int socket) {
  sockaddr_storage self{};
  socklen_t size = sizeof(self);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&self), &size) < 0) return 0;
  if (self.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&self)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&self)->sin_port);
}

// Whether `fd` becomes ready before `deadline`, and before `wake` does.
bool Await(int fd, short events, int wake, int64_t deadline) {
  const int64_t left = deadline - os::MonotonicMs();
  if (left <= 0) return false;
  std::array<pollfd, 2> waiting{{{.fd = fd, .events = events}, {.fd = wake, .events = POLLIN}}};
  const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(left));
  if (ready < 0) return errno == EINTR;
  return waiting[1].revents == 0 && waiting[0].revents != 0;
}

// The request's head; empty when it does not come, or is too long.
std::string ReadHead(int connection, int wake, int64_t deadline) {
  std::string head;
  std::array<char, 2048> buffer{};
  while (head.find("\r\n\r\n") == std::string::npos) {
    if (head.size() > kMaxRequestBytes || !Await(connection, POLLIN, wake, deadline)) return "";
    const ssize_t got = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return "";
    if (got > 0) head.append(buffer.data(), static_cast<size_t>(got));
  }
  return head;
}

void SendAll(int connection, std::string_view text, int wake, int64_t deadline) {
  while (!text.empty()) {
    const ssize_t sent = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<size_t>(sent));
    } else if ((errno != EAGAIN && errno != EINTR) || !Await(connection, POLLOUT, wake, deadline)) {
      return;
    }
  }
}

std::string Answer(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, type, body.size(), body);
}

}  // namespace

TextEndpoint::TextEndpoint(os::UniqueFd listener, os::UniqueFd wake, int port, Render render)
    : listener_(std::move(listener)),
      wake_(std::move(wake)),
      port_(port),
      render_(std::move(render)),
      thread_([this] { Run(); }) {}

absl::StatusOr<std::unique_ptr<TextEndpoint>> TextEndpoint::Open(const std::string& address,
                                                                 Render render) {
  ASSIGN_OR_RETURN(os::UniqueFd listener, Listen(address));
  os::UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return base::ErrnoToStatus(errno, "open an eventfd");
  const int port = PortOf(listener.get());
  return std::unique_ptr<TextEndpoint>(
      new TextEndpoint(std::move(listener), std::move(wake), port, std::move(render)));
}

TextEndpoint::~TextEndpoint() {
  // Never read: who waits for it sees it for good.
  const uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof(one)));
  thread_.join();
}

void TextEndpoint::Run() {
  while (true) {
    std::array<pollfd, 2> waiting{
        {{.fd = listener_.get(), .events = POLLIN}, {.fd = wake_.get(), .events = POLLIN}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    if (waiting[1].revents != 0) return;
    if (waiting[0].revents == 0) continue;
    const os::UniqueFd connection(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) {
      Serve(connection.get());
    } else if (errno == EMFILE || errno == ENFILE) {
      // It stays readable: without a pause this would spin until a descriptor is free.
      static_cast<void>(::poll(&waiting[1], 1, 100));
    }
  }
}

void TextEndpoint::Serve(int connection) {
  const int64_t deadline = os::MonotonicMs() + absl::ToInt64Milliseconds(kRequestPatience);
  const std::string head = ReadHead(connection, wake_.get(), deadline);
  if (head.empty()) return;
  const std::string_view line = std::string_view(head).substr(0, head.find("\r\n"));
  const bool is_get = line.starts_with("GET ");
  const std::string_view target = line.substr(std::min(line.size(), line.find(' ') + 1));
  const std::string_view path = target.substr(0, target.find_first_of(" ?"));
  std::string answer;
  if (!is_get) {
    answer = Answer("405 Method Not Allowed", "text/plain", "only GET\n");
  } else if (path != "/metrics") {
    answer = Answer("404 Not Found", "text/plain", "see /metrics\n");
  } else {
    answer = Answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", render_());
  }
  // Rendering has had its time; a reader has one of its own.
  SendAll(connection, answer, wake_.get(),
          os::MonotonicMs() + absl::ToInt64Milliseconds(kRequestPatience));
}

}  // namespace spoke::telemetry
