// Tests of what agents say, as the server takes it.
#include <functional>
#include <limits>

#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/node_api/messages.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(std::string_view text) { return ip::Prefix::Parse(text).value(); }
ip::MacAddress Mac(std::string_view text) { return ip::MacAddress::Parse(text).value(); }

Assignment SomeAssignment(std::string_view address) {
  return {.address = A(address),
          .generation = 7,
          .since = absl::FromUnixMillis(1234),
          .lessee = {"c0ffee", "eth0", "ns", "pod", "uid"}};
}

Hello SomeHello() {
  return {.node = {.node_name = "node1",
                   .vm_id = "vm-1",
                   .boot_id = "boot",
                   .agent_version = "1.4.0",
                   .labels = {{"zone", "2"}, {"empty", ""}},
                   .vnet = "prod",
                   .instance = "/subscriptions/s/vm/0",
                   .subnets = {P("10.1.0.0/16"), P("fd00::/64")}},
          .nic = {.name = "eth0",
                  .mac = Mac("00:0d:3a:00:00:01"),
                  .mtu = 1500,
                  .addresses = {A("10.1.0.1")}},
          .in_use = {SomeAssignment("10.1.0.5"), SomeAssignment("fd00::5")},
          .cooldown = {A("10.1.0.9")},
          .policy_version = 12,
          .store_token = "token"};
}

TEST(AgentMessages, EachComesThroughWhole) {
  const ProbeTarget hub{A("10.8.0.1"), 443};
  const std::vector<AgentMessage> messages = {
      SomeHello(),
      AssignmentReport{.sequence = 3,
                       .in_use = {SomeAssignment("10.1.0.5")},
                       .released = {{A("10.1.0.6"), 6}},
                       .cooled = {A("fd00::7")}},
      DesiredAck{4},
      ReclaimAnswer{5, {P("10.1.0.16/28")}, {P("fd00::10/124"), P("10.1.0.5/32")}},
      PolicyAck{.version = 6, .error = "why", .cut = CutCount{400, 21}, .held = true},
      PolicyAck{.version = 7},
      Inventory{8, {A("10.1.0.5"), A("fd00::5")}, {SomeAssignment("10.1.0.5")}},
      ConflictReport{A("10.1.0.5"), Mac("00:0d:3a:01:02:03")},
      ConflictReport{A("fd00::5"), std::nullopt},
      Demand{{{"web", 3}, {"batch", 1}}},
      AttachTracesAnswer{9,
                         {{.container_id = "c0ffee",
                           .ifname = "eth0",
                           .pod_namespace = "ns",
                           .pod_name = "pod",
                           .trace_id = "abc",
                           .since = absl::FromUnixMillis(1234),
                           .error = "why",
                           .steps = {{"plan", absl::Microseconds(1), absl::Microseconds(2)},
                                     {"kernel", absl::Microseconds(3), absl::Microseconds(400)}},
                           .addresses = {A("10.1.0.5")}}}},
      TrafficReport{.epoch = absl::FromUnixMillis(1234),
                    .namespaces = {{"web", {{"cluster", {1, 2}}, {"internet", {3, 4}}}}},
                    .pods = {{"web", "p", {{"internet", {5, 6}}}}}},
      ProbeAnswer{.id = 10,
                  .results = {{hub, ProbeOutcome::kRefused, absl::Milliseconds(2), "refused"},
                              {hub, ProbeOutcome::kReached, absl::Milliseconds(1), ""},
                              {hub, ProbeOutcome::kUnreachable, absl::Milliseconds(1), ""},
                              {hub, ProbeOutcome::kTimedOut, absl::Seconds(2), ""},
                              {hub, ProbeOutcome::kNotTried, absl::ZeroDuration(), ""}},
                  .error = "busy"},
      BudgetReport{4,
                   3,
                   {{"internet", "*", units::BitRate(1), units::BitRate(2), units::BitRate(3),
                     units::BitRate(4), 5, 6, 7}}},
      PolicyTrialAnswer{
          11,
          {90, 40},
          "why",
          {{"team-a", "web", ip::Address::V4(0x0A000005), ip::Address::V4(0x0A090001), true}}},
      NodeFindings{{{.check = "forwarding",
                     .blocking = true,
                     .object = "net.ipv4.ip_forward",
                     .what = "is 0",
                     .remedy = "sysctl -w net.ipv4.ip_forward=1"},
                    {.check = "mtu"}}},
      Maintenance(),
      Maintenance{{{.id = "C7061BAC",
                    .kind = MaintenanceKind::kRedeploy,
                    .started = true,
                    .not_before = absl::FromUnixMillis(1'700'000'000'123),
                    .duration = absl::Seconds(9),
                    .description = "Host is failing.",
                    .origin = "Platform",
                    .other_machines = 2,
                    .others = {"pool_1", "pool_2"}},
                   {.id = "2"}}},
      NodeDataAnswer{12, {{"log", "a line\n"}, {"state", "{}"}}, "why"}};
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto read = FromWire(ToWire(messages[i]));
    ASSERT_TRUE(read.ok()) << i << ": " << read.status();
    EXPECT_EQ(*read, messages[i]) << i;
  }
  EXPECT_EQ(FromWire(v1::AgentMessage()).value(), std::nullopt) << "what a newer agent says";
}

