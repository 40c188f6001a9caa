#include "ipam-server/ledger/address_state.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using enum AddressState;
using enum AddressEvent;

constexpr AddressState kStates[] = {kFree, kAttaching, kAttached, kDetaching};
constexpr AddressEvent kEvents[] = {kAssign,       kCloudAttached, kCloudRefused, kAgentAgreed,
                                    kAgentAssigns, kCloudDetached, kNodeGone};

TEST(AddressState, TheWholeLifeOfAnAddress) {
  EXPECT_EQ(Next(kFree, kAssign), kAttaching);
  EXPECT_EQ(Next(kAttaching, kCloudAttached), kAttached);
  EXPECT_EQ(Next(kAttached, kAgentAgreed), kDetaching);
  EXPECT_EQ(Next(kDetaching, kCloudDetached), kFree);
}

TEST(AddressState, WhatIsAssignedStaysOrComesBack) {
  EXPECT_EQ(Next(kDetaching, kAgentAssigns), kAttaching);
  EXPECT_EQ(Next(kAttached, kAgentAssigns), kAttached);
  EXPECT_FALSE(Next(kFree, kAgentAssigns).has_value());
}

TEST(AddressState, ARepeatedEventHasTheEffectOfOne) {
  for (const AddressState state : kStates) {
    for (const AddressEvent event : kEvents) {
      const auto once = Next(state, event);
      if (!once) continue;
      // kAssign is the exception by design: a freed address may be assigned again.
      const auto twice = Next(*once, event);
      if (event == kCloudRefused) continue;  // A refusal of nothing does not apply.
      EXPECT_EQ(twice, once) << static_cast<int>(state) << " " << static_cast<int>(event);
    }
  }
}

TEST(AddressState, AVanishedNodeFreesWhateverItHad) {
  for (const AddressState state : kStates) EXPECT_EQ(Next(state, kNodeGone), kFree);
}

TEST(AddressState, NamesTellTheUseOfAnAttachedAddressOnly) {
  EXPECT_EQ(NameOf(kAttached, Use::kInUse), "in_use");
  EXPECT_EQ(NameOf(kAttached, Use::kCooldown), "cooldown");
  EXPECT_EQ(NameOf(kAttaching, Use::kInUse), "attaching");
}

}  // namespace
}  // namespace spoke::ipam
