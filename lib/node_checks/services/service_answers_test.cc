// Tests of who is asked what, and of how failures are counted.
#include "lib/node_checks/services/service_answers.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ip::Address kFirst = ip::Address::V4(0x0A000001);
constexpr ip::Address kSecond = ip::Address::V4(0x0A000002);

TEST(NodeQuestions, AreForTheServersNameAndAnyAnswerWillDo) {
  EXPECT_THAT(NodeQuestions({}, {kFirst, kSecond}, {"ipam.example:7443"}),
              ElementsAre(ResolverQuestion{kFirst, "ipam.example", false},
                          ResolverQuestion{kSecond, "ipam.example", false}));
  EXPECT_THAT(NodeQuestions({}, {}, {"ipam.example:7443"}), IsEmpty());
  const ip::Address link_local = ip::Address::V6(0xFEBFULL << 48U, 1);
  const ip::Address site_local = ip::Address::V6(0xFEC0ULL << 48U, 1);
  EXPECT_THAT(NodeQuestions({}, {link_local, site_local}, {}),
              ElementsAre(ResolverQuestion{site_local, "localhost", false}));
}

TEST(NodeQuestions, AServerWithoutANameIsPassedOver) {
  for (const char* server :
       {"10.0.0.7:7443", "[fd00::1]:7443", "unix:/run/ipam.sock", "a b:1", "none", ""}) {
    EXPECT_THAT(NodeQuestions({}, {kFirst}, {server}),
                ElementsAre(ResolverQuestion{kFirst, "localhost", false}))
        << server;
    EXPECT_THAT(NodeQuestions({}, {kFirst}, {server, "b.example:1"}),
                ElementsAre(ResolverQuestion{kFirst, "b.example", false}))
        << server;
  }
}

TEST(NodeQuestions, ANameThatIsConfiguredHasToExist) {
  EXPECT_THAT(NodeQuestions({.node_name = "here.example"}, {kFirst}, {"ipam.example:7443"}),
              ElementsAre(ResolverQuestion{kFirst, "here.example", true}));
}

TEST(NodeQuestions, NoMoreResolversAreAskedThanTheCLibraryAsks) {
  const std::vector<ip::Address> many(9, kFirst);
  EXPECT_EQ(NodeQuestions({}, many, {}).size(), kMaxAskedResolvers);
  EXPECT_EQ(ClusterQuestions({.cluster_resolvers = many}).size(), kMaxAskedResolvers);
}

TEST(ClusterQuestions, AreForANameThatEveryClusterHas) {
  EXPECT_THAT(ClusterQuestions({}), IsEmpty());
  EXPECT_THAT(ClusterQuestions({.cluster_resolvers = {kSecond}}),
              ElementsAre(ResolverQuestion{kSecond, "kubernetes.default.svc.cluster.local", true}));
}

TEST(ServiceFailures, AreCountedInARowByService) {
  const absl::Status silent = absl::DeadlineExceededError("silent");
  ServiceAnswers answers;
  ServiceAnswers before;
  for (int look = 1; look <= 3; ++look) {
    // The order of a node's resolvers may change.
    answers.node_resolvers = {{.service = "b"}, {.service = "a", .status = silent}};
    if (look == 2) std::swap(answers.node_resolvers[0], answers.node_resolvers[1]);
    answers.cluster_resolvers = {{.service = "a"}};
    answers.metadata = {.service = "m", .status = silent};
    answers.clock = KeptClock{.synchronized = false, .max_error = kClockGivenUp};
    EXPECT_TRUE(AnyFailed(answers));
    CountFailures(before, answers);
    EXPECT_EQ(answers.node_resolvers[look == 2 ? 0 : 1].failed_looks, look);
    EXPECT_EQ(answers.node_resolvers[look == 2 ? 1 : 0].failed_looks, 0);
    EXPECT_EQ(answers.cluster_resolvers[0].failed_looks, 0);
    EXPECT_EQ(answers.metadata->failed_looks, look);
    EXPECT_EQ(answers.clock->failed_looks, look);
    before = answers;
  }
  answers.node_resolvers = {{.service = "a"}};
  answers.metadata->status = absl::OkStatus();
  answers.clock->synchronized = true;
  CountFailures(before, answers);
  EXPECT_EQ(answers.node_resolvers[0].failed_looks, 0);
  EXPECT_EQ(answers.metadata->failed_looks, 0);
  EXPECT_EQ(answers.clock->failed_looks, 0);
  EXPECT_FALSE(AnyFailed(answers));
}

TEST(ServiceFailures, EveryKindOfServiceCounts) {
  const ServiceAnswer failed = {.service = "a", .status = absl::UnavailableError("refuses")};
  EXPECT_FALSE(AnyFailed({}));
  EXPECT_TRUE(AnyFailed({.node_resolvers = {failed}}));
  EXPECT_TRUE(AnyFailed({.cluster_resolvers = {failed}}));
  EXPECT_TRUE(AnyFailed({.metadata = failed}));
  EXPECT_TRUE(AnyFailed({.clock = KeptClock{.synchronized = false, .max_error = kClockGivenUp}}));
}

TEST(KeptClock, IsKeptWhereTheKernelSaysSoOrTheErrorIsBounded) {
  EXPECT_TRUE(IsKept({.synchronized = true, .max_error = kClockGivenUp}));
  EXPECT_TRUE(IsKept({.synchronized = false, .max_error = absl::Milliseconds(3)}));
  EXPECT_FALSE(IsKept({.synchronized = false, .max_error = kClockGivenUp}));
}

TEST(ClockDifference, TheServersTimeIsOfTheMiddleOfTheQuestion) {
  const absl::Time start = absl::FromUnixSeconds(1'000'000);
  const ClockDifference behind =
      CompareClocks(start, start + absl::Milliseconds(40), start + absl::Seconds(3));
  EXPECT_EQ(behind.ahead, absl::Milliseconds(20 - 3000));
  EXPECT_EQ(behind.uncertainty, absl::Milliseconds(20));
  EXPECT_EQ(CompareClocks(start, start, start), ClockDifference());
}

}  // namespace
}  // namespace spoke::node_checks
