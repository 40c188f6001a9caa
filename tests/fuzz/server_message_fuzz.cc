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
#include "netagent/policy/policy_codec.h"
#include "netagent/session/server_wire.h"
#include "netagent/shaping/budget_holder.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::netagent {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

Lendings SomeLendings() {
  Lendings lendings(absl::Seconds(30));
  HoldingsReplaced listed;
  for (uint64_t i = 0; i < 16; ++i) {
    listed.holdings.push_back({ip::Advance(ip::Address::V4(0x0A010010), i), "p"});
    listed.holdings.push_back({ip::Advance(ip::Address::V6(0xFD00ULL << 48U, 0x10), i), "p"});
  }
  lendings.Apply(listed);
  const Lending lending = lendings.PlanLend({.key = {"c", "eth0"}}, kNow).value();
  lendings.Apply(LendingBegun{lending});
  return lendings;
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
  Lendings lendings = SomeLendings();
  lendings.Apply(listed);
  const auto lending =
      lendings.PlanLend({.key = {"d", "eth0"}, .pod = {.pod_namespace = "web"}}, kNow);
  if (!lending.ok()) return;
  for (const ip::Address& address : lending->addresses) {
    CHECK(address != lendings.Find({"c", "eth0"})->addresses[0], "what is lent is not lent again");
  }
}

void Take(const ReclaimRequest& request) {
  Lendings lendings = SomeLendings();
  const WithdrawPlan plan = lendings.PlanWithdraw(request.blocks);
  CHECK(plan.agreed.size() + plan.denied.size() == request.blocks.size(), "each has an answer");
  lendings.Apply(WithdrawnSet{plan.withdraw});
  CHECK(lendings.Withdrawn() == plan.withdraw, "what is agreed to is withdrawn");
  const WithdrawPlan again = lendings.PlanWithdraw(request.blocks);
  CHECK(again.agreed == plan.agreed && again.denied == plan.denied && again.withdraw.empty(),
        "the same request gets the same answer");
  for (const ip::Address& lent : lendings.Find({"c", "eth0"})->addresses) {
    for (const ip::Prefix& block : plan.agreed) {
      CHECK(!block.Contains(lent), "what is lent is not given up");
    }
  }
}

void Take(const InventoryRequest&) {}

void Take(const EndLending& request) {
  CHECK(request.reason.size() <= 512, "a server cannot fill the log");
}

void Take(const AttachTracesRequest&) {}

void Take(const ProbeRequest& request) {
  CHECK(request.targets.size() <= static_cast<size_t>(kMaxProbeTargets),
        "a server cannot make an agent open any number of connections");
  CHECK(request.timeout <= kMaxProbeTimeout, "nor wait for ever");
}

void Take(const BudgetLeases& leases) {
  BudgetHolder holder;
  const absl::Time sent = absl::UnixEpoch();
  holder.OnReportSent(leases.answers, sent);
  if (!holder.OnLeases(leases, sent)) return;
  CHECK(holder.applied() == leases.sequence, "what was taken is told");
  std::vector<ResolvedBudget> budgets;
  std::vector<std::pair<std::string, std::string>> here;
  for (const BudgetLease& lease : leases.leases) {
    CHECK(lease.rate <= kMaxLeasedRate, "no lease is absurd");
    budgets.push_back({.name = lease.budget,
                       .teams = {},
                       .floor = 1000,
                       .hold = absl::Minutes(5),
                       .half_life = absl::Seconds(30)});
    here.emplace_back(lease.budget, lease.team);
  }
  for (const LeaseInForce& held : holder.At(sent + absl::Hours(24 * 365), budgets, here)) {
    CHECK(held.rate <= 1000, "without the server a lease decays to the floor");
  }
}

void Take(const Outlook& outlook) {
  CHECK(outlook.eta >= absl::ZeroDuration() && outlook.eta <= absl::Hours(24),
        "an ETA is a time that can be waited for");
}

void Take(const PolicyUpdate& update) {
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
