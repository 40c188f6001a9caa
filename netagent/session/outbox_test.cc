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

Assignment AssignmentOf(std::vector<ip::Address> addresses, uint64_t generation = 1) {
  return {.key = {"c" + std::to_string(generation), "eth0"},
          .addresses = std::move(addresses),
          .generation = generation};
}

NumberedReport NextReport(Outbox& outbox) {
  const auto next = outbox.Next();
  if (!next || !std::holds_alternative<NumberedReport>(*next)) {
    ADD_FAILURE() << "no report is next";
    return {};
  }
  return std::get<NumberedReport>(*next);
}

TEST(Outbox, OneReportAtATimeAndTheRestIsMergedMeanwhile) {
  Outbox outbox;
  EXPECT_FALSE(outbox.HasNext());
  ASSERT_TRUE(outbox.Add(AssignmentReport{.in_use = {AssignmentOf({V4(1)})}}));
  EXPECT_EQ(NextReport(outbox).sequence, 1U);
  for (uint32_t i = 2; i < 100; ++i) {
    ASSERT_TRUE(outbox.Add(AssignmentReport{.in_use = {AssignmentOf({V4(i)}, i)}}));
  }
  EXPECT_EQ(outbox.Next(), std::nullopt);
  outbox.OnReportAck(0);  // Of none that was sent.
  EXPECT_FALSE(outbox.HasNext());
  outbox.OnReportAck(1);
  const NumberedReport merged = NextReport(outbox);
  EXPECT_EQ(merged.sequence, 2U);
  EXPECT_EQ(merged.report.in_use.size(), 98U);
  outbox.OnReportAck(2);
  EXPECT_EQ(outbox.Next(), std::nullopt);
}

TEST(Outbox, OnlyTheLatestDemandIsSaidAndItWaitsForNoAcknowledgement) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(AssignmentReport{.in_use = {AssignmentOf({V4(1)})}}));
  NextReport(outbox);
  outbox.Add(Demand{{{"web", 1}}});
  outbox.Add(Demand{{{"web", 30}}});
  EXPECT_TRUE(outbox.HasNext());
  EXPECT_EQ(outbox.Next(), AgentReply(Demand{{{"web", 30}}}));
  EXPECT_FALSE(outbox.HasNext());
}

TEST(Outbox, TracesAreAnswersAndBoundedLikeThem) {
  Outbox outbox;
  for (size_t i = 0; i < Outbox::kMaxWaitingAnswers; ++i) {
    ASSERT_TRUE(outbox.Add(AttachTracesAnswer{.id = i}));
  }
  EXPECT_FALSE(outbox.Add(AttachTracesAnswer{}));
  EXPECT_EQ(outbox.Next(), AgentReply(AttachTracesAnswer{.id = 0}));
  EXPECT_TRUE(outbox.Add(AttachTracesAnswer{}));
}

TEST(Outbox, ALifeIsOneReportAndTheNextLifeAnother) {
  Outbox outbox;
  const Assignment first = AssignmentOf({V4(1)}, 1);
  const Assignment second = AssignmentOf({V4(1)}, 2);
  ASSERT_TRUE(outbox.Add(AssignmentReport{.in_use = {first}}));
  ASSERT_TRUE(outbox.Add(AssignmentReport{.released = {first}}));
  ASSERT_TRUE(outbox.Add(AssignmentReport{.cooled = {V4(1)}}));
  ASSERT_TRUE(outbox.Add(AssignmentReport{.in_use = {second}}));
  const AssignmentReport life = NextReport(outbox).report;
  EXPECT_THAT(life.in_use, ElementsAre(first));
  EXPECT_THAT(life.released, ElementsAre(first));
  EXPECT_THAT(life.cooled, ElementsAre(V4(1)));
  outbox.OnReportAck(1);
  EXPECT_THAT(NextReport(outbox).report, (AssignmentReport{.in_use = {second}}));
}

TEST(Outbox, AnAnswerDoesNotOvertakeWhatWasReportedBefore) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(AssignmentReport{.in_use = {AssignmentOf({V4(1)})}}));
  NextReport(outbox);
  ASSERT_TRUE(outbox.Add(AssignmentReport{.released = {AssignmentOf({V4(1)})}}));
  ASSERT_TRUE(outbox.Add(ReclaimAnswer{.id = 7}));
  ASSERT_TRUE(outbox.Add(AssignmentReport{.cooled = {V4(2)}}));
  EXPECT_FALSE(outbox.HasNext());
  outbox.OnReportAck(1);
  EXPECT_EQ(NextReport(outbox).report.released.size(), 1U);
  // Sent is enough: the stream keeps the order from here.
  EXPECT_EQ(std::get<ReclaimAnswer>(*outbox.Next()).id, 7U);
  EXPECT_FALSE(outbox.HasNext());
  outbox.OnReportAck(2);
  EXPECT_EQ(NextReport(outbox).report.cooled.size(), 1U);
}

TEST(Outbox, AcknowledgementsAndConflictsWaitForNobodyAndOnlyTheLatestIsSaid) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(AssignmentReport{.in_use = {AssignmentOf({V4(1)})}}));
  NextReport(outbox);
  for (uint64_t version = 1; version <= 5; ++version) {
    outbox.Add(DesiredAck{version});
    outbox.Add(PolicyAck{.version = version});
    outbox.Add(ConflictNoted{V4(9)});
  }
  EXPECT_EQ(outbox.Next(), AgentReply(DesiredAck{5}));
  EXPECT_EQ(outbox.Next(), AgentReply(PolicyAck{.version = 5}));
  EXPECT_EQ(outbox.Next(), AgentReply(ConflictNoted{V4(9)}));
  EXPECT_EQ(outbox.Next(), std::nullopt);
}

