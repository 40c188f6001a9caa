// The question to the cloud's metadata service and what comes back: Azure's Instance Metadata
// Service, asked for the versions that it has, which is the shortest question that it knows. Pure,
// safe on any input.
//
// Microsoft's "Azure Instance Metadata Service": the header "Metadata: true", no proxy, at most
// five requests a second; 410 means that it is busy for up to 70 s, 429 too many requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/ip/address.h"

namespace spoke::node_checks {

// The most bytes of an answer that are read; the list of versions is some hundred bytes.
inline constexpr size_t kMaxMetadataReplyBytes = size_t{16} << 10U;
inline constexpr std::string_view kMetadataPath = "/metadata/versions";

struct MetadataService {
  ip::Address address;
  uint16_t port = 80;
  std::string host;  // The header "Host".

  bool operator==(const MetadataService&) const = default;
};

// Reads "http://169.254.169.254", "http://127.0.0.1:8080" or "http://[fd00::1]"; nullopt: it is no
// such URL, or names a host that would have to be looked up.
std::optional<MetadataService> ParseMetadataUrl(std::string_view url);

// Returns the request, after whose answer the service closes the connection.
std::string MetadataRequest(const MetadataService& service);

// Returns what `reply`, which may be the beginning of more unless it `ended`, says of the service;
// nullopt: more has to come. A service that is busy, as its documents have it, works. Errors:
// kUnavailable (another HTTP status, or it ended too early); kInvalidArgument (it is not the
// metadata service that answers).
std::optional<absl::Status> JudgeMetadataReply(std::string_view reply, bool ended);

}  // namespace spoke::node_checks
