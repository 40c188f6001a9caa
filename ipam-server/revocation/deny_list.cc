#include "ipam-server/revocation/deny_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "lib/base/dns_name.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxValueBytes = 512;
constexpr std::string_view kAzureScheme = "azure://";

std::string Normal(DeniedKind kind, std::string_view value) {
  std::string text = absl::AsciiStrToLower({value.data(), value.size()});
  // Kubernetes writes the scheme before what Azure itself calls the machine.
  if (kind == DeniedKind::kMachine && text.starts_with(kAzureScheme)) {
    text.erase(0, kAzureScheme.size());
  }
  // OpenSSL prints serial numbers with colons, if asked so.
  if (kind == DeniedKind::kSerial) std::erase(text, ':');
  return text;
}

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

bool IsText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

std::optional<DeniedKind> KindOf(std::string_view text) {
  for (const DeniedKind kind : {DeniedKind::kNode, DeniedKind::kSerial, DeniedKind::kMachine}) {
    if (text == NameOf(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<DeniedName> DeniedName::From(std::string_view kind, std::string_view value) {
  const std::optional<DeniedKind> known = KindOf(kind);
  if (!known) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is nothing that can be revoked; write node, serial or machine",
                    kind.substr(0, 64)));
  }
  DeniedName name{.kind = *known, .value = Normal(*known, value)};
  const bool fits = !name.value.empty() && name.value.size() <= kMaxValueBytes;
  switch (name.kind) {
    case DeniedKind::kNode:
      if (base::IsDnsName(name.value)) return name;
      return absl::InvalidArgumentError("a node's name is a DNS name of at most 253 bytes");
    case DeniedKind::kSerial:
      if (fits && IsHex(name.value)) return name;
      return absl::InvalidArgumentError(
          "a serial number is written in hexadecimal digits, as the log has it (node_enrolled)");
    case DeniedKind::kMachine:
      if (fits && IsText(name.value)) return name;
      return absl::InvalidArgumentError(fmt::format(
          "a machine's id has 1 to {} printable signs without a blank", kMaxValueBytes));
  }
  return name;
}

absl::Status DenyList::Put(const DeniedName& name, Denial denial) {
  if (all_.size() >= kMostDenied && !all_.contains(name)) {
    return absl::ResourceExhaustedError(fmt::format(
        "{} identities are revoked, which is all there may be: lift those that are of no use any "
        "more (spokectl node revoked, spokectl node unrevoke)",
        kMostDenied));
  }
  all_.insert_or_assign(name, std::move(denial));
  return absl::OkStatus();
}

absl::Status DenyList::Check(const PeerIdentity& peer, absl::Time now) const {
  if (all_.empty()) return absl::OkStatus();
  const auto check = [&](DeniedKind kind, std::string_view value) -> absl::Status {
    if (value.empty()) return absl::OkStatus();
    const auto found = all_.find({.kind = kind, .value = Normal(kind, value)});
    if (found == all_.end() || found->second.until <= now) return absl::OkStatus();
    const Denial& denial = found->second;
    return absl::PermissionDeniedError(fmt::format(
        "{} {} is revoked{}{}; an operator can lift it: spokectl node unrevoke", NameOf(kind),
        found->first.value, denial.reason.empty() ? "" : ": ", denial.reason));
  };
  absl::Status status = check(DeniedKind::kNode, peer.node);
  status.Update(check(DeniedKind::kSerial, peer.serial));
  for (const std::string& machine : peer.machines) {
    status.Update(check(DeniedKind::kMachine, machine));
  }
  return status;
}

}  // namespace spoke::ipam
