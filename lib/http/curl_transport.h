// HTTP over the network, with libcurl: HTTP/1.1, or HTTP/2 where TLS offers it; connections are
// kept and used again; answers may come compressed. Redirects are never followed: a token goes
// where it was meant to go. TLS is always verified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/http/transport.h"

namespace spoke::http {

struct CurlOptions {
  size_t max_connections = 64;  // The most calls under way at once; others wait for their turn.
  size_t max_waiting = 16384;   // The most calls that wait; what is more is refused.
  size_t max_response_bytes = size_t{64} << 20U;  // The longest body, after decompression.
  absl::Duration connect_timeout = absl::Seconds(10);
  // The patience with a stalled answer, which brings less than a byte a second for so long; whole
  // seconds.
  absl::Duration stall_timeout = absl::Seconds(20);
  std::string ca_file;  // A PEM file; trusted besides the system's. Empty: none.
  // A proxy such as "http://proxy:3128"; empty: https_proxy, no_proxy and so on.
  std::string proxy;
  std::string user_agent = "spoke";
};

// The most bytes of all headers of one response together; curl bounds each line itself.
inline constexpr size_t kMaxHeaderBytes = size_t{256} << 10U;

class CurlTransport : public Transport {
 public:
  explicit CurlTransport(CurlOptions options);
  // Ends the calls under way, without completions.
  ~CurlTransport() override;
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  void Send(uint64_t id, Request request, absl::Duration timeout) override;
  std::vector<Completion> Wait(absl::Duration wait) override;
  void Wake() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Makes one call, and blocks. Thread-safe; each call has a connection of its own. Errors: as
// Completion.
absl::StatusOr<Response> Fetch(Request request, absl::Duration timeout,
                               const CurlOptions& options = {});

// Returns whether a URL leads to the machine's own cloud platform (169.254.0.0/16, fe80::/10,
// 168.63.129.16), which answers only who asks it directly: such calls ignore all proxies.
bool NeverProxied(std::string_view url);

}  // namespace spoke::http
