#include "lib/rpc/bounded_server.h"

#include <fcntl.h>
#include <grpcpp/resource_quota.h>
// The C library's own tcp_info ends before tcpi_bytes_received.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/socket_address.h"
#include "lib/os/clock.h"
#include "lib/rpc/byte_meter.h"
#include "lib/rpc/listening_sockets.h"

namespace spoke::rpc {
namespace {

constexpr int64_t kLogMs = 60'000;
// The most connections accepted in a round; then those that are there are looked at.
constexpr int kAcceptsARound = 64;
constexpr int kNoDescriptorsMs = 100;
// How soon to look again whether gRPC has closed a connection whose peer has ended it, and how
// often to look at all of them.
constexpr int kEndingMs = 10;
constexpr int kSweepMs = 5'000;
// When all places are taken, all connections are looked at, but not more often than this.
constexpr int kFullSweepMs = 1'000;
// The numbers that epoll knows us by; connections have numbers from kFirstConnection on.
constexpr uint64_t kWake = 0;
constexpr uint64_t kFirstSocket = 1;
constexpr uint64_t kFirstConnection = 1U << 16U;

absl::Time TimeOf(int64_t monotonic_ms) {
  return absl::UnixEpoch() + absl::Milliseconds(monotonic_ms);
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(duration), std::numeric_limits<int>::max()));
}

// Makes the end a reset: nothing of the connection stays behind, not even for a peer that does not
// read.
void ResetAtEnd(int fd) {
  const linger none{.l_onoff = 1, .l_linger = 0};
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)));
}

void Prepare(int fd, absl::Duration unread) {
  const int on = 1;
  static_cast<void>(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
  const int patience = Milliseconds(unread);
  static_cast<void>(::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof(patience)));
}

// Returns whether the other end of a socket of files is root, or runs as this process does.
bool IsOwnUser(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

// Returns the number that the kernel gives to no other socket before it boots (SO_COOKIE); 0: the
// descriptor is no socket's.
uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return ::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) < 0 ? 0 : cookie;
}

// Returns the bytes since it began; nullopt: it is not of TCP.
std::optional<uint64_t> BytesReceived(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) return std::nullopt;
  return info.tcpi_bytes_received;
}

void Apply(const ListenerLimits& limits, const std::string& name, grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.max_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, limits.max_header_bytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(limits.handshake));
  if (limits.idle != absl::InfiniteDuration()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(limits.idle));
  }
  if (limits.lifetime != absl::InfiniteDuration()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(limits.lifetime));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(limits.unread));
  }
  // The probe would cost a third of memory and CPU for each peer.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  grpc::ResourceQuota quota(name);
  quota.Resize(limits.memory_bytes);
  if (limits.max_threads > 0) quota.SetMaxThreads(limits.max_threads);
  builder.SetResourceQuota(quota);
}

}  // namespace

// Gives connections to gRPC, on a thread of its own: gRPC reads a new connection on the thread that
// brings it for as long as more arrives, and the watch has to count that meanwhile, and to take
// other connections.
class BoundedServer::Handover {
 public:
  explicit Handover(grpc::experimental::ExternalConnectionAcceptor& acceptor)
      : acceptor_(acceptor), thread_([this] { Run(); }) {}

  void Add(os::UniqueFd fd) {
    const absl::MutexLock lock(&mutex_);
    if (!ended_) waiting_.push_back(std::move(fd));
  }

  // Closes those that wait, and returns when gRPC has the last one. The watch must still run: it
  // cuts a connection that does not let go of the thread. Call it once.
  void End() {
    {
      const absl::MutexLock lock(&mutex_);
      ended_ = true;
      waiting_.clear();
    }
    thread_.join();
  }

