#include "ipam-server/session/node_convert.h"

#include "gtest/gtest.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

v1::Hello GoodHello() {
  v1::Hello hello;
  hello.set_node_name("node1");
  hello.set_vm_id("/subscriptions/1/vm/7");
  hello.set_boot_id("boot");
  hello.add_nics()->set_mac("00:0d:3a:00:00:01");
  v1::Assignment& assignment = *hello.add_in_use();
  assignment.set_address(std::string("\x0a\x01\x00\x04", 4));
  assignment.set_container_id("c0ffee");
  assignment.set_ifname("eth0");
  assignment.set_generation(3);
  assignment.set_pod_name("pod");
  return hello;
}

TEST(Convert, AGoodHelloComesThroughWhole) {
  const auto hello = FromWire(GoodHello());
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->key, (NodeKey{"node1", "/subscriptions/1/vm/7"}));
  EXPECT_EQ(hello->nic_mac.ToString(), "00:0d:3a:00:00:01");
  EXPECT_EQ(hello->in_use.at(0).lessee.pod_name, "pod");
  EXPECT_EQ(hello->in_use.at(0).address.ToString(), "10.1.0.4");
}

TEST(Convert, TheCloudsNameOfAVmIsKeptInLowerCaseBesideItsSubnets) {
  v1::Hello hello = GoodHello();
  EXPECT_EQ(FromWire(hello)->instance, "");
  EXPECT_TRUE(FromWire(hello)->subnets.empty());
  hello.set_instance("/subscriptions/S/resourceGroups/rg1/virtualMachines/0");
  hello.add_subnets("10.1.0.0/16");
  hello.add_subnets("fd00::/64");
  const auto read = FromWire(hello);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->instance, "/subscriptions/s/resourcegroups/rg1/virtualmachines/0");
  EXPECT_EQ(read->subnets, (std::vector{ip::Prefix::Parse("10.1.0.0/16").value(),
                                        ip::Prefix::Parse("fd00::/64").value()}));
}

TEST(Convert, OfATrafficReportTheFirstPartIsTaken) {
  v1::TrafficReport report;
  report.set_epoch_unix_ms(7);
  for (int i = 0; i < kMaxReportNamespaces + 5; ++i) {
    v1::TrafficReport::Namespace& entry = *report.add_namespaces();
    entry.set_name("ns" + std::to_string(i));
    v1::TrafficReport::Volume& volume = *entry.add_volumes();
    volume.set_traffic_class("internet");
    volume.set_sent(1);
    volume.set_received(2);
  }
  for (int i = 0; i < kMaxReportPods + 5; ++i)
    report.add_pods()->set_pod_name(std::string(999, 'x'));
  const TrafficReport taken = FromWire(report);
  EXPECT_EQ(taken.epoch_unix_ms, 7);
  EXPECT_EQ(taken.namespaces.size(), static_cast<size_t>(kMaxReportNamespaces));
  EXPECT_EQ(taken.namespaces.at("ns0").at("internet"), (TrafficVolume{1, 2}));
  EXPECT_EQ(taken.pods.size(), static_cast<size_t>(kMaxReportPods));
  EXPECT_EQ(taken.pods[0].pod_name.size(), 253U);
}

TEST(Convert, ABudgetReportComesThroughWhole) {
  v1::BudgetReport report;
  report.set_sequence(4);
  report.set_applied(3);
  v1::BudgetReport::Use& use = *report.add_uses();
  use.set_budget("internet");
  use.set_team("*");
  use.set_usage(1);
  use.set_demand(2);
  use.set_held(3);
  use.set_throttled(4);
  use.set_connections(5);
  use.set_held_connections(6);
  use.set_refused_connections(7);
  EXPECT_EQ(FromWire(report), (BudgetReport{.sequence = 4,
                                            .applied = 3,
                                            .uses = {{.budget = "internet",
                                                      .team = "*",
                                                      .usage = 1,
                                                      .demand = 2,
                                                      .held = 3,
                                                      .throttled = 4,
                                                      .connections = 5,
                                                      .held_connections = 6,
                                                      .refused_connections = 7}}}));
}

