#include "netagent/attach/lost_dels.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr netns::Trace kBefore{
    .inode = 100, .cookie = 7, .directory_device = 24, .directory_inode = 5};
const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kAfter = absl::Minutes(5);
const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};

enum class Fate { kGone, kThere, kUnknown };

struct FateCase {
  std::string name;
  netns::Trace before;
  absl::StatusOr<netns::Trace> now;
  Fate want;
};

netns::Trace With(netns::Trace trace, uint64_t inode, uint64_t cookie) {
  trace.inode = inode;
  trace.cookie = cookie;
  return trace;
}

class IsNetnsGoneTest : public testing::TestWithParam<FateCase> {};

TEST_P(IsNetnsGoneTest, OnlyWhatIsProved) {
  const auto gone = IsNetnsGone(GetParam().before, GetParam().now);
  if (GetParam().want == Fate::kUnknown) {
    EXPECT_FALSE(gone.ok());
    EXPECT_FALSE(gone.status().message().empty()) << "it says why";
  } else {
    ASSERT_TRUE(gone.ok()) << gone.status();
    EXPECT_EQ(*gone, GetParam().want == Fate::kGone);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, IsNetnsGoneTest,
    testing::Values(
        FateCase{"NothingAtThePath", kBefore, With(kBefore, 0, 0), Fate::kGone},
        FateCase{"StillThere", kBefore, kBefore, Fate::kThere},
        FateCase{"AnotherNamespace", kBefore, With(kBefore, 101, 8), Fate::kGone},
        FateCase{"AnotherNamespaceOfTheSameNumber", kBefore, With(kBefore, 100, 8), Fate::kGone},
        FateCase{"TheSameByItsCookie", kBefore, With(kBefore, 101, 7), Fate::kThere},
        FateCase{"AnotherNumberWithoutCookies", With(kBefore, 100, 0), With(kBefore, 101, 0),
                 Fate::kGone},
        FateCase{"TheSameNumberWithoutCookies", With(kBefore, 100, 0), With(kBefore, 100, 0),
                 Fate::kThere},
        FateCase{"TheSameNumberAndACookieOfOneAlone", With(kBefore, 100, 0), kBefore, Fate::kThere},
        FateCase{"NothingWasKnown", netns::Trace(), With(kBefore, 0, 0), Fate::kUnknown},
        FateCase{"AnotherDirectory", kBefore,
                 netns::Trace{.directory_device = 24, .directory_inode = 6}, Fate::kUnknown},
        FateCase{"AnotherFileSystem", kBefore,
                 netns::Trace{.directory_device = 25, .directory_inode = 5}, Fate::kUnknown},
        FateCase{"NoDirectory", kBefore, netns::Trace(), Fate::kUnknown},
        FateCase{"AnotherNamespaceInAnotherDirectory", kBefore,
                 netns::Trace{.inode = 101, .directory_device = 24, .directory_inode = 6},
                 Fate::kUnknown},
        FateCase{"CannotLook", kBefore, absl::PermissionDeniedError("no"), Fate::kUnknown}),
    [](const auto& test) { return test.param.name; });

LostDels::Candidate Gone(const AttachmentKey& key, uint64_t generation = 1) {
  return {key, generation, true};
}
LostDels::Candidate There(const AttachmentKey& key) { return {key, 1, false}; }
LostDels::Candidate Unknown(const AttachmentKey& key) {
  return {key, 1, absl::FailedPreconditionError("cannot be seen")};
}

TEST(LostDels, IsLostOnceItHasBeenGoneForLongEnough) {
  LostDels lost(kAfter);
  EXPECT_THAT(lost.Look({Gone(kPodA)}, kNow).lost, IsEmpty());
  EXPECT_THAT(lost.Look({Gone(kPodA)}, kNow + kAfter - absl::Seconds(1)).lost, IsEmpty());
  EXPECT_THAT(lost.Look({Gone(kPodA), Gone(kPodB)}, kNow + kAfter).lost, ElementsAre(kPodA));
  EXPECT_THAT(lost.Look({Gone(kPodA), Gone(kPodB)}, kNow + 2 * kAfter).lost,
              ElementsAre(kPodA, kPodB))
      << "until it is released";
}

TEST(LostDels, WhateverIsSeenAgainMeanwhileBeginsAnew) {
  const std::vector<std::vector<LostDels::Candidate>> cases = {
      {}, {There(kPodA)}, {Unknown(kPodA)}, {Gone(kPodA, 2)}};
  for (const auto& between : cases) {
    LostDels lost(kAfter);
    EXPECT_THAT(lost.Look({Gone(kPodA)}, kNow).lost, IsEmpty());
    EXPECT_THAT(lost.Look(between, kNow + absl::Minutes(1)).lost, IsEmpty());
    EXPECT_THAT(lost.Look({Gone(kPodA)}, kNow + absl::Minutes(2)).lost, IsEmpty());
    EXPECT_THAT(lost.Look({Gone(kPodA)}, kNow + kAfter).lost, IsEmpty());
    EXPECT_THAT(lost.Look({Gone(kPodA)}, kNow + absl::Minutes(2) + kAfter).lost,
                ElementsAre(kPodA));
  }
}

TEST(LostDels, AnotherAttachmentOfTheSameKeyHasATimeOfItsOwn) {
  LostDels lost(kAfter);
  EXPECT_THAT(lost.Look({Gone(kPodA, 1)}, kNow).lost, IsEmpty());
  EXPECT_THAT(lost.Look({Gone(kPodA, 2)}, kNow + kAfter).lost, IsEmpty());
}

TEST(LostDels, APodThatHasLostItsLinkAloneKeepsItsAddress) {
  LostDels lost(kAfter);
  for (int i = 0; i < 100; ++i) {
    const auto verdict = lost.Look({There(kPodA)}, kNow + i * kAfter);
    EXPECT_THAT(verdict.lost, IsEmpty());
    EXPECT_THAT(verdict.unproved, IsEmpty());
  }
}

TEST(LostDels, WhatCannotBeProvedIsNeverLostAndSaidOnce) {
  LostDels lost(kAfter);
  EXPECT_THAT(lost.Look({Unknown(kPodA)}, kNow).unproved, IsEmpty());
  const auto verdict = lost.Look({Unknown(kPodA)}, kNow + kAfter);
  EXPECT_THAT(verdict.unproved, ElementsAre(kPodA));
  EXPECT_THAT(verdict.lost, IsEmpty());
  for (int i = 2; i < 100; ++i) {
    const auto again = lost.Look({Unknown(kPodA)}, kNow + i * kAfter);
    EXPECT_THAT(again.lost, IsEmpty());
    EXPECT_THAT(again.unproved, IsEmpty());
  }
}

}  // namespace
}  // namespace spoke::netagent
