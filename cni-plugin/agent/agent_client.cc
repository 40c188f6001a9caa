#include "cni-plugin/agent/agent_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lib/base/fnv1a.h"
#include "lib/os/unique_fd.h"

namespace spoke::cni {
namespace {

constexpr size_t kMaxAnswerBytes = 16 << 10;
// The bytes above which a request needs a larger send buffer than some nodes give a socket.
constexpr size_t kLargeRequestBytes = 64 << 10;
constexpr int kLeastPauseMs = 5;
constexpr int kMostPauseMs = 160;

constexpr const char* kOtherRelease = "do plugin and agent come from the same release?";

// Returns the milliseconds that are left; never negative.
int Left(int64_t until_ms) {
  const int64_t left = until_ms - MonotonicMs();
  return left > 0 ? static_cast<int>(left) : 0;
}

Error NoAgent(const std::string& socket, int error) {
  const char* what = error == ENOENT ? "there is no socket" : std::strerror(error);
  return {kTryAgainLater, "spoke-netagent does not answer on this node",
          socket + ": " + what + "; check that the agent runs here"};
}

// Returns until when, in milliseconds of CLOCK_MONOTONIC, the agent that takes the place of one
// that stopped in order is to be waited for; 0: none has stopped within `replaced_ms`.
int64_t ReplacedUntilMs(const std::string& socket, int replaced_ms) {
  struct stat mark {};
  timespec now{};
  if (replaced_ms == 0 || ::stat(StoppedMark(socket).c_str(), &mark) != 0) return 0;
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int64_t ago_ms = (int64_t{now.tv_sec} - mark.st_mtim.tv_sec) * 1000 +
                         (now.tv_nsec - mark.st_mtim.tv_nsec) / 1'000'000;
  // Where the clock was set back since, nobody knows how long ago it was. A file's time is that of
  // the last tick, and may be some milliseconds behind the clock, but never ahead of it.
  if (ago_ms < 0 || ago_ms >= replaced_ms) return 0;
  return MonotonicMs() + replaced_ms - ago_ms;
}

// The reason why there is no answer, and whether asking again may help.
struct Failure {
  Error error;
  bool hung_up = false;
};

// A buffer that is not zeroed. (The headers of a release build have no <memory>.)
struct Buffer {
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { delete[] data; }
  char* const data = new char[kMaxAnswerBytes];
};

// One exchange over one connection.
class Connection {
 public:
  Connection(const std::string& socket, int64_t until_ms) : socket_(socket), until_ms_(until_ms) {}

  // Returns 0, or an errno: ENOENT and ECONNREFUSED where nobody listens.
  int Open() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
    std::memcpy(address.sun_path, socket_.data(), socket_.size());
    fd_ = os::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_.valid()) return errno;
    while (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {
      // EAGAIN says that so many pods start at once that the agent's queue is full.
      if ((errno != EAGAIN && errno != EINTR) || Left(until_ms_) == 0) return errno;
      ::poll(nullptr, 0, kLeastPauseMs);
    }
    return 0;
  }

  // Sends the request. Errors: an errno.
  int Send(const std::string& bytes, int netns) {
    if (bytes.size() > kLargeRequestBytes) EnlargeBuffer();
    iovec data{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (netns >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &netns, sizeof(int));
    }
    return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL) < 0 ? errno : 0;
  }

  // Sets `response`; nullopt: done.
  std::optional<Failure> Receive(Response& response) {
    pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    int ready = 0;
    do {
      ready = ::poll(&waiting, 1, Left(until_ms_));
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) {
      return Failure{{kTryAgainLater, "spoke-netagent did not answer in time",
                      socket_ + ": the agent is overloaded or hangs; look at its log"},
                     false};
    }
    // The buffer is neither on the stack nor zeroed: either would touch pages that nobody uses.
    const Buffer bytes;
    // MSG_TRUNC makes it say how long the packet was, also where that is more than fits.
    const ssize_t got = ::recv(fd_.get(), bytes.data, kMaxAnswerBytes, MSG_DONTWAIT | MSG_TRUNC);
    if (got <= 0) {
      return Failure{{kTryAgainLater, "spoke-netagent hung up before it answered",
                      "it was restarted, or it is out of connections; look at its log"},
                     true};
    }
    const auto size = static_cast<size_t>(got);
    auto decoded = size <= kMaxAnswerBytes ? DecodeResponse({bytes.data, size}) : std::nullopt;
    if (!decoded || decoded->outcome == Response::Outcome::kNone) {
      return Failure{
          {kInternal, "spoke-netagent answered with something else than a response", kOtherRelease},
          false};
    }
    response = *std::move(decoded);
    return std::nullopt;
  }

 private:
  // The first works for root alone, the second up to net.core.wmem_max; sendmsg() tells.
  void EnlargeBuffer() {
    const int size = kMaxRequestBytes;
    if (::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0) {
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    }
  }

  const std::string& socket_;
  const int64_t until_ms_;
  os::UniqueFd fd_;
};

Failure SendFailure(const std::string& socket, size_t size, int error) {
  if (error != EMSGSIZE && error != ENOBUFS) return {NoAgent(socket, error), true};
  return {{kInternal, "a request of " + std::to_string(size) + " bytes is refused by the socket",
           "raise net.core.wmem_max, or run the plugin as root"},
          false};
}

std::string Hex(uint64_t number) {
  std::string text(16, '0');
  for (size_t i = text.size(); i > 0; number >>= 4U) text[--i] = "0123456789abcdef"[number & 0xFU];
  return text;
}

