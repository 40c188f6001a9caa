// Tests of a server that takes over from another one: what that has left on its way, and what this
// one sends while its own leadership lasts.
#include <memory>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "tests/azure/machine_world.h"

namespace spoke::ipam::azure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class TakeoverTest : public testing::TestWithParam<azure_sim::OnConcurrentWrite> {
 protected:
  TakeoverTest() {
    azure_sim::Knobs knobs;
    knobs.on_concurrent_write = GetParam();
    knobs.latency = {.least = absl::Seconds(30), .most = absl::Seconds(30)};
    world_ = std::make_unique<AzureStateWorld>(azure_sim::SmallSpec(1), knobs);
  }

  // The former leader asks, and its write leaves it: it is on its way when its process ends.
  http::Request LeaveAWriteOnItsWay(const std::vector<std::string>& wanted,
                                    const std::vector<std::string>& removing = {}) {
    std::optional<http::Request> put;
    world_->set_intercept(
        [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
          if (request.method != "PUT") return std::nullopt;
          put = request;
          return absl::DeadlineExceededError("on its way");
        });
    world_->Request(world_->Ask(VmId(0), wanted, removing));
    world_->RunUntil([&] { return put.has_value(); }, absl::Minutes(5));
    world_->set_intercept(nullptr);
    EXPECT_TRUE(put.has_value());
    world_->Restart();
    return put.value_or(http::Request());
  }
  int Arrive(const http::Request& request) {
    return world_->arm().Handle(request, world_->now()).status;
  }
  // Makes `request` arrive right before the next PUT of the present leader, and returns the status
  // it got.
  void ArriveBeforeTheNextPut(const http::Request& request, std::optional<int>& status) {
    world_->set_intercept(
        [this, request,
         &status](const http::Request& next) -> std::optional<absl::StatusOr<http::Response>> {
          if (next.method == "PUT" && !status.has_value()) status = Arrive(request);
          return std::nullopt;
        });
  }

  std::unique_ptr<AzureStateWorld> world_;
};

INSTANTIATE_TEST_SUITE_P(Azure, TakeoverTest,
                         testing::Values(azure_sim::OnConcurrentWrite::kConflict,
                                         azure_sim::OnConcurrentWrite::kPreempt),
                         [](const auto& test) {
                           return test.param == azure_sim::OnConcurrentWrite::kConflict ? "Conflict"
                                                                                        : "Preempt";
                         });

TEST_P(TakeoverTest, TheFirstWriteReadsTheInstanceAndIsGuardedByItsETag) {
  ASSERT_TRUE(world_->AskAndWait(VmId(0), {"spoke-a"}).ok());
  world_->Restart();
  const size_t before = world_->sent().size();
  ASSERT_TRUE(world_->AskAndWait(VmId(0), {"spoke-b"}).ok());
  bool read = false;
  for (size_t i = before; i < world_->sent().size(); ++i) {
    const http::Request& request = world_->sent()[i].second;
    const bool instance = request.url.find("/virtualmachines/0?") != std::string::npos;
    read = read || (request.method == "GET" && instance);
    if (request.method != "PUT") continue;
    EXPECT_TRUE(read) << "by this process";
    EXPECT_TRUE(request.headers.Find("If-Match").has_value());
  }
  EXPECT_TRUE(read);
}

TEST_P(TakeoverTest, AWriteThatIsBeingCarriedOutIsWaitedForAndNotDoubled) {
  const http::Request old = LeaveAWriteOnItsWay({"spoke-a", "spoke-b"});
  ASSERT_LT(Arrive(old), 300);
  const size_t puts = world_->CountSent("PUT");
  const absl::Time arrived = world_->now();
  const auto nic = world_->AskAndWait(VmId(0), {"spoke-a", "spoke-b"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), UnorderedElementsAre("spoke-a", "spoke-b"));
  EXPECT_EQ(world_->CountSent("PUT"), puts) << "it has it all";
  EXPECT_GE(world_->now() - arrived, absl::Seconds(30));
}

TEST_P(TakeoverTest, AWriteThatIsBeingCarriedOutIsOverBeforeAnotherIsSent) {
  const http::Request old = LeaveAWriteOnItsWay({"spoke-a"});
  ASSERT_LT(Arrive(old), 300);
  const size_t puts = world_->CountSent("PUT");
  const absl::Time arrived = world_->now();
  world_->Request(world_->Ask(VmId(0), {"spoke-a", "spoke-b"}));
  world_->RunUntil([&] { return world_->CountSent("PUT") > puts; });
  EXPECT_GE(world_->now() - arrived, absl::Seconds(30));
  const auto nic = world_->Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), UnorderedElementsAre("spoke-a", "spoke-b"));
  EXPECT_EQ(world_->CountSent("PUT"), puts + 1) << "no conflict was met";
}

TEST_P(TakeoverTest, AnOperationThatTakesVeryLongIsStillWaitedFor) {
  world_->arm().knobs().latency = {.least = absl::Minutes(10), .most = absl::Minutes(10)};
  const http::Request old = LeaveAWriteOnItsWay({"spoke-a"});
  ASSERT_LT(Arrive(old), 300);
  const size_t puts = world_->CountSent("PUT");
  const size_t gets = world_->CountSent("GET");
  const absl::Time arrived = world_->now();
  world_->Request(world_->Ask(VmId(0), {"spoke-b"}));
  world_->RunUntil([&] { return world_->CountSent("PUT") > puts; });
  EXPECT_GE(world_->now() - arrived, absl::Minutes(10));
  EXPECT_LE(world_->CountSent("GET") - gets, 20U) << "and not asked about all the time";
  const auto nic = world_->Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), UnorderedElementsAre("spoke-a", "spoke-b"));
}

