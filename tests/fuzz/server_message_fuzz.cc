// What a server may send its agent: never a crash, no more addresses than a node can have, a
// request to give addresses up that is answered wholly and the same way twice, and a policy that is
// taken whole or not at all.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/check.h"
#include "netagent/attach/assignments.h"
#include "netagent/policy/policy_bundle.h"
#include "netagent/policy/policy_file.h"
#include "netagent/session/server_wire.h"
#include "netagent/shaping/budget_holder.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::netagent {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

Assignments SomeAssignments() {
  Assignments assignments(absl::Seconds(30));
  HoldingsReplaced listed;
  for (uint64_t i = 0; i < 16; ++i) {
    listed.holdings.push_back({ip::Advance(ip::Address::V4(0x0A010010), i), "p"});
    listed.holdings.push_back({ip::Advance(ip::Address::V6(0xFD00ULL << 48U, 0x10), i), "p"});
  }
  assignments.Apply(listed);
  const Assignment assignment = assignments.PlanAssignment({.key = {"c", "eth0"}}, kNow).value();
  assignments.Apply(AssignmentBegun{assignment});
  return assignments;
}

void Take(const DesiredState& desired) {
  CHECK(desired.added.size() <= kMaxAddresses, "a server cannot fill an agent's memory");
  CHECK(desired.removed.size() <= kMaxAddresses, "nor by what it takes away");
  HoldingsReplaced listed;
  for (const DesiredAddress& added : desired.added) {
    listed.holdings.push_back({added.address, added.pool});
  }
  for (const PoolState& pool : desired.pools) {
    listed.rules.push_back({pool.name, pool.cidr, pool.namespaces});
  }
  Assignments assignments = SomeAssignments();
  assignments.Apply(listed);
  const auto assignment =
      assignments.PlanAssignment({.key = {"d", "eth0"}, .pod = {.pod_namespace = "web"}}, kNow);
  if (!assignment.ok()) return;
  for (const ip::Address& address : assignment->addresses) {
    CHECK(address != assignments.Find({"c", "eth0"})->addresses[0],
          "what is assigned is not assigned again");
  }
}

void Take(const ReclaimRequest& request) {
  Assignments assignments = SomeAssignments();
  const WithdrawPlan plan = assignments.PlanWithdraw(request.blocks);
  CHECK(plan.agreed.size() + plan.denied.size() == request.blocks.size(), "each has an answer");
  assignments.Apply(WithdrawnSet{plan.withdraw});
  CHECK(assignments.Withdrawn() == plan.withdraw, "what is agreed to is withdrawn");
  const WithdrawPlan again = assignments.PlanWithdraw(request.blocks);
  CHECK(again.agreed == plan.agreed && again.denied == plan.denied && again.withdraw.empty(),
        "the same request gets the same answer");
  for (const ip::Address& in_use : assignments.Find({"c", "eth0"})->addresses) {
    for (const ip::Prefix& block : plan.agreed) {
      CHECK(!block.Contains(in_use), "what is assigned is not given up");
    }
  }
}

void Take(const InventoryRequest&) {}

void Take(const EndAssignment& request) {
  CHECK(request.reason.size() <= 512, "a server cannot fill the log");
}

void Take(const AttachTracesRequest&) {}

void Take(const ProbeRequest& request) {
  CHECK(request.targets.size() <= static_cast<size_t>(kMaxProbeTargets),
        "a server cannot make an agent open any number of connections");
  CHECK(request.timeout <= kMaxProbeTimeout, "nor wait for ever");
}

void Take(const BudgetGrants& grants) {
  BudgetHolder holder;
  const absl::Time sent = absl::UnixEpoch();
  holder.OnReportSent(grants.answers, sent);
  if (!holder.OnGrants(grants, sent)) return;
  CHECK(holder.applied() == grants.sequence, "what was taken is told");
  std::vector<ResolvedBudget> budgets;
  std::vector<std::pair<std::string, std::string>> here;
  for (const BudgetGrant& grant : grants.grants) {
    CHECK(grant.rate <= kMaxGrantedRate, "no grant is absurd");
    budgets.push_back({.name = grant.budget,
                       .teams = {},
                       .floor = 1000,
                       .hold = absl::Minutes(5),
                       .half_life = absl::Seconds(30)});
    here.emplace_back(grant.budget, grant.team);
  }
  for (const GrantInForce& held : holder.At(sent + absl::Hours(24 * 365), budgets, here)) {
    CHECK(held.rate <= 1000, "without the server a grant decays to the floor");
  }
}

void Take(const Forecast& forecast) {
  CHECK(forecast.eta >= absl::ZeroDuration() && forecast.eta <= absl::Hours(24),
        "an ETA is a time that can be waited for");
}

void Take(const policy::Update& update) {
  CHECK(!update.max_cut_permille || *update.max_cut_permille <= 1000,
        "a share is one of the whole");
  const Policy current = ApplyPolicy({}, {.version = 1, .full = true}).value();
  const auto next = ApplyPolicy(current, update);
  if (!next.ok()) return;
  CHECK(next->version == update.version, "a policy that is taken has the version that was sent");
  const auto kept = DecodePolicyFile(EncodePolicyFile(*next));
  CHECK(kept.ok() && *kept == *next, "a policy that is taken can be kept");
}

void Take(const PolicyTrial& trial) { Take(trial.policy); }

}  // namespace
}  // namespace spoke::netagent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spoke::v1::ServerMessage message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto request = spoke::netagent::FromWire(message);
  if (!request.ok() || !request->has_value()) return 0;
  std::visit([](const auto& r) { spoke::netagent::Take(r); }, **request);
  return 0;
}
