// The promises of NeighbourWatch, as tests. Each implementation's test file instantiates them with
// a factory for a world of its own: a fake, or fresh namespaces of the real kernel.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/verification/neighbour_watch.h"

namespace spoke::netagent {

// A node, and another machine in its NIC's network.
class NeighbourWatchWorld {
 public:
  virtual ~NeighbourWatchWorld() = default;
  virtual NeighbourWatch& watch() = 0;
  virtual ip::MacAddress other_mac() const = 0;
  // Gives the other machine the address, for which it answers.
  virtual void Hold(const ip::Address& address) = 0;
  // Makes it say so unasked (IPv4: an ARP announcement; IPv6: an advertisement to all nodes), and
  // ask whether somebody has the address, to take it.
  virtual void Announce(const ip::Address& address) = 0;
  virtual void Probe(const ip::Address& address) = 0;
  // Sends a frame of the node itself back to it, which says that the node has the address.
  virtual void Reflect(const ip::Address& address) = 0;
  // Whether the other machine has been told, since it was last asked, that the node's NIC has the
  // IPv4 address. Waits a while for it.
  virtual bool WasTold(const ip::Address& address) = 0;

  static constexpr ip::Address kHeld4 = ip::Address::V4(0x0A000163);  // 10.0.1.99
  static constexpr ip::Address kFree4 = ip::Address::V4(0x0A000164);
  static constexpr ip::Address kHeld6 = ip::Address::V6(0xFD00'0000'0000'0001, 0x99);
  static constexpr ip::Address kFree6 = ip::Address::V6(0xFD00'0000'0000'0001, 0x9A);
};

struct NeighbourWatchWorldFactory {
  std::string name;
  // Makes a world; null where this machine cannot have one (no right to make namespaces).
  std::function<std::unique_ptr<NeighbourWatchWorld>()> make;
};

class NeighbourWatchContract : public testing::TestWithParam<NeighbourWatchWorldFactory> {
 protected:
  using World = NeighbourWatchWorld;

  void SetUp() override {
    world_ = GetParam().make();
    if (world_ != nullptr) return;
    // A skip must not pass for a success.
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
    GTEST_SKIP() << "cannot make network namespaces";
  }

  NeighbourWatch& watch() { return world_->watch(); }
  void Ask(const ip::Address& address) {
    const absl::Status status = watch().Ask({address, std::nullopt});
    ASSERT_TRUE(status.ok()) << status;
  }
  NeighbourClaim Has(const ip::Address& address) const {
    return {.address = address, .mac = world_->other_mac(), .source = world_->other_mac()};
  }
  // Returns everything up to what the other machine says of `last`.
  std::vector<NeighbourClaim> HearUntil(const ip::Address& last) {
    std::vector<NeighbourClaim> heard;
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (absl::Now() < deadline) {
      const auto more = watch().Take();
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok()) return heard;
      for (const NeighbourClaim& claim : *more) {
        heard.push_back(claim);
        if (claim.address == last) return heard;
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    ADD_FAILURE() << "nothing was heard of " << last.ToString();
    return heard;
  }

  std::unique_ptr<NeighbourWatchWorld> world_;
};

TEST_P(NeighbourWatchContract, WhoHasAnAddressAnswersAndForAFreeOneNobodyDoes) {
  world_->Hold(World::kHeld4);
  Ask(World::kFree4);
  Ask(World::kHeld4);
  EXPECT_THAT(HearUntil(World::kHeld4), testing::ElementsAre(Has(World::kHeld4)));
}

TEST_P(NeighbourWatchContract, SoItIsWithIpv6) {
  world_->Hold(World::kHeld6);
  Ask(World::kFree6);
  Ask(World::kHeld6);
  EXPECT_THAT(HearUntil(World::kHeld6), testing::ElementsAre(Has(World::kHeld6)));
}

TEST_P(NeighbourWatchContract, TheFirstQuestionAboutIpv6LosesNoAnswer) {
  world_->Hold(World::kHeld4);
  Ask(World::kHeld4);
  Ask(World::kFree6);
  EXPECT_THAT(HearUntil(World::kHeld4), testing::ElementsAre(Has(World::kHeld4)));
}

TEST_P(NeighbourWatchContract, WhatIsAnnouncedUnaskedIsHeardInBothFamilies) {
  for (const ip::Address& address : {World::kFree4, World::kFree6, World::kFree4}) {
    ASSERT_TRUE(watch().Listen({address, std::nullopt}).ok());
  }
  world_->Announce(World::kHeld4);
  EXPECT_THAT(HearUntil(World::kHeld4), testing::ElementsAre(Has(World::kHeld4)));
  world_->Announce(World::kHeld6);
  EXPECT_THAT(HearUntil(World::kHeld6), testing::ElementsAre(Has(World::kHeld6)));
}

TEST_P(NeighbourWatchContract, AnotherMachinesQuestionIsHeard) {
  Ask(World::kFree4);
  world_->Probe(World::kFree4);
  NeighbourClaim asks = Has(World::kFree4);
  asks.kind = NeighbourClaim::Kind::kAsks;
  EXPECT_THAT(HearUntil(World::kFree4), testing::ElementsAre(asks));
}

TEST_P(NeighbourWatchContract, TheNodesOwnFramesAreNotHeard) {
  Ask(World::kFree4);
  Ask(World::kFree6);
  world_->Reflect(World::kFree4);
  world_->Reflect(World::kFree6);
  world_->Announce(World::kHeld6);
  world_->Announce(World::kHeld4);
  for (const NeighbourClaim& claim : HearUntil(World::kHeld4)) {
    EXPECT_EQ(claim, Has(claim.address));
    EXPECT_NE(claim.address, World::kFree4);
    EXPECT_NE(claim.address, World::kFree6);
  }
}

TEST_P(NeighbourWatchContract, WhoAsksIsToldAndNobodyElse) {
  Ask(World::kFree4);
  world_->Probe(World::kFree4);
  HearUntil(World::kFree4);
  ASSERT_TRUE(watch().Answer({World::kFree4, std::nullopt}, world_->other_mac()).ok());
  EXPECT_TRUE(world_->WasTold(World::kFree4));
  EXPECT_EQ(watch().Answer({World::kFree6, std::nullopt}, world_->other_mac()).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace spoke::netagent
