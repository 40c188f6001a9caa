// Plain HTTP/1.1 with libevent, for what a cloud serves to the machine itself: its metadata service
// and its wire server. No TLS, no compression, no proxy, no redirects, no names to resolve; each
// call has a connection of its own. A program that speaks to nobody else is spared libcurl and the
// 26 libraries below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/http/transport.h"

namespace spoke::http {

// The most bytes of all headers of one response together.
inline constexpr size_t kMaxPlainHeaderBytes = size_t{64} << 10U;

class PlainTransport final : public Transport {
 public:
  // `max_response_bytes` is the longest body. Errors: kResourceExhausted (no descriptor or memory).
  static absl::StatusOr<std::unique_ptr<PlainTransport>> Create(size_t max_response_bytes);
  // Ends the calls under way, without completions.
  ~PlainTransport() override;
  PlainTransport(const PlainTransport&) = delete;
  PlainTransport& operator=(const PlainTransport&) = delete;

  // The URL is "http://ADDRESS[:PORT]/...". A name for a host, another scheme, and a request that
  // is streamed or has a time to leave, complete with kInvalidArgument.
  void Send(uint64_t id, Request request, absl::Duration timeout) override;
  std::vector<Completion> Wait(absl::Duration wait) override;
  void Wake() override;

 private:
  class Impl;
  explicit PlainTransport(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace spoke::http
