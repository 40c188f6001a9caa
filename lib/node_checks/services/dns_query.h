// A DNS query and what comes back (RFC 1035), as much as tells whether a resolver works. Pure, safe
// on any input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::node_checks {

// The most bytes of an answer that are read: what a resolver may send over UDP to who says nothing
// about it (RFC 1035, section 4.2.1).
inline constexpr size_t kMaxDnsReplyBytes = 512;

// Returns the query for the IPv4 addresses of `name`, with recursion. Errors: kInvalidArgument (it
// is no host name: empty, too long, or with other than letters, digits, '-', '_' and single dots).
absl::StatusOr<std::string> DnsQuery(uint16_t id, std::string_view name);

// Returns what `reply` says of the resolver that was sent `query`; nullopt: it is no answer to that
// query, so that the answer may still come. A name without IPv4 addresses is no failure; one that
// does not exist is only where it `must_exist`. Errors: kNotFound (it must exist, and does not);
// kUnavailable (the resolver refuses, or cannot find out).
std::optional<absl::Status> JudgeDnsReply(std::string_view reply, std::string_view query,
                                          bool must_exist);

}  // namespace spoke::node_checks
