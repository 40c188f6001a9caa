#include "netagent/session/server_wire.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

Assignment Sample() {
  return {.key = {"c0ffee", "eth0"},
          .pod = {"ns", "pod", "uid"},
          .addresses = {A("10.1.0.5"), A("fd00::5")},
          .generation = 7};
}

TEST(ServerWire, TrafficIsToldByNamespaceClassAndPod) {
  const v1::AgentMessage message = ToWire(
      AgentReply(TrafficReport{.epoch = absl::FromUnixMillis(1234),
                               .namespaces = {{"web",
                                               {{"cluster", {.sent = 1, .received = 2}},
                                                {"internet", {.sent = 3, .received = 4}}}}},
                               .pods = {{.pod_namespace = "web",
                                         .pod_name = "p",
                                         .volumes = {{"internet", {.sent = 5, .received = 6}}}}}}));
  const v1::TrafficReport& report = message.traffic();
  EXPECT_EQ(report.epoch_unix_ms(), 1234);
  ASSERT_EQ(report.namespaces_size(), 1);
  EXPECT_EQ(report.namespaces(0).name(), "web");
  ASSERT_EQ(report.namespaces(0).volumes_size(), 2);
  EXPECT_EQ(report.namespaces(0).volumes(1).traffic_class(), "internet");
  EXPECT_EQ(report.namespaces(0).volumes(1).sent(), 3U);
  EXPECT_EQ(report.namespaces(0).volumes(1).received(), 4U);
  ASSERT_EQ(report.pods_size(), 1);
  EXPECT_EQ(report.pods(0).pod_name(), "p");
  EXPECT_EQ(report.pods(0).volumes(0).received(), 6U);
}

