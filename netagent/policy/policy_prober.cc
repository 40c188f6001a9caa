#include "netagent/policy/policy_prober.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "lib/ip/socket_address.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {
namespace {

// The pause between two looks whether to stop.
constexpr absl::Duration kStopLook = absl::Milliseconds(50);

constexpr size_t kEchoHeader = 8;
constexpr size_t kIpv4Header = 20;
constexpr size_t kIpv6Header = 40;

// Returns the checksum of RFC 1071.
uint16_t Checksum(const std::vector<uint8_t>& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    sum += (uint32_t{bytes[i]} << 8U) | (i + 1 < bytes.size() ? uint32_t{bytes[i + 1]} : 0U);
  }
  while ((sum >> 16U) != 0) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<uint16_t>(~sum);
}

node_api::ProbeOutcome OutcomeOf(int error) {
  switch (error) {
    case ECONNREFUSED:
      return node_api::ProbeOutcome::kRefused;
    case ETIMEDOUT:
      return node_api::ProbeOutcome::kTimedOut;
    case EPERM:    // This node's own rules have dropped it,
    case ENOBUFS:  // or its own device has.
    case EACCES:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return node_api::ProbeOutcome::kUnreachable;
    default:
      return node_api::ProbeOutcome::kNotTried;
  }
}

// An attempt at one target that is under way.
class Attempt {
 public:
  Attempt(const node_api::ProbeTarget& target, uint16_t number, absl::Time begun, uint32_t mark)
      : number_(number), begun_(begun), mark_(mark) {
    result_.target = target;
    if (target.port == 0) {
      SendEcho();
    } else {
      BeginConnecting();
    }
  }

  bool over() const { return over_; }
  const node_api::ProbeResult& result() const { return result_; }
  pollfd Wanted() const {
    return {.fd = fd_.get(),
            .events = static_cast<int16_t>(result_.target.port == 0 ? POLLIN : POLLOUT),
            .revents = 0};
  }

  // Reads what the socket has to say.
  void Look() {
    if (result_.target.port == 0) return ReadEcho();
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
    End(error);
  }

  void GiveUp() {
    over_ = true;
    result_.outcome = node_api::ProbeOutcome::kTimedOut;
    result_.took = absl::Now() - begun_;
  }

 private:
  // Ends it with `error` of errno; 0: the target was reached.
  void End(int error) {
    over_ = true;
    result_.took = absl::Now() - begun_;
    result_.outcome = error == 0 ? node_api::ProbeOutcome::kReached : OutcomeOf(error);
    if (error != 0) result_.detail = std::generic_category().message(error);
    if (error == ENOBUFS) result_.detail = "dropped by this node's own device";
    if (error == EPERM) result_.detail = "dropped by this node's own rules";
  }

  void Open(int type, int protocol) {
    const int family = result_.target.address.is_v4() ? AF_INET : AF_INET6;
    fd_ = os::UniqueFd(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
    if (fd_.valid() &&
        (mark_ == 0 || ::setsockopt(fd_.get(), SOL_SOCKET, SO_MARK, &mark_, sizeof(mark_)) == 0)) {
      return;
    }
    End(errno);
    // The error is about this process, not about the way there.
    result_.outcome = node_api::ProbeOutcome::kNotTried;
  }

  void Connect() {
    const ip::SocketAddress to = ip::ToSocketAddress(result_.target.address, result_.target.port);
    if (::connect(fd_.get(), to.get(), to.size) < 0 && errno != EINPROGRESS) {
      End(errno);
    }
  }

  void BeginConnecting() {
    Open(SOCK_STREAM, IPPROTO_TCP);
    if (!over_) Connect();
  }

  void SendEcho() {
    const bool v4 = result_.target.address.is_v4();
    Open(SOCK_RAW, v4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6});
    if (over_) return;
    const int on = 1;  // Lets a router's refusal be heard.
    ::setsockopt(fd_.get(), v4 ? SOL_IP : SOL_IPV6, v4 ? IP_RECVERR : IPV6_RECVERR, &on,
                 sizeof(on));
    if (result_.target.bytes != 0) {
      const int probe = v4 ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE;
      ::setsockopt(fd_.get(), v4 ? SOL_IP : SOL_IPV6, v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER,
                   &probe, sizeof(probe));
    }
    Connect();
    if (over_) return;
    const size_t headers = kEchoHeader + (v4 ? kIpv4Header : kIpv6Header);
    std::vector<uint8_t> echo(kEchoHeader + std::max<size_t>(result_.target.bytes, headers) -
                              headers);
    echo[0] = v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
    echo[4] = static_cast<uint8_t>(number_ >> 8U);
    echo[5] = static_cast<uint8_t>(number_ & 0xFFU);
    if (v4) {  // The kernel does it for IPv6.
      const uint16_t sum = Checksum(echo);
      echo[2] = static_cast<uint8_t>(sum >> 8U);
      echo[3] = static_cast<uint8_t>(sum & 0xFFU);
    }
    if (::send(fd_.get(), echo.data(), echo.size(), MSG_NOSIGNAL) < 0) End(errno);
  }

