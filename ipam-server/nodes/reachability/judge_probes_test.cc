#include <algorithm>
#include <map>
#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/nodes/reachability/reachability.h"

namespace spoke::ipam {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

// A fleet whose nodes probe each other, and what is lost between them.
class Fleet {
 public:
  explicit Fleet(size_t nodes, size_t group_size = 0) {
    for (size_t i = 0; i < nodes; ++i) {
      seen_.places.push_back(
          {.name = fmt::format("n{:04}", i),
           .group = group_size == 0 ? "" : fmt::format("rack-{}", i / group_size)});
    }
    seen_.at = kNow;
    seen_.window = absl::Minutes(3);
  }

  // Every node probes the next `peers`, `times` times; `is_lost` says what becomes of the number-th
  // probe from one to the other.
  template <typename IsLost>
  Fleet& Probe(size_t peers, size_t times, const IsLost& is_lost, bool full = false) {
    const size_t nodes = seen_.places.size();
    for (size_t time = 0; time < times; ++time) {
      for (size_t from = 0; from < nodes; ++from) {
        for (size_t k = 1; k <= peers; ++k) {
          const size_t to = (from + (time * peers + k - 1) % (nodes - 1) + 1) % nodes;
          seen_.samples.push_back({.from = static_cast<uint32_t>(from),
                                   .to = static_cast<uint32_t>(to),
                                   .took_us = 300,
                                   .lost = is_lost(from, to, count_++),
                                   .full = full});
        }
      }
    }
    return *this;
  }
  Reachability Judge(const Reachability* before = nullptr) const {
    return JudgeProbes(seen_, before);
  }

