// Tests of what Azure refuses for good: how seldom it is tried, and what an operator is told; and
// of what we refuse to do ourselves.
#include "gmock/gmock.h"
#include "tests/azure/machine_world.h"

namespace spoke::ipam::azure {
namespace {

using azure_sim::Json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kMostWritesAnHour = 6;

http::Response Refusal(int status, const std::string& code, const std::string& message) {
  return {status, {}, Json{{"error", {{"code", code}, {"message", message}}}}.dump()};
}

// Asks for the same again each time it is told no, as the server does.
void AskForAnHour(AzureStateWorld& world, const NicRequest& request) {
  const absl::Time end = world.now() + absl::Hours(1);
  while (world.now() < end) {
    const bool waits = world.machine().ForecastOf(request.node, world.now()).has_value();
    if (!waits) world.Request(request);
    world.RunFor(absl::Seconds(5));
  }
}
void AskForAnHour(AzureStateWorld& world) { AskForAnHour(world, world.Ask(VmId(0), {"spoke-a"})); }

struct Case {
  const char* name;
  int status;
  const char* code;
};

class PermanentRefusal : public testing::TestWithParam<Case> {};

TEST_P(PermanentRefusal, CostsFewWritesAndIsTold) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  world.set_intercept(
      [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        if (request.method != "PUT") return std::nullopt;
        return Refusal(GetParam().status, GetParam().code, "Azure says why.");
      });
  AskForAnHour(world);
  EXPECT_LE(world.CountSent("PUT"), static_cast<size_t>(kMostWritesAnHour));
  EXPECT_GE(world.CountSent("PUT"), 2U) << "it is tried again";
  const auto forecast = world.machine().ForecastOf({VmId(0), "vm-id"}, world.now());
  ASSERT_TRUE(forecast.has_value());
  EXPECT_THAT(forecast->waits_for, HasSubstr("Azure says why."));
}

INSTANTIATE_TEST_SUITE_P(
    Codes, PermanentRefusal,
    testing::Values(Case{"Property", 409, "PropertyChangeNotAllowed"},
                    Case{"Registration", 409, "MissingSubscriptionRegistration"},
                    Case{"Group", 409, "ResourceGroupBeingDeleted"},
                    Case{"Capacity", 409, "OverconstrainedAllocationRequest"},
                    Case{"Protected", 409, "InstanceProtected"},
                    Case{"Provider", 400, "NoRegisteredProviderFound"},
                    Case{"Unknown", 409, "SomethingNew"}, Case{"Request", 400, "InvalidParameter"},
                    Case{"Right", 403, "AuthorizationFailed"}, Case{"Lock", 409, "ScopeLocked"}),
    [](const auto& test) { return test.param.name; });

TEST(Refusals, AnOperationThatFailsForGoodCostsFewWrites) {
  azure_sim::Knobs knobs;
  knobs.failed_operations = 1;
  knobs.failed_operation_code = "VMExtensionProvisioningError";
  AzureStateWorld world(azure_sim::SmallSpec(1), knobs);
  AskForAnHour(world);
  EXPECT_LE(world.CountSent("PUT"), static_cast<size_t>(kMostWritesAnHour));
}

// The VM's extension failed, the NIC was written, and shows it late.
TEST(Refusals, AnOperationThatFailsForSomethingElseIsBelievedByTheNic) {
  azure_sim::Knobs knobs;
  knobs.nic_lag = absl::Seconds(12);
  knobs.failed_operations = 1;
  knobs.failed_after_write = 1;
  knobs.failed_operation_code = "VMExtensionProvisioningError";
  AzureStateWorld world(azure_sim::SmallSpec(1), knobs);
  const auto nic = world.AskAndWait(VmId(0), {"spoke-a"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(world.CountSent("PUT"), 1U) << "nothing is taken off again";
  EXPECT_THAT(world.OnWire(VmId(0)), ElementsAre("spoke-a"));
}

// The cloud has no API version that has blocks, or one without the field.
class ComputeWithoutBlocks : public testing::TestWithParam<azure_sim::ComputeBlocks> {};

TEST_P(ComputeWithoutBlocks, CostsFewCallsAndIsTold) {
  azure_sim::Knobs knobs;
  knobs.compute_blocks = GetParam();
  Settings settings;
  settings.blocks_on_scale_sets = true;
  AzureStateWorld world(azure_sim::SmallSpec(1), knobs, settings);
  NicRequest request = world.Ask(VmId(0), {});
  request.wanted.push_back({"spoke-b", ip::Family::kV4, 28});
  AskForAnHour(world, request);
  EXPECT_LE(world.CountSent("PUT"), static_cast<size_t>(kMostWritesAnHour));
  EXPECT_LE(world.sent().size(), 4U * static_cast<size_t>(kMostWritesAnHour));
  EXPECT_GE(world.sent().size(), 2U) << "it is tried again";
  const auto forecast = world.machine().ForecastOf(request.node, world.now());
  ASSERT_TRUE(forecast.has_value());
  EXPECT_THAT(forecast->waits_for, HasSubstr(GetParam() == azure_sim::ComputeBlocks::kNoVersion
                                                 ? "2026-07-02"
                                                 : "privateIPAddressPrefixLength"));
}

INSTANTIATE_TEST_SUITE_P(Clouds, ComputeWithoutBlocks,
                         testing::Values(azure_sim::ComputeBlocks::kNoVersion,
                                         azure_sim::ComputeBlocks::kNoField),
                         [](const auto& test) {
                           return test.param == azure_sim::ComputeBlocks::kNoVersion ? "Version"
                                                                                     : "Field";
                         });

// The reason does not matter, even if it looks like a race for ever.
TEST(Refusals, NothingPassesTheLimitOfWritesToOneVm) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  world.set_intercept(
      [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        if (request.method != "PUT") return std::nullopt;
        return Refusal(409, "Conflict",
                       "The request failed due to conflict with a concurrent request.");
      });
  for (int hour = 1; hour <= 3; ++hour) {
    AskForAnHour(world);
    EXPECT_LE(world.CountSent("PUT"), 61U * static_cast<size_t>(hour));
  }
  const auto forecast = world.machine().ForecastOf({VmId(0), "vm-id"}, world.now());
  ASSERT_TRUE(forecast.has_value());
  EXPECT_THAT(forecast->waits_for, HasSubstr("within an hour"));
}

TEST(Refusals, WhatIsForbiddenIsSaidInFull) {
  const std::string scope(600, 's');
  AzureStateWorld world(azure_sim::SmallSpec(1));
  world.set_intercept(
      [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        if (request.method != "PUT") return std::nullopt;
        return Refusal(403, "LinkedAuthorizationFailed",
                       "no right on " + scope + " to join/action");
      });
  world.Request(world.Ask(VmId(0), {"spoke-a"}));
  EXPECT_THAT(std::string(world.Answer(VmId(0)).status().message()), HasSubstr("to join/action"));
}

// A name alone may be of the machine that was there before.
TEST(Removal, TakesOffOnlyWhatTheNicShowsWithThatRange) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  ASSERT_TRUE(world.AskAndWait(VmId(0), {"spoke-a", "spoke-b"}).ok());
  NicRequest request = world.Ask(VmId(0), {}, {"spoke-a", "spoke-b"});
  request.removing[0].range = ip::Prefix::Parse("10.9.9.9/32").value();
  const size_t before = world.CountSent("PUT");
  world.Request(request);
  const auto nic = world.Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(world.OnWire(VmId(0)), ElementsAre("spoke-a")) << "another machine's";
  EXPECT_EQ(world.CountSent("PUT"), before + 1);

  request.removing.pop_back();
  world.Request(request);
  ASSERT_TRUE(world.Answer(VmId(0)).ok()) << "it is not there, which is all that was asked for";
  EXPECT_THAT(world.OnWire(VmId(0)), ElementsAre("spoke-a"));
  EXPECT_EQ(world.CountSent("PUT"), before + 1);
}

TEST(Removal, FromAnotherMachinesNicIsRefused) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  ASSERT_TRUE(world.AskAndWait(VmId(0), {"spoke-a"}).ok());
  NicRequest request = world.Ask(VmId(0), {}, {"spoke-a"});
  request.nic_mac = ip::MacAddress::Parse("00:0d:3a:ff:ff:ff").value();
  world.Request(request);
  const auto nic = world.Answer(VmId(0));
  EXPECT_FALSE(nic.ok());
  EXPECT_THAT(world.OnWire(VmId(0)), ElementsAre("spoke-a"));
}

