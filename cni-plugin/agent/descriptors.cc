#include "cni-plugin/agent/descriptors.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cni-plugin/agent/agent_client.h"

namespace spoke::cni {
namespace {

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