 private:
  ProbesSeen seen_;
  size_t count_ = 0;
};

std::vector<std::string> SuspectsOf(const Reachability& judged) {
  std::vector<std::string> names;
  for (const NodeReach& node : judged.nodes) {
    if (!node.suspicion.empty()) names.push_back(node.node.name);
  }
  return names;
}

// Returns whether chance takes the number-th of events that come once in `times`. The same chance
// in each run.
bool IsTaken(size_t number, size_t times) {
  uint64_t bits = (number + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  return (bits >> 33U) % times == 0;
}

constexpr auto kNothing = [](size_t, size_t, size_t) { return false; };
// What a node loses that drops every tenth packet, in or out.
auto TenthOf(size_t bad) {
  return [bad](size_t from, size_t to, size_t number) {
    return (from == bad || to == bad) && IsTaken(number, 5);
  };
}

TEST(JudgeProbes, NobodyIsSuspectedWhenAllArrives) {
  const Reachability judged = Fleet(20).Probe(5, 9, kNothing).Judge();
  EXPECT_THAT(SuspectsOf(judged), IsEmpty());
  EXPECT_THAT(judged.pairs, IsEmpty());
  EXPECT_EQ(judged.unjudged, "");
  EXPECT_EQ(judged.all,
            (ProbeTally{.probes = 20 * 5 * 9, .lost = 0, .p50_us = 300, .p99_us = 300}));
  ASSERT_THAT(judged.nodes, SizeIs(20));
  EXPECT_EQ(judged.nodes[3].tally.probes, 2U * 5 * 9);
  EXPECT_EQ(judged.nodes[3].peers, 19U);
  EXPECT_EQ(judged.nodes[3].peers_lost, 0U);
}

TEST(JudgeProbes, NothingIsSaidOfNothing) {
  const Reachability judged = JudgeProbes({}, nullptr);
  EXPECT_THAT(judged.nodes, IsEmpty());
  EXPECT_EQ(judged.unjudged, "");
  EXPECT_EQ(judged.all, ProbeTally());
}

TEST(JudgeProbes, ADeadNodeIsFoundAndNobodyElse) {
  const auto dead = [](size_t from, size_t to, size_t) { return from == 7 || to == 7; };
  for (const size_t nodes : {4U, 20U, 7500U}) {
    const Reachability judged = Fleet(nodes).Probe(3, 3, dead).Judge();
    if (nodes == 4) {
      EXPECT_THAT(SuspectsOf(judged), IsEmpty()) << "it has no node 7";
    } else {
      EXPECT_THAT(SuspectsOf(judged), ElementsAre("n0007")) << nodes;
      EXPECT_THAT(judged.Find("n0007")->suspicion, HasSubstr("18 of 18 probes"));
      EXPECT_EQ(judged.Find("n0007")->since, kNow);
    }
  }
}

TEST(JudgeProbes, OneRoundIsEnoughForADeadNode) {
  const auto dead = [](size_t from, size_t to, size_t number) {
    return (from == 7 || to == 7) && number >= 8 * 500 * 5;
  };
  EXPECT_THAT(SuspectsOf(Fleet(500).Probe(5, 9, dead).Judge()), ElementsAre("n0007"));
}

TEST(JudgeProbes, EveryTenthPacketIsEnough) {
  for (const size_t nodes : {5U, 40U, 2000U}) {
    EXPECT_THAT(SuspectsOf(Fleet(nodes).Probe(4, 9, TenthOf(2)).Judge()), ElementsAre("n0002"))
        << nodes;
  }
}

TEST(JudgeProbes, SeveralBadNodesAreAllFound) {
  const auto lost = [](size_t from, size_t to, size_t number) {
    return TenthOf(2)(from, to, number) || from == 11 || to == 11 || TenthOf(30)(from, to, number);
  };
  EXPECT_THAT(SuspectsOf(Fleet(40).Probe(5, 9, lost).Judge()),
              ElementsAre("n0002", "n0011", "n0030"));
}

TEST(JudgeProbes, NoiseAccusesNobody) {
  for (const size_t times : {10U, 100U, 1000U}) {
    const auto noise = [times](size_t, size_t, size_t number) { return IsTaken(number, times); };
    EXPECT_THAT(SuspectsOf(Fleet(7500).Probe(5, 9, noise).Judge()), IsEmpty()) << times;
  }
}

TEST(JudgeProbes, AnAgentThatLiesAccusesNobodyButItself) {
  // It says that all it sends is lost, or all that it sends to one other.
  const auto all = [](size_t from, size_t, size_t) { return from == 6; };
  EXPECT_THAT(SuspectsOf(Fleet(40).Probe(5, 9, all).Judge()), ElementsAre("n0006"));
  const auto one = [](size_t from, size_t to, size_t) { return from == 6 && to == 9; };
  EXPECT_THAT(SuspectsOf(Fleet(40).Probe(5, 9, one).Judge()), IsEmpty());
  // Two of them are no majority of anybody's peers either.
  const auto two = [](size_t from, size_t to, size_t) {
    return (from == 6 || from == 7) && to == 9;
  };
  EXPECT_THAT(SuspectsOf(Fleet(40).Probe(39, 9, two).Judge()), IsEmpty());
}

TEST(JudgeProbes, APairIsToldFromItsNodes) {
  const auto cut = [](size_t from, size_t to, size_t) {
    return (from == 3 && to == 5) || (from == 5 && to == 3);
  };
  const Reachability judged = Fleet(6).Probe(5, 9, cut).Judge();
  EXPECT_THAT(SuspectsOf(judged), IsEmpty());
  ASSERT_THAT(judged.pairs, SizeIs(1));
  EXPECT_EQ(judged.pairs[0].a, "n0003");
  EXPECT_EQ(judged.pairs[0].b, "n0005");
  EXPECT_EQ(judged.pairs[0].tally.lost, 18U);
}

TEST(JudgeProbes, OfTwoNodesNeitherIsToBlame) {
  const auto half = [](size_t, size_t, size_t number) { return number % 2 == 0; };
  const Reachability judged = Fleet(2).Probe(1, 9, half).Judge();
  EXPECT_THAT(SuspectsOf(judged), IsEmpty());
  EXPECT_THAT(judged.pairs, SizeIs(1));
}

TEST(JudgeProbes, ARackIsNamedWhenMostOfItIsSuspected) {
  const auto cut = [](size_t from, size_t to, size_t) {
    return (from / 10 == 2) != (to / 10 == 2);
  };
  const Reachability judged = Fleet(100, 10).Probe(5, 9, cut).Judge();
  EXPECT_THAT(SuspectsOf(judged), SizeIs(10));
  EXPECT_THAT(judged.Find("n0023")->suspicion, HasSubstr("10 of 10 nodes of rack-2"));
  EXPECT_EQ(judged.groups.front().tally.lost_share(), 1);
  const auto within = std::find_if(judged.groups.begin(), judged.groups.end(), [](const auto& g) {
    return g.a == "rack-2" && g.b == "rack-2";
  });
  ASSERT_NE(within, judged.groups.end());
  EXPECT_EQ(within->tally.lost, 0U);
}

TEST(JudgeProbes, WhenMostIsLostNobodyIsToBlame) {
  const Reachability judged =
      Fleet(20).Probe(5, 9, [](size_t, size_t, size_t) { return true; }).Judge();
  EXPECT_THAT(SuspectsOf(judged), IsEmpty());
  EXPECT_THAT(judged.unjudged, HasSubstr("900 of 900 probes were lost"));
}

TEST(JudgeProbes, ADeadNodeAmongThreeIsFoundThoughMostProbesAreLost) {
  const auto dead = [](size_t from, size_t to, size_t) { return from == 1 || to == 1; };
  const Reachability judged = Fleet(3).Probe(2, 9, dead).Judge();
  EXPECT_GT(judged.all.lost_share(), 0.5);
  EXPECT_THAT(SuspectsOf(judged), ElementsAre("n0001"));
  EXPECT_EQ(judged.unjudged, "");
  const auto two = [](size_t from, size_t to, size_t) { return from + to > 0 && (from | to) != 0; };
  EXPECT_THAT(Fleet(3).Probe(2, 9, two).Judge().unjudged, HasSubstr("probes were lost"));
}

TEST(JudgeProbes, APathThatIsTooNarrowIsFoundByFullSize) {
  const auto narrow = [](size_t from, size_t to, size_t) { return from == 4 || to == 4; };
  Fleet fleet(20);
  fleet.Probe(5, 9, kNothing).Probe(1, 3, narrow, true);
  const Reachability judged = fleet.Judge();
  EXPECT_THAT(SuspectsOf(judged), ElementsAre("n0004"));
  EXPECT_THAT(judged.Find("n0004")->suspicion, HasSubstr("6 of 6 probes of full size"));
}

TEST(JudgeProbes, ASuspectStaysOneUntilLittleIsLost) {
  const auto every = [](size_t share) {
    return [share](size_t from, size_t to, size_t number) {
      return (from == 2 || to == 2) && IsTaken(number, share);
    };
  };
  const Reachability first = Fleet(41).Probe(5, 9, every(5)).Judge();
  ASSERT_THAT(SuspectsOf(first), ElementsAre("n0002"));
  EXPECT_THAT(SuspectsOf(Fleet(41).Probe(5, 27, every(28)).Judge()), IsEmpty());
  Fleet later(41);
  const Reachability second = later.Probe(5, 27, every(28)).Judge(&first);
  EXPECT_THAT(SuspectsOf(second), ElementsAre("n0002"));
  EXPECT_EQ(second.Find("n0002")->since, kNow);
  EXPECT_THAT(SuspectsOf(Fleet(41).Probe(5, 9, kNothing).Judge(&second)), IsEmpty());
}

TEST(JudgeProbes, AFewProbesSayNothing) {
  const auto dead = [](size_t from, size_t to, size_t) { return from == 7 || to == 7; };
  EXPECT_THAT(SuspectsOf(Fleet(20).Probe(2, 1, dead).Judge()), IsEmpty());
}

TEST(PeersOf, TellsThoseFirstThatLostMost) {
  const auto cut = [](size_t from, size_t to, size_t) { return from == 3 && to == 5; };
  const Reachability judged = Fleet(6).Probe(5, 2, cut).Judge();
  const std::vector<Between> peers = PeersOf(judged, "n0003");
  ASSERT_THAT(peers, SizeIs(5));
  EXPECT_EQ(peers[0].b, "n0005");
  EXPECT_EQ(peers[0].tally.lost, 2U);
  EXPECT_EQ(peers[0].tally.probes, 4U);
  EXPECT_EQ(peers[1].tally.lost, 0U);
  EXPECT_THAT(PeersOf(judged, "nobody"), IsEmpty());
}

TEST(LostPairs, TellsEachPairOnce) {
  const auto cut = [](size_t from, size_t to, size_t) {
    return (from == 3 && to == 5) || (from == 5 && to == 3) || (from == 0 && to == 1);
  };
  const std::vector<Between> pairs = LostPairs(Fleet(6).Probe(5, 1, cut).Judge());
  ASSERT_THAT(pairs, SizeIs(2));
  EXPECT_EQ(pairs[0].a + " " + pairs[0].b, "n0003 n0005");
  EXPECT_EQ(pairs[0].tally.lost, 2U);
  EXPECT_EQ(pairs[1].a + " " + pairs[1].b, "n0000 n0001");
  EXPECT_EQ(pairs[1].tally.probes, 2U);
}

}  // namespace
}  // namespace spoke::ipam
