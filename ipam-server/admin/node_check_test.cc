#include "ipam-server/admin/node_check.h"

#include <algorithm>
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

std::vector<ProbedNode> Nodes(size_t count) {
  std::vector<ProbedNode> nodes;
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back({.node = {.name = fmt::format("n{:03}", i)},
                     .addresses = {ip::Address::V4(0x0A000000U + static_cast<uint32_t>(i))},
                     .mtu = 1500});
  }
  return nodes;
}

class PlanCheckTest : public testing::TestWithParam<size_t> {};

TEST_P(PlanCheckTest, EveryPairMeetsBothWaysAndOnceInFullSize) {
  const size_t count = GetParam();
  std::set<std::pair<uint32_t, uint32_t>> small;
  std::set<std::pair<uint32_t, uint32_t>> full;
  for (const CheckPart& part : PlanCheck(Nodes(count), absl::Seconds(2))) {
    for (const auto& [node, question] : part) {
      EXPECT_EQ(question.node, node);
      EXPECT_EQ(question.request.timeout, absl::Seconds(2));
      EXPECT_LE(question.request.targets.size(), size_t{node_api::kMaxProbeTargets});
      ASSERT_EQ(question.request.targets.size(), question.of.size());
      for (const ProbeSample& of : question.of) {
        if (of.full) {
          EXPECT_TRUE(full.emplace(std::min(of.from, of.to), std::max(of.from, of.to)).second);
        } else {
          EXPECT_TRUE(small.emplace(of.from, of.to).second);
        }
      }
    }
  }
  EXPECT_THAT(small, SizeIs(count * (count - 1)));
  EXPECT_THAT(full, SizeIs(count * (count - 1) / 2));
}

INSTANTIATE_TEST_SUITE_P(Counts, PlanCheckTest, testing::Values(2, 3, 4, 7, 64, 65, 66, 130));

TEST(PlanCheck, OneNodeHasNobody) {
  EXPECT_THAT(PlanCheck(Nodes(1), absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(PlanCheck({}, absl::Seconds(1)), IsEmpty());
}

TEST(JobName, IsTheBeginningOfItsPodsNames) {
  const JobName job = ParseJobName("ml/train-7").value();
  EXPECT_TRUE(job.Has("ml", "train-7"));
  EXPECT_TRUE(job.Has("ml", "train-7-worker-0"));
  EXPECT_FALSE(job.Has("ml", "train-70"));
  EXPECT_FALSE(job.Has("ml", "train"));
  EXPECT_FALSE(job.Has("web", "train-7"));
  for (const char* text : {"", "train", "/train", "ml/", "ml/a/b"}) {
    EXPECT_EQ(ParseJobName(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(DescribeCheck, TellsSizesApartAndPairsThatLost) {
  ProbesSeen seen;
  for (const ProbedNode& node : Nodes(3)) seen.places.push_back(node.node);
  seen.samples = {{.from = 0, .to = 1, .took_us = 100},
                  {.from = 1, .to = 0, .lost = true},
                  {.from = 0, .to = 2, .took_us = 300},
                  {.from = 0, .to = 1, .lost = true, .full = true}};
  const v1::CheckNodesResponse out =
      DescribeCheck(JudgeProbes(std::move(seen), nullptr), {"n009: away"});
  EXPECT_TRUE(out.over());
  EXPECT_EQ(out.small().probes(), 3U);
  EXPECT_EQ(out.small().lost(), 1U);
  EXPECT_EQ(out.full().probes(), 1U);
  EXPECT_EQ(out.full().lost(), 1U);
  EXPECT_EQ(out.nodes_size(), 3);
  ASSERT_EQ(out.pairs_size(), 1);
  EXPECT_EQ(out.pairs(0).a() + " " + out.pairs(0).b(), "n000 n001");
  EXPECT_EQ(out.pairs(0).tally().lost(), 2U);
  EXPECT_EQ(out.pairs_lost(), 1U);
  EXPECT_THAT(out.unheard(), ElementsAre("n009: away"));
}

TEST(DescribeReachability, TellsSuspectsAndTheNodeThatIsAskedFor) {
  ProbesSeen seen{.at = absl::FromUnixSeconds(50), .window = absl::Seconds(60)};
  for (const ProbedNode& node : Nodes(6)) seen.places.push_back(node.node);
  for (uint32_t from = 0; from < 6; ++from) {
    for (uint32_t to = 0; to < 6; ++to) {
      if (from == to) continue;
      seen.samples.push_back(
          {.from = from, .to = to, .took_us = 100, .lost = from == 4 || to == 4});
    }
  }
  const Reachability judged = JudgeProbes(std::move(seen), nullptr);
  const auto all = DescribeReachability(judged, "").value();
  ASSERT_EQ(all.suspects_size(), 1);
  EXPECT_EQ(all.suspects(0).name(), "n004");
  EXPECT_EQ(all.suspects(0).since_unix_ms(), 50'000);
  EXPECT_EQ(all.window_s(), 60U);
  EXPECT_EQ(all.peers_size(), 0);
  const auto one = DescribeReachability(judged, "n001").value();
  EXPECT_EQ(one.node().name(), "n001");
  EXPECT_EQ(one.peers_size(), 5);
  EXPECT_EQ(one.peers(0).b(), "n004") << "the one that lost most";
  EXPECT_EQ(DescribeReachability(judged, "n9").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::ipam
