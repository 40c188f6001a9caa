#include "lib/node_checks/services/dns_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/socket_address.h"
#include "lib/node_checks/services/dns_query.h"
#include "lib/os/clock.h"
#include "lib/os/unique_fd.h"

namespace spoke::node_checks {
namespace {

constexpr uint16_t kDnsPort = 53;

absl::Status DnsUnreachable(int error) {
  return absl::UnavailableError(error == ECONNREFUSED
                                    ? std::string("refuses: nobody listens at its port 53")
                                    : fmt::format("cannot be asked: {}", std::strerror(error)));
}

// One resolver and how it stands with its question.
class Asking {
 public:
  explicit Asking(const ResolverQuestion& question) : question_(question) {
    // The number is what tells an answer from one that somebody made up (RFC 5452).
    auto query = DnsQuery(static_cast<uint16_t>(std::random_device{}()), question.name);
    if (!query.ok()) {
      result_ = query.status();
      return;
    }
    query_ = *std::move(query);
    const int family = question.resolver.is_v4() ? AF_INET : AF_INET6;
    fd_ = os::UniqueFd(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
    if (!fd_.valid()) result_ = base::ErrnoToStatus(errno, "open a socket");
  }

  // Asks, if it has not answered as it should.
  void Send() {
    if (done() || !fd_.valid()) return;
    result_.reset();
    // A socket that is connected hears of refusals, and of no other sender.
    const ip::SocketAddress to = ip::ToSocketAddress(question_.resolver, kDnsPort);
    if (::connect(fd_.get(), to.get(), to.size) < 0) {
      result_ = DnsUnreachable(errno);
      return;
    }
    const auto send = [this] { return ::send(fd_.get(), query_.data(), query_.size(), 0); };
    // A refusal of the query before, if it comes late, is what this one fails with.
    if (send() < 0 && (errno != ECONNREFUSED || send() < 0)) result_ = DnsUnreachable(errno);
  }

  // Reads what has come.
  void Receive() {
    std::array<char, kMaxDnsReplyBytes> bytes{};
    while (waits()) {
      const ssize_t size = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) {
        if (errno != EAGAIN) result_ = DnsUnreachable(errno);
        return;
      }
      result_ = JudgeDnsReply(std::string_view(bytes.data(), static_cast<size_t>(size)), query_,
                              question_.must_exist);
    }
  }

  int fd() const { return fd_.get(); }
  // Whether it may still answer what it was asked last.
  bool waits() const { return !result_; }
  // Whether it has answered as it should.
  bool done() const { return result_ && result_->ok(); }
  absl::Status result() const {
    return result_.value_or(absl::DeadlineExceededError("does not answer"));
  }

 private:
  const ResolverQuestion question_;
  std::string query_;
  os::UniqueFd fd_;
  std::optional<absl::Status> result_;  // What came of the last try.
};

bool AllDone(const std::vector<Asking>& all) {
  return std::all_of(all.begin(), all.end(), [](const Asking& asking) { return asking.done(); });
}

bool AnyWaits(const std::vector<Asking>& all) {
  return std::any_of(all.begin(), all.end(), [](const Asking& asking) { return asking.waits(); });
}

// Reads answers until `until`, until all have answered well or, in the last try, at all. Returns
// false when it was stopped.
bool AwaitAnswers(std::vector<Asking>& all, absl::Time until, bool last, int stop) {
  const os::MonotonicClock clock;
  while (!AllDone(all) && (AnyWaits(all) || !last)) {
    const absl::Duration left = until - clock.Now();
    if (left <= absl::ZeroDuration()) return true;
    std::vector<pollfd> wanted = {{.fd = stop, .events = POLLIN, .revents = 0}};
    for (const Asking& asking : all) {
      wanted.push_back({.fd = asking.waits() ? asking.fd() : -1, .events = POLLIN, .revents = 0});
    }
    const auto wait = static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
    if (::poll(wanted.data(), wanted.size(), wait) < 0 && errno != EINTR) return true;
    if (wanted[0].revents != 0) return false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (wanted[i + 1].revents != 0) all[i].Receive();
    }
  }
  return true;
}

}  // namespace

std::vector<absl::Status> AskResolvers(const std::vector<ResolverQuestion>& questions,
                                       const DnsPatience& patience, int stop) {
  const os::MonotonicClock clock;
  std::vector<Asking> all;
  all.reserve(questions.size());
  for (const ResolverQuestion& question : questions) all.emplace_back(question);
  for (int left = patience.tries; left > 0 && !AllDone(all); --left) {
    for (Asking& asking : all) asking.Send();
    if (AwaitAnswers(all, clock.Now() + patience.answer, left == 1, stop)) continue;
    return std::vector<absl::Status>(questions.size(), absl::CancelledError("stopped"));
  }
  std::vector<absl::Status> results;
  results.reserve(all.size());
  for (const Asking& asking : all) results.push_back(asking.result());
  return results;
}

}  // namespace spoke::node_checks
