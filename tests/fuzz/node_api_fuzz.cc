// Feeds what an agent may send the server, and a server its agent: never a crash, whatever is
// taken; a value that was taken comes through the codec unchanged; nobody is given more than there
// is, no memory is filled, and what is answered is answered wholly.
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ipam-server/budget/budget_book.h"
#include "ipam-server/ledger/decisions/demand.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/traffic/traffic_sums.h"
#include "lib/base/check.h"
#include "lib/node_api/messages.h"
#include "lib/policy/wire.h"
#include "netagent/attach/assignments.h"
#include "netagent/policy/policy_bundle.h"
#include "netagent/policy/policy_file.h"
#include "netagent/shaping/budget_holder.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke {
namespace {

// --- What the server makes of what an agent says. ---

class Server {
 public:
  void Take(const node_api::Hello& hello) {
    CHECK(hello.in_use.size() <= node_api::kMaxAssignments,
          "an agent cannot fill the server's memory");
    OnHello(fleet_, hello, absl::UnixEpoch());
    const ipam::NodeRecord* record = fleet_.ledger.Find(ipam::KeyOf(hello));
    CHECK(record != nullptr, "a node that was greeted is known");
    ForecastOf(fleet_, *record, {}, absl::UnixEpoch());
    CheckInvariants(fleet_.ledger);
  }
  void Take(const node_api::AssignmentReport& report) {
    Greet();
    OnReport(fleet_, kNode, report, absl::UnixEpoch());
    CheckInvariants(fleet_.ledger);
  }
  void Take(const node_api::Demand& demand) {
    CHECK(demand.pods() <= node_api::kMaxWaitingPods,
          "an agent cannot ask for any number of addresses");
    Greet();
    OnDemand(fleet_, kNode, demand, absl::UnixEpoch());
    ForecastOf(fleet_, *fleet_.ledger.Find(kNode), {}, absl::UnixEpoch());
    CheckInvariants(fleet_.ledger);
  }
  void Take(const node_api::ReclaimAnswer& answer) {
    Greet();
    OnReclaimAnswer(fleet_, kNode, answer, absl::UnixEpoch());
    CheckInvariants(fleet_.ledger);
  }
  static void Take(const node_api::AttachTracesAnswer& answer) {
    CHECK(answer.traces.size() <= static_cast<size_t>(node_api::kMaxTraces),
          "an agent cannot fill the server's memory");
  }
  static void Take(const node_api::ProbeAnswer& answer) {
    CHECK(answer.results.size() <= static_cast<size_t>(node_api::kMaxProbeTargets),
          "nor with probes");
  }
  static void Take(const node_api::TrafficReport& report) {
    using Sums = ipam::TrafficSums;
    Sums sums(absl::InfinitePast());
    sums.Take(kNode, report, absl::UnixEpoch());
    const uint64_t once = SumOf(sums);
    sums.Take(kNode, report, absl::UnixEpoch());
    CHECK(SumOf(sums) == once, "what is reported twice counts once");
    CHECK(sums.Namespaces().size() <= Sums::kMaxNamespaces, "an agent cannot make up namespaces");
  }
  // Whatever a node claims, nobody is given more than there is.
  static void Take(const node_api::BudgetReport& report) {
    CHECK(report.uses.size() <= static_cast<size_t>(node_api::kMaxBudgetUses), "nor with budgets");
    ipam::BudgetSpec spec{
        .name = "b", .capacity = units::BitRate(1'000'000'000), .teams = {{.name = "*"}}};
    ipam::BudgetBook book(absl::UnixEpoch());
    const absl::Time start = absl::UnixEpoch() + absl::Hours(24);
    book.SetBudgets({spec});
    for (uint64_t node = 1; node <= 2; ++node) {
      book.OnStream(node);
      book.OnReport(node, report, start);
    }
    for (int i = 1; i <= 3; ++i) {
      const absl::Time now = start + i * absl::Seconds(1);
      units::BitRate granted;
      for (const auto& [node, grants] : book.Decide(now)) {
        for (const auto& grant : grants.grants) granted += grant.rate;
      }
      CHECK(granted <= spec.capacity, "grants are of the capacity");
      book.OnReport(1, report, now);
      book.Standings(now);
      book.NodesOf("b", "*", now);
    }
  }
  template <typename Other>
  static void Take(const Other& /*other*/) {}

 private:
  void Greet() { OnHello(fleet_, {.node = {.node_name = "n", .vm_id = "v"}}, absl::UnixEpoch()); }
  static uint64_t SumOf(const ipam::TrafficSums& sums) {
    uint64_t sum = 0;
    for (const auto& row : sums.Namespaces()) {
      for (const auto& [name, volume] : row.volumes) sum += volume.sent >> 32U;
    }
    return sum;
  }

  inline static const ipam::NodeKey kNode{.name = "n", .vm_id = "v"};
  ipam::Fleet fleet_{{{.name = "p", .cidr = *ip::Prefix::Parse("10.1.0.0/28")}}, {}};
};

// --- What an agent makes of what the server says. ---

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

netagent::Assignments SomeAssignments() {
  netagent::Assignments assignments(absl::Seconds(30));
  netagent::HoldingsReplaced listed;
  for (uint64_t i = 0; i < 16; ++i) {
    listed.holdings.push_back({ip::Advance(ip::Address::V4(0x0A010010), i), "p"});
    listed.holdings.push_back({ip::Advance(ip::Address::V6(0xFD00ULL << 48U, 0x10), i), "p"});
  }
  assignments.Apply(listed);
  const netagent::Assignment assignment =
      assignments.PlanAssignment({.key = {"c", "eth0"}}, kNow).value();
  assignments.Apply(netagent::AssignmentBegun{assignment});
  return assignments;
}

class Agent {
 public:
  static void Take(const node_api::DesiredState& desired) {
    uint64_t removed = 0;
    for (const ip::Prefix& range : desired.removed) removed += range.size();
    netagent::HoldingsReplaced listed;
    for (const node_api::DesiredConfiguration& added : desired.added) {
      CHECK(added.range.size() <= node_api::kMaxAddresses, "a block is one that a node can have");
      for (uint64_t i = 0; i < added.range.size(); ++i) {
        listed.holdings.push_back({ip::Advance(added.range.base(), i), added.pool});
      }
    }
    CHECK(listed.holdings.size() + removed <= node_api::kMaxAddresses,
          "a server cannot fill an agent's memory, nor by what it takes away");
    for (const node_api::PoolState& pool : desired.pools) {
      listed.rules.push_back({pool.name, pool.cidr, pool.namespaces});
    }
    netagent::Assignments assignments = SomeAssignments();
    assignments.Apply(listed);
    const auto assignment =
        assignments.PlanAssignment({.key = {"d", "eth0"}, .pod = {.pod_namespace = "web"}}, kNow);
    if (!assignment.ok()) return;
    for (const ip::Address& address : assignment->addresses) {
      CHECK(address != assignments.Find({"c", "eth0"})->addresses[0],
            "what is assigned is not assigned again");
    }
  }
  static void Take(const node_api::ReclaimRequest& request) {
    netagent::Assignments assignments = SomeAssignments();
    const netagent::WithdrawPlan plan = assignments.PlanWithdraw(request.ranges);
    CHECK(plan.agreed.size() + plan.denied.size() == request.ranges.size(), "each has an answer");
    assignments.Apply(netagent::WithdrawnSet{plan.withdraw});
    CHECK(assignments.Withdrawn() == plan.withdraw, "what is agreed to is withdrawn");
    const netagent::WithdrawPlan again = assignments.PlanWithdraw(request.ranges);
    CHECK(again.agreed == plan.agreed && again.denied == plan.denied && again.withdraw.empty(),
          "the same request gets the same answer");
    for (const ip::Address& in_use : assignments.Find({"c", "eth0"})->addresses) {
      for (const ip::Prefix& block : plan.agreed) {
        CHECK(!block.Contains(in_use), "what is assigned is not given up");
      }
    }
  }
  static void Take(const node_api::EndAssignment& request) {
    CHECK(request.reason.size() <= node_api::kMaxReasonBytes, "a server cannot fill the log");
  }
  static void Take(const node_api::ProbeRequest& request) {
    CHECK(request.targets.size() <= static_cast<size_t>(node_api::kMaxProbeTargets),
          "a server cannot make an agent open any number of connections");
    CHECK(request.timeout <= node_api::kMaxProbeTimeout, "nor wait for ever");
  }
  static void Take(const node_api::BudgetGrants& grants) {
    netagent::BudgetHolder holder;
    const absl::Time sent = absl::UnixEpoch();
    holder.OnReportSent(grants.answers, sent);
    if (!holder.OnGrants(grants, sent)) return;
    CHECK(holder.applied() == grants.sequence, "what was taken is told");
    std::vector<netagent::ResolvedBudget> budgets;
    std::vector<std::pair<std::string, std::string>> here;
    for (const node_api::BudgetGrant& grant : grants.grants) {
      CHECK(grant.rate <= node_api::kMaxGrantedRate, "no grant is absurd");
      budgets.push_back({.name = grant.budget,
                         .teams = {},
                         .floor = units::BitRate(1000),
                         .hold = absl::Minutes(5),
                         .half_life = absl::Seconds(30)});
      here.emplace_back(grant.budget, grant.team);
    }
    for (const netagent::GrantInForce& held :
         holder.At(sent + absl::Hours(24 * 365), budgets, here)) {
      CHECK(held.rate <= units::BitRate(1000), "without the server a grant decays to the floor");
    }
  }
  static void Take(const node_api::Forecast& forecast) {
    CHECK(forecast.eta >= absl::ZeroDuration() && forecast.eta <= node_api::kMaxForecast,
          "an ETA is a time that can be waited for");
  }
  static void Take(const node_api::PolicyUpdate& update) {
    CHECK(!update.max_cut_permille || *update.max_cut_permille <= node_api::kAllPermille,
          "a share is one of the whole");
    TakeBundle(*update.bundle);
  }
  static void Take(const node_api::PolicyTrial& trial) { TakeBundle(*trial.policy); }
  template <typename Other>
  static void Take(const Other& /*other*/) {}

 private:
  static void TakeBundle(const v1::PolicyBundle& bundle) {
    const policy::Update update = policy::FromWire(bundle);
    const netagent::Policy current =
        netagent::ApplyPolicy({}, {.version = 1, .full = true}).value();
    const auto next = netagent::ApplyPolicy(current, update);
    if (!next.ok()) return;
    CHECK(next->version == update.version, "a policy that is taken has the version that was sent");
    const auto kept = netagent::DecodePolicyFile(netagent::EncodePolicyFile(*next));
    CHECK(kept.ok() && *kept == *next, "a policy that is taken can be kept");
  }
};

// Bundles are shared, and carried as they are.
template <typename Said>
constexpr bool kHasBundle =
    std::is_same_v<Said, node_api::PolicyUpdate> || std::is_same_v<Said, node_api::PolicyTrial>;

template <typename WireMessage, typename Taker>
void Take(const uint8_t* data, size_t size) {
  WireMessage wire;
  if (!wire.ParseFromArray(data, static_cast<int>(size))) return;
  const auto message = node_api::FromWire(wire);
  if (!message.ok() || !message->has_value()) return;
  std::visit(
      [&](const auto& said) {
        Taker().Take(said);
        const auto again = node_api::FromWire(node_api::ToWire(**message));
        CHECK(again.ok() && again->has_value(), "what was taken once is taken again");
        if constexpr (!kHasBundle<std::decay_t<decltype(said)>>) {
          CHECK(**again == **message, "what was taken is said unchanged");
        }
      },
      **message);
}

}  // namespace
}  // namespace spoke

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spoke::Take<spoke::v1::AgentMessage, spoke::Server>(data, size);
  spoke::Take<spoke::v1::ServerMessage, spoke::Agent>(data, size);
  return 0;
}
