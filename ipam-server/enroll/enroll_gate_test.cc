#include "ipam-server/enroll/enroll_gate.h"

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

TEST(EnrollGate, LetsSoManyInAtOnce) {
  EnrollGate gate({.at_once = 2});
  EXPECT_TRUE(gate.Enter("a", kNow).ok());
  EXPECT_TRUE(gate.Enter("b", kNow).ok());
  const absl::Status full = gate.Enter("c", kNow);
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), testing::HasSubstr("2 agents enroll at the moment"));
  gate.Leave("a");
  EXPECT_TRUE(gate.Enter("c", kNow).ok());
}

TEST(EnrollGate, OnePeerDoesNotTakeThePlacesOfAll) {
  EnrollGate gate({.at_once = 16, .at_once_of_peer = 4});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(gate.Enter("stranger", kNow).ok());
  const absl::Status more = gate.Enter("stranger", kNow);
  EXPECT_TRUE(absl::IsResourceExhausted(more));
  EXPECT_THAT(std::string(more.message()), testing::HasSubstr("stranger has 4 calls under way"));
  EXPECT_TRUE(gate.Enter("agent", kNow).ok());
  gate.Leave("stranger");
  EXPECT_TRUE(gate.Enter("stranger", kNow).ok());
}

TEST(EnrollGate, LimitsEachPeerAndEachNode) {
  EnrollGate gate({.per_peer = {.burst = 1, .refill = absl::Seconds(30)},
                   .per_node = {.burst = 1, .refill = absl::Minutes(2)}});
  EXPECT_TRUE(gate.Enter("a", kNow).ok());
  gate.Leave("a");
  const absl::Status peer = gate.Enter("a", kNow + absl::Milliseconds(500));
  EXPECT_THAT(std::string(peer.message()), testing::HasSubstr("a asks too often; try again in 30"));
  EXPECT_TRUE(gate.Sign("node-1", kNow).ok());
  EXPECT_TRUE(gate.Sign("node-2", kNow).ok());
  const absl::Status node = gate.Sign("node-1", kNow);
  EXPECT_TRUE(absl::IsResourceExhausted(node));
  EXPECT_THAT(std::string(node.message()), testing::HasSubstr("the next one in 120 s"));
}

}  // namespace
}  // namespace spoke::ipam