TEST(Convert, OfABudgetReportWhatCannotBeIsLeftOut) {
  v1::BudgetReport report;
  const auto add = [&](const std::string& budget, const std::string& team) -> auto& {
    v1::BudgetReport::Use& use = *report.add_uses();
    use.set_budget(budget);
    use.set_team(team);
    return use;
  };
  add(std::string(254, 'x'), "*");
  add("internet", std::string(254, 'x'));
  add("", "*");
  add("internet", "");
  add("inter\nnet", "*");
  v1::BudgetReport::Use& most = add("internet", std::string(253, 'x'));
  most.set_usage(UINT64_MAX);
  most.set_demand(UINT64_MAX);
  most.set_held(UINT64_MAX);
  most.set_throttled(UINT64_MAX);
  most.set_connections(UINT32_MAX);
  most.set_held_connections(UINT32_MAX);
  most.set_refused_connections(UINT32_MAX);
  const BudgetReport taken = FromWire(report);
  ASSERT_EQ(taken.uses.size(), 1U);
  const BudgetUse& use = taken.uses[0];
  EXPECT_EQ(use.team.size(), 253U);
  for (const uint64_t rate : {use.usage, use.demand, use.held, use.throttled}) {
    EXPECT_EQ(rate, kMaxBudgetRate);
    EXPECT_LT(rate, UINT64_MAX / 1'000'000) << "a million nodes' still fit";
  }
  for (const uint32_t rate : {use.connections, use.held_connections, use.refused_connections}) {
    EXPECT_EQ(rate, kMaxBudgetConnections);
  }
  for (int i = 0; i < 2 * kMaxBudgetUses; ++i) add("b" + std::to_string(i), "*");
  EXPECT_LE(FromWire(report).uses.size(), static_cast<size_t>(kMaxBudgetUses));
}

TEST(Convert, GrantsGoOutAndNeverLongerThanTheyWereMeant) {
  const BudgetGrants grants{
      .sequence = 7,
      .answers = 9,
      .grants = {{.budget = "internet",
                  .team = "vision",
                  .rate = 5'000'000'000,
                  .connections = 12,
                  .duration = absl::Microseconds(1'999'999)},
                 {.budget = "b", .team = "*", .duration = absl::InfiniteDuration()},
                 {.budget = "b", .team = "*", .duration = absl::Seconds(-1)}}};
  const v1::ServerMessage message = ToWire(grants, "test");
  const v1::BudgetGrants& out = message.budget_grants();
  EXPECT_EQ(out.sequence(), 7U);
  EXPECT_EQ(out.answers(), 9U);
  ASSERT_EQ(out.grants_size(), 3);
  EXPECT_EQ(out.grants(0).ShortDebugString(),
            "budget: \"internet\" team: \"vision\" rate: 5000000000 connections: 12 "
            "duration_ms: 1999");
  EXPECT_EQ(out.grants(1).duration_ms(), UINT32_MAX);
  EXPECT_EQ(out.grants(2).duration_ms(), 0U);
}

TEST(Convert, ProbeResultsComeThroughAndImpossibleOnesAreRefused) {
  v1::ProbeResults results;
  results.set_id(4);
  v1::ProbeResults::Result& result = *results.add_results();
  result.set_address("10.8.0.1");
  result.set_port(443);
  result.set_outcome(v1::ProbeResults::Result::TIMED_OUT);
  result.set_took_us(2'000'000);
  const auto answer = FromWire(results);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->id, 4U);
  EXPECT_EQ(answer->results.at(0), (ProbeResult{.target = {ip::Address::V4(0x0A080001), 443},
                                                .outcome = ProbeOutcome::kTimedOut,
                                                .took = absl::Seconds(2)}));
  result.set_port(70'000);
  EXPECT_FALSE(FromWire(results).ok());
  result.set_port(443);
  result.set_address("hub");
  EXPECT_FALSE(FromWire(results).ok());
}

TEST(Convert, WhatAnAgentCannotMeanIsRefused) {
  const std::vector<std::function<void(v1::Hello&)>> breakages = {
      [](v1::Hello& hello) { hello.clear_node_name(); },
      [](v1::Hello& hello) { hello.set_node_name("a/b"); },
      [](v1::Hello& hello) { hello.set_node_name("a b"); },
      [](v1::Hello& hello) { hello.set_node_name(std::string(254, 'a')); },
      [](v1::Hello& hello) { hello.set_vm_id("x\ny"); },
      [](v1::Hello& hello) { hello.clear_boot_id(); },
      [](v1::Hello& hello) { hello.clear_nics(); },
      [](v1::Hello& hello) { hello.mutable_nics(0)->set_mac("nonsense"); },
      [](v1::Hello& hello) { hello.mutable_in_use(0)->set_address("12345"); },
      [](v1::Hello& hello) { hello.mutable_in_use(0)->clear_container_id(); },
      [](v1::Hello& hello) { hello.add_cooldown("1"); },
      [](v1::Hello& hello) { (*hello.mutable_labels())["a b"] = "c"; },
      [](v1::Hello& hello) { hello.set_vnet("a\nb"); },
      [](v1::Hello& hello) { hello.set_instance("/subscriptions/a b"); },
      [](v1::Hello& hello) { hello.set_instance(std::string(513, 'a')); },
      [](v1::Hello& hello) { hello.add_subnets("10.1.0.0"); },
      [](v1::Hello& hello) { hello.add_subnets("10.1.0.5/16"); },
      [](v1::Hello& hello) {
        for (int i = 0; i < 99; ++i) hello.add_subnets("10.1.0.0/16");
      },
      [](v1::Hello& hello) {
        for (int i = 0; i < 99; ++i) (*hello.mutable_labels())[std::to_string(i)] = "x";
      },
      [](v1::Hello& hello) {
        for (int i = 0; i < 9000; ++i) *hello.add_in_use() = hello.in_use(0);
      }};
  for (size_t i = 0; i < breakages.size(); ++i) {
    v1::Hello hello = GoodHello();
    breakages[i](hello);
    EXPECT_EQ(FromWire(hello).status().code(), absl::StatusCode::kInvalidArgument) << i;
  }
}

