#include "ipam-server/authority/roots.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kLife = absl::Hours(24);
const absl::Duration kStage = kLife + kRenewalGrace + kClockSkew;

Root Signing(const std::string& name) {
  return {.certificate = name, .key = name + " key", .since = kNow, .longest_life = kLife};
}

std::string StatesOf(const Roots& roots) {
  std::string text;
  for (const Root& root : roots) {
    text += root.certificate + ":" + std::string(NameOf(root.state)) + " ";
  }
  return text;
}

TEST(Roots, OneSignsAndOnlyWhatIsNotRetiredHasAKey) {
  EXPECT_TRUE(CheckRoots({Signing("a")}).ok());
  EXPECT_FALSE(CheckRoots({}).ok());
  EXPECT_FALSE(CheckRoots({Signing("a"), Signing("b")}).ok());
  Root root = Signing("b");
  root.state = RootState::kRetired;
  EXPECT_FALSE(CheckRoots({Signing("a"), root}).ok()) << "a retired root with a key";
  root.key = "";
  EXPECT_TRUE(CheckRoots({Signing("a"), root}).ok());
  EXPECT_FALSE(CheckRoots({root}).ok());
  root.state = RootState::kNext;
  EXPECT_FALSE(CheckRoots({Signing("a"), root}).ok());
  root = Signing("");
  EXPECT_FALSE(CheckRoots({root}).ok());
}

TEST(Roots, ARotationGoesThroughItsStagesAtTheirTimes) {
  Roots roots = {Signing("a")};
  EXPECT_EQ(PlanRotation(roots, kNow + kStage * 100), roots) << "nobody has asked for one";
  roots = BeginRotation(roots, "b", "b key", kNow).value();
  EXPECT_EQ(StatesOf(roots), "a:signing b:next ");
  EXPECT_EQ(TrustedPem(roots), "a\nb\n");
  EXPECT_EQ(PlanRotation(roots, kNow + kStage - absl::Seconds(1)), roots);
  roots = PlanRotation(roots, kNow + kStage);
  EXPECT_EQ(StatesOf(roots), "a:retired b:signing ");
  EXPECT_TRUE(CheckRoots(roots).ok());
  EXPECT_EQ(roots[0].key, "");
  EXPECT_EQ(TrustedPem(roots), "b\na\n");
  EXPECT_EQ(PlanRotation(roots, kNow + kStage * 2 - absl::Seconds(1)), roots);
  roots = PlanRotation(roots, kNow + kStage * 2);
  EXPECT_EQ(StatesOf(roots), "b:signing ");
}

TEST(Roots, OneRotationAtATime) {
  Roots roots = BeginRotation({Signing("a")}, "b", "b key", kNow).value();
  const auto second = BeginRotation(roots, "c", "c key", kNow);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("one root is next until 2027-01-2"));
  roots = PlanRotation(roots, kNow + kStage);
  EXPECT_FALSE(BeginRotation(roots, "c", "c key", kNow + kStage).ok());
}

TEST(Roots, AClockThatIsSetAheadSkipsNoStage) {
  const absl::Time far = kNow + kStage * 1000;
  const Roots roots = PlanRotation(BeginRotation({Signing("a")}, "b", "k", kNow).value(), far);
  EXPECT_EQ(StatesOf(roots), "a:retired b:signing ");
  EXPECT_EQ(PlanRotation(roots, far + kStage - absl::Seconds(1)), roots);
  EXPECT_EQ(PlanRotation(roots, kNow), roots) << "and back";
}

TEST(Roots, ALongerLifeMakesStagesLonger) {
  Roots roots = WithLife({Signing("a")}, kLife * 30);
  EXPECT_EQ(WithLife(roots, kLife), roots) << "what was signed with the longer one is still there";
  roots = BeginRotation(roots, "b", "k", kNow).value();
  EXPECT_EQ(PlanRotation(roots, kNow + kStage), roots);
  EXPECT_EQ(StatesOf(PlanRotation(roots, kNow + kLife * 30 + kRenewalGrace + kClockSkew)),
            "a:retired b:signing ");
}

}  // namespace
}  // namespace spoke::ipam
