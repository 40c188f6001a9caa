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
#include <optional>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/socket_address.h"
#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "lib/telemetry/scrape_request.h"

namespace spoke::telemetry {
namespace {

constexpr size_t kMaxRequestBytes = 8192;
constexpr int kBacklog = 128;
// The most connections; each may hold the text of a scrape.
constexpr size_t kMaxConnections = 16;
constexpr size_t kMaxTokenFileBytes = 4096;
// The limits of strangers: two Prometheus servers behind one address ask every second or less
// often. All of them together are bounded by kMaxConnections.
constexpr rpc::PeerLimits kStrangers{
    .connections = 2 * kMaxConnections, .connections_per_address = 4, .burst = 16, .per_second = 2};
constexpr std::string_view kHowToAsk =
    "From another machine, or from a pod, /metrics needs the header \"Authorization: Bearer "
    "TOKEN\".\n"
    "TOKEN is a line of the file that the configuration names: metrics.token_file of the agent's,\n"
    "listen.metrics_token_file of the server's. In Kubernetes it is the key \"token\" of the "
    "Secret\n"
    "spoke-metrics. docs/METRICS.md says how to give it to Prometheus.\n";

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
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open a socket to listen on " + address);
  // This lets the next program listen while connections of the last one fade away.
  const int on = 1;
  static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
  if (::bind(fd.get(), found.first->ai_addr, found.first->ai_addrlen) < 0 ||
      ::listen(fd.get(), kBacklog) < 0) {
    return absl::UnavailableError(
        fmt::format("{}", base::MessageOf(base::ErrnoToStatus(errno, "listen on " + address))));
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

std::string Answer(std::string_view status, std::string_view fields, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     fields, body.size(), body);
}

constexpr std::string_view kPlain = "Content-Type: text/plain\r\n";
constexpr std::string_view kMetricsText =
    "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
constexpr std::string_view kWantsToken =
    "Content-Type: text/plain\r\nWWW-Authenticate: Bearer realm=\"spoke\"\r\n";

absl::Time Now() { return absl::UnixEpoch() + absl::Milliseconds(os::MonotonicMs()); }

int64_t NewDeadline() { return os::MonotonicMs() + absl::ToInt64Milliseconds(kRequestPatience); }

}  // namespace

// One connection: its request is read, then its answer written, and neither waits for the other
// connections. It is over at its deadline.
class TextEndpoint::Connection {
 public:
  // Takes a connection; `stranger` is whose it is, unless it is this machine's.
  Connection(os::UniqueFd fd, std::optional<ip::Address> stranger)
      : fd_(std::move(fd)), stranger_(stranger), deadline_(NewDeadline()) {}

  int fd() const { return fd_.get(); }
  short events() const { return answering_ ? POLLOUT : POLLIN; }
  int64_t deadline() const { return deadline_; }
  bool answering() const { return answering_; }
  const std::optional<ip::Address>& stranger() const { return stranger_; }

  // Goes on as far as it can without waiting. Returns false when it is over.
  bool GoOn(TextEndpoint& endpoint) {
    if (!answering_ && !ReadHead(endpoint)) return false;
    return !answering_ || Send();
  }

