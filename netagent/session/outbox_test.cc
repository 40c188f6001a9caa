#include "netagent/session/outbox.h"

#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;

ip::Address V4(uint32_t number) { return ip::Address::V4(number); }

node_api::Assignment AssignmentOf(const ip::Address& address, uint64_t generation = 1) {
  return {.address = address,
          .generation = generation,
          .lessee = {.container_id = "c" + std::to_string(generation), .ifname = "eth0"}};
}

node_api::AssignmentReport NextReport(Outbox& outbox) {
  const auto next = outbox.Next();
  if (!next || !std::holds_alternative<node_api::AssignmentReport>(*next)) {
    ADD_FAILURE() << "no report is next";
    return {};
  }
  return std::get<node_api::AssignmentReport>(*next);
}

TEST(Outbox, OneReportAtATimeAndTheRestIsMergedMeanwhile) {
  Outbox outbox;
  EXPECT_FALSE(outbox.HasNext());
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.in_use = {AssignmentOf(V4(1))}}));
  EXPECT_EQ(NextReport(outbox).sequence, 1U);
  for (uint32_t i = 2; i < 100; ++i) {
    ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.in_use = {AssignmentOf(V4(i), i)}}));
  }
  EXPECT_EQ(outbox.Next(), std::nullopt);
  outbox.OnReportAck(0);  // No such report was sent.
  EXPECT_FALSE(outbox.HasNext());
  outbox.OnReportAck(1);
  const node_api::AssignmentReport merged = NextReport(outbox);
  EXPECT_EQ(merged.sequence, 2U);
  EXPECT_EQ(merged.in_use.size(), 98U);
  outbox.OnReportAck(2);
  EXPECT_EQ(outbox.Next(), std::nullopt);
}

TEST(Outbox, OnlyTheLatestDemandIsSaidAndItWaitsForNoAcknowledgement) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.in_use = {AssignmentOf(V4(1))}}));
  NextReport(outbox);
  outbox.Add(node_api::Demand{{{"web", 1}}});
  outbox.Add(node_api::Demand{{{"web", 30}}});
  EXPECT_TRUE(outbox.HasNext());
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(node_api::Demand{{{"web", 30}}}));
  EXPECT_FALSE(outbox.HasNext());
}

TEST(Outbox, TracesAreAnswersAndBoundedLikeThem) {
  Outbox outbox;
  for (size_t i = 0; i < Outbox::kMaxWaitingAnswers; ++i) {
    ASSERT_TRUE(outbox.Add(node_api::AttachTracesAnswer{.id = i}));
  }
  EXPECT_FALSE(outbox.Add(node_api::AttachTracesAnswer{}));
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(node_api::AttachTracesAnswer{.id = 0}));
  EXPECT_TRUE(outbox.Add(node_api::AttachTracesAnswer{}));
}

TEST(Outbox, ALifeIsOneReportAndTheNextLifeAnother) {
  Outbox outbox;
  const node_api::Assignment first = AssignmentOf(V4(1), 1);
  const node_api::Assignment second = AssignmentOf(V4(1), 2);
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.in_use = {first}}));
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.released = {{V4(1), 1}}}));
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.cooled = {V4(1)}}));
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.in_use = {second}}));
  const node_api::AssignmentReport life = NextReport(outbox);
  EXPECT_THAT(life.in_use, ElementsAre(first));
  EXPECT_THAT(life.released, ElementsAre(node_api::Release{V4(1), 1}));
  EXPECT_THAT(life.cooled, ElementsAre(V4(1)));
  outbox.OnReportAck(1);
  EXPECT_THAT(NextReport(outbox), (node_api::AssignmentReport{.sequence = 2, .in_use = {second}}));
}

TEST(Outbox, AnAnswerDoesNotOvertakeWhatWasReportedBefore) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.in_use = {AssignmentOf(V4(1))}}));
  NextReport(outbox);
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.released = {{V4(1), 1}}}));
  ASSERT_TRUE(outbox.Add(node_api::ReclaimAnswer{.id = 7}));
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.cooled = {V4(2)}}));
  EXPECT_FALSE(outbox.HasNext());
  outbox.OnReportAck(1);
  EXPECT_EQ(NextReport(outbox).released.size(), 1U);
  // An answer that is sent is enough: the stream keeps the order from here.
  EXPECT_EQ(std::get<node_api::ReclaimAnswer>(*outbox.Next()).id, 7U);
  EXPECT_FALSE(outbox.HasNext());
  outbox.OnReportAck(2);
  EXPECT_EQ(NextReport(outbox).cooled.size(), 1U);
}

TEST(Outbox, AcknowledgementsAndConflictsWaitForNobodyAndOnlyTheLatestIsSaid) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.in_use = {AssignmentOf(V4(1))}}));
  NextReport(outbox);
  for (uint64_t version = 1; version <= 5; ++version) {
    outbox.Add(node_api::DesiredAck{version});
    outbox.Add(node_api::PolicyAck{.version = version});
    outbox.Add(node_api::ConflictReport{V4(9)});
  }
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(node_api::DesiredAck{5}));
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(node_api::PolicyAck{.version = 5}));
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(node_api::ConflictReport{V4(9)}));
  EXPECT_EQ(outbox.Next(), std::nullopt);
}

TEST(Outbox, AServerThatNeverAcknowledgesIsGivenUpAtTheLimit) {
  Outbox outbox;
  size_t taken = 0;
  while (taken < 2 * Outbox::kMaxWaitingEntries &&
         outbox.Add(node_api::AssignmentReport{.cooled = {V4(static_cast<uint32_t>(taken))}})) {
    ++taken;
  }
  EXPECT_EQ(taken, Outbox::kMaxWaitingEntries);
  Outbox answers;
  for (size_t i = 0; i < Outbox::kMaxWaitingAnswers; ++i)
    ASSERT_TRUE(answers.Add(node_api::Inventory{}));
  EXPECT_FALSE(answers.Add(node_api::Inventory{}));
  EXPECT_FALSE(answers.Add(node_api::ReclaimAnswer{}));
}

