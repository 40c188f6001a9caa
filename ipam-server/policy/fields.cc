#include "ipam-server/policy/fields.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/policy/host_name.h"
#include "lib/base/dns_name.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;

constexpr size_t kMaxLabelPart = 63;

// Reads the list behind `key` with `parse`, which makes a T of a text.
template <typename T, typename Parse>
std::vector<Listed<T>> ReadSorted(const ConfigMap& map, std::string_view key, Need need,
                                  const Parse& parse) {
  std::map<T, int> line_by_value;
  size_t items = 0;
  map.CustomList(key, need, [&](std::string_view text) -> absl::Status {
    const int line = map.LineOf(key, items++);
    if (items > kMaxListItems) {
      // One error is enough for all that follow.
      return items > kMaxListItems + 1
                 ? absl::OkStatus()
                 : absl::InvalidArgumentError(
                       fmt::format("is one more than the {} items allowed: make two objects of it",
                                   kMaxListItems));
    }
    absl::StatusOr<T> value = parse(text);
    if (!value.ok()) return value.status();
    const auto [first, inserted] = line_by_value.emplace(*std::move(value), line);
    if (inserted) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is listed twice: line {} has it already; remove one", text, first->second));
  });
  std::vector<Listed<T>> out;
  out.reserve(line_by_value.size());
  for (const auto& [value, line] : line_by_value) out.push_back({value, line});
  return out;
}

// A name or value of a label: letters, digits, '-', '_' and '.', with a letter or digit at the
// ends.
bool IsLabelPart(std::string_view text) {
  const auto alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= kMaxLabelPart && alphanumeric(text.front()) &&
         alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [&](char c) {
           return alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

// "zone" or "kubernetes.io/os".
bool IsLabelKey(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsLabelPart(text);
  return base::IsDnsName(text.substr(0, slash)) && IsLabelPart(text.substr(slash + 1));
}

// Labels of RFC 1123.
std::vector<Listed<std::string>> ReadLabels(const ConfigMap& map, std::string_view key, Need need,
                                            std::string_view what) {
  return ReadSorted<std::string>(map, key, need,
                                 [&](std::string_view text) -> absl::StatusOr<std::string> {
                                   const absl::Status status = CheckLabel(text);
                                   if (!status.ok()) return base::Annotate(status, what);
                                   return std::string(text);
                                 });
}

}  // namespace

std::vector<Listed<ip::Prefix>> ReadBlocks(const ConfigMap& map, std::string_view key,
                                           const CheckItem<ip::Prefix>& check) {
  return ReadSorted<ip::Prefix>(map, key, Need::kOptional,
                                [&](std::string_view text) -> absl::StatusOr<ip::Prefix> {
                                  ASSIGN_OR_RETURN(const ip::Prefix block, ip::Prefix::Parse(text));
                                  if (check) RETURN_IF_ERROR(check(block));
                                  return block;
                                });
}

std::vector<Listed<std::string>> ReadNamespaces(const ConfigMap& map, std::string_view key,
                                                Need need) {
  return ReadLabels(map, key, need, "a namespace");
}

std::vector<Listed<std::string>> ReadNames(const ConfigMap& map, std::string_view key,
                                           std::string_view what) {
  return ReadLabels(map, key, Need::kOptional, what);
}

std::vector<Listed<ip::Address>> ReadAddresses(const ConfigMap& map, std::string_view key,
                                               const CheckItem<ip::Address>& check) {
  return ReadSorted<ip::Address>(
      map, key, Need::kOptional, [&](std::string_view text) -> absl::StatusOr<ip::Address> {
        ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text));
        if (check) RETURN_IF_ERROR(check(address));
        return address;
      });
}

std::vector<Listed<ip::Endpoint>> ReadEndpoints(const ConfigMap& map, std::string_view key,
                                                const CheckItem<ip::Endpoint>& check) {
  return ReadSorted<ip::Endpoint>(
      map, key, Need::kOptional, [&](std::string_view text) -> absl::StatusOr<ip::Endpoint> {
        ASSIGN_OR_RETURN(const ip::Endpoint endpoint, ip::Endpoint::Parse(text));
        if (check) RETURN_IF_ERROR(check(endpoint));
        return endpoint;
      });
}

std::vector<Listed<std::string>> ReadHostNames(const ConfigMap& map, std::string_view key) {
  return ReadSorted<std::string>(map, key, Need::kOptional, ParseHostPattern);
}

NodeLabels ReadNodeLabels(const ConfigMap& map, std::string_view key) {
  NodeLabels labels;
  const ConfigMap entries = map.Map(key, Need::kOptional);
  for (const std::string& name : entries.Keys()) {
    if (!IsLabelKey(name)) {
      entries.Error(name, "is not a label of a node: write it as zone, or as example.com/zone");
    }
    entries.Custom(name, Need::kRequired, [&](std::string_view text) {
      if (!IsLabelPart(text)) {
        return absl::InvalidArgumentError(
            fmt::format("the value of a label must be 1 to {} letters, digits, '-', '_' and '.', "
                        "with a letter or digit at both ends, not \"{}\"",
                        kMaxLabelPart, text.substr(0, kMaxLabelPart)));
      }
      labels.emplace(name, text);
      return absl::OkStatus();
    });
  }
  if (labels.size() > kMaxListItems) {
    map.Error(key,
              fmt::format("has {} labels, more than the {} allowed", labels.size(), kMaxListItems));
  }
  return labels;
}

policy::Established ReadEstablished(const config::ConfigMap& map) {
  auto read = policy::Established::kUnspecified;
  map.Custom("established", config::Need::kOptional, [&](std::string_view text) {
    for (const auto known : {policy::Established::kCut, policy::Established::kKeep}) {
      if (NameOf(known) == text) read = known;
    }
    if (read != policy::Established::kUnspecified) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("must be cut or keep, not \"{}\"", text.substr(0, 64)));
  });
  return read;
}

std::string_view NameOf(policy::Established established) {
  return established == policy::Established::kCut ? "cut" : "keep";
}

}  // namespace spoke::ipam
