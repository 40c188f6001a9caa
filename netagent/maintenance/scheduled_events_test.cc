#include "netagent/maintenance/scheduled_events.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using node_api::MaintenanceKind;
using testing::ElementsAre;
using testing::HasSubstr;

// As in Microsoft's page, with two machines.
constexpr std::string_view kDocument = R"({
  "DocumentIncarnation": 2,
  "Events": [
    {"EventId": "B", "EventStatus": "Scheduled", "EventType": "Reboot",
     "ResourceType": "VirtualMachine", "Resources": ["pool_0", "pool_1"],
     "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT", "Description": "Host is being updated.",
     "EventSource": "Platform", "DurationInSeconds": -1},
    {"EventId": "A", "EventStatus": "Started", "EventType": "Freeze",
     "ResourceType": "VirtualMachine", "Resources": ["POOL_1"], "NotBefore": "",
     "Description": "", "EventSource": "User", "DurationInSeconds": 5},
    {"EventId": "C", "EventStatus": "Scheduled", "EventType": "Terminate",
     "Resources": ["pool_2"], "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT"},
    {"EventId": "D", "EventStatus": "Scheduled", "EventType": "Upgrade", "Resources": ["pool_1"]}
  ]})";

TEST(ScheduledEvents, AreReadForOneMachine) {
  const auto maintenance = ParseScheduledEvents(kDocument, "pool_1");
  ASSERT_TRUE(maintenance.ok()) << maintenance.status();
  const node_api::MaintenanceEvent freeze{.id = "A",
                                          .kind = MaintenanceKind::kFreeze,
                                          .started = true,
                                          .duration = absl::Seconds(5),
                                          .origin = "User"};
  const node_api::MaintenanceEvent reboot{.id = "B",
                                          .kind = MaintenanceKind::kReboot,
                                          .not_before = absl::FromUnixSeconds(1'649'716'018),
                                          .description = "Host is being updated.",
                                          .origin = "Platform",
                                          .other_machines = 1,
                                          .others = {"pool_0"}};
  EXPECT_THAT(maintenance->events, ElementsAre(freeze, reboot)) << "what has begun comes first";
  EXPECT_TRUE(ParseScheduledEvents(kDocument, "pool_10")->events.empty());
}

TEST(ScheduledEvents, MayBeForWhoeverReadsThem) {
  const auto shortest =
      ParseScheduledEvents(R"({"Events": [{"EventId": "1", "EventType": "reboot"}]})", "node-1");
  ASSERT_TRUE(shortest.ok());
  ASSERT_EQ(shortest->events.size(), 1U);
  EXPECT_EQ(shortest->events[0].kind, MaintenanceKind::kReboot);
  EXPECT_FALSE(shortest->events[0].started);
  EXPECT_EQ(shortest->events[0].not_before, absl::InfinitePast());
}

TEST(ScheduledEvents, ATimeThatCannotBeReadIsNotKnown) {
  const auto maintenance = ParseScheduledEvents(
      R"({"Events": [{"EventId": "1", "EventType": "Reboot", "NotBefore": "soon",
          "DurationInSeconds": 1e300}]})",
      "n");
  ASSERT_TRUE(maintenance.ok());
  EXPECT_EQ(maintenance->events[0].not_before, absl::InfinitePast());
  EXPECT_EQ(maintenance->events[0].duration, absl::ZeroDuration());
}

TEST(ScheduledEvents, NothingIsAnnounced) {
  for (const char* text :
       {R"({"DocumentIncarnation": 1, "Events": []})", "{}", R"({"Events": null})"}) {
    EXPECT_TRUE(ParseScheduledEvents(text, "n")->events.empty()) << text;
  }
}

TEST(ScheduledEvents, WhatIsNoDocumentIsRefused) {
  for (const char* text :
       {"", "[]", "{", R"({"Events": {}})", R"({"Events": [1]})", R"({"Events": [{}]})",
        R"({"Events": [{"EventId": 1}]})", R"({"Events": [{"EventId": "an id"}]})",
        R"({"Events": [{"EventId": "1", "Resources": "n"}]})",
        R"({"Events": [{"EventId": "1", "Resources": [1]}]})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseScheduledEvents(text, "n").status())) << text;
  }
  const std::string longest(kMaxScheduledEventsBytes + 1, ' ');
  EXPECT_THAT(ParseScheduledEvents(longest, "n").status().message(), HasSubstr("longer than"));
}

TEST(ScheduledEvents, AreBounded) {
  std::string text = R"({"Events": [)";
  for (int i = 0; i < 100; ++i) {
    text += fmt::format(R"({}{{"EventId": "{}", "EventType": "Reboot"}})", i == 0 ? "" : ",", i);
  }
  const auto maintenance = ParseScheduledEvents(text + "]}", "n");
  ASSERT_TRUE(maintenance.ok());
  EXPECT_EQ(maintenance->events.size(), static_cast<size_t>(node_api::kMaxMaintenanceEvents));
}

TEST(StartRequests, NameTheEvents) {
  EXPECT_EQ(StartRequestsOf({"A", "B"}), R"({"StartRequests":[{"EventId":"A"},{"EventId":"B"}]})");
}

}  // namespace
}  // namespace spoke::netagent
