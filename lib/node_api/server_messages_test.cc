// Tests of what the server says, as agents take it.
#include <utility>

#include "gtest/gtest.h"
#include "lib/node_api/messages.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(std::string_view text) { return ip::Prefix::Parse(text).value(); }

TEST(ServerMessages, EachComesThroughWhole) {
  const std::vector<ServerMessage> messages = {
      Welcome{.session_epoch = 7,
              .server_version = "1.2",
              .warning = "the clock is off",
              .reconnect_within = absl::Milliseconds(7500)},
      DesiredState{.version = 3,
                   .full = true,
                   .added = {{.range = P("fd00::5/128"),
                              .name = "spoke-1",
                              .pool = "six",
                              .nic_mac = ip::MacAddress::Parse("00:0d:3a:00:00:01").value(),
                              .cooldown = absl::Seconds(2)},
                             {.range = P("10.1.0.32/28"), .pool = "four"}},
                   .removed = {P("10.1.0.16/28")},
                   .pools = {{"six", "fd00::/64", 9, 8, 1, {"blue"}, A("fd00::ff")},
                             {"four", "10.1.0.0/24", 251, 16, 235}},
                   .store_token = "token"},
      ReportAck{4},
      ReclaimRequest{5, {P("10.1.0.16/28"), P("fd00::10/124")}},
      InventoryRequest{6},
      Forecast{"pool default is empty", absl::Seconds(12)},
      AttachTracesRequest{7, "ns", "pod", "c0ffee"},
      ProbeRequest{
          8, {{A("10.8.0.1"), 443}, {A("fd00::1"), 0}, {A("10.0.0.4"), 0, 1500}}, absl::Seconds(2)},
      BudgetGrants{
          9, 10, {{"internet", "vision", units::BitRate(5'000'000'000), 12, absl::Seconds(2)}}},
      EndAssignment{A("10.1.0.5"), 42, "the node is gone"},
      MaintenanceStart{13, {"C7061BAC", "2"}},
      NodeDataRequest{14, {"log"}}};
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto read = FromWire(ToWire(messages[i]));
    ASSERT_TRUE(read.ok()) << i << ": " << read.status();
    EXPECT_EQ(*read, messages[i]) << i;
  }
  EXPECT_EQ(FromWire(v1::ServerMessage()).value(), std::nullopt) << "what a newer server says";
}

TEST(ServerMessages, ABundleIsCarriedAsItIsWithHowMuchItMayEnd) {
  auto bundle = std::make_shared<v1::PolicyBundle>();
  bundle->set_version(6);
  bundle->add_removed("Team/ml");
  const auto read = FromWire(ToWire(PolicyTrial{.id = 3, .policy = bundle})).value();
  EXPECT_EQ(std::get<PolicyTrial>(*read).id, 3U);
  EXPECT_EQ(std::get<PolicyTrial>(*read).policy->SerializeAsString(), bundle->SerializeAsString());

  for (const auto& [said, taken] : std::vector<std::pair<std::optional<uint32_t>, int>>{
           {std::nullopt, -1}, {0, 0}, {50, 50}, {4000, 1000}}) {
    const ServerMessage update = PolicyUpdate{.bundle = bundle, .max_cut_permille = said};
    const auto message = FromWire(ToWire(update)).value();
    const auto& got = std::get<PolicyUpdate>(*message);
    EXPECT_EQ(got.bundle->version(), 6U);
    EXPECT_EQ(got.bundle->removed(0), "Team/ml");
    EXPECT_EQ(got.max_cut_permille ? static_cast<int>(*got.max_cut_permille) : -1, taken);
  }
}

TEST(ServerMessages, WhatAServerCannotMeanIsRefused) {
  v1::DesiredState desired;
  desired.add_added()->set_base("123");
  EXPECT_EQ(FromWire(desired).status().code(), absl::StatusCode::kInvalidArgument);
  desired.mutable_added(0)->set_base(A("10.0.0.0").ToBytes());
  for (const uint32_t length : {8U, 33U, 129U}) {
    desired.mutable_added(0)->set_prefix_length(length);
    EXPECT_EQ(FromWire(desired).status().code(), absl::StatusCode::kInvalidArgument) << length;
  }
  desired.mutable_added(0)->set_prefix_length(32);
  EXPECT_EQ(FromWire(desired)->added.size(), 1U);
  *desired.add_removed() = desired.added(0);
  desired.mutable_removed(0)->set_prefix_length(19);
  EXPECT_FALSE(FromWire(desired).ok()) << "more in all than a node can have";
  v1::ReclaimRequest reclaim;
  v1::IpConfiguration& block = *reclaim.add_configurations();
  block.set_base("12345");
  EXPECT_EQ(FromWire(reclaim).status().code(), absl::StatusCode::kInvalidArgument);
  block.set_base(A("10.0.0.0").ToBytes());
  block.set_prefix_length(8);
  EXPECT_EQ(FromWire(reclaim).status().code(), absl::StatusCode::kInvalidArgument);
  v1::EndAssignment end;
  EXPECT_FALSE(FromWire(end).ok());
}

TEST(ServerMessages, AsksForFewThingsByName) {
  v1::MaintenanceStart start;
  v1::NodeDataRequest data;
  start.add_events("an id");
  data.add_parts("a part");
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(start).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(data).status()));
  start.clear_events();
  data.clear_parts();
  for (int i = 0; i <= kMaxMaintenanceEvents; ++i) start.add_events("id");
  for (int i = 0; i <= kMaxNodeDataParts; ++i) data.add_parts("log");
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(start).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(data).status()));
}

