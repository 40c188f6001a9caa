// Whole acts on links by way of their plan, and a link in memory that operations are applied to.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/links/links.h"

namespace spoke::netagent {

// Makes a link the way ADD does.
inline absl::Status Attach(Links& links, const AttachSpec& spec, int pod_netns) {
  return links.Apply(spec, PlanLink(spec, {}), pod_netns);
}

// Takes a link down the way DEL does.
inline absl::Status Detach(Links& links, const std::string& host_link) {
  const AttachSpec none = NoLink(host_link);
  return links.Apply(none, PlanLink(none, {.host = links.Recall(host_link)}), std::nullopt);
}

// A host link of ours and what is routed to it.
struct AttachedLink {
  std::string host_link;
  std::vector<ip::Address> addresses;  // Sorted.

  bool operator==(const AttachedLink&) const = default;
};

// The host links by name. Errors: those of Links::Read().
inline absl::StatusOr<std::vector<AttachedLink>> ListAttached(Links& links) {
  const auto sides = links.Read();
  if (!sides.ok()) return sides.status();
  std::vector<AttachedLink> attached;
  for (const auto& [name, side] : *sides) {
    attached.push_back({name, side.routes});
    std::sort(attached.back().addresses.begin(), attached.back().addresses.end());
  }
  return attached;
}

// Applies one operation of a plan that makes or mends a link, as the kernel would.
void ApplyTo(const AttachSpec& spec, const LinkOperation& operation, HostSide& host, PodSide& pod);

// Return the two sides of a link that has just been made: there is nothing to plan.
HostSide BuiltHostSide(const AttachSpec& spec);
PodSide BuiltPodSide(const AttachSpec& spec);

}  // namespace spoke::netagent