 private:
  // Returns false when no whole head can come any more.
  bool ReadHead(TextEndpoint& endpoint) {
    std::array<char, 2048> buffer{};
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    text_.append(buffer.data(), static_cast<size_t>(got));
    if (text_.find("\r\n\r\n") == std::string::npos) return text_.size() <= kMaxRequestBytes;
    text_ = endpoint.AnswerTo(text_, stranger_.has_value());
    answering_ = true;
    // The deadline is set anew: making the page has had its time; a reader has one of its own.
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
  std::optional<ip::Address> stranger_;
  int64_t deadline_;  // The deadline as os::MonotonicMs() has it.
  bool answering_ = false;
  std::string text_;  // The request, then the answer.
  size_t sent_ = 0;
};

TextEndpoint::TextEndpoint(Settings settings, os::UniqueFd listener, os::UniqueFd wake, Pages pages)
    : settings_(std::move(settings)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      port_(PortOf(listener_.get())),
      pages_(std::move(pages)),
      gate_(kStrangers),
      thread_([this] { Run(); }) {}

absl::StatusOr<std::unique_ptr<TextEndpoint>> TextEndpoint::Open(Settings settings, Pages pages) {
  ASSIGN_OR_RETURN(os::UniqueFd listener, Listen(settings.address));
  os::UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return base::ErrnoToStatus(errno, "open an eventfd");
  return std::unique_ptr<TextEndpoint>(new TextEndpoint(std::move(settings), std::move(listener),
                                                        std::move(wake), std::move(pages)));
}

TextEndpoint::~TextEndpoint() {
  // The counter is never read: whoever waits for it sees it for good.
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void TextEndpoint::Run() {
  Connections connections;
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
      const bool over = (waiting[at].revents != 0 && !connection->GoOn(*this)) ||
                        connection->deadline() <= os::MonotonicMs();
      connection = over ? Erase(connections, connection) : std::next(connection);
    }
    if (waiting[0].revents != 0) Accept(connections);
  }
}

// The kernel drops what comes from elsewhere in the name of an address of its own, and takes the
// address that is connected to for a connection of its own, so that the two are equal.
bool TextEndpoint::IsStranger(int fd, const ip::Address& peer) const {
  if (!settings_.trust_this_machine) return true;
  ip::SocketAddress self;
  if (::getsockname(fd, self.get(), &self.size) < 0) return true;
  return !ip::IsLoopback(peer) && peer != ip::PeerAddress(self);
}

std::string TextEndpoint::AnswerTo(std::string_view head, bool stranger) {
  const ScrapeRequest request = ParseScrapeRequest(head);
  if (stranger) {
    const auto tokens = request.token.empty() || settings_.token_file.empty()
                            ? absl::StatusOr<std::string>("")
                            : os::ReadFile(settings_.token_file, kMaxTokenFileBytes);
    if (!tokens.ok() || !IsTokenOf(*tokens, request.token)) {
      refusals_->Add(rpc::Refusal::kUnauthorized);
      return Answer("401 Unauthorized", kWantsToken, kHowToAsk);
    }
  }
  if (request.path.empty()) return Answer("405 Method Not Allowed", kPlain, "only GET\n");
  const auto page = pages_.find(request.path);
  if (page == pages_.end()) {
    std::string there = "see";
    for (const auto& [path, make] : pages_) there += " " + path;
    return Answer("404 Not Found", kPlain, there + "\n");
  }
  const TextPage made = page->second();
  const bool ok = made.status == TextPage::Status::kOk;
  return Answer(ok ? "200 OK" : "503 Service Unavailable", made.metrics ? kMetricsText : kPlain,
                made.body);
}

TextEndpoint::Connections::iterator TextEndpoint::Erase(Connections& connections,
                                                        Connections::iterator connection) {
  if (connection->stranger()) gate_.Leave(*connection->stranger());
  return connections.erase(connection);
}

// Returns the connection that gives way when there are too many: the oldest stranger that has asked
// for nothing yet, or such a one of this machine, or the oldest that is being answered. Strangers
// have no one else give way.
TextEndpoint::Connections::iterator TextEndpoint::Victim(Connections& connections,
                                                         bool for_stranger) {
  const auto oldest = [&](bool stranger, bool answering) {
    return std::find_if(connections.begin(), connections.end(), [&](const Connection& connection) {
      return connection.stranger().has_value() == stranger && connection.answering() == answering;
    });
  };
  auto victim = oldest(/*stranger=*/true, /*answering=*/false);
  if (victim != connections.end() || for_stranger) return victim;
  victim = oldest(/*stranger=*/false, /*answering=*/false);
  return victim == connections.end() ? connections.begin() : victim;
}

void TextEndpoint::Accept(Connections& connections) {
  ip::SocketAddress from;
  os::UniqueFd fd(::accept4(listener_.get(), from.get(), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    std::optional<ip::Address> stranger = ip::PeerAddress(from);
    if (!IsStranger(fd.get(), *stranger)) stranger.reset();
    if (stranger) {
      if (const auto refused = gate_.Enter(*stranger, Now()).refused) {
        return refusals_->Add(*refused);
      }
    }
    if (connections.size() >= kMaxConnections) {
      refusals_->Add(rpc::Refusal::kFull);
      const auto victim = Victim(connections, stranger.has_value());
      if (victim == connections.end()) return gate_.Leave(*stranger);
      Erase(connections, victim);
    }
    connections.emplace_back(std::move(fd), stranger);
  } else if (errno == EMFILE || errno == ENFILE) {
    // It stays readable: without a pause this would spin until a descriptor is free.
    pollfd wake{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&wake, 1, 100));
  }
}

TextEndpoint::Pages MetricsPage(std::function<std::string()> render) {
  return {{"/metrics",
           [render = std::move(render)] { return TextPage{.body = render(), .metrics = true}; }}};
}

}  // namespace spoke::telemetry
