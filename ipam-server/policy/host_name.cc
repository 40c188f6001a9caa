#include "ipam-server/policy/host_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "ipam-server/policy/objects/object.h"
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

// At least one, which may be empty.
std::vector<std::string_view> LabelsOf(std::string_view name) {
  std::vector<std::string_view> labels;
  for (;;) {
    const size_t dot = name.find('.');
    labels.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return labels;
    name.remove_prefix(dot + 1);
  }
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
  const std::vector<std::string_view> labels = LabelsOf(name);
  const bool valid = pattern.size() <= kMaxName &&
                     std::all_of(labels.begin(), labels.end(),
                                 [](std::string_view label) { return CheckLabel(label).ok(); }) &&
                     std::any_of(labels.back().begin(), labels.back().end(),
                                 [](char c) { return c >= 'a' && c <= 'z'; });
  if (!valid) {
    return Refuse(text,
                  "is no name of a host: write it as data.example.org, or *.example.org for "
                  "all below that");
  }
  if (labels.size() < 2) {
    return Refuse(text, wildcard ? "is a whole top-level domain: name what is below it"
                                 : "has no domain, so that it means another host in each pod: "
                                   "write the whole name");
  }
  return pattern;
}

bool IsWildcard(std::string_view pattern) { return pattern.starts_with(kAnyBelow); }

}  // namespace spoke::ipam
