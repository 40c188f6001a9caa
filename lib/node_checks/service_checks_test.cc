// Tests of the checks that ask services: found when a service is down, silent when it works or has
// missed one look, and said where they are not made.
#include <utility>

#include "lib/node_checks/testing/healthy_node.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kIds[] = {"dns-node", "dns-cluster", "metadata", "clock-kept",
                                "clock-server"};

ServiceAnswer Failed(int looks, const std::string& service = "10.0.0.53") {
  return {.service = service,
          .question = "a.example",
          .status = absl::DeadlineExceededError("does not answer"),
          .failed_looks = looks};
}

NodeFacts Asked(ServiceAnswers answers) {
  NodeFacts facts = HealthyNode();
  facts.services = std::move(answers);
  return facts;
}

std::vector<std::string> Made(const NodeFacts& facts) {
  std::vector<std::string> made;
  for (const Check& check : Examine(facts).checks) made.push_back(check.id);
  return made;
}

TEST(ServiceChecks, AResolverOfTheNodeIsFoundAtTheSecondLook) {
  const ServiceAnswer well = {.service = "10.0.0.54", .question = "a.example"};
  EXPECT_THAT(FindingsOf(Asked({.node_resolvers = {Failed(1), well}}), "dns-node"), IsEmpty());
  const auto found = FindingsOf(Asked({.node_resolvers = {Failed(2), well}}), "dns-node");
  EXPECT_THAT(found, ElementsAre(Warning("10.0.0.53")));
  EXPECT_EQ(found[0].what, "is asked for a.example and does not answer, at 2 looks in a row");
  EXPECT_THAT(found[0].remedy, HasSubstr("dig @10.0.0.53 a.example"));
}

TEST(ServiceChecks, EachResolverIsAFindingOfItsOwn) {
  const NodeFacts facts = Asked({.node_resolvers = {Failed(2), Failed(7, "fd00::53")},
                                 .cluster_resolvers = {Failed(2, "10.96.0.10")}});
  EXPECT_THAT(FindingsOf(facts, "dns-node"),
              ElementsAre(Warning("10.0.0.53"), Warning("fd00::53")));
  EXPECT_THAT(FindingsOf(facts, "dns-cluster"), ElementsAre(Warning("10.96.0.10")));
}

TEST(ServiceChecks, AResolverOfTheClusterIsFoundAtTheSecondLook) {
  EXPECT_THAT(FindingsOf(Asked({.cluster_resolvers = {Failed(1)}}), "dns-cluster"), IsEmpty());
  const auto found = FindingsOf(Asked({.cluster_resolvers = {Failed(2)}}), "dns-cluster");
  EXPECT_THAT(found, ElementsAre(Warning("10.0.0.53")));
  EXPECT_THAT(found[0].remedy, HasSubstr("k8s-app=kube-dns"));
}

TEST(ServiceChecks, TheMetadataServiceIsFoundAtTheSecondLook) {
  EXPECT_THAT(FindingsOf(Asked({.metadata = Failed(1, "http://169.254.169.254")}), "metadata"),
              IsEmpty());
  const ServiceAnswer answer = {.service = "http://169.254.169.254",
                                .question = "/metadata/versions",
                                .status = absl::UnavailableError("answers HTTP 500"),
                                .failed_looks = 2};
  const auto found = FindingsOf(Asked({.metadata = answer}), "metadata");
  EXPECT_THAT(found, ElementsAre(Warning("http://169.254.169.254")));
  EXPECT_THAT(found[0].what, HasSubstr("answers HTTP 500"));
  EXPECT_THAT(found[0].remedy, HasSubstr("http://169.254.169.254/metadata/versions"));
}

TEST(ServiceChecks, AClockThatNobodyKeepsIsFoundAtTheSecondLook) {
  EXPECT_THAT(FindingsOf(Asked({.clock = KeptClock{.failed_looks = 1}}), "clock-kept"), IsEmpty());
  EXPECT_THAT(FindingsOf(Asked({.clock = KeptClock{.failed_looks = 2}}), "clock-kept"),
              ElementsAre(Warning("clock")));
}

TEST(ServiceChecks, AClockIsAccusedOnlyOfWhatIsCertain) {
  NodeFacts facts = Asked({});
  const auto at = [&](absl::Duration ahead, absl::Duration uncertainty) {
    facts.server_clock = {.ahead = ahead, .uncertainty = uncertainty};
    return FindingsOf(facts, "clock-server");
  };
  EXPECT_THAT(at(absl::Seconds(1), absl::ZeroDuration()), IsEmpty());
  EXPECT_THAT(at(absl::Seconds(-1), absl::ZeroDuration()), IsEmpty());
  EXPECT_THAT(at(absl::Milliseconds(1500), absl::Milliseconds(500)), IsEmpty());
  const auto ahead = at(absl::Milliseconds(1502), absl::Milliseconds(500));
  EXPECT_THAT(ahead, ElementsAre(Warning("clock")));
  EXPECT_THAT(ahead[0].what, HasSubstr("1.5 s ahead of the server's"));
  const auto behind = at(absl::Seconds(-90), absl::Milliseconds(1));
  EXPECT_THAT(behind, ElementsAre(Warning("clock")));
  EXPECT_THAT(behind[0].what, HasSubstr("90.0 s behind the server's"));
}

TEST(ServiceChecks, WhatNobodyWasAskedIsSaidOnceTheOthersWereAsked) {
  EXPECT_THAT(Examine(HealthyNode()).not_made, IsEmpty());
  NodeFacts facts = Asked({});
  facts.settings.stage = Stage::kAgent;
  std::vector<std::string> ids;
  for (const CheckNotMade& check : Examine(facts).not_made) {
    ids.push_back(check.id);
    EXPECT_FALSE(check.why.empty()) << check.id;
    EXPECT_THAT(Made(facts), testing::Not(testing::Contains(check.id)));
  }
  EXPECT_THAT(ids, testing::ElementsAreArray(kIds));
  const auto why = [&](size_t index) { return Examine(facts).not_made[index].why; };
  EXPECT_THAT(why(1), HasSubstr("node_checks.cluster_dns.servers"));
  EXPECT_THAT(why(2), HasSubstr("no cloud is configured"));
  facts.settings.metadata_url = "http://metadata.example";
  EXPECT_THAT(why(2), HasSubstr("azure.imds"));
  EXPECT_THAT(why(4), HasSubstr("the server has not said"));
  facts.settings.stage = Stage::kInstalled;
  EXPECT_THAT(Examine(facts).not_made, testing::Contains(testing::Field(
                                           &CheckNotMade::why, HasSubstr("only the agent asks"))));
}

TEST(ServiceChecks, WhatWasAskedIsMadeAndNothingIsFoundOnAHealthyNode) {
  NodeFacts facts = Asked({.node_resolvers = {{.service = "10.0.0.53", .question = "a"}},
                           .cluster_resolvers = {{.service = "10.96.0.10", .question = "b"}},
                           .metadata = ServiceAnswer{.service = "http://169.254.169.254"},
                           .clock = KeptClock{.synchronized = true}});
  facts.server_clock = ClockDifference{.ahead = absl::Milliseconds(4)};
  facts.settings.stage = Stage::kAgent;
  EXPECT_THAT(Made(facts), testing::IsSupersetOf(kIds));
  EXPECT_THAT(Examine(facts).not_made, IsEmpty());
  for (const char* id : kIds) EXPECT_THAT(FindingsOf(facts, id), IsEmpty()) << id;
}

}  // namespace
}  // namespace spoke::node_checks
