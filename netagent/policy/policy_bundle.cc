#include "netagent/policy/policy_bundle.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxKeyBytes = 320;  // A kind, a slash, and a name of 253 (RFC 1123 subdomain).
constexpr size_t kMaxLabelBytes = 63;

bool IsLowerAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsNamespace(std::string_view name) {
  return !name.empty() && name.size() <= kMaxLabelBytes && IsLowerAlphanumeric(name.front()) &&
         IsLowerAlphanumeric(name.back()) && std::all_of(name.begin(), name.end(), [](char c) {
           return IsLowerAlphanumeric(c) || c == '-';
         });
}

absl::Status CheckKey(const std::string& key, std::string_view kind) {
  const size_t slash = key.find('/');
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (slash == std::string::npos || slash == 0 || slash + 1 == key.size() ||
      key.size() > kMaxKeyBytes || !printable) {
    return absl::InvalidArgumentError(fmt::format(
        "a policy key of {} bytes is not KIND/NAME of at most {}", key.size(), kMaxKeyBytes));
  }
  if (!kind.empty() && std::string_view(key).substr(0, slash) != kind) {
    return absl::InvalidArgumentError(fmt::format("{} holds a {}", key, kind));
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(std::string_view field, const std::vector<std::string>& blocks) {
  for (const std::string& block : blocks) {
    RETURN_IF_ERROR(base::Annotate(ip::Prefix::Parse(block).status(), field));
  }
  return absl::OkStatus();
}

absl::Status CheckValue(UnknownKind) { return absl::OkStatus(); }

absl::Status CheckValue(const ClusterNetwork& network) {
  RETURN_IF_ERROR(CheckBlocks("cluster", network.cluster));
  RETURN_IF_ERROR(CheckBlocks("hub", network.hub));
  RETURN_IF_ERROR(CheckBlocks("peer_spoke", network.peer_spoke));
  RETURN_IF_ERROR(CheckBlocks("platform", network.platform));
  RETURN_IF_ERROR(CheckBlocks("storage", network.storage));
  return CheckBlocks("services", network.services);
}

absl::Status CheckValue(const DestinationGroup& group) { return CheckBlocks("cidrs", group.cidrs); }

absl::Status CheckNamespaces(const std::vector<std::string>& namespaces) {
  for (const std::string& name : namespaces) {
    if (!IsNamespace(name)) {
      return absl::InvalidArgumentError(fmt::format("namespaces: '{}' is no namespace", name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGateway(const EgressPolicy& policy) {
  if (!policy.gateway || policy.gateway->addresses.empty()) {
    return absl::InvalidArgumentError("mode Gateway without a gateway's address");
  }
  if (policy.fallback == EgressMode::kUnspecified || policy.fallback == EgressMode::kGateway) {
    return absl::InvalidArgumentError("mode Gateway without a fallback");
  }
  if (policy.gateway->transport == GatewayTransport::kUnknown) {
    return absl::InvalidArgumentError("a transport to gateways that this agent does not know");
  }
  for (const auto* addresses : {&policy.gateway->addresses, &policy.gateway->draining}) {
    for (const std::string& address : *addresses) {
      RETURN_IF_ERROR(base::Annotate(ip::Address::Parse(address).status(), "gateway"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckValue(const EgressPolicy& policy) {
  RETURN_IF_ERROR(CheckNamespaces(policy.namespaces));
  RETURN_IF_ERROR(CheckBlocks("destination_cidrs", policy.destination_cidrs));
  RETURN_IF_ERROR(CheckBlocks("excluded_cidrs", policy.excluded_cidrs));
  if (policy.mode == EgressMode::kUnspecified) {
    return absl::InvalidArgumentError("no mode, or one that this agent does not know");
  }
  return policy.mode == EgressMode::kGateway ? CheckGateway(policy) : absl::OkStatus();
}

absl::Status CheckValue(const BandwidthLimit& limit) {
  if (limit.pod_ingress + limit.pod_egress + limit.node_ingress + limit.node_egress == 0) {
    return absl::InvalidArgumentError("no rate, or one that this agent does not know");
  }
  return CheckNamespaces(limit.namespaces);
}

absl::Status CheckValue(const BandwidthBudget& budget) {
  if (budget.refresh <= absl::ZeroDuration() || budget.half_life <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a refresh time or a half-life of 0");
  }
  return absl::OkStatus();
}

absl::Status CheckValue(const Team& team) { return CheckNamespaces(team.namespaces); }

std::string_view KindOf(const PolicyEntry& entry) {
  if (std::holds_alternative<ClusterNetwork>(entry.value)) return "ClusterNetwork";
  if (std::holds_alternative<Team>(entry.value)) return "Team";
  if (std::holds_alternative<DestinationGroup>(entry.value)) return "DestinationGroup";
  if (std::holds_alternative<EgressPolicy>(entry.value)) return "EgressPolicy";
  if (std::holds_alternative<BandwidthLimit>(entry.value)) return "BandwidthLimit";
  if (std::holds_alternative<BandwidthBudget>(entry.value)) return "BandwidthBudget";
  return "";
}

absl::Status CheckSize(const Policy& policy) {
  size_t bytes = 0;
  for (const auto& [key, entry] : policy.entries) bytes += key.size() + entry.bytes.size();
  if (policy.entries.size() > kMaxPolicyEntries || bytes > kMaxPolicyBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("a policy of {} objects and {} bytes; at most {} and {} are taken",
                    policy.entries.size(), bytes, kMaxPolicyEntries, kMaxPolicyBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPolicyEntry(const PolicyEntry& entry) {
  RETURN_IF_ERROR(CheckKey(entry.key, KindOf(entry)));
  return base::Annotate(
      std::visit([](const auto& value) { return CheckValue(value); }, entry.value), entry.key);
}

absl::StatusOr<Policy> ApplyPolicy(const Policy& current, const PolicyUpdate& update) {
  if (update.version == 0) return absl::InvalidArgumentError("a policy has a version above 0");
  // It has been applied, and comes once more.
  if (!update.full && update.version == current.version) return current;
  if (!update.full && update.base_version != current.version) {
    return absl::AbortedError(fmt::format("policy {} is relative to {}, but this node has {}",
                                          update.version, update.base_version, current.version));
  }
  Policy next{.version = update.version};
  if (!update.full) next.entries = current.entries;
  for (const std::string& key : update.removed) next.entries.erase(key);
  std::set<std::string> seen;
  for (const PolicyEntry& entry : update.changed) {
    RETURN_IF_ERROR(CheckPolicyEntry(entry));
    if (!seen.insert(entry.key).second) {
      return absl::InvalidArgumentError(fmt::format("{} comes twice", entry.key));
    }
    next.entries.insert_or_assign(entry.key, entry);
  }
  RETURN_IF_ERROR(CheckSize(next));
  return next;
}

}  // namespace spoke::netagent