  void ReadEcho() {
    // The rest of a long one is cut off.
    std::array<uint8_t, 128> packet = {};
    const ssize_t got = ::recv(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      const int error = errno;
      End(error);
      // A router on the way has refused it; the node's own link would have done so when it was
      // sent.
      if (error == EMSGSIZE) result_.outcome = node_api::ProbeOutcome::kUnreachable;
      return;
    }
    // The replies of IPv4 come with their header.
    const bool v4 = result_.target.address.is_v4();
    const size_t header = v4 ? size_t{4} * (packet[0] & 0x0FU) : 0;
    if (header + 8 > static_cast<size_t>(got)) return;
    const uint8_t* echo = packet.data() + header;
    const bool is_reply = echo[0] == (v4 ? uint8_t{ICMP_ECHOREPLY} : uint8_t{ICMP6_ECHO_REPLY});
    const auto number = static_cast<uint16_t>((echo[4] << 8U) | echo[5]);
    if (is_reply && number == number_) End(0);
  }

  const uint16_t number_;  // Tells our echo from others'.
  const absl::Time begun_;
  const uint32_t mark_;  // The mark of its packets; 0: none.
  os::UniqueFd fd_;
  bool over_ = false;
  node_api::ProbeResult result_;
};

}  // namespace

std::vector<node_api::ProbeResult> ProbeAll(const std::vector<node_api::ProbeTarget>& targets,
                                            absl::Duration timeout, const std::atomic<bool>& stop,
                                            uint32_t mark) {
  const absl::Time begun = absl::Now();
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (const node_api::ProbeTarget& target : targets) {
    const auto number = static_cast<uint16_t>(0x5000U + attempts.size());
    attempts.push_back(std::make_unique<Attempt>(target, number, begun, mark));
  }
  while (!stop) {
    std::vector<pollfd> wanted;
    std::vector<Attempt*> of;
    for (const auto& attempt : attempts) {
      if (attempt->over()) continue;
      wanted.push_back(attempt->Wanted());
      of.push_back(attempt.get());
    }
    const absl::Duration left = timeout - (absl::Now() - begun);
    if (wanted.empty() || left <= absl::ZeroDuration()) break;
    const absl::Duration wait = absl::Ceil(std::min(left, kStopLook), absl::Milliseconds(1));
    if (::poll(wanted.data(), wanted.size(), static_cast<int>(absl::ToInt64Milliseconds(wait))) <=
        0) {
      continue;
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].revents != 0) of[i]->Look();
    }
  }
  std::vector<node_api::ProbeResult> results;
  for (const auto& attempt : attempts) {
    if (!attempt->over()) attempt->GiveUp();
    results.push_back(attempt->result());
  }
  return results;
}

PolicyProber::PolicyProber(std::function<void(std::function<void()>)> post,
                           std::function<void(node_api::ProbeAnswer)> answer)
    : post_(std::move(post)), answer_(std::move(answer)) {}

PolicyProber::~PolicyProber() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void PolicyProber::Probe(const node_api::ProbeRequest& request) {
  if (waiting_.size() >= kMaxWaiting) {
    return answer_({.id = request.id, .error = "too many probes wait on this node; try again"});
  }
  waiting_.push_back(request);
  if (!busy_) Begin();
}

void PolicyProber::Begin() {
  busy_ = true;
  if (thread_.joinable()) thread_.join();  // It has posted its last words.
  thread_ = std::thread([this, request = waiting_.front()] {
    node_api::ProbeAnswer answer{.id = request.id,
                                 .results = ProbeAll(request.targets, request.timeout, stop_)};
    if (stop_) return;
    post_([this, answer = std::move(answer)] {
      answer_(answer);
      waiting_.pop_front();
      busy_ = false;
      if (!waiting_.empty()) Begin();
    });
  });
}

}  // namespace spoke::netagent