TEST(Outbox, NoMessageIsLargerThanItsLimit) {
  Outbox outbox;
  node_api::AssignmentReport large;
  for (uint32_t i = 0; i < 2500; ++i) large.cooled.push_back(V4(i));
  ASSERT_TRUE(outbox.Add(large));
  for (const size_t want : {1000U, 1000U, 500U}) {
    const node_api::AssignmentReport report = NextReport(outbox);
    EXPECT_EQ(report.cooled.size(), want);
    outbox.OnReportAck(report.sequence);
  }
}

// Does what a server does with reports: each `assigned` first, then `released`, then `cooled`.
struct Server {
  std::map<ip::Address, uint64_t> in_use;
  std::set<ip::Address> cooldown;
  std::set<uint64_t> history;

  void Take(const node_api::AssignmentReport& report) {
    for (const node_api::Assignment& assignment : report.in_use) {
      in_use[assignment.address] = assignment.generation;
      cooldown.erase(assignment.address);
      history.insert(assignment.generation);
    }
    for (const node_api::Release& release : report.released) {
      EXPECT_EQ(in_use.at(release.address), release.generation);
      in_use.erase(release.address);
      cooldown.insert(release.address);
    }
    for (const ip::Address& address : report.cooled) EXPECT_EQ(cooldown.erase(address), 1U);
  }
};

TEST(Outbox, HoweverSlowTheServerItEndsWithTheTruthAndTheWholeHistory) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Outbox outbox;
  Server server;
  Server truth;
  uint64_t generation = 0;
  uint64_t sent = 0;
  const auto say = [&](const node_api::AssignmentReport& report) {
    truth.Take(report);
    ASSERT_TRUE(outbox.Add(report));
  };
  const auto hear = [&] {
    if (sent != 0) outbox.OnReportAck(sent);
    if (!outbox.HasNext()) return;
    const node_api::AssignmentReport report = NextReport(outbox);
    EXPECT_EQ(report.sequence, ++sent);
    server.Take(report);
  };
  for (int step = 0; step < 20'000; ++step) {
    const ip::Address address = V4(static_cast<uint32_t>(random() % 5));
    const auto in_use = truth.in_use.find(address);
    if (in_use != truth.in_use.end()) {
      say({.released = {{address, in_use->second}}});
    } else if (truth.cooldown.contains(address)) {
      say({.cooled = {address}});
    } else {
      say({.in_use = {AssignmentOf(address, ++generation)}});
    }
    if (random() % 4 == 0) hear();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  while (outbox.HasNext() || sent == 0) hear();
  for (int i = 0; i < 10'000; ++i) hear();
  EXPECT_EQ(server.in_use, truth.in_use);
  EXPECT_EQ(server.cooldown, truth.cooldown);
  EXPECT_EQ(server.history, truth.history);
}

TEST(Outbox, KnowsWhetherAReportIsAllThatWaits) {
  Outbox outbox;
  EXPECT_FALSE(outbox.HasOnlyAReport());
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.cooled = {ip::Address::V4(1)}}));
  EXPECT_TRUE(outbox.HasOnlyAReport());
  outbox.Add(node_api::DesiredAck{1});
  EXPECT_FALSE(outbox.HasOnlyAReport());
  EXPECT_TRUE(outbox.Next().has_value());
  EXPECT_TRUE(outbox.HasOnlyAReport());
  EXPECT_TRUE(outbox.Next().has_value());
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.cooled = {ip::Address::V4(2)}}));
  EXPECT_FALSE(outbox.HasOnlyAReport()) << "one is on its way";
  outbox.OnReportAck(1);
  EXPECT_TRUE(outbox.HasOnlyAReport());
}

TEST(Outbox, TrafficGoesLastAndOnlyTheLatest) {
  Outbox outbox;
  const auto report = [](uint64_t sent) {
    return node_api::TrafficReport{.epoch = absl::UnixEpoch(),
                                   .namespaces = {{"a", {{"internet", {.sent = sent}}}}},
                                   .pods = {}};
  };
  outbox.Add(report(1));
  ASSERT_TRUE(outbox.Add(node_api::Inventory{.id = 7}));
  outbox.Add(report(2));
  EXPECT_FALSE(outbox.HasOnlyAReport());
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(node_api::Inventory{.id = 7}));
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(report(2)));
  EXPECT_FALSE(outbox.HasNext());
}

TEST(Outbox, TrafficDoesNotWaitForAnAcknowledgement) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.cooled = {ip::Address::V4(1)}}));
  ASSERT_TRUE(outbox.Next().has_value());
  ASSERT_TRUE(outbox.Add(node_api::AssignmentReport{.cooled = {ip::Address::V4(2)}}));
  outbox.Add(node_api::TrafficReport{.epoch = absl::UnixEpoch()});
  EXPECT_EQ(outbox.Next(),
            node_api::AgentMessage(node_api::TrafficReport{.epoch = absl::UnixEpoch()}));
  EXPECT_FALSE(outbox.HasNext());
}

TEST(Outbox, AnswersAboutProbesKeepTheirPlace) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(node_api::Inventory{.id = 1}));
  ASSERT_TRUE(outbox.Add(node_api::ProbeAnswer{.id = 2}));
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(node_api::Inventory{.id = 1}));
  EXPECT_EQ(outbox.Next(), node_api::AgentMessage(node_api::ProbeAnswer{.id = 2}));
}

}  // namespace
}  // namespace spoke::netagent