TEST(ServerMessages, AForecastIsKeptWithinWhatAPersonReads) {
  v1::Forecast wire;
  ToWire(Forecast{.reason = "soon", .eta = absl::Microseconds(1)}, wire);
  EXPECT_EQ(wire.eta_ms(), 1);  // The number is not 0, which is unknown.
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "\xC3\xA4";
  ToWire(Forecast{.reason = "a" + umlauts, .eta = {}}, wire);
  EXPECT_EQ(wire.reason().size(), 1023U);  // There is no half character.
  std::string cut_in_a_character(1023, 'x');
  cut_in_a_character.append("\xC3\xA4y");
  wire.set_reason(cut_in_a_character);
  EXPECT_EQ(FromWire(wire).reason, std::string(1023, 'x')) << "no half characters";
  wire.set_reason(std::string(100'000, 'x'));
  wire.set_eta_ms(-5);
  EXPECT_EQ(FromWire(wire).reason.size(), kMaxReasonBytes);
  EXPECT_EQ(FromWire(wire).eta, absl::ZeroDuration());
  wire.set_eta_ms(INT64_MAX);
  EXPECT_EQ(FromWire(wire).eta, absl::Hours(24));
}

TEST(ServerMessages, ProbesAreBounded) {
  v1::ProbeRequest asked;
  asked.set_timeout_ms(60'000);
  v1::ProbeRequest::Target& target = *asked.add_targets();
  target.set_address("10.8.0.1");
  EXPECT_EQ(FromWire(asked)->timeout, kMaxProbeTimeout);
  target.set_port(65536);
  EXPECT_FALSE(FromWire(asked).ok());
  target.set_port(0);
  target.set_address("hub.example");
  EXPECT_FALSE(FromWire(asked).ok());
  target.set_address("fd00::1");
  target.set_bytes(kMaxProbeBytes + 1);
  EXPECT_FALSE(FromWire(asked).ok());
  target.set_bytes(kMaxProbeBytes);
  EXPECT_TRUE(FromWire(asked).ok());
  for (int i = 0; i < kMaxProbeTargets; ++i) *asked.add_targets() = asked.targets(0);
  EXPECT_FALSE(FromWire(asked).ok()) << "one too many";
}

TEST(ServerMessages, GrantsAreNeverLongerThanTheyWereMeantNorAbsurd) {
  const BudgetGrants grants{
      .sequence = 7,
      .answers = 9,
      .grants = {{.budget = "internet",
                  .team = "vision",
                  .rate = units::BitRate(5'000'000'000),
                  .connections = 12,
                  .duration = absl::Microseconds(1'999'999)},
                 {.budget = "b", .team = "*", .duration = absl::InfiniteDuration()},
                 {.budget = "b",
                  .team = "*",
                  .rate = units::BitRate(UINT64_MAX),
                  .duration = absl::Seconds(-1)}}};
  v1::BudgetGrants wire;
  ToWire(grants, wire);
  ASSERT_EQ(wire.grants_size(), 3);
  EXPECT_EQ(wire.grants(0).duration_ms(), 1999U);
  EXPECT_EQ(wire.grants(1).duration_ms(), UINT32_MAX);
  EXPECT_EQ(wire.grants(2).duration_ms(), 0U);
  EXPECT_EQ(FromWire(wire).grants[2].rate, kMaxGrantedRate);
}

}  // namespace
}  // namespace spoke::node_api