TEST_P(TakeoverTest, AnOperationThatDoesNotEndIsToldAndNothingIsWritten) {
  world_->arm().knobs().latency = {.least = absl::Hours(5), .most = absl::Hours(5)};
  const http::Request old = LeaveAWriteOnItsWay({"spoke-a"});
  ASSERT_LT(Arrive(old), 300);
  const size_t puts = world_->CountSent("PUT");
  const auto nic = world_->AskAndWait(VmId(0), {"spoke-b"});
  EXPECT_EQ(nic.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(nic.status().message()), HasSubstr("does not end (Updating)"));
  EXPECT_EQ(world_->CountSent("PUT"), puts);
}

// The write arrives after this server has read the instance, and before its own write does.
TEST_P(TakeoverTest, AWriteThatArrivesBetweenReadAndWriteIsNeitherDoubledNorUndone) {
  const http::Request old = LeaveAWriteOnItsWay({"spoke-a"});
  std::optional<int> status;
  ArriveBeforeTheNextPut(old, status);
  const auto nic = world_->AskAndWait(VmId(0), {"spoke-a", "spoke-b"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  ASSERT_TRUE(status.has_value());
  EXPECT_LT(*status, 300) << "the former leader's write is the one that comes first";
  EXPECT_THAT(NamesOf(*nic), UnorderedElementsAre("spoke-a", "spoke-b"));
  EXPECT_THAT(world_->OnWire(VmId(0)), UnorderedElementsAre("spoke-a", "spoke-b"));
}

TEST_P(TakeoverTest, ARemovalThatArrivesBetweenReadAndWriteIsNotDoneTwice) {
  ASSERT_TRUE(world_->AskAndWait(VmId(0), {"spoke-a", "spoke-b", "spoke-c"}).ok());
  const http::Request old = LeaveAWriteOnItsWay({}, {"spoke-a"});
  std::optional<int> status;
  ArriveBeforeTheNextPut(old, status);
  const auto nic = world_->AskAndWait(VmId(0), {"spoke-d"}, {"spoke-a"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_LT(status.value_or(999), 300);
  EXPECT_THAT(NamesOf(*nic), UnorderedElementsAre("spoke-b", "spoke-c", "spoke-d"));
}

// The write arrives when this server has written: it was made from what no longer holds.
TEST_P(TakeoverTest, AWriteThatArrivesTooLateIsRefused) {
  const http::Request old = LeaveAWriteOnItsWay({"spoke-a"});
  ASSERT_TRUE(world_->AskAndWait(VmId(0), {"spoke-b"}).ok());
  EXPECT_EQ(Arrive(old), 412);
  world_->RunFor(absl::Minutes(5));
  EXPECT_THAT(world_->OnWire(VmId(0)), ElementsAre("spoke-b"));
}

TEST_P(TakeoverTest, WhatShowsNoETagIsNotWritten) {
  world_->set_intercept(
      [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        const bool instance = request.url.find("/virtualmachines/0?") != std::string::npos;
        if (request.method != "GET" || !instance) return std::nullopt;
        http::Response response = world_->arm().Handle(request, world_->now());
        response.headers = {};
        azure_sim::Json body = azure_sim::Json::parse(response.body);
        body.erase("etag");
        response.body = body.dump();
        return response;
      });
  const auto nic = world_->AskAndWait(VmId(0), {"spoke-a"});
  EXPECT_EQ(nic.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(nic.status().message()), HasSubstr("no ETag"));
  EXPECT_EQ(world_->CountSent("PUT"), 0U);
}

TEST(WriteMargin, WritesWaitForItAndReadsDoNot) {
  AzureStateWorld world(azure_sim::SmallSpec(2));
  world.set_write_margin(kWriteMargin - absl::Milliseconds(1));
  world.Request(world.Ask(VmId(0), {"spoke-a"}));
  const auto look = world.AskAndWait(VmId(1), {});
  ASSERT_TRUE(look.ok()) << look.status();
  EXPECT_TRUE(world.List().ok());
  world.RunFor(absl::Minutes(1));
  EXPECT_EQ(world.CountSent("PUT"), 0U);
  EXPECT_FALSE(world.has_answer(VmId(0)));
  const auto forecast = world.machine().ForecastOf({VmId(0), "vm-id"}, world.now());
  ASSERT_TRUE(forecast.has_value());
  EXPECT_THAT(forecast->waits_for, HasSubstr("leadership"));

  world.set_write_margin(kWriteMargin);
  const absl::Time renewed = world.now();
  world.RunUntil([&] { return world.CountSent("PUT") == 1; });
  EXPECT_LE(world.now() - renewed, absl::Seconds(1));
  const auto nic = world.Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), ElementsAre("spoke-a"));
}

TEST(WriteMargin, AWriteLeavesWithinIt) {
  for (const absl::Duration margin : {absl::Seconds(2), absl::InfiniteDuration()}) {
    AzureStateWorld world(azure_sim::SmallSpec(1));
    world.set_write_margin(margin);
    ASSERT_TRUE(world.AskAndWait(VmId(0), {"spoke-a"}).ok());
    for (const auto& [when, request] : world.sent()) {
      const bool bounded = request.method == "PUT" && margin != absl::InfiniteDuration();
      EXPECT_EQ(request.send_within, bounded ? kWriteLeaves : absl::InfiniteDuration());
    }
  }
  EXPECT_LT(kWriteLeaves, kWriteMargin);
}

}  // namespace
}  // namespace spoke::ipam::azure