TEST(Outbox, AServerThatNeverAcknowledgesIsGivenUpAtTheLimit) {
  Outbox outbox;
  size_t taken = 0;
  while (taken < 2 * Outbox::kMaxWaitingEntries &&
         outbox.Add(AssignmentReport{.cooled = {V4(static_cast<uint32_t>(taken))}})) {
    ++taken;
  }
  EXPECT_EQ(taken, Outbox::kMaxWaitingEntries);
  Outbox answers;
  for (size_t i = 0; i < Outbox::kMaxWaitingAnswers; ++i) ASSERT_TRUE(answers.Add(Inventory{}));
  EXPECT_FALSE(answers.Add(Inventory{}));
  EXPECT_FALSE(answers.Add(ReclaimAnswer{}));
}

TEST(Outbox, NoMessageIsLargerThanItsLimit) {
  Outbox outbox;
  AssignmentReport large;
  for (uint32_t i = 0; i < 2500; ++i) large.cooled.push_back(V4(i));
  ASSERT_TRUE(outbox.Add(large));
  for (const size_t want : {1000U, 1000U, 500U}) {
    const NumberedReport report = NextReport(outbox);
    EXPECT_EQ(report.report.cooled.size(), want);
    outbox.OnReportAck(report.sequence);
  }
}

// What a server makes of reports: each `assigned` first, then `released`, then `cooled`.
struct Server {
  std::map<ip::Address, uint64_t> in_use;
  std::set<ip::Address> cooldown;
  std::set<uint64_t> history;

  void Take(const AssignmentReport& report) {
    for (const Assignment& assignment : report.in_use) {
      for (const ip::Address& address : assignment.addresses) {
        in_use[address] = assignment.generation;
        cooldown.erase(address);
      }
      history.insert(assignment.generation);
    }
    for (const Assignment& assignment : report.released) {
      for (const ip::Address& address : assignment.addresses) {
        EXPECT_EQ(in_use.at(address), assignment.generation);
        in_use.erase(address);
        cooldown.insert(address);
      }
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
  const auto say = [&](const AssignmentReport& report) {
    truth.Take(report);
    ASSERT_TRUE(outbox.Add(report));
  };
  const auto hear = [&] {
    if (sent != 0) outbox.OnReportAck(sent);
    if (!outbox.HasNext()) return;
    const NumberedReport report = NextReport(outbox);
    EXPECT_EQ(report.sequence, ++sent);
    server.Take(report.report);
  };
  for (int step = 0; step < 20'000; ++step) {
    const ip::Address address = V4(static_cast<uint32_t>(random() % 5));
    const auto in_use = truth.in_use.find(address);
    if (in_use != truth.in_use.end()) {
      say({.released = {AssignmentOf({address}, in_use->second)}});
    } else if (truth.cooldown.contains(address)) {
      say({.cooled = {address}});
    } else {
      say({.in_use = {AssignmentOf({address}, ++generation)}});
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
  ASSERT_TRUE(outbox.Add(AssignmentReport{.cooled = {ip::Address::V4(1)}}));
  EXPECT_TRUE(outbox.HasOnlyAReport());
  outbox.Add(DesiredAck{1});
  EXPECT_FALSE(outbox.HasOnlyAReport());
  EXPECT_TRUE(outbox.Next().has_value());
  EXPECT_TRUE(outbox.HasOnlyAReport());
  EXPECT_TRUE(outbox.Next().has_value());
  ASSERT_TRUE(outbox.Add(AssignmentReport{.cooled = {ip::Address::V4(2)}}));
  EXPECT_FALSE(outbox.HasOnlyAReport()) << "one is on its way";
  outbox.OnReportAck(1);
  EXPECT_TRUE(outbox.HasOnlyAReport());
}

TEST(Outbox, TrafficGoesLastAndOnlyTheLatest) {
  Outbox outbox;
  const auto report = [](uint64_t sent) {
    return TrafficReport{.epoch = absl::UnixEpoch(),
                         .namespaces = {{"a", {{"internet", {.sent = sent}}}}},
                         .pods = {}};
  };
  outbox.Add(report(1));
  ASSERT_TRUE(outbox.Add(Inventory{.id = 7}));
  outbox.Add(report(2));
  EXPECT_FALSE(outbox.HasOnlyAReport());
  EXPECT_EQ(outbox.Next(), AgentReply(Inventory{.id = 7}));
  EXPECT_EQ(outbox.Next(), AgentReply(report(2)));
  EXPECT_FALSE(outbox.HasNext());
}

TEST(Outbox, TrafficDoesNotWaitForAnAcknowledgement) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(AssignmentReport{.cooled = {ip::Address::V4(1)}}));
  ASSERT_TRUE(outbox.Next().has_value());
  ASSERT_TRUE(outbox.Add(AssignmentReport{.cooled = {ip::Address::V4(2)}}));
  outbox.Add(TrafficReport{.epoch = absl::UnixEpoch()});
  EXPECT_EQ(outbox.Next(), AgentReply(TrafficReport{.epoch = absl::UnixEpoch()}));
  EXPECT_FALSE(outbox.HasNext());
}

TEST(Outbox, AnswersAboutProbesKeepTheirPlace) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Add(Inventory{.id = 1}));
  ASSERT_TRUE(outbox.Add(ProbeAnswer{.id = 2}));
  EXPECT_EQ(outbox.Next(), AgentReply(Inventory{.id = 1}));
  EXPECT_EQ(outbox.Next(), AgentReply(ProbeAnswer{.id = 2}));
}

}  // namespace
}  // namespace spoke::netagent