TEST(ServerWire, ProbesAreAskedForAndAnswered) {
  v1::ServerMessage message;
  v1::ProbeRequest& asked = *message.mutable_probe_request();
  asked.set_id(9);
  asked.set_timeout_ms(60'000);
  v1::ProbeRequest::Target& target = *asked.add_targets();
  target.set_address("10.8.0.1");
  target.set_port(443);
  const ProbeTarget hub{A("10.8.0.1"), 443};
  EXPECT_EQ(FromWire(message).value(), ServerRequest(ProbeRequest{9, {hub}, kMaxProbeTimeout}));
  target.set_port(65536);
  EXPECT_FALSE(FromWire(message).ok());
  target.set_port(0);
  target.set_address("hub.example");
  EXPECT_FALSE(FromWire(message).ok());
  target.set_address("fd00::1");
  for (int i = 0; i < kMaxProbeTargets; ++i) *asked.add_targets() = asked.targets(0);
  EXPECT_FALSE(FromWire(message).ok()) << "one too many";

  const v1::AgentMessage answer =
      ToWire(AgentReply(ProbeAnswer{.id = 9,
                                    .results = {{.target = hub,
                                                 .outcome = ProbeOutcome::kRefused,
                                                 .took = absl::Milliseconds(2),
                                                 .detail = "refused"}}}));
  EXPECT_EQ(answer.probe_results().id(), 9U);
  ASSERT_EQ(answer.probe_results().results_size(), 1);
  const v1::ProbeResults::Result& result = answer.probe_results().results(0);
  EXPECT_EQ(result.address(), "10.8.0.1");
  EXPECT_EQ(result.port(), 443U);
  EXPECT_EQ(result.outcome(), v1::ProbeResults::Result::REFUSED);
  EXPECT_EQ(result.took_us(), 2000U);
}

TEST(ServerWire, WhatAServerCannotMeanIsRefused) {
  v1::DesiredState desired;
  desired.add_added()->set_base("123");
  EXPECT_EQ(FromWire(desired).status().code(), absl::StatusCode::kInvalidArgument);
  desired.mutable_added(0)->set_base(A("10.0.0.0").ToBytes());
  desired.mutable_added(0)->set_prefix_length(8);
  EXPECT_EQ(FromWire(desired).status().code(), absl::StatusCode::kInvalidArgument);
  desired.mutable_added(0)->set_prefix_length(33);
  EXPECT_EQ(FromWire(desired).status().code(), absl::StatusCode::kInvalidArgument);
  desired.mutable_added(0)->set_prefix_length(32);
  EXPECT_EQ(FromWire(desired)->added.size(), 1U);
  v1::ReclaimRequest reclaim;
  v1::IpConfiguration& block = *reclaim.add_configurations();
  block.set_base("12345");
  EXPECT_EQ(FromWire(reclaim).status().code(), absl::StatusCode::kInvalidArgument);
  block.set_base(A("10.0.0.0").ToBytes());
  block.set_prefix_length(8);
  EXPECT_EQ(FromWire(reclaim).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ServerWire, BlocksOfBothFamiliesAreTakenApartAndKeptWholeInARequest) {
  v1::DesiredState desired;
  for (const auto& [base, length] : {std::pair("10.1.0.16", 28U), std::pair("fd00::10", 124U)}) {
    v1::IpConfiguration& added = *desired.add_added();
    added.set_base(A(base).ToBytes());
    added.set_prefix_length(length);
    *desired.add_removed() = added;
  }
  const auto taken = FromWire(desired);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->added.size(), 32U);
  EXPECT_EQ(taken->added[31].address, A("fd00::1f"));
  EXPECT_EQ(taken->removed.size(), 32U);

  v1::ServerMessage message;
  message.mutable_reclaim()->set_id(3);
  *message.mutable_reclaim()->mutable_configurations() = desired.added();
  const ip::Prefix v4 = ip::Prefix::Parse("10.1.0.16/28").value();
  const ip::Prefix v6 = ip::Prefix::Parse("fd00::10/124").value();
  EXPECT_EQ(FromWire(message).value(), ServerRequest(ReclaimRequest{3, {v4, v6}}));

  const v1::ReclaimAnswer answer = ToWire(ReclaimAnswer{3, {v6}, {v4}}).reclaim_answer();
  EXPECT_EQ(answer.id(), 3U);
  EXPECT_EQ(answer.agreed(0).SerializeAsString(), desired.added(1).SerializeAsString());
  EXPECT_EQ(answer.denied(0).SerializeAsString(), desired.added(0).SerializeAsString());
}

TEST(ServerWire, AnInventoryHasKeysAndGenerationsButNoPods) {
  const v1::Inventory inventory =
      ToWire(Inventory{4, {A("10.1.0.5"), A("fd00::5")}, {Sample()}}).inventory();
  EXPECT_EQ(inventory.id(), 4U);
  EXPECT_EQ(inventory.held_size(), 2);
  ASSERT_EQ(inventory.in_use_size(), 2);
  EXPECT_EQ(inventory.in_use(1).address(), A("fd00::5").ToBytes());
  EXPECT_EQ(inventory.in_use(1).container_id(), "c0ffee");
  EXPECT_EQ(inventory.in_use(1).generation(), 7U);
  EXPECT_EQ(inventory.in_use(1).pod_name(), "");
}

TEST(ServerWire, AConflictNamesTheOtherMachineWhenItIsKnown) {
  const ip::MacAddress mac = ip::MacAddress::Parse("00:0d:3a:01:02:03").value();
  EXPECT_EQ(ToWire(ConflictNoted{A("10.1.0.5"), mac}).conflict().other_mac(), "00:0d:3a:01:02:03");
  EXPECT_EQ(ToWire(ConflictNoted{A("10.1.0.5")}).conflict().other_mac(), "");
}

TEST(ServerWire, HelloHasWhatTheNodeIsChosenByAndThePolicyItKeeps) {
  const v1::Hello hello =
      HelloToWire({.node_name = "n",
                   .labels = {{"zone", "2"}},
                   .vnet = "prod",
                   .instance = "/subscriptions/s/vm/0",
                   .subnets = {ip::Prefix::Parse("10.1.0.0/16").value()}},
                  {.in_use = {Sample()}, .cooldown = {A("10.1.0.9")}, .policy_version = 12}, {});
  EXPECT_EQ(hello.labels().at("zone"), "2");
  EXPECT_EQ(hello.vnet(), "prod");
  EXPECT_EQ(hello.policy_version(), 12U);
  EXPECT_EQ(hello.instance(), "/subscriptions/s/vm/0");
  EXPECT_THAT(hello.subnets(), ElementsAre("10.1.0.0/16"));
  EXPECT_EQ(hello.in_use_size(), 2);
  EXPECT_EQ(hello.cooldown_size(), 1);
}

TEST(ServerWire, PoolsComeWithTheirNamespaces) {
  v1::ServerMessage message;
  v1::PoolState& pool = *message.mutable_desired()->add_pools();
  pool.set_name("teams");
  pool.add_namespaces("web");
  const auto request = FromWire(message).value();
  EXPECT_THAT(std::get<DesiredState>(*request).pools.at(0).namespaces, ElementsAre("web"));
  EXPECT_EQ(std::get<DesiredState>(*request).pools.at(0).unused, std::nullopt);
  pool.set_unused(A("10.1.0.255").ToBytes());
  EXPECT_EQ(std::get<DesiredState>(*FromWire(message).value()).pools.at(0).unused, A("10.1.0.255"));
}

TEST(ServerWire, AnForecastIsKeptWithinWhatAPersonReads) {
  v1::ServerMessage message;
  message.mutable_forecast()->set_reason("pool default is empty");
  message.mutable_forecast()->set_eta_ms(12'000);
  EXPECT_EQ(std::get<Forecast>(*FromWire(message).value()),
            (Forecast{"pool default is empty", absl::Seconds(12)}));
  message.mutable_forecast()->set_reason(std::string(100'000, 'x'));
  message.mutable_forecast()->set_eta_ms(-5);
  EXPECT_EQ(FromWire(message.forecast()).reason.size(), 512U);
  EXPECT_EQ(FromWire(message.forecast()).eta, absl::ZeroDuration());
  message.mutable_forecast()->set_reason(std::string(511, 'x') + "\xC3\xA4" + "y");
  EXPECT_EQ(FromWire(message.forecast()).reason, std::string(511, 'x')) << "no half characters";
  message.mutable_forecast()->set_eta_ms(INT64_MAX);
  EXPECT_EQ(FromWire(message.forecast()).eta, absl::Hours(24));
}

TEST(ServerWire, TracesAreAskedForByPodAndAnsweredStepByStep) {
  v1::ServerMessage message;
  v1::AttachTracesRequest& asked = *message.mutable_attach_traces_request();
  asked.set_id(5);
  asked.set_pod_namespace("ns");
  asked.set_pod_name("pod");
  asked.set_container_id("c0ffee");
  EXPECT_EQ(std::get<AttachTracesRequest>(*FromWire(message).value()),
            (AttachTracesRequest{5, {"ns", "pod", "c0ffee"}}));
  const v1::AttachTraces answer =
      ToWire(AttachTracesAnswer{5,
                                {{.key = {"c0ffee", "eth0"},
                                  .pod = {"ns", "pod", "uid"},
                                  .trace_id = "abc",
                                  .since = absl::FromUnixMillis(1234),
                                  .error = "why",
                                  .steps = {{"plan", 1, 2}, {"kernel", 3, 400}},
                                  .addresses = {A("10.1.0.5")}}}})
          .attach_traces();
  EXPECT_EQ(answer.id(), 5U);
  ASSERT_EQ(answer.traces_size(), 1);
  const v1::AttachTrace& trace = answer.traces(0);
  EXPECT_EQ(trace.container_id(), "c0ffee");
  EXPECT_EQ(trace.ifname(), "eth0");
  EXPECT_EQ(trace.pod_namespace(), "ns");
  EXPECT_EQ(trace.pod_name(), "pod");
  EXPECT_EQ(trace.trace_id(), "abc");
  EXPECT_EQ(trace.since_unix_ms(), 1234);
  EXPECT_EQ(trace.error(), "why");
  ASSERT_EQ(trace.steps_size(), 2);
  EXPECT_EQ(trace.steps(1).name(), "kernel");
  EXPECT_EQ(trace.steps(1).begin_us(), 3U);
  EXPECT_EQ(trace.steps(1).took_us(), 400U);
  EXPECT_THAT(trace.addresses(), ElementsAre(A("10.1.0.5").ToBytes()));
}

TEST(ServerWire, WhatAsksForNothingIsPassedOver) {
  v1::ServerMessage message;
  EXPECT_EQ(FromWire(message).value(), std::nullopt);
  message.mutable_report_ack()->set_sequence(1);
  EXPECT_EQ(FromWire(message).value(), std::nullopt);
}

}  // namespace
}  // namespace spoke::netagent
