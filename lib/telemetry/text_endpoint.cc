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
#include <iterator>
#include <limits>
#include <list>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/clock.h"

namespace spoke::telemetry {
namespace {

constexpr size_t kMaxRequestBytes = 8192;
constexpr int kBacklog = 16;
// Each may hold the text of a scrape.
constexpr size_t kMaxConnections = 16;

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

std::string Answer(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, type, body.size(), body);
}

std::string AnswerTo(std::string_view head, const TextEndpoint::Render& render) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::string_view target = line.substr(std::min(line.size(), line.find(' ') + 1));
  const std::string_view path = target.substr(0, target.find_first_of(" ?"));
  if (!line.starts_with("GET ")) {
    return Answer("405 Method Not Allowed", "text/plain", "only GET\n");
  }
  if (path != "/metrics") return Answer("404 Not Found", "text/plain", "see /metrics\n");
  return Answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", render());
}

int64_t NewDeadline() { return os::MonotonicMs() + absl::ToInt64Milliseconds(kRequestPatience); }

}  // namespace

// One connection: its request is read, then its answer written, and neither waits for the other
// connections. It is over at its deadline.
class TextEndpoint::Connection {
 public:
  explicit Connection(os::UniqueFd fd) : fd_(std::move(fd)), deadline_(NewDeadline()) {}

  int fd() const { return fd_.get(); }
  short events() const { return answering_ ? POLLOUT : POLLIN; }
  int64_t deadline() const { return deadline_; }
  bool answering() const { return answering_; }

  // Goes on as far as it can without waiting. False when it is over.
  bool GoOn(const Render& render) {
    if (!answering_ && !ReadHead(render)) return false;
    return !answering_ || Send();
  }

 private:
  // False when no whole head can come any more.
  bool ReadHead(const Render& render) {
    std::array<char, 2048> buffer{};
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    text_.append(buffer.data(), static_cast<size_t>(got));
    if (text_.find("\r\n\r\n") == std::string::npos) return text_.size() <= kMaxRequestBytes;
    text_ = AnswerTo(text_, render);
    answering_ = true;
    // Rendering has had its time; a reader has one of its own.
    deadline_ = NewDeadline();
    return true;
  }

  bool Send() {
    while (sent_ < text_.size()) {
      const ssize_t sent =
          ::send(fd_.get(), text_.data() + sent_, text_.size() - sent_, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      sent_ += static_cast<size_t>(sent);
    }
    return false;
  }

  os::UniqueFd fd_;
  int64_t deadline_;  // As os::MonotonicMs() has it.
  bool answering_ = false;
  std::string text_;  // The request, then the answer.
  size_t sent_ = 0;
};

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
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void TextEndpoint::Run() {
  std::list<Connection> connections;
  while (true) {
    std::vector<pollfd> waiting = {{.fd = listener_.get(), .events = POLLIN},
                                   {.fd = wake_.get(), .events = POLLIN}};
    int64_t next = std::numeric_limits<int64_t>::max();
    for (const Connection& connection : connections) {
      waiting.push_back({.fd = connection.fd(), .events = connection.events()});
      next = std::min(next, connection.deadline());
    }
    const int64_t wait = connections.empty() ? -1 : std::max<int64_t>(0, next - os::MonotonicMs());
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(wait)) < 0 && errno != EINTR) {
      return;
    }
    if (waiting[1].revents != 0) return;
    size_t at = 2;
    for (auto connection = connections.begin(); connection != connections.end(); ++at) {
      const bool over = (waiting[at].revents != 0 && !connection->GoOn(render_)) ||
                        connection->deadline() <= os::MonotonicMs();
      connection = over ? connections.erase(connection) : std::next(connection);
    }
    if (waiting[0].revents != 0) Accept(connections);
  }
}

// When there are too many, one that has asked for nothing yet gives way, the oldest first.
void TextEndpoint::Accept(std::list<Connection>& connections) {
  os::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    if (connections.size() >= kMaxConnections) {
      const auto silent =
          std::find_if(connections.begin(), connections.end(),
                       [](const Connection& connection) { return !connection.answering(); });
      connections.erase(silent == connections.end() ? connections.begin() : silent);
    }
    connections.emplace_back(std::move(fd));
  } else if (errno == EMFILE || errno == ENFILE) {
    // It stays readable: without a pause this would spin until a descriptor is free.
    pollfd wake{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&wake, 1, 100));
  }
}

}  // namespace spoke::telemetry