 private:
  void Run() {
    while (std::optional<os::UniqueFd> fd = Next()) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.fd = fd->Release();
      acceptor_.HandleNewConnection(&parameters);
    }
  }

  // Waits for a connection; nullopt: the end has come.
  std::optional<os::UniqueFd> Next() {
    const absl::MutexLock lock(&mutex_);
    const auto is_there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return ended_ || !waiting_.empty();
    };
    mutex_.Await(absl::Condition(&is_there));
    if (ended_) return std::nullopt;
    os::UniqueFd fd = std::move(waiting_.front());
    waiting_.pop_front();
    return fd;
  }

  grpc::experimental::ExternalConnectionAcceptor& acceptor_;
  absl::Mutex mutex_;
  // The gate bounds how many wait: each is one of its connections.
  std::deque<os::UniqueFd> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // The last member, since it uses the others.
};

// Takes connections and looks after them, on the server's thread.
class BoundedServer::Watch {
 public:
  explicit Watch(BoundedServer& server)
      : server_(server), limits_(server.listener_.limits), gate_(limits_.peers), meter_(limits_) {}

  void Run() {
    epoll_ = os::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    copy_ = os::UniqueFd(::fcntl(epoll_.get(), F_DUPFD_CLOEXEC, 0));
    Add(server_.wake_.get(), EPOLLIN, kWake);
    for (size_t i = 0; i < server_.sockets_.size(); ++i) {
      Add(server_.sockets_[i].get(), EPOLLIN, kFirstSocket + i);
    }
    while (Turn()) {
    }
  }

 private:
  // The descriptor is gRPC's, which closes it without telling us: then the kernel has forgotten
  // what we asked of it, and its number may be anything else's. Whether it still is this
  // connection's its cookie says.
  struct Connection {
    int fd = -1;
    uint64_t cookie = 0;
    MessageCounter::Peer from;
    MessageCounter::Bytes whole;  // The bytes of its whole messages.
    ByteMeter::Connection meter;
  };