v1::Hello GoodHello() {
  v1::Hello hello;
  ToWire(SomeHello(), hello);
  return hello;
}

TEST(AgentMessages, TheCloudsNameOfAVmIsKeptInLowerCase) {
  v1::Hello hello = GoodHello();
  hello.set_instance("/subscriptions/S/resourceGroups/rg1/virtualMachines/0");
  EXPECT_EQ(FromWire(hello)->node.instance,
            "/subscriptions/s/resourcegroups/rg1/virtualmachines/0");
  hello.clear_instance();
  hello.clear_subnets();
  EXPECT_EQ(FromWire(hello)->node.instance, "");
  EXPECT_TRUE(FromWire(hello)->node.subnets.empty());
}

TEST(AgentMessages, WhatAnAgentCannotMeanIsRefused) {
  const std::vector<std::function<void(v1::Hello&)>> breakages = {
      [](v1::Hello& hello) { hello.clear_node_name(); },
      [](v1::Hello& hello) { hello.set_node_name("a/b"); },
      [](v1::Hello& hello) { hello.set_node_name("a b"); },
      [](v1::Hello& hello) { hello.set_node_name(std::string(254, 'a')); },
      [](v1::Hello& hello) { hello.set_vm_id("x\ny"); },
      [](v1::Hello& hello) { hello.clear_boot_id(); },
      [](v1::Hello& hello) { hello.clear_nics(); },
      [](v1::Hello& hello) { hello.mutable_nics(0)->set_mac("nonsense"); },
      [](v1::Hello& hello) { hello.mutable_nics(0)->add_addresses("12345"); },
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
        for (int i = 0; i < 99; ++i) hello.add_nics()->set_mac("00:0d:3a:00:00:01");
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

TEST(AgentMessages, WhatIsTooMuchIsRefusedWithNodeAndField) {
  const std::string address = A("10.1.0.4").ToBytes();
  v1::Hello hello = GoodHello();
  hello.clear_cooldown();
  for (int i = 0; i < 9000; ++i) hello.add_cooldown(address);
  EXPECT_EQ(FromWire(hello).status().message(),
            "node node1: cooldown has 9000 entries, and 8192 at most are taken");
  hello = GoodHello();
  hello.mutable_in_use(1)->set_address("12345");
  EXPECT_TRUE(base::MessageOf(FromWire(hello).status()).starts_with("node node1: in_use 1: "))
      << FromWire(hello).status();

  v1::AssignmentReport report;
  for (int i = 0; i < 9000; ++i) report.add_released()->set_address(address);
  EXPECT_EQ(FromWire(report).status().message(),
            "released has 9000 entries, and 8192 at most are taken");
  report.clear_released();
  report.add_cooled("1");
  EXPECT_TRUE(base::MessageOf(FromWire(report).status()).starts_with("cooled 0: "));

  v1::ReclaimAnswer answer;
  v1::Inventory inventory;
  for (int i = 0; i < 9000; ++i) {
    answer.add_denied()->set_base(address);
    inventory.add_held(address);
  }
  EXPECT_FALSE(FromWire(answer).ok());
  EXPECT_FALSE(FromWire(inventory).ok());
}

TEST(AgentMessages, AnAgentsAnswersAreCheckedLikeItsHello) {
  v1::ReclaimAnswer answer;
  ToWire(ReclaimAnswer{4, {P("10.1.0.16/28")}, {}}, answer);
  answer.mutable_agreed(0)->set_prefix_length(33);
  EXPECT_FALSE(FromWire(answer).ok());
  v1::Inventory inventory;
  inventory.add_held("short");
  EXPECT_FALSE(FromWire(inventory).ok());
  v1::ConflictReport conflict;
  conflict.set_address(A("10.1.0.4").ToBytes());
  conflict.set_other_mac("nonsense");
  EXPECT_FALSE(FromWire(conflict).ok());
  v1::ProbeResults results;
  ToWire(ProbeAnswer{.id = 1, .results = {{.target = {A("10.8.0.1"), 443}}}}, results);
  results.mutable_results(0)->set_port(70'000);
  EXPECT_FALSE(FromWire(results).ok());
  results.mutable_results(0)->set_port(443);
  results.mutable_results(0)->set_address("hub");
  EXPECT_FALSE(FromWire(results).ok());
}

TEST(AgentMessages, OfFindingsTheFirstAreTakenAndTheirTextsCut) {
  v1::NodeFindings wire;
  for (int i = 0; i < kMaxFindings + 5; ++i) {
    v1::NodeFinding& finding = *wire.add_findings();
    finding.set_check("check" + std::to_string(i));
    finding.set_what(std::string(kMaxFindingBytes + 1, 'x'));
  }
  const auto taken = FromWire(wire);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->findings.size(), static_cast<size_t>(kMaxFindings));
  EXPECT_LE(taken->findings[0].what.size(), kMaxFindingBytes);
  wire.mutable_findings(3)->set_check("a check");
  EXPECT_EQ(FromWire(wire).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AgentMessages, TheAgeOfAFindingIsBounded) {
  NodeFindings findings{.findings = {{.check = "mtu", .age = absl::Milliseconds(90'001)}}};
  v1::NodeFindings wire;
  ToWire(findings, wire);
  EXPECT_EQ(FromWire(wire)->findings, findings.findings);
  wire.mutable_findings(0)->set_age_ms(-5);
  EXPECT_EQ(FromWire(wire)->findings[0].age, absl::ZeroDuration());
  wire.mutable_findings(0)->set_age_ms(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(FromWire(wire)->findings[0].age, kMaxFindingAge);
}

TEST(AgentMessages, OfMaintenanceTheFirstEventsAreTakenAndWhatIsUnknownIsLeftOut) {
  v1::Maintenance wire;
  for (int i = 0; i < kMaxMaintenanceEvents + 5; ++i) {
    v1::MaintenanceEvent& event = *wire.add_events();
    event.set_id("event" + std::to_string(i));
    event.set_kind(i == 0 ? "Upgrade" : "Reboot");
    event.set_duration_ms(i == 1 ? -1 : std::numeric_limits<int64_t>::max());
    event.set_not_before_unix_ms(i == 1 ? -1 : std::numeric_limits<int64_t>::max());
    event.set_description(std::string(kMaxReasonBytes + 1, 'x'));
  }
  const auto taken = FromWire(wire);
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_EQ(taken->events.size(), static_cast<size_t>(kMaxMaintenanceEvents - 1));
  EXPECT_EQ(taken->events[0].not_before, absl::InfinitePast());
  EXPECT_EQ(taken->events[0].duration, absl::ZeroDuration());
  EXPECT_LE(taken->events[1].duration, absl::Hours(24 * 30));
  EXPECT_LE(taken->events[1].description.size(), kMaxReasonBytes);
  wire.mutable_events(3)->set_id("an id");
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(wire).status()));
  wire.mutable_events(3)->set_id("id");
  wire.mutable_events(4)->add_others("a\nmachine");
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(wire).status()));
}

TEST(AgentMessages, OfALogTheEndIsTaken) {
  NodeDataAnswer answer{.id = 1, .parts = {{"state", "{}"}, {"log", ""}}};
  while (answer.parts[1].text.size() <= kMaxNodeDataBytes) {
    answer.parts[1].text += std::to_string(answer.parts[1].text.size()) + " was written\n";
  }
  answer.parts[1].text += "the last line\n";
  v1::NodeData wire;
  ToWire(answer, wire);
  const auto taken = FromWire(wire);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->parts[0].text, "{}");
  EXPECT_LE(taken->parts[1].text.size(), kMaxNodeDataBytes);
  EXPECT_GT(taken->parts[1].text.size(), kMaxNodeDataBytes - 100);
  EXPECT_TRUE(taken->parts[1].text.ends_with("the last line\n"));
  EXPECT_EQ(taken->parts[1].text.find("was"), taken->parts[1].text.find(' ') + 1)
      << "it begins with a whole line";
  wire.mutable_parts(0)->set_name("a part");
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(wire).status()));
}

TEST(AgentMessages, OfATrafficReportTheFirstPartIsTaken) {
  TrafficReport report{.epoch = absl::FromUnixMillis(7)};
  for (int i = 0; i < kMaxReportNamespaces + 5; ++i) {
    report.namespaces["ns" + std::to_string(10'000 + i)] = {{"internet", {1, 2}}};
  }
  for (int i = 0; i < kMaxReportPods + 5; ++i) report.pods.push_back({"", std::string(999, 'x')});
  v1::TrafficReport wire;
  ToWire(report, wire);
  const TrafficReport taken = FromWire(wire);
  EXPECT_EQ(taken.namespaces.size(), static_cast<size_t>(kMaxReportNamespaces));
  EXPECT_EQ(taken.namespaces.at("ns10000").at("internet"), (Volume{1, 2}));
  EXPECT_EQ(taken.pods.size(), static_cast<size_t>(kMaxReportPods));
  EXPECT_EQ(taken.pods[0].pod_name.size(), kMaxNameBytes);
}

TEST(AgentMessages, OfABudgetReportWhatCannotBeIsLeftOut) {
  BudgetReport report;
  const auto add = [&](const std::string& budget, const std::string& team) -> auto& {
    return report.uses.emplace_back(BudgetUse{.budget = budget, .team = team});
  };
  const auto taken = [&] {
    v1::BudgetReport wire;
    ToWire(report, wire);
    return FromWire(wire).uses;
  };
  add(std::string(254, 'x'), "*");
  add("internet", std::string(254, 'x'));
  add("", "*");
  add("internet", "");
  add("inter\nnet", "*");
  BudgetUse& most = add("internet", std::string(253, 'x'));
  most.usage = most.demand = most.held = most.throttled = units::BitRate(UINT64_MAX);
  most.connections = most.held_connections = most.refused_connections = UINT32_MAX;
  ASSERT_EQ(taken().size(), 1U);
  const BudgetUse use = taken()[0];
  EXPECT_EQ(use.team.size(), 253U);
  for (const units::BitRate rate : {use.usage, use.demand, use.held, use.throttled}) {
    EXPECT_EQ(rate, kMaxBudgetRate);
    EXPECT_LT(rate, units::BitRate(UINT64_MAX / 1'000'000)) << "a million nodes' still fit";
  }
  for (const uint32_t rate : {use.connections, use.held_connections, use.refused_connections}) {
    EXPECT_EQ(rate, kMaxBudgetConnections);
  }
  for (int i = 0; i < 2 * kMaxBudgetUses; ++i) add("b" + std::to_string(i), "*");
  EXPECT_LE(taken().size(), static_cast<size_t>(kMaxBudgetUses));
}

TEST(AgentMessages, OfWhatWaitsNotMoreIsTakenThanANodeCanServe) {
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
  wait("ns0", 1);  // The namespace is known, and is no new one.
  EXPECT_EQ(FromWire(demand).waiting.size(), kMaxWaitingNamespaces);
  EXPECT_EQ(FromWire(demand).waiting.at("ns0"), 2U);
}

TEST(AgentMessages, TracesAreReadWithinBounds) {
  v1::AttachTraces traces;
  v1::AttachTrace& trace = *traces.add_traces();
  trace.set_error(std::string(10'000, 'x'));
  trace.add_steps()->set_took_us(~uint64_t{0});
  EXPECT_EQ(FromWire(traces)->traces.at(0).error.size(), kMaxErrorBytes);
  EXPECT_EQ(FromWire(traces)->traces.at(0).steps.at(0).took, kMaxStepTime);
  for (int i = 0; i < 100; ++i) traces.add_traces();
  EXPECT_EQ(FromWire(traces)->traces.size(), static_cast<size_t>(kMaxTraces));
  trace.add_addresses("short");
  EXPECT_FALSE(FromWire(traces).ok());
}

TEST(AgentMessages, NoMoreConnectionsAreCutThanThereAre) {
  v1::PolicyTrialResult result;
  result.mutable_cut()->set_connections(UINT64_MAX);
  result.mutable_cut()->set_cut(UINT64_MAX);
  EXPECT_EQ(FromWire(result).cut, (CutCount{kMaxTrackedConnections, kMaxTrackedConnections}));
  result.mutable_cut()->set_connections(3);
  EXPECT_EQ(FromWire(result).cut, (CutCount{3, 3}));
  v1::PolicyAck ack;
  ack.set_error(std::string(10'000, 'x'));
  EXPECT_EQ(FromWire(ack).error.size(), kMaxPolicyErrorBytes);
}

}  // namespace
}  // namespace spoke::node_api
