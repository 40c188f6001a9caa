#include "ipam-server/nodes/reachability/probe_rounds.h"

#include <map>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

ProbedNode Node(size_t number, bool v6 = false) {
  ProbedNode node{.node = {.name = fmt::format("n{:02}", number), .group = "g"},
                  .addresses = {ip::Address::V4(0x0A000000U + static_cast<uint32_t>(number))},
                  .mtu = 1500};
  if (v6) {
    node.addresses.push_back(ip::Address::Parse(fmt::format("fd00::{:x}", number + 1)).value());
  }
  return node;
}

std::vector<ProbedNode> Nodes(size_t count) {
  std::vector<ProbedNode> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(Node(i));
  return nodes;
}

// Answers as a network does in which `is_lost` says what does not come back.
template <typename IsLost>
node_api::ProbeAnswer Answer(const ProbeQuestion& question, const IsLost& is_lost) {
  node_api::ProbeAnswer answer;
  for (const node_api::ProbeTarget& target : question.request.targets) {
    const bool lost = is_lost(question.node, target.address.ToString());
    answer.results.push_back(
        {.target = target,
         .outcome = lost ? node_api::ProbeOutcome::kTimedOut : node_api::ProbeOutcome::kReached,
         .took = absl::Microseconds(250)});
  }
  return answer;
}
constexpr auto kAllArrives = [](const std::string&, const std::string&) { return false; };

TEST(ProbeRounds, EachNodeProbesAndIsProbedAsOften) {
  ProbeRounds rounds({.peers = 3, .full_every = 100});
  std::map<std::string, int> probed;
  for (const ProbeQuestion& question : rounds.Begin(Nodes(10), kNow)) {
    EXPECT_THAT(question.request.targets, SizeIs(3));
    std::set<std::string> targets;
    for (const auto& target : question.request.targets) targets.insert(target.address.ToString());
    EXPECT_THAT(targets, SizeIs(3)) << "each another";
    for (const std::string& target : targets) ++probed[target];
    for (const ProbeSample& of : question.of) EXPECT_NE(of.from, of.to);
  }
  EXPECT_THAT(probed, SizeIs(10));
  for (const auto& [target, times] : probed) EXPECT_EQ(times, 3) << target;
}

TEST(ProbeRounds, AllPairsMeetInTime) {
  ProbeRounds rounds({.peers = 3, .full_every = 2});
  std::set<std::pair<uint32_t, uint32_t>> met;
  for (int round = 0; round < 6; ++round) {
    for (const ProbeQuestion& question : rounds.Begin(Nodes(10), kNow)) {
      for (const ProbeSample& of : question.of) met.emplace(of.from, of.to);
    }
  }
  EXPECT_THAT(met, SizeIs(90));
}

TEST(ProbeRounds, FewNodesHaveFewPeers) {
  ProbeRounds rounds({});
  EXPECT_THAT(rounds.Begin({}, kNow), IsEmpty());
  EXPECT_THAT(rounds.Begin(Nodes(1), kNow), IsEmpty());
  const auto two = rounds.Begin({Node(0), Node(1)}, kNow);
  ASSERT_THAT(two, SizeIs(2));
  EXPECT_EQ(two[0].of.front().to, 1U);
  // One that has no address takes no part.
  ProbedNode none = Node(2);
  none.addresses.clear();
  EXPECT_THAT(rounds.Begin({Node(0), none}, kNow), IsEmpty());
}

TEST(ProbeRounds, NowAndThenOneIsOfFullSizeOfBothNics) {
  ProbeRounds rounds({.peers = 1, .full_every = 2});
  std::vector<ProbedNode> nodes = {Node(0), Node(1)};
  nodes[0].mtu = 9000;
  for (const auto& question : rounds.Begin(nodes, kNow)) {
    EXPECT_THAT(question.request.targets, SizeIs(1));
  }
  for (const auto& question : rounds.Begin(nodes, kNow)) {
    ASSERT_THAT(question.request.targets, SizeIs(2));
    EXPECT_EQ(question.request.targets[0].bytes, 0);
    EXPECT_EQ(question.request.targets[1].bytes, 1500);
    EXPECT_TRUE(question.of[1].full);
  }
  nodes[0].mtu = 0;
  rounds.Begin(nodes, kNow);
  for (const auto& question : rounds.Begin(nodes, kNow)) {
    EXPECT_THAT(question.request.targets, SizeIs(1)) << "nobody knows how much would pass";
  }
}

TEST(ProbeRounds, BothFamiliesHaveTheirTurn) {
  ProbeRounds rounds({.peers = 1, .full_every = 100});
  std::set<std::string> addresses;
  for (int round = 0; round < 2; ++round) {
    for (const auto& question : rounds.Begin({Node(0, true), Node(1, true), Node(2)}, kNow)) {
      for (const auto& target : question.request.targets) {
        addresses.insert(target.address.ToString());
      }
    }
  }
  EXPECT_TRUE(addresses.contains("fd00::1") || addresses.contains("fd00::2"));
  EXPECT_TRUE(addresses.contains("10.0.0.2"));
}