  void Add(int fd, uint32_t events, uint64_t number) {
    epoll_event event{.events = events, .data = {.u64 = number}};
    static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event));
  }

  // Returns false when the end has come.
  bool Turn() {
    std::array<epoll_event, 64> events{};
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), Patience());
    if (count < 0 && errno != EINTR) return false;
    for (int i = 0; i < count; ++i) {
      // These are copies: the kernel packs the struct, so that nothing may refer to its members.
      const uint64_t number = events[static_cast<size_t>(i)].data.u64;
      if (number == kWake) return false;
      if (number < kFirstConnection) {
        Accept(server_.sockets_[number - kFirstSocket].get());
      } else {
        constexpr uint32_t kEnds = uint32_t{EPOLLHUP} | uint32_t{EPOLLERR} | uint32_t{EPOLLRDHUP};
        Look(number, (events[static_cast<size_t>(i)].events & kEnds) != 0);
      }
    }
    ending_ = DropClosed(ending_);
    if (os::MonotonicMs() - swept_ms_ >= kSweepMs) Sweep();
    return true;
  }

  // Returns for how many milliseconds nothing has to be done unless something happens; -1: forever.
  int Patience() const {
    if (!ending_.empty()) return kEndingMs;
    return connections_.empty() ? -1 : kSweepMs;
  }

  void Accept(int socket) {
    for (int i = 0; i < kAcceptsARound; ++i) {
      ip::SocketAddress from;
      os::UniqueFd fd(::accept4(socket, from.get(), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.valid()) {
        // All that come through a socket of files are one peer.
        const auto at = ip::FromSocketAddress(from);
        Take(std::move(fd), {ip::PeerAddress(from), at.ok() ? at->second : uint16_t{0}});
      } else if (errno == EMFILE || errno == ENFILE) {
        // It stays readable: without a pause this would spin until a descriptor is free.
        pollfd wake{.fd = server_.wake_.get(), .events = POLLIN, .revents = 0};
        static_cast<void>(::poll(&wake, 1, kNoDescriptorsMs));
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return;
      }
    }
  }

  void Take(os::UniqueFd fd, const MessageCounter::Peer& from) {
    const int64_t now = os::MonotonicMs();
    const ip::Address& peer = from.first;
    if (server_.listener_.own_users_only && !IsOwnUser(fd.get())) {
      return Count(Refusal::kUnauthorized, peer);
    }
    const PeerGate::Verdict verdict = Enter(peer, now);
    if (verdict.refused) {
      ResetAtEnd(fd.get());
      return Count(*verdict.refused, peer);
    }
    if (verdict.evict) Evict(*verdict.evict);
    Prepare(fd.get(), limits_.unread);
    const uint64_t number = next_++;
    connections_.emplace(number, Connection{.fd = fd.get(),
                                            .cookie = CookieOf(fd.get()),
                                            .from = from,
                                            .whole = server_.messages_->Add(from),
                                            .meter = meter_.Begin(peer, TimeOf(now))});
    by_peer_[peer].insert(number);
    // Each arrival, and the peer's end, is told once. gRPC may have read it before we are told; a
    // socket that can be written to is told of even then.
    constexpr uint32_t kEnd = uint32_t{EPOLLRDHUP} | uint32_t{EPOLLET};
    constexpr uint32_t kArrivals = uint32_t{EPOLLIN} | uint32_t{EPOLLOUT} | kEnd;
    Add(fd.get(), limits_.burst_bytes > 0 ? kArrivals : kEnd, number);
    server_.handover_->Add(std::move(fd));
  }

  // Asks the gate. Nobody is refused for a connection of its own that gRPC has closed already.
  PeerGate::Verdict Enter(const ip::Address& peer, int64_t now) {
    const bool full = gate_.connections() >= limits_.peers.connections;
    if (full && now - swept_ms_ >= kFullSweepMs) Sweep();
    PeerGate::Verdict verdict = gate_.Enter(peer, TimeOf(now));
    if (verdict.refused != Refusal::kPeerConnections) return verdict;
    const auto own = by_peer_.find(peer);
    if (own == by_peer_.end()) return verdict;
    DropClosed(std::set<uint64_t>(own->second));
    return gate_.Enter(peer, TimeOf(now));
  }

  // Looks at a connection that has sent something, or has ended, perhaps with too much.
  void Look(uint64_t number, bool ended) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) return;
    if (!IsOpen(found->second)) return Drop(number);
    const int64_t now = os::MonotonicMs();
    const ip::Address peer = found->second.from.first;
    if (ended) ending_.insert(number);
    if (limits_.burst_bytes == 0 || IsWithin(found->second, now)) return;
    // False: gRPC has closed it meanwhile, and what was read may be another's.
    if (!Cut(number)) return;
    gate_.Punish(peer, TimeOf(now));
    Count(Refusal::kBytes, peer);
  }

  bool IsWithin(Connection& connection, int64_t now) {
    const uint64_t whole = connection.whole->load(std::memory_order_acquire);
    const std::optional<uint64_t> received = BytesReceived(connection.fd);
    if (!received) return true;
    return meter_.Look(connection.meter, {.bytes = *received, .whole = whole}, TimeOf(now));
  }

  static bool IsOpen(const Connection& connection) {
    return CookieOf(connection.fd) == connection.cookie;
  }

  // Drops those of `numbers` that gRPC has closed. Returns the others.
  std::set<uint64_t> DropClosed(const std::set<uint64_t>& numbers) {
    std::set<uint64_t> open;
    for (const uint64_t number : numbers) {
      const auto found = connections_.find(number);
      if (found == connections_.end()) continue;
      if (IsOpen(found->second)) {
        open.insert(number);
      } else {
        Drop(number);
      }
    }
    return open;
  }

  // Drops all that gRPC has closed by itself: nobody tells of that.
  void Sweep() {
    swept_ms_ = os::MonotonicMs();
    for (auto next = connections_.begin(); next != connections_.end();) {
      const auto& [number, connection] = *next++;
      if (!IsOpen(connection)) Drop(number);
    }
  }

  // Lets the oldest connection of `peer` give way.
  void Evict(const ip::Address& peer) {
    const auto own = by_peer_.find(peer);
    if (own == by_peer_.end()) return;
    Count(Refusal::kFull, peer);
    Cut(*own->second.begin());
  }

  // Cuts a connection, and drops it. gRPC sees its end, and closes it. Returns false if gRPC has
  // closed it before.
  bool Cut(uint64_t number) {
    const Connection& connection = connections_.at(number);
    // What a copy stands for does not change, so that nothing else is cut. Its descriptor is there
    // already, so that it can be made when no other is to be had.
    const bool open = ::dup3(connection.fd, copy_.get(), O_CLOEXEC) >= 0 &&
                      CookieOf(copy_.get()) == connection.cookie;
    if (open) {
      ResetAtEnd(copy_.get());
      static_cast<void>(::shutdown(copy_.get(), SHUT_RDWR));
    }
    static_cast<void>(::dup3(epoll_.get(), copy_.get(), O_CLOEXEC));  // The socket is gRPC's again.
    Drop(number);
    return open;
  }

  void Drop(uint64_t number) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) return;
    const ip::Address peer = found->second.from.first;
    gate_.Leave(peer);
    meter_.End(found->second.meter);
    server_.messages_->Remove(found->second.from, found->second.whole);
    connections_.erase(found);
    const auto own = by_peer_.find(peer);
    own->second.erase(number);
    if (own->second.empty()) by_peer_.erase(own);
  }

  void Count(Refusal refusal, const ip::Address& peer) {
    server_.refusals_->Add(refusal);
    ++untold_;
    const int64_t now = os::MonotonicMs();
    if (now < log_ms_) return;
    server_.log_.Warn("connections_refused", {{"listener", server_.listener_.name},
                                              {"peer", peer.ToString()},
                                              {"reason", NameOf(refusal)},
                                              {"count", untold_}});
    log_ms_ = now + kLogMs;
    untold_ = 0;
  }

  BoundedServer& server_;
  const ListenerLimits& limits_;
  PeerGate gate_;
  ByteMeter meter_;
  os::UniqueFd epoll_;
  os::UniqueFd copy_;  // A second descriptor of `epoll_`, and of a connection while that is cut.
  std::map<uint64_t, Connection> connections_;  // The connections by number: the oldest first.
  std::map<ip::Address, std::set<uint64_t>> by_peer_;
  std::set<uint64_t> ending_;  // Those whose peer has ended them.
  uint64_t next_ = kFirstConnection;
  int64_t swept_ms_ = 0;
  int64_t log_ms_ = 0;  // The time before which nothing is told.
  uint64_t untold_ = 0;
};

