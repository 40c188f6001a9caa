#include "ipam-server/ledger/address_state.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using enum LeaseState;
using enum LeaseEvent;

constexpr LeaseState kStates[] = {kFree, kAttaching, kAttached, kDetaching};
constexpr LeaseEvent kEvents[] = {kAssign,     kCloudAttached, kCloudRefused, kAgentAgreed,
                                  kAgentLends, kCloudDetached, kNodeGone};

TEST(LeaseState, TheWholeLifeOfAnAddress) {
  EXPECT_EQ(Next(kFree, kAssign), kAttaching);
  EXPECT_EQ(Next(kAttaching, kCloudAttached), kAttached);
  EXPECT_EQ(Next(kAttached, kAgentAgreed), kDetaching);
  EXPECT_EQ(Next(kDetaching, kCloudDetached), kFree);
}

TEST(LeaseState, WhatIsLentStaysOrComesBack) {
  EXPECT_EQ(Next(kDetaching, kAgentLends), kAttaching);
  EXPECT_EQ(Next(kAttached, kAgentLends), kAttached);
  EXPECT_FALSE(Next(kFree, kAgentLends).has_value());
}

TEST(LeaseState, ARepeatedEventHasTheEffectOfOne) {
  for (const LeaseState state : kStates) {
    for (const LeaseEvent event : kEvents) {
      const auto once = Next(state, event);
      if (!once) continue;
      // kAssign is the exception by design: a freed address may be assigned again.
      const auto twice = Next(*once, event);
      if (event == kCloudRefused) continue;  // A refusal of nothing does not apply.
      EXPECT_EQ(twice, once) << static_cast<int>(state) << " " << static_cast<int>(event);
    }
  }
}

TEST(LeaseState, AVanishedNodeFreesWhateverItHad) {
  for (const LeaseState state : kStates) EXPECT_EQ(Next(state, kNodeGone), kFree);
}

TEST(LeaseState, NamesTellTheUseOfAnAttachedAddressOnly) {
  EXPECT_EQ(NameOf(kAttached, Use::kLent), "lent");
  EXPECT_EQ(NameOf(kAttached, Use::kCooling), "cooling");
  EXPECT_EQ(NameOf(kAttaching, Use::kLent), "attaching");
}

}  // namespace
}  // namespace spoke::ipam
