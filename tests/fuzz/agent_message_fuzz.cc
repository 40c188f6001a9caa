// What an agent may send the server, and a server its agent: never a crash, whatever is taken.
#include <cstddef>
#include <cstdint>

#include "ipam-server/budget/budget_book.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/session/node_convert.h"
#include "ipam-server/traffic/traffic_sums.h"
#include "lib/base/check.h"
#include "netagent/session/server_wire.h"
#include "proto/spoke/v1/node.pb.h"

namespace {

uint64_t SumOf(const spoke::ipam::TrafficSums& sums) {
  uint64_t sum = 0;
  for (const auto& row : sums.Namespaces()) {
    for (const auto& [name, volume] : row.volumes) sum += volume.sent >> 32U;
  }
  return sum;
}

void TakeTraffic(const spoke::ipam::TrafficReport& report) {
  using Sums = spoke::ipam::TrafficSums;
  Sums sums(absl::InfinitePast());
  const spoke::ipam::NodeKey node{.name = "n", .vm_id = "v"};
  sums.Take(node, report, absl::UnixEpoch());
  const uint64_t once = SumOf(sums);
  sums.Take(node, report, absl::UnixEpoch());
  CHECK(SumOf(sums) == once, "what is reported twice counts once");
  CHECK(sums.Namespaces().size() <= Sums::kMaxNamespaces, "an agent cannot make up namespaces");
}

// Whatever a node claims, nobody is given more than there is.
void TakeBudgets(const spoke::ipam::BudgetReport& report) {
  CHECK(report.uses.size() <= spoke::ipam::kMaxBudgetUses, "nor with budgets");
  spoke::ipam::BudgetSpec spec{
      .name = "b", .capacity = spoke::units::BitRate(1'000'000'000), .teams = {{.name = "*"}}};
  spoke::ipam::BudgetBook book(absl::UnixEpoch());
  const absl::Time start = absl::UnixEpoch() + absl::Hours(24);
  book.SetBudgets({spec});
  for (uint64_t node = 1; node <= 2; ++node) {
    book.OnStream(node);
    book.OnReport(node, report, start);
  }
  for (int i = 1; i <= 3; ++i) {
    const absl::Time now = start + i * absl::Seconds(1);
    uint64_t granted = 0;
    for (const auto& [node, grants] : book.Decide(now)) {
      for (const auto& grant : grants.grants) granted += grant.rate;
    }
    CHECK(granted <= spec.capacity.count(), "grants are of the capacity");
    book.OnReport(1, report, now);
    book.Standings(now);
    book.NodesOf("b", "*", now);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int length = static_cast<int>(size);
  spoke::ipam::Fleet fleet({{.name = "p", .cidr = *spoke::ip::Prefix::Parse("10.1.0.0/28")}}, {});
  spoke::v1::AgentMessage message;
  if (message.ParseFromArray(data, length)) {
    if (const auto hello = spoke::ipam::FromWire(message.hello()); hello.ok()) {
      fleet.OnHello(*hello, absl::UnixEpoch());
      CHECK(fleet.Find(hello->key) != nullptr, "a node that was greeted is known");
      const auto report = spoke::ipam::FromWire(message.report());
      fleet.OnDemand(hello->key, spoke::ipam::FromWire(message.demand()), absl::UnixEpoch());
      if (report.ok()) fleet.OnReport(hello->key, *report, absl::UnixEpoch());
      fleet.ForecastOf(*fleet.Find(hello->key), {}, absl::UnixEpoch());
      fleet.CheckInvariants();
    }
    CHECK(spoke::ipam::FromWire(message.demand()).pods() <= spoke::ipam::kMaxWaitingPods,
          "an agent cannot ask for any number of addresses");
    if (const auto traces = spoke::ipam::FromWire(message.attach_traces()); traces.ok()) {
      CHECK(traces->traces.size() <= 64, "an agent cannot fill the server's memory");
    }
    if (const auto probes = spoke::ipam::FromWire(message.probe_results()); probes.ok()) {
      CHECK(probes->results.size() <= spoke::ipam::kMaxProbeTargets, "nor with probes");
    }
    TakeTraffic(spoke::ipam::FromWire(message.traffic()));
    TakeBudgets(spoke::ipam::FromWire(message.budget_report()));
  }
  spoke::v1::DesiredState desired;
  if (desired.ParseFromArray(data, length)) {
    const auto taken = spoke::netagent::FromWire(desired);
    CHECK(!taken.ok() || taken->added.size() <= spoke::netagent::kMaxAddresses,
          "a server cannot fill an agent's memory");
  }
  return 0;
}
