// Who agents are: those that are not the node they say, and several that say the same.
#include <string>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/loop/fleet_loop.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// The number of sessions that replace one another within the window and are no broken connections.
constexpr size_t kRivalSessions = 3;
constexpr absl::Duration kRivalWindow = absl::Minutes(10);
// The refused nodes that are remembered, for people: an agent that is refused comes back.
constexpr size_t kMostRemembered = 1'000;

}  // namespace

// Returns true if the agent is not let in, since it is not on the machine that it says. What its
// pods use is kept from others for a while, since it may be right.
bool FleetLoop::IsNotItself(const HelloEvent& event, Batch& batch) {
  const NodeKey key = KeyOf(event.hello);
  const absl::Status may = CheckIdentity(state_.fleet, event.hello, event.instance_proved);
  if (may.ok()) {
    not_themselves_.erase(key.name);
    return false;
  }
  const bool known = not_themselves_.contains(key.name);
  if (known || not_themselves_.size() < kMostRemembered) {
    not_themselves_[key.name] = {batch.now, std::string(base::MessageOf(may))};
  }
  if (!known) {
    edges_.log.Error("node_identity_refused",
                     {{"node", key.name}, {"vm", key.vm_id}, {"error", may}});
  }
  HoldClaims(state_.fleet, event.hello, batch.effects, batch.now);
  if (edges_.metrics != nullptr) edges_.metrics->CountHello(HelloOutcome::kRefused);
  edges_.agents.Close(event.session, may);
  return true;
}

// One node has one agent, and the newest session wins: an older one is what a broken connection
// left behind, or an agent on another machine under the same identity, which then comes back.
// Returns what the newer is told; empty: there was none.
std::string FleetLoop::EndOlderSessions(const NodeKey& newer, absl::Time now) {
  std::string warning;
  for (auto it = sessions_.lower_bound({newer.name, ""});
       it != sessions_.end() && it->first.name == newer.name;
       it = sessions_.lower_bound({newer.name, ""})) {
    const NodeKey older = it->first;
    const SessionId id = it->second.id;
    const std::string boot = it->second.boot_id;
    edges_.log.Warn("session_replaced",
                    {{"node", older.name}, {"vm", older.vm_id}, {"boot", boot}});
    if (edges_.metrics != nullptr) edges_.metrics->CountSessionReplaced();
    const absl::Status why = absl::AbortedError(fmt::format(
        "an agent has connected as node {}, VM {}: if this one, of VM {}, still runs, two machines "
        "use one identity",
        newer.name, newer.vm_id, older.vm_id));
    EndSession(id, older, why);
    edges_.agents.Close(id, why);
    replacements_.emplace_back(now, older.name);
    ++replaced_[older.name];
    TellRivals(older.name);
    warning = fmt::format(
        "a session of this node, of VM {} and boot {}, was open and is closed: if that agent still "
        "runs, two machines use one identity",
        older.vm_id, boot);
  }
  return warning;
}

void FleetLoop::TellRivals(const std::string& node) {
  const auto it = replaced_.find(node);
  const size_t times = it == replaced_.end() ? 0 : it->second;
  SetProblem("identity " + node,
             times < kRivalSessions
                 ? std::string()
                 : fmt::format("{} sessions of node {} replaced one another within {}: two "
                               "agents use one identity, and both use its addresses. Stop one of "
                               "them, or give its machine a name and certificate of its own",
                               times, node, absl::FormatDuration(kRivalWindow)));
}

// Only what leaves the window is looked at: after an upgrade of all agents there is a replacement
// for each node.
void FleetLoop::TellIdentities(absl::Time now) {
  while (!replacements_.empty() && now - replacements_.front().first > kRivalWindow) {
    const std::string node = std::move(replacements_.front().second);
    replacements_.pop_front();
    if (const auto it = replaced_.find(node); --it->second == 0) replaced_.erase(it);
    TellRivals(node);
  }
  std::erase_if(not_themselves_,
                [&](const auto& entry) { return now - entry.second.at > kRivalWindow; });
  SetProblem("identities",
             not_themselves_.empty()
                 ? std::string()
                 : fmt::format("{} nodes are refused, since they are not where they say. {}",
                               not_themselves_.size(), not_themselves_.begin()->second.why));
}

}  // namespace spoke::ipam
