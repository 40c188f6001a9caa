#include "admin-cli/pool/rank_order.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RankedPod PodAt(const std::string& address, const std::string& node, const std::string& name) {
  return {.address = ip::Address::Parse(address).value(), .node = node, .pod_name = name};
}

std::vector<std::string> Sorted(std::vector<RankedPod> pods) {
  SortByRank(pods);
  std::vector<std::string> addresses;
  for (const RankedPod& pod : pods) addresses.push_back(pod.address.ToString());
  return addresses;
}

TEST(SortByRank, PodsOfAStatefulSetHaveTheirNumber) {
  EXPECT_THAT(Sorted({PodAt("10.1.0.4", "node1", "train-10"), PodAt("10.1.0.5", "node1", "train-9"),
                      PodAt("10.1.0.6", "node2", "train-0")}),
              ElementsAre("10.1.0.6", "10.1.0.5", "10.1.0.4"));
}

TEST(SortByRank, PodsOfAnIndexedJobHaveTheirIndex) {
  EXPECT_THAT(
      Sorted({PodAt("10.1.0.4", "node1", "train-7-2-x7k2p"),
              PodAt("10.1.0.5", "node1", "train-7-1-9bcdf"), PodAt("10.1.0.6", "node2", "t-0-z")}),
      ElementsAre("10.1.0.6", "10.1.0.5", "10.1.0.4"));
}

TEST(SortByRank, OthersGoByNodeAndAddress) {
  const std::vector<std::string> want = {"10.1.0.9", "10.1.0.10", "10.1.0.4"};
  EXPECT_EQ(Sorted({PodAt("10.1.0.4", "node10", "train-a"), PodAt("10.1.0.10", "node9", "train-b"),
                    PodAt("10.1.0.9", "node9", "train-c")}),
            want);
  EXPECT_EQ(Sorted({PodAt("10.1.0.4", "node10", "train-0"), PodAt("10.1.0.10", "node9", "train-1"),
                    PodAt("10.1.0.9", "node9", "other-1")}),
            want)
      << "an index that two have is none";
  EXPECT_EQ(Sorted({PodAt("10.1.0.4", "node10", "0"), PodAt("10.1.0.10", "node9", "1"),
                    PodAt("10.1.0.9", "node9", "")}),
            want);
}

TEST(SortByRank, NumbersOfAnyLengthAreNumbers) {
  EXPECT_THAT(
      Sorted({PodAt("10.1.0.4", "n99999999999999999999999", "a"), PodAt("10.1.0.5", "n007", "b"),
              PodAt("10.1.0.6", "n", "p-99999999999999999999"), PodAt("10.1.0.7", "n7", "c")}),
      ElementsAre("10.1.0.6", "10.1.0.5", "10.1.0.7", "10.1.0.4"));
}

TEST(SortByRank, NobodyIsNoMistake) { EXPECT_THAT(Sorted({}), IsEmpty()); }

}  // namespace
}  // namespace spoke::ctl