TEST(Convert, DesiredStateKeepsEveryField) {
  const DesiredState desired{
      .version = 3,
      .full = true,
      .added = {{.range = ip::Prefix::Parse("fd00::5/128").value(),
                 .name = "spoke-1",
                 .pool = "six",
                 .nic_mac = ip::MacAddress::Parse("00:0d:3a:00:00:01").value(),
                 .cooldown = absl::Seconds(2)}},
      .removed = {ip::Prefix::Parse("10.1.0.16/28").value()},
      .pools = {{"six", "fd00::/64", 9, 8, 1, {"blue"}, ip::Address::V6(0xFD00ULL << 48U, 0xFF)}}};
  const v1::DesiredState wire = ToWire(ToAgent(desired), "1").desired();
  EXPECT_EQ(wire.version(), 3U);
  EXPECT_TRUE(wire.full());
  EXPECT_EQ(wire.added(0).prefix_length(), 128U);
  EXPECT_EQ(wire.added(0).cooldown_ms(), 2000U);
  EXPECT_EQ(wire.removed(0).base(), std::string("\x0a\x01\x00\x10", 4));
  EXPECT_EQ(wire.removed(0).prefix_length(), 28U);
  EXPECT_EQ(wire.pools(0).namespaces(0), "blue");
  EXPECT_EQ(wire.pools(0).free(), 1U);
  EXPECT_EQ(wire.pools(0).unused(), ip::Address::V6(0xFD00ULL << 48U, 0xFF).ToBytes());
  EXPECT_EQ(ToWire(ToAgent(Welcome{7}), "1.2").welcome().server_version(), "1.2");
  EXPECT_EQ(ToWire(ToAgent(ReportAck{7}), "1.2").report_ack().sequence(), 7U);
  const ToAgent reclaim = ReclaimRequest{7, {ip::Prefix::Parse("10.1.0.16/28").value()}};
  EXPECT_EQ(ToWire(reclaim, "1").reclaim().configurations(0).prefix_length(), 28U);
  EXPECT_EQ(ToWire(ToAgent(InventoryRequest{9}), "1").inventory_request().id(), 9U);
}

