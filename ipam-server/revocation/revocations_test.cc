#include "ipam-server/revocation/revocations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/revocation/denied_record.h"
#include "ipam-server/store/testing/memory_store.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RevocationsTest : public testing::Test {
 protected:
  std::unique_ptr<Revocations> Open() {
    auto opened = Revocations::Open(
        store_, clock_, [this](uint64_t session, const absl::Status&) { cut_.push_back(session); });
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  Denial Stolen() const { return {.reason = "stolen", .by = "alice", .since = clock_.Now()}; }

  MemoryStore store_;
  os::SimClock clock_;
  std::vector<uint64_t> cut_;
  const DeniedName node_{DeniedKind::kNode, "node-1"};
};

TEST_F(RevocationsTest, CutsOpenSessionsAndRefusesNewOnes) {
  const auto revocations = Open();
  ASSERT_TRUE(revocations->Admit(1, {.node = "node-1", .machines = {"vm-1"}}).ok());
  ASSERT_TRUE(revocations->Admit(2, {.node = "node-2", .machines = {"vm-2"}}).ok());
  ASSERT_TRUE(revocations->Admit(3, {.node = "node-1", .machines = {"vm-3"}}).ok());
  revocations->Forget(3);
  EXPECT_EQ(revocations->Revoke(node_, Stolen()).value(), 1U);
  EXPECT_THAT(cut_, ElementsAre(1U));
  EXPECT_TRUE(absl::IsPermissionDenied(revocations->Admit(4, {.node = "node-1"})));
  EXPECT_TRUE(absl::IsPermissionDenied(revocations->Check({.node = "node-1"})));
  EXPECT_TRUE(revocations->Check({.node = "node-2"}).ok());
}

TEST_F(RevocationsTest, TheNextServerKnowsOfIt) {
  EXPECT_EQ(Open()->Revoke(node_, Stolen()).value(), 0U);
  const auto next = Open();
  EXPECT_TRUE(absl::IsPermissionDenied(next->Check({.node = "node-1"})));
  EXPECT_EQ(next->List().at(node_).reason, "stolen");
  EXPECT_EQ(next->List().at(node_).by, "alice");
  EXPECT_EQ(next->List().at(node_).until, absl::InfiniteFuture());
  ASSERT_TRUE(
      next->Revoke(node_, {.reason = "again", .until = clock_.Now() + absl::Hours(1)}).ok());
  EXPECT_EQ(Open()->List().at(node_).until, clock_.Now() + absl::Hours(1));
  ASSERT_TRUE(next->Unrevoke(node_).ok());
  EXPECT_TRUE(Open()->List().empty());
  EXPECT_TRUE(absl::IsNotFound(next->Unrevoke(node_)));
}

TEST_F(RevocationsTest, WhatCannotBeStoredIsNotSaidToBe) {
  const auto revocations = Open();
  store_.FailNextCommits(1, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(revocations->Revoke(node_, Stolen()).status()));
  EXPECT_TRUE(revocations->Check({.node = "node-1"}).ok());
  // A write that has happened, and whose answer was lost, is found with the next call.
  ASSERT_TRUE(revocations->Admit(1, {.node = "node-1"}).ok());
  store_.LoseNextAnswers(1);
  EXPECT_TRUE(absl::IsUnavailable(revocations->Revoke(node_, Stolen()).status()));
  EXPECT_EQ(revocations->Revoke(node_, Stolen()).value(), 1U);
  EXPECT_THAT(cut_, ElementsAre(1U));
}

TEST_F(RevocationsTest, CutsSessionsWhoseCertificateHasEnded) {
  const auto revocations = Open();
  const absl::Time end = clock_.Now() + absl::Hours(1);
  ASSERT_TRUE(revocations->Admit(1, {.node = "node-1", .not_after = end}).ok());
  ASSERT_TRUE(revocations->Admit(2, {.node = "node-2"}).ok());
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(revocations->CutEnded(), 0U) << "its maker's clock may be behind";
  clock_.Advance(absl::Minutes(5));
  EXPECT_EQ(revocations->CutEnded(), 1U);
  EXPECT_THAT(cut_, ElementsAre(1U));
}

TEST_F(RevocationsTest, ADamagedRecordIsNamed) {
  const std::vector<CompareAndPut> batch = {{.key = "denied/node/a_b", .value = ""}};
  ASSERT_TRUE(store_.Commit(batch).ok());
  const auto refused = Revocations::Open(store_, clock_, nullptr);
  EXPECT_TRUE(absl::IsDataLoss(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("denied/node/a_b"));
}

TEST(DeniedRecord, IsReadAsItWasWritten) {
  const DeniedName machine{DeniedKind::kMachine, "/subscriptions/s/machines/7"};
  EXPECT_EQ(DeniedKeyOf(machine), "denied/machine//subscriptions/s/machines/7");
  EXPECT_EQ(ParseDeniedKey(DeniedKeyOf(machine)).value(), machine);
  for (const char* key : {"denied/", "denied/node", "denied/node/", "denied/pod/a", "node/a",
                          "denied/node/UP", "denied/serial/xy"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseDeniedKey(key).status())) << key;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeDenial("\xff").status()));
}

}  // namespace
}  // namespace spoke::ipam
