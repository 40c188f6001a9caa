// Checks what the node can connect to: the hub, and no peer spoke.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "fmt/core.h"
#include "fmt/ranges.h"
#include "lib/node_checks/checks.h"

namespace spoke::node_checks {
namespace {

std::string TextOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

void CheckHub(const NodeFacts& facts, Findings& findings) {
  std::vector<std::string> tried;
  int looks = facts.reach->hub.front().looks;
  absl::Time since = absl::InfinitePast();
  for (const ReachAnswer& answer : facts.reach->hub) {
    // One that answers is enough: a machine of the hub may be down.
    if (answer.reached || answer.looks < kAgreeingLooks) return;
    tried.push_back(fmt::format("{} ({})", answer.target.ToString(), answer.how));
    looks = std::min(looks, answer.looks);
    since = std::max(since, answer.since);
  }
  findings.Add(
      {.severity = Severity::kWarning,
       .object = "hub",
       .what = fmt::format("is not reached since {}, at {} looks in a row: {}", TextOf(since),
                           looks, fmt::join(tried, ", ")),
       .why = "people and services come from the hub: pods here neither hear nor answer them",
       .remedy = fmt::format("ip route get {0}; spokectl policy verify --hub {1}; where other "
                             "nodes reach it, look at this one's NIC and gateway, else at the "
                             "peering with the hub, its routes and its firewalls",
                             facts.reach->hub.front().target.address.ToString(),
                             facts.reach->hub.front().target.ToString())});
}

void CheckPeerSpokes(const NodeFacts& facts, Findings& findings) {
  for (const ReachAnswer& answer : facts.reach->peer_spoke) {
    if (!answer.reached || answer.looks < kAgreeingLooks) continue;
    const std::string target = answer.target.ToString();
    findings.Add(
        {.severity = Severity::kWarning,
         .object = target,
         .what = fmt::format("is of a peer spoke, and is reached since {}, at {} looks in a row "
                             "({})",
                             TextOf(answer.since), answer.looks, answer.how),
         .why = "spokes are never to reach each other: this node's rules do not hold its traffic "
                "back, or policy does not know the address as a peer spoke's, and its pods may "
                "get there too",
         .remedy = fmt::format("nft list table inet spoke; spokectl policy verify --spoke {}; see "
                               "that traffic.enabled is true in /etc/spoke/netagent.yaml; take "
                               "away the route or the peering that leads there; a firewall on "
                               "the way that refuses connections looks the same: have it drop "
                               "them",
                               target)});
  }
}

}  // namespace spoke::node_checks