TEST(Convert, OfWhatWaitsNotMoreIsTakenThanANodeCanServe) {
  v1::Demand demand;
  const auto wait = [&](const std::string& pod_namespace, uint32_t pods) {
    v1::Demand::Waiting& waiting = *demand.add_waiting();
    waiting.set_pod_namespace(pod_namespace);
    waiting.set_pods(pods);
  };
  wait("web", 3);
  wait("available", 0);
  wait("web", 2);
  wait("", 1);
  const std::map<std::string, uint32_t> want = {{"", 1}, {"web", 5}};
  EXPECT_EQ(FromWire(demand).waiting, want);
  wait("batch", 4'000'000'000);
  wait("late", 1);
  EXPECT_EQ(FromWire(demand).pods(), kMaxWaitingPods);
  EXPECT_FALSE(FromWire(demand).waiting.contains("late"));
  demand.Clear();
  for (int i = 0; i < 300; ++i) wait("ns" + std::to_string(i), 1);
  wait("ns0", 1);  // Known, and no new one.
  EXPECT_EQ(FromWire(demand).waiting.size(), kMaxWaitingNamespaces);
  EXPECT_EQ(FromWire(demand).waiting.at("ns0"), 2U);
}

TEST(Convert, AnForecastAndARequestForTracesAreWritten) {
  const v1::Forecast forecast =
      ToWire(ToAgent(Forecast{.reason = "soon", .eta = absl::Microseconds(1)}), "1").forecast();
  EXPECT_EQ(forecast.reason(), "soon");
  EXPECT_EQ(forecast.eta_ms(), 1);  // Not 0, which is unknown.
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "\xC3\xA4";
  const Forecast text{.reason = "a" + umlauts, .eta = {}};
  EXPECT_EQ(ToWire(ToAgent(text), "1").forecast().reason().size(), 1023U);  // No half character.
  const v1::ServerMessage message = ToWire(ToAgent(AttachTracesRequest{4, "ns", "pod"}), "1");
  EXPECT_EQ(message.attach_traces_request().id(), 4U);
  EXPECT_EQ(message.attach_traces_request().pod_namespace(), "ns");
  EXPECT_EQ(message.attach_traces_request().pod_name(), "pod");
}

TEST(Convert, TracesAreReadWithinBounds) {
  v1::AttachTraces traces;
  traces.set_id(4);
  v1::AttachTrace& trace = *traces.add_traces();
  trace.set_ifname("eth0");
  trace.set_since_unix_ms(1'700'000'000'000);
  trace.set_error(std::string(10'000, 'x'));
  trace.add_addresses(std::string("\x0a\x01\x00\x04", 4));
  v1::AttachTrace::Step& step = *trace.add_steps();
  step.set_name("assign");
  step.set_begin_us(12);
  step.set_took_us(~uint64_t{0});
  const auto taken = FromWire(traces);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->id, 4U);
  EXPECT_EQ(taken->traces.at(0).error.size(), 4096U);
  EXPECT_EQ(taken->traces.at(0).addresses.at(0).ToString(), "10.1.0.4");
  EXPECT_EQ(taken->traces.at(0).steps.at(0).begin, absl::Microseconds(12));
  EXPECT_EQ(taken->traces.at(0).steps.at(0).took, absl::Hours(1));
  for (int i = 0; i < 100; ++i) traces.add_traces();
  EXPECT_EQ(FromWire(traces)->traces.size(), 64U);
  trace.add_addresses("short");
  EXPECT_FALSE(FromWire(traces).ok());
}

TEST(Convert, AnAgentsAnswersAreReadAndCheckedLikeItsHello) {
  v1::ReclaimAnswer answer;
  answer.set_id(4);
  v1::IpConfiguration& agreed = *answer.add_agreed();
  agreed.set_base(std::string("\x0a\x01\x00\x10", 4));
  agreed.set_prefix_length(28);
  EXPECT_EQ(FromWire(answer)->agreed.at(0).ToString(), "10.1.0.16/28");
  agreed.set_prefix_length(33);
  EXPECT_FALSE(FromWire(answer).ok());

  v1::Inventory inventory;
  inventory.add_held(std::string("\x0a\x01\x00\x04", 4));
  EXPECT_EQ(FromWire(inventory)->held.size(), 1U);
  inventory.add_held("short");
  EXPECT_FALSE(FromWire(inventory).ok());

  v1::ConflictReport conflict;
  conflict.set_address(std::string("\x0a\x01\x00\x04", 4));
  EXPECT_EQ(FromWire(conflict)->second, "");
  conflict.set_other_mac("nonsense");
  EXPECT_FALSE(FromWire(conflict).ok());
}

TEST(Convert, WhatIsTooMuchIsRefusedWithNodeAndField) {
  v1::Hello hello = GoodHello();
  for (int i = 0; i < 9000; ++i) hello.add_cooldown(std::string("\x0a\x01\x00\x04", 4));
  EXPECT_EQ(FromWire(hello).status().message(),
            "node node1: cooldown has 9000 entries, and 8192 at most are taken");
  hello = GoodHello();
  hello.add_in_use()->set_address("12345");
  EXPECT_TRUE(base::MessageOf(FromWire(hello).status()).starts_with("node node1: assigned 1: "))
      << FromWire(hello).status();
  hello = GoodHello();
  for (int i = 0; i < 99; ++i) hello.add_nics()->set_mac("00:0d:3a:00:00:01");
  EXPECT_FALSE(FromWire(hello).ok());

  v1::AssignmentReport report;
  for (int i = 0; i < 9000; ++i) {
    report.add_released()->set_address(std::string("\x0a\x01\x00\x04", 4));
  }
  EXPECT_EQ(FromWire(report).status().message(),
            "released has 9000 entries, and 8192 at most are taken");
  report.clear_released();
  report.add_cooled("1");
  EXPECT_TRUE(base::MessageOf(FromWire(report).status()).starts_with("cooled 0: "));

  v1::ReclaimAnswer answer;
  v1::Inventory inventory;
  for (int i = 0; i < 9000; ++i) {
    answer.add_denied()->set_base(std::string("\x0a\x01\x00\x04", 4));
    inventory.add_held(std::string("\x0a\x01\x00\x04", 4));
  }
  EXPECT_FALSE(FromWire(answer).ok());
  EXPECT_FALSE(FromWire(inventory).ok());
}

}  // namespace
}  // namespace spoke::ipam
