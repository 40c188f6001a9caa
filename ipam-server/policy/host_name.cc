#include "ipam-server/policy/host_name.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "lib/base/dns_name.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxName = 253;
constexpr std::string_view kAnyBelow = "*.";

// Each is the whole name, or what a name ends with behind a dot.
constexpr std::array<std::string_view, 3> kInside = {"svc", "cluster.local", "localhost"};

absl::Status Refuse(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("\"{}\" {}", text.substr(0, kMaxName), what));
}

bool IsAddress(std::string_view text) {
  return ip::Address::Parse(text).ok() || ip::Prefix::Parse(text).ok();
}

bool IsInside(std::string_view name) {
  return std::any_of(kInside.begin(), kInside.end(), [&](std::string_view suffix) {
    return name == suffix || name.ends_with(fmt::format(".{}", suffix));
  });
}

}  // namespace

absl::StatusOr<std::string> ParseHostPattern(std::string_view text) {
  if (IsAddress(text)) return Refuse(text, "is an address: list its block in cidrs");
  const std::string pattern = absl::AsciiStrToLower(std::string(text));
  std::string_view name = pattern;
  const bool wildcard = IsWildcard(pattern);
  if (wildcard) name.remove_prefix(kAnyBelow.size());
  if (IsInside(name)) {
    return Refuse(text,
                  "is inside the cluster or the pod: groups are for the Internet; take it "
                  "out");
  }
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const bool valid =
      pattern.size() <= kMaxName && base::IsDnsName(name) &&
      std::any_of(last.begin(), last.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!valid) {
    return Refuse(text,
                  "is no name of a host: write it as data.example.org, or *.example.org for "
                  "all below that");
  }
  if (last == name) {
    return Refuse(text, wildcard ? "is a whole top-level domain: name what is below it"
                                 : "has no domain, so that it means another host in each pod: "
                                   "write the whole name");
  }
  return pattern;
}

bool IsWildcard(std::string_view pattern) { return pattern.starts_with(kAnyBelow); }

}  // namespace spoke::ipam