TEST(ProbeRounds, AnAgentCannotHaveOthersProbeWhatIsNoNodes) {
  std::vector<ProbedNode> nodes = Nodes(3);
  nodes[1].addresses.clear();
  for (const char* text : {"224.0.0.1", "255.255.255.255", "127.0.0.1", "169.254.169.254",
                           "0.0.0.0", "::", "::1", "ff02::1", "fe80::1"}) {
    nodes[1].addresses.push_back(ip::Address::Parse(text).value());
  }
  ProbeRounds rounds({.peers = 2, .full_every = 100});
  for (const ProbeQuestion& question : rounds.Begin(nodes, kNow)) {
    for (const node_api::ProbeTarget& target : question.request.targets) {
      EXPECT_TRUE(target.address == nodes[0].addresses[0] ||
                  target.address == nodes[2].addresses[0])
          << target.address.ToString();
    }
  }
  nodes[1].addresses.push_back(ip::Address::Parse("10.0.0.77").value());
  std::set<std::string> probed;
  for (const ProbeQuestion& question : rounds.Begin(nodes, kNow)) {
    for (const auto& target : question.request.targets) probed.insert(target.address.ToString());
  }
  EXPECT_TRUE(probed.contains("10.0.0.77")) << "its first that can be one";
}

TEST(ProbeRounds, WhatIsLostIsJudgedAndTheOldForgotten) {
  ProbeRounds rounds({.peers = 4, .window = absl::Minutes(1), .full_every = 100});
  const auto dead = [](const std::string& from, const std::string& to) {
    return from == "n03" || to == "10.0.0.3";
  };
  absl::Time now = kNow;
  for (int round = 0; round < 3; ++round, now += absl::Seconds(20)) {
    for (const auto& question : rounds.Begin(Nodes(10), now)) {
      rounds.Take(question, Answer(question, dead));
    }
    rounds.End(now);
  }
  ASSERT_NE(rounds.latest().Find("n03"), nullptr);
  EXPECT_NE(rounds.latest().Find("n03")->suspicion, "");
  EXPECT_GE(rounds.latest().all.probes, 3U * 10 * 4) << "what was lost was tried again";
  for (int round = 0; round < 3; ++round, now += absl::Seconds(20)) {
    for (const auto& question : rounds.Begin(Nodes(10), now)) {
      rounds.Take(question, Answer(question, kAllArrives));
    }
    rounds.End(now);
  }
  EXPECT_EQ(rounds.latest().Find("n03")->suspicion, "");
  EXPECT_EQ(rounds.latest().all.lost, 0U);
}

TEST(ProbeRounds, APairThatLostOneMeetsAgain) {
  ProbeRounds rounds({.peers = 1, .full_every = 100});
  const auto cut = [](const std::string& from, const std::string& to) {
    return from == "n03" && to == "10.0.0.5";
  };
  int times = 0;
  for (int round = 0; round < 12; ++round) {
    for (const auto& question : rounds.Begin(Nodes(10), kNow)) {
      rounds.Take(question, Answer(question, cut));
      for (const auto& target : question.request.targets) {
        times += cut(question.node, target.address.ToString()) ? 1 : 0;
      }
    }
    rounds.End(kNow);
  }
  EXPECT_GE(times, 3) << "in turn it would have been once or twice";
  ASSERT_THAT(rounds.latest().pairs, SizeIs(1));
  EXPECT_EQ(rounds.latest().pairs[0].a, "n03");
}

TEST(ProbeRounds, NodesThatComeAndGoKeepTheirSamples) {
  ProbeRounds rounds({.peers = 2, .window = absl::Minutes(1), .full_every = 100});
  absl::Time now = kNow;
  for (size_t first = 0; first < 400; first += 20, now += absl::Seconds(5)) {
    std::vector<ProbedNode> nodes;
    for (size_t i = first; i < first + 10; ++i) nodes.push_back(Node(i));
    for (const auto& question : rounds.Begin(nodes, now)) {
      rounds.Take(question, Answer(question, kAllArrives));
    }
    const Reachability& judged = rounds.End(now);
    ASSERT_NE(judged.Find(fmt::format("n{:02}", first)), nullptr);
    EXPECT_EQ(judged.Find(fmt::format("n{:02}", first))->tally.probes, 4U);
    EXPECT_LE(judged.places.size(), 200U);
  }
}

TEST(TakeAnswer, WhatWasNotTriedOrAskedSaysNothing) {
  const std::vector<ProbedNode> nodes = Nodes(3);
  const ProbeQuestion question = AskFor(nodes, 0, {1, 2}, false, false);
  node_api::ProbeAnswer answer = Answer(question, kAllArrives);
  answer.results[0].outcome = node_api::ProbeOutcome::kNotTried;
  std::vector<ProbeSample> samples;
  TakeAnswer(question, answer, samples);
  EXPECT_THAT(samples, ElementsAre(ProbeSample{.from = 0, .to = 2, .took_us = 250, .lost = false}));
  answer.results[0].outcome = node_api::ProbeOutcome::kUnreachable;
  answer.results[1].target.address = ip::Address::V4(1);
  answer.results.push_back(answer.results[0]);
  samples.clear();
  TakeAnswer(question, answer, samples);
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_TRUE(samples[0].lost);
}

}  // namespace
}  // namespace spoke::ipam