// A store that was restored, or a write that came late: nothing is given back that is not known.
TEST(Full, ANicThatIsFullOfWhatNobodyKnowsIsToldAndNotRefused) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  const auto names = [](int first, int count) {
    std::vector<std::string> all;
    for (int i = first; i < first + count; ++i) all.push_back(fmt::format("spoke-{}", i));
    return all;
  };
  ASSERT_TRUE(world.AskAndWait(VmId(0), names(1, 250)).ok());
  const auto told = world.AskAndWait(VmId(0), names(901, 10));
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->configurations.size(), 255U) << "five more fit beside the primary one";

  // Who knows of them asks for too much.
  NicRequest request = world.Ask(VmId(0), names(911, 3));
  request.configurations = told->configurations;
  world.Request(request);
  const auto refused = world.Answer(VmId(0));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("Azure allows 256"));
}

TEST(Mended, WhatAnOperatorHasMendedIsTriedAtOnce) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  bool locked = true;
  world.set_intercept(
      [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        if (request.method != "PUT" || !locked) return std::nullopt;
        return Refusal(409, "ScopeLocked", "There is a lock.");
      });
  EXPECT_TRUE(absl::IsPermissionDenied(world.AskAndWait(VmId(0), {"spoke-a"}).status()));
  locked = false;
  NicRequest request = world.Ask(VmId(0), {"spoke-a"});
  world.Request(request);
  world.RunFor(absl::Minutes(1));
  EXPECT_FALSE(world.has_answer(VmId(0))) << "it would wait";
  request.mended = true;
  world.Request(request);
  EXPECT_TRUE(world.Answer(VmId(0), absl::Minutes(1)).ok());
}

}  // namespace
}  // namespace spoke::ipam::azure
