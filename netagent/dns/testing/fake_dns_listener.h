// A DnsListener for tests: hears what it is told.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/os/unique_fd.h"
#include "netagent/dns/dns_listener.h"

namespace spoke::netagent {

// The fake is not thread-safe.
class FakeDnsListener final : public DnsListener {
 public:
  absl::Status Open(const std::vector<ip::Prefix>& resolvers) override {
    ++opened;
    if (!failure.ok()) return failure;
    if (resolvers.size() > kMaxResolvers) return absl::InvalidArgumentError("too many resolvers");
    // The descriptor is a counter that is readable while it is above zero; one is taken from it for
    // each read.
    fd_ = os::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
    CHECK(fd_.valid(), "a test has descriptors");
    resolvers_ = resolvers;
    waiting_.clear();
    return absl::OkStatus();
  }
  void Close() override {
    fd_.Reset();
    waiting_.clear();
  }
  int fd() const override { return fd_.get(); }
  absl::StatusOr<HeardDns> Take(size_t most) override {
    if (!failure.ok()) return failure;
    HeardDns out;
    for (; !waiting_.empty() && out.looked_at < most; ++out.looked_at) {
      out.messages.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      eventfd_t taken = 0;
      CHECK(::eventfd_read(fd_.get(), &taken) == 0, "there is one for each that waits");
    }
    out.lost = std::exchange(lost, 0);
    return out;
  }

  // Lets a datagram from port 53 of `source` pass by, by a way that is listened to.
  void Pass(const ip::Address& source, std::vector<uint8_t> bytes) {
    const auto holds = [&](const ip::Prefix& block) { return block.Contains(source); };
    const size_t headers = source.is_v4() ? 28 : 48;
    if (headers + bytes.size() > kMaxPacket) return;
    if (!fd_.valid() || std::none_of(resolvers_.begin(), resolvers_.end(), holds)) return;
    waiting_.push_back({source, std::move(bytes)});
    CHECK(::eventfd_write(fd_.get(), 1) == 0, "there is room for one more");
  }

  // Returns the resolvers of the last Open().
  const std::vector<ip::Prefix>& resolvers() const { return resolvers_; }

  absl::Status failure;  // The error of every call.
  uint64_t lost = 0;     // The number of packets that the next call says are lost.
  int opened = 0;        // The number of calls of Open().

 private:
  os::UniqueFd fd_;
  std::vector<ip::Prefix> resolvers_;
  std::deque<DnsMessage> waiting_;
};

}  // namespace spoke::netagent
