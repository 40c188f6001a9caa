// Law 10: once nothing fails any more, everything agrees with everything.
#include <algorithm>
#include <set>

#include "fmt/core.h"
#include "ipam-server/audit/audit.h"
#include "ipam-server/audit/audit_snapshot.h"
#include "ipam-server/policy/bundle_message.h"
#include "lib/policy/wire.h"
#include "tests/sim/world.h"

namespace spoke::sim {
namespace {

// Some problems are told for a while after they are over, and one waits for an operator. What an
// agent that lies has reported of its addresses is remembered longer than its machine is there.
bool IsOver(const std::string& problem) {
  return problem.starts_with("the clock") || problem.find("replaced one another") != problem.npos ||
         problem.find("another NIC answers for it") != problem.npos ||
         problem.find("spokectl unfreeze") != problem.npos;
}

}  // namespace

void World::CheckSettled() {
  CheckPods();
  CheckAudit();
}

void World::CheckPods() {
  for (const auto& node : nodes_) {
    if (!node->machine.exists) continue;
    const Runtime& runtime = *node->runtime;
    const size_t built = node->agent ? node->agent->attachments().assignments().Built().size() : 0;
    if (built != runtime.running()) {
      laws_.Break(10, fmt::format("{} has {} assignments, and runs {} pods", node->machine.name,
                                  built, runtime.running()));
    }
    CheckLeftovers(*node);
    if (runtime.running() == runtime.wanted() && runtime.under_way() == 0) continue;
    laws_.Break(10, fmt::format("{} runs {} of {} pods, and {} are under way", node->machine.name,
                                runtime.running(), runtime.wanted(), runtime.under_way()));
  }
}

// No link is there but those of pods that run, and nothing is begun that is not carried on with.
void World::CheckLeftovers(const Node& node) {
  const auto links = node.machine.kernel->Read();
  const size_t count = links.ok() ? links->size() : 0;
  if (count != node.runtime->running()) {
    laws_.Break(10, fmt::format("{} has {} links, and runs {} pods", node.machine.name, count,
                                node.runtime->running()));
  }
  if (!node.agent) return;
  const size_t unfinished = node.agent->attachments().assignments().Unfinished().size();
  if (unfinished > 0) {
    laws_.Break(10, fmt::format("{} has {} assignments that were begun and not finished",
                                node.machine.name, unfinished));
  }
}

// What an agent has given up goes off its node, or may be assigned again.
void World::CheckGivenUp(const ipam::FleetView& view) {
  for (const auto& node : nodes_) {
    if (!node->agent) continue;
    const ipam::NodeKey key{node->machine.name, node->machine.vm_id};
    const ipam::NodeRecord* record = view.fleet.ledger.Find(key);
    const auto session = view.sessions.find(key);
    if (record == nullptr || session == view.sessions.end()) continue;
    if (session->second.reclaim_pending != 0) continue;  // It has been asked just now.
    for (const ip::Address& address : node->agent->attachments().assignments().Withdrawn()) {
      const ipam::Configuration* held = record->Holding(address);
      if (held == nullptr || held->state != ipam::AddressState::kAttached) continue;
      laws_.Break(10, fmt::format("the agent of {} has given up {}, which its node keeps", key.name,
                                  address.ToString()));
    }
  }
}

// No record is left of a machine that is gone.
void World::CheckRecords(const ipam::FleetView& view) {
  std::set<ipam::NodeKey> there;
  for (const auto& node : nodes_) {
    if (node->machine.exists) there.insert({node->machine.name, node->machine.vm_id});
  }
  for (const auto& [key, record] : view.fleet.ledger.nodes()) {
    if (there.contains(key)) continue;
    laws_.Break(
        10, fmt::format("the record of {} (VM {}) is left, which is gone", key.name, key.vm_id));
  }
}

void World::CheckPolicies(const ipam::FleetView& view) {
  const ipam::ObjectSet& objects = view.state.objects;
  laws_.CheckPolicy(objects.version(), TextOf(objects));
  const auto bundle = ipam::CompiledPolicy(objects).Select({});
  const auto whole = policy::FromWire(*ipam::BundleMessages().Get(nullptr, bundle));
  const auto expected = netagent::ApplyPolicy({}, whole);
  if (!expected.ok()) return laws_.Break(10, "no agent can take the policy");
  for (const auto& node : nodes_) {
    if (!node->agent || node->agent->policy() == *expected) continue;
    laws_.Break(10,
                fmt::format("{} has a policy of version {} that is not the store's of {}",
                            node->machine.name, node->agent->policy().version, expected->version));
  }
}

bool World::GivesUpLost() {
  Host* const leader = Leader();
  bool gives_up = false;
  if (leader == nullptr) return false;
  leader->server->Look([&](const ipam::FleetView& view) {
    for (const auto& [base, seen] : view.fleet.off_nic) {
      const ipam::NodeRecord* const holder = ipam::HolderOf(view.fleet.ledger, base);
      const ipam::Configuration* const held = holder == nullptr ? nullptr : holder->Holding(base);
      gives_up = gives_up || (held != nullptr && held->IsAvailable());
    }
  });
  return gives_up;
}

// A block goes as a whole, and stays as long as a pod uses any address of it.
bool World::IsCutOff(const std::string& vm, const ip::Address& address) const {
  const bool in_block = settings_.block_length != 0 && address.is_v4();
  const ip::Prefix range = in_block ? ip::Prefix::Of(address, settings_.block_length).value()
                                    : ip::Prefix::Host(address);
  for (uint64_t i = 0; i < range.size(); ++i) {
    if (laws_.IsCutOff(vm, ip::Advance(range.base(), i))) return true;
  }
  return false;
}

// The product's own audit, of what the servers, the fabric and the agents have.
void World::CheckAudit() {
  Host* const leader = Leader();
  if (leader == nullptr) return laws_.Break(10, "no server leads");
  ipam::AuditSnapshot snapshot;
  bool looked = false;
  absl::Time now;
  leader->server->Look([&](const ipam::FleetView& view) {
    looked = true;
    now = view.now;
    if (!view.state.recovery.open()) laws_.Break(10, "a recovery does not end");
    for (const auto& [topic, problem] : view.problems) {
      if (!IsOver(problem)) laws_.Break(10, "a problem is left: " + problem);
    }
    CheckGivenUp(view);
    CheckPolicies(view);
    CheckRecords(view);
    for (const auto& entry : view.fleet.ledger.pools()) snapshot.Add(entry);
    for (const auto& [key, record] : view.fleet.ledger.nodes()) {
      snapshot.Add(record, view.fleet.ledger.quarantine());
    }
  });
  if (!looked) return laws_.Break(10, "the server does not answer");
  snapshot.listing = fabric_.List();
  for (const auto& node : nodes_) {
    if (!node->machine.exists) continue;
    if (!node->agent) {
      laws_.Break(10, node->machine.name + " has no agent");
      continue;
    }
    node_api::Inventory inventory{.held = node->agent->attachments().assignments().Attached()};
    for (const auto& assignment : node->agent->attachments().assignments().Built()) {
      netagent::AddEntries(assignment, inventory.in_use);
    }
    snapshot.inventories.emplace(ipam::NodeKey{node->machine.name, node->machine.vm_id},
                                 std::move(inventory));
  }
  // Azure takes its time, and what is idle goes at any moment.
  const absl::Duration grace = settings_.azure ? absl::Minutes(2) : absl::ZeroDuration();
  const auto differences = ipam::Audit(snapshot.Finish(), {.grace = grace}, now);
  for (const ipam::AuditDifference& difference : differences) {
    // What Azure gave to another node meanwhile it gives back to nobody.
    const bool of_one = settings_.azure && difference.address.has_value();
    if (of_one && IsCutOff(difference.node.vm_id, *difference.address)) continue;
    laws_.Break(
        10,
        fmt::format("audit: {} {} {}: {}", ipam::NameOf(difference.kind), difference.node.name,
                    difference.address ? difference.address->ToString() : "", difference.cause));
  }
}

}  // namespace spoke::sim