BoundedServer::BoundedServer(telemetry::Log& log, Listener listener)
    : log_(log), listener_(std::move(listener)) {}

absl::Status BoundedServer::Open() {
  ASSIGN_OR_RETURN(ListeningSockets listening,
                   ListenAt(listener_.address, listener_.limits.receive_buffer_bytes));
  sockets_ = std::move(listening.sockets);
  path_ = std::move(listening.path);
  port_ = listening.port;
  wake_ = os::UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!wake_.valid()) return base::ErrnoToStatus(errno, "open an eventfd");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BoundedServer>> BoundedServer::Start(grpc::ServerBuilder& builder,
                                                                    Listener listener,
                                                                    telemetry::Log& log) {
  std::unique_ptr<BoundedServer> server(new BoundedServer(log, std::move(listener)));
  RETURN_IF_ERROR(server->Open());
  const Listener& own = server->listener_;
  Apply(own.limits, own.name, builder);
  if (own.limits.unfinished_bytes > 0) MessageCounter::Watch(server->messages_, builder);
  server->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, own.credentials);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::UnavailableError(fmt::format("cannot serve gRPC on {}", own.address));
  }
  server->handover_ = std::make_unique<Handover>(*server->acceptor_);
  server->thread_ = std::thread([raw = server.get()] { Watch(*raw).Run(); });
  return server;
}

// Stops before gRPC ends, which does not close what it is handed then.
void BoundedServer::Stop() {
  if (!thread_.joinable()) return;
  handover_->End();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  thread_.join();
  sockets_.clear();
  if (!path_.empty()) ::unlink(path_.c_str());
}

void BoundedServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  Stop();
  server_->Shutdown(deadline);
}

BoundedServer::~BoundedServer() {
  if (thread_.joinable()) Shutdown(std::chrono::system_clock::now());
}

}  // namespace spoke::rpc
