#include "lib/os/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "lib/base/status.h"

namespace spoke::os {

absl::StatusOr<EventLoop> EventLoop::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return base::ErrnoToStatus(errno, "create epoll");
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::ErrnoToStatus(errno, "create eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.fd = wake.get()}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) < 0) {
    return base::ErrnoToStatus(errno, "watch eventfd");
  }
  return EventLoop(std::move(epoll), std::move(wake));
}

absl::Status EventLoop::AddReader(int fd, std::function<void()> on_readable) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) {
    return base::ErrnoToStatus(errno, "watch a descriptor");
  }
  readers_[fd] = std::move(on_readable);
  return absl::OkStatus();
}

void EventLoop::Remove(int fd) {
  if (readers_.erase(fd) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::Post(std::function<void()> work) {
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->posted.push_back(std::move(work));
  }
  Wake();
}

void EventLoop::Stop() {
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->stopped = true;
  }
  Wake();
}

void EventLoop::Wake() const {
  const uint64_t one = 1;
  // EAGAIN means that the counter is full, and so that the loop will wake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

bool EventLoop::RunPosted() {
  std::vector<std::function<void()>> posted;
  {
    absl::MutexLock lock(&shared_->mutex);
    if (shared_->stopped) return false;
    posted.swap(shared_->posted);
  }
  for (const auto& work : posted) work();
  return true;
}

bool EventLoop::RunOnce(absl::Duration wait) {
  std::array<epoll_event, 64> events{};
  // The wait is rounded up: one of less than a millisecond must not become a busy loop.
  const auto timeout = static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(wait + absl::Microseconds(999)), 0, 1'000'000));
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
  for (int i = 0; i < count; ++i) {
    const int fd = events.at(static_cast<size_t>(i)).data.fd;
    if (fd == wake_.get()) {
      uint64_t drained = 0;
      [[maybe_unused]] const ssize_t got = ::read(fd, &drained, sizeof(drained));
      continue;
    }
    // An earlier handler of this round may have removed it.
    const auto reader = readers_.find(fd);
    if (reader == readers_.end()) continue;
    // This is a copy, since it may remove itself.
    const std::function<void()> on_readable = reader->second;
    on_readable();
  }
  return RunPosted();
}

}  // namespace spoke::os
