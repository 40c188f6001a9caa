// Reads what a DNS server answered (RFC 1035): a name, and the addresses it leads to. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::netagent {

struct DnsAddress {
  ip::Address address;
  absl::Duration ttl;  // The time for which the server promises the address.

  bool operator==(const DnsAddress&) const = default;
};

// The answer. Names are in lower case, without the dot at their end.
struct DnsAnswer {
  std::string question;
  std::vector<std::string> aliases;  // The names that the question is an alias of, in turn (CNAME).
  std::vector<DnsAddress> addresses;  // The addresses of the last of them, or of the question.

  bool operator==(const DnsAnswer&) const = default;
};

// The most records of an answer; no server has more for a name.
inline constexpr size_t kMaxDnsRecords = 64;

// Reads an answer; `message` is what is in the UDP packet. Those answers count that the question
// leads to, in whatever order they are; records without an address, and other sections, are passed
// over. A name without addresses is no error. Errors: kInvalidArgument for anything but a whole
// answer without an error in it: no response, an error code, truncated (its asker asks again, by
// TCP), not exactly one question, more than kMaxDnsRecords answers, a name with anything but
// letters, digits, '-' and
// '_', a compression pointer that does not point backwards, aliases in a circle, and whatever ends
// too early.
absl::StatusOr<DnsAnswer> ParseDnsAnswer(std::span<const uint8_t> message);

}  // namespace spoke::netagent