Error Failed(const std::string& path, int error) {
  return {kTryAgainLater, "spoke-netagent is away, and the deletion cannot be noted down for it",
          path + ": " + std::strerror(error) + "; start the agent, or make room"};
}

// After a reboot not even the agent's own folder is there before the agent is.
bool MakeFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return true;
  if (errno != ENOENT) return false;
  ::mkdir(folder.substr(0, folder.rfind('/')).c_str(), 0755);
  return ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
}

bool WriteFile(const std::string& path, const std::string& bytes) {
  const os::UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return false;
  errno = ENOSPC;  // A short write means that.
  return ::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

// Returns whether `fd` has an event before `until_ms`. An end that is closed or broken is one too.
bool Await(int fd, short events, int64_t until_ms) {
  pollfd waiting{.fd = fd, .events = events, .revents = 0};
  while (true) {
    const int64_t left = std::max<int64_t>(until_ms - MonotonicMs(), 0);
    const int ready = ::poll(&waiting, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

Error CannotRead(std::string details) {
  return {kIoFailure, "cannot read the network configuration from standard input",
          std::move(details)};
}

}  // namespace

int64_t MonotonicMs() {
  timespec now{};
  // The C library is not asked, which would first look for a faster way in the vDSO: for the few
  // times that we ask, its page faults cost more.
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

Expected<Response> Ask(const std::string& socket, Request request, int netns,
                       const Patience& patience) {
  const int64_t start_ms = MonotonicMs();
  request.deadline_monotonic_ms = start_ms + patience.deadline_ms;
  const int64_t until_ms = request.deadline_monotonic_ms + patience.grace_ms;
  const std::string bytes = EncodeRequest(request);
  if (bytes.size() > kMaxRequestBytes) {
    return Error{
        kInternal, "the request has more than 1 MiB",
        "the agent takes some 10,000 attachments at once; are there so many on this node?"};
  }
  int64_t absent_until_ms = std::min(start_ms + patience.absent_ms, until_ms);
  bool has_hung_up = false;
  int pause_ms = kLeastPauseMs;
  while (true) {
    Connection connection(socket, until_ms);
    Failure failure;
    if (const int error = connection.Open(); error != 0) {
      failure = {NoAgent(socket, error), error == ENOENT || error == ECONNREFUSED};
      absent_until_ms = std::max(absent_until_ms,
                                 std::min(ReplacedUntilMs(socket, patience.replaced_ms), until_ms));
    } else {
      const int sent = connection.Send(bytes, netns);
      std::optional<Failure> failed;
      Response response;
      if (sent != 0) {
        failed = SendFailure(socket, bytes.size(), sent);
      } else {
        failed = connection.Receive(response);
      }
      if (!failed) return response;
      failure = *std::move(failed);
      if (!std::exchange(has_hung_up, true)) {
        absent_until_ms = std::min(MonotonicMs() + patience.hung_up_ms, until_ms);
      }
    }
    const int left_ms = Left(absent_until_ms);
    if (!failure.hung_up || left_ms == 0) return failure.error;
    ::poll(nullptr, 0, std::min(pause_ms, left_ms));
    // An agent that starts is met at once; one that hangs up on everybody is not stormed.
    pause_ms = has_hung_up ? std::min(pause_ms * 2, kMostPauseMs) : pause_ms;
  }
}

std::string TombstoneName(const std::string& container_id, const std::string& ifname) {
  // The separator keeps ("ab", "c") apart from ("a", "bc").
  return Hex(
      base::Fnv1a(ifname, base::Fnv1a(std::string_view("\0", 1), base::Fnv1a(container_id))));
}

std::string TombstoneFolder(const std::string& socket) {
  return socket.substr(0, socket.rfind('/')) + "/tombstones";
}

std::optional<Error> LeaveTombstone(const std::string& socket, const Request& del) {
  const std::string folder = TombstoneFolder(socket);
  if (!MakeFolder(folder)) return Failed(folder, errno);
  const std::string path = folder + "/" + TombstoneName(del.container_id, del.ifname);
  const std::string temporary = folder + "/." + Hex(del.attempt);
  // A reader takes only names that do not begin with a dot, so it never sees half of one. The file
  // is not synced: the folder is on tmpfs, and what a power cut takes is gone from the kernel as
  // well.
  if (!WriteFile(temporary, EncodeRequest(del)) ||
      std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return Failed(temporary, error);
  }
  return std::nullopt;
}

Expected<std::string_view> ReadWhole(int fd, int deadline_ms, std::span<char> buffer,
                                     std::string& overflow) {
  const int64_t until_ms = MonotonicMs() + deadline_ms;
  size_t size = 0;
  while (true) {
    if (size == buffer.size()) {
      if (size > kMaxInputBytes) return CannotRead("it is longer than 4 MiB");
      std::string larger(buffer.size() * 4, '\0');
      std::memcpy(larger.data(), buffer.data(), size);
      overflow = std::move(larger);
      buffer = overflow;
    }
    if (!Await(fd, POLLIN, until_ms)) {
      return CannotRead("it was not closed in time; the runtime has to close it");
    }
    const ssize_t got = ::read(fd, buffer.data() + size, buffer.size() - size);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return CannotRead(std::strerror(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > kMaxInputBytes) return CannotRead("it is longer than 4 MiB");
  return std::string_view(buffer.data(), size);
}

bool WriteWhole(int fd, std::string_view text, int deadline_ms) {
  const int64_t until_ms = MonotonicMs() + deadline_ms;
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      if (!Await(fd, POLLOUT, until_ms)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace spoke::cni
