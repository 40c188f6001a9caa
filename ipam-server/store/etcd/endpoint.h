// Where a member of etcd listens, as its operators write it. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::ipam::etcd {

struct Endpoint {
  std::string host;  // A DNS name in lower case, or an address without brackets.
  uint16_t port = 2379;
  bool secure = false;  // https

  // "http://[::1]:2379", which ParseEndpoint() reads back as the same endpoint.
  std::string ToString() const;
  // "host:port", with brackets around an IPv6 address.
  std::string HostAndPort() const;

  bool operator==(const Endpoint&) const = default;
};

inline constexpr size_t kMaxEndpoints = 16;

// Reads https://HOST[:PORT] or http://HOST[:PORT]; HOST is a DNS name, an IPv4 address or an IPv6
// address in brackets. Errors: kInvalidArgument (anything else; the message shows the text).
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// Reads 1 to kMaxEndpoints of them, all of one scheme and each once.
// Errors: kInvalidArgument.
absl::StatusOr<std::vector<Endpoint>> ParseEndpoints(std::span<const std::string> texts);

}  // namespace spoke::ipam::etcd
