#include "netagent/links/deletion_plan.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr ip::Address kAddress = ip::Address::V4(0x0A000107);
constexpr ip::Address kOther = ip::Address::V4(0x0A000108);

DeferredLink Link(size_t number, std::vector<ip::Address> addresses = {}) {
  return {"spk" + std::to_string(number), std::move(addresses)};
}

void AddLinks(DeletionPlan& plan, size_t count, absl::Time now = kStart) {
  for (size_t i = 0; i < count; ++i) plan.Add(Link(plan.size()), now);
}

TEST(DeletionPlan, AnEmptyPlanHasNothingToDo) {
  DeletionPlan plan;
  EXPECT_EQ(plan.NextDue(), std::nullopt);
  EXPECT_EQ(plan.TakeDue(absl::InfiniteFuture()), std::nullopt);
  EXPECT_EQ(plan.size(), 0U);
}

TEST(DeletionPlan, AFewLinksWaitForMoreButNotForEver) {
  DeletionPlan plan;
  const uint32_t group = plan.NextGroup();
  plan.Add(Link(0), kStart);
  EXPECT_EQ(plan.NextGroup(), group);
  plan.Add(Link(1), kStart + absl::Milliseconds(200));
  EXPECT_EQ(plan.NextDue(), kStart + DeletionPlan::kMaxWait);
  EXPECT_EQ(plan.TakeDue(kStart + absl::Milliseconds(249)), std::nullopt);
  const auto batch = plan.TakeDue(kStart + DeletionPlan::kMaxWait);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->group, group);
  EXPECT_EQ(batch->links, (std::vector<DeferredLink>{Link(0), Link(1)}));
}

TEST(DeletionPlan, AFullBatchIsDueAtOnceAndTheNextLinkGoesIntoAnotherGroup) {
  DeletionPlan plan;
  const uint32_t group = plan.NextGroup();
  AddLinks(plan, DeletionPlan::kMaxBatch);
  EXPECT_NE(plan.NextGroup(), group);
  EXPECT_EQ(plan.NextDue(), kStart);
  EXPECT_EQ(plan.TakeDue(kStart)->links.size(), DeletionPlan::kMaxBatch);
}

TEST(DeletionPlan, NothingJoinsABatchThatIsUnderWay) {
  DeletionPlan plan;
  AddLinks(plan, 1);
  const uint32_t group = plan.TakeDue(kStart + DeletionPlan::kMaxWait)->group;
  EXPECT_NE(plan.NextGroup(), group);
  EXPECT_TRUE(plan.Has("spk0"));
  plan.Add(Link(1), kStart);
  // Only one batch is under way at a time.
  EXPECT_EQ(plan.NextDue(), std::nullopt);
  EXPECT_EQ(plan.TakeDue(absl::InfiniteFuture()), std::nullopt);
  plan.Finish(/*gone=*/true, kStart + absl::Seconds(1));
  EXPECT_FALSE(plan.Has("spk0"));
  EXPECT_TRUE(plan.Has("spk1"));
  EXPECT_EQ(plan.size(), 1U);
}

TEST(DeletionPlan, APauseFollowsEachBatch) {
  DeletionPlan plan;
  AddLinks(plan, 2 * DeletionPlan::kMaxBatch);
  ASSERT_TRUE(plan.TakeDue(kStart).has_value());
  const absl::Time done = kStart + absl::Milliseconds(20);
  plan.Finish(/*gone=*/true, done);
  EXPECT_EQ(plan.NextDue(), done + DeletionPlan::kPause);
  EXPECT_TRUE(plan.TakeDue(done + DeletionPlan::kPause).has_value());
}

TEST(DeletionPlan, WhatSomebodyWaitsForIsDueAtOnceAndNoMoreThanThat) {
  DeletionPlan plan;
  AddLinks(plan, DeletionPlan::kMaxBatch + 1);
  plan.Hurry();
  ASSERT_TRUE(plan.TakeDue(kStart).has_value());
  plan.Finish(/*gone=*/true, kStart);
  ASSERT_TRUE(plan.TakeDue(kStart).has_value());
  AddLinks(plan, 1);
  plan.Finish(/*gone=*/true, kStart);
  EXPECT_EQ(plan.NextDue(), kStart + DeletionPlan::kMaxWait);
}

TEST(DeletionPlan, ARefusedBatchIsTriedAgainLaterUnderItsGroup) {
  DeletionPlan plan;
  AddLinks(plan, 2);
  plan.Hurry();
  const auto batch = plan.TakeDue(kStart);
  plan.Finish(/*gone=*/false, kStart);
  EXPECT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan.NextDue(), kStart + DeletionPlan::kRetry);
  EXPECT_EQ(plan.TakeDue(kStart + DeletionPlan::kRetry), batch);
}

TEST(DeletionPlan, NoTwoBatchesShareAGroupHoweverManyWait) {
  DeletionPlan plan;
  std::set<uint32_t> in_use;
  uint32_t last = 0;
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    while (!plan.full()) {
      const uint32_t group = plan.NextGroup();
      EXPECT_TRUE(claims::IsDeletionGroup(group));
      EXPECT_TRUE(group == last || in_use.insert(group).second);
      last = group;
      plan.Add(Link(plan.size()), kStart);
    }
    plan.Hurry();
    const auto batch = plan.TakeDue(kStart);
    ASSERT_TRUE(batch.has_value());
    // Every third batch is refused at first.
    plan.Finish(/*gone=*/round % 3 != 0, kStart);
    if (round % 3 == 0) {
      ASSERT_EQ(plan.TakeDue(kStart + DeletionPlan::kRetry), batch);
      plan.Finish(/*gone=*/true, kStart);
    }
    in_use.erase(batch->group);
    if (last == batch->group) last = 0;
  }
}

TEST(DeletionPlan, KnowsWhatANewAttachmentClashesWith) {
  DeletionPlan plan;
  AttachSpec spec;
  spec.host_link = "spk7";
  spec.addresses = {kAddress};
  EXPECT_FALSE(plan.Clashes(spec));
  plan.Add(Link(1, {kOther}), kStart);
  EXPECT_FALSE(plan.Clashes(spec));
  plan.Add(Link(2, {kOther, kAddress}), kStart);
  EXPECT_TRUE(plan.Clashes(spec));
  spec.addresses = {};
  EXPECT_FALSE(plan.Clashes(spec));
  plan.Add(Link(7), kStart);
  EXPECT_TRUE(plan.Clashes(spec));
  // The links also clash while they are being unregistered.
  ASSERT_TRUE(plan.TakeDue(absl::InfiniteFuture()).has_value());
  EXPECT_TRUE(plan.Clashes(spec));
  plan.Finish(/*gone=*/true, kStart);
  EXPECT_FALSE(plan.Clashes(spec));
}

}  // namespace
}  // namespace spoke::netagent
