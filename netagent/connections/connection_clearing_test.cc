#include "netagent/connections/connection_clearing.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "netagent/attach/attachments_fixture.h"
#include "netagent/connections/testing/fake_conntrack_table.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ip::Address kFirst = ip::Address::V4(0x0A010005);
constexpr ip::Address kSecond = ip::Address::V4(0x0A010006);
constexpr ip::Address kFar = ip::Address::V4(0xC0000201);

// A table whose calls can be held up.
class SlowTable final : public ConntrackTable {
 public:
  Outcome DeleteConnectionsOf(const AddressSet& addresses) override {
    const absl::MutexLock lock(&mutex_, absl::Condition(
                                            +[](SlowTable* self) {
                                              self->mutex_.AssertHeld();
                                              return !self->held_;
                                            },
                                            this));
    return fake.DeleteConnectionsOf(addresses);
  }
  absl::Status Count(ConnectionTally& tally) override { return fake.Count(tally); }
  CutOutcome Cut(const CutRules& rules, Act act) override { return fake.Cut(rules, act); }
  void Hold(bool held) {
    const absl::MutexLock lock(&mutex_);
    held_ = held;
  }

  FakeConntrackTable fake;

 private:
  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

class ConnectionClearingTest : public AttachmentsFixture {
 protected:
  ConnectionClearingTest() {
    settings_.clearing_required = true;
    Begin();
    node_api::DesiredState desired{.version = 1, .full = true};
    for (const ip::Address& address : {kFirst, kSecond}) {
      desired.added.push_back({.range = ip::Prefix::Host(address), .pool = "default"});
    }
    EXPECT_TRUE(attachments_->OnDesired(desired).ok());
  }
  // Begins a new agent.
  void Begin() {
    clearing_.reset();
    Restart();
    clearing_.emplace(settings_.cooldown,
                      ConnectionClearing::Edges{.table = table_,
                                                .clock = clock_,
                                                .log = log_,
                                                .post =
                                                    [this](std::function<void()> work) {
                                                      const absl::MutexLock lock(&mutex_);
                                                      posted_.push_back(std::move(work));
                                                    }},
                      *attachments_);
  }
  absl::Status Add(const std::string& container) {
    return AttachmentsFixture::Add({.key = {container, "eth0"}}).status();
  }
  void Del(const std::string& container) {
    ASSERT_TRUE(attachments_->Del({container, "eth0"}).ok());
    clearing_->Tick();
  }
  // Waits for the end of the pass that is under way, as the loop does.
  void EndPass() {
    std::vector<std::function<void()>> work;
    {
      const absl::MutexLock lock(&mutex_, absl::Condition(
                                              +[](ConnectionClearingTest* self) {
                                                self->mutex_.AssertHeld();
                                                return !self->posted_.empty();
                                              },
                                              this));
      work = std::exchange(posted_, {});
    }
    for (const auto& each : work) each();
    attachments_->Tick();
  }
  // Moves to when the next pass is due, and begins it.
  void Step() {
    const auto wake = clearing_->NextWake();
    ASSERT_NE(wake, std::nullopt);
    clock_.Advance(std::max(*wake - clock_.Now(), absl::ZeroDuration()));
    clearing_->Tick();
  }

  SlowTable table_;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  std::optional<ConnectionClearing> clearing_;
};

TEST_F(ConnectionClearingTest, TheNextPodNeverMeetsItsPredecessorsConnections) {
  ASSERT_TRUE(Add("aaa").ok());
  ASSERT_TRUE(Add("bbb").ok());
  table_.fake.Add({kFirst, kFar, kFar, kFirst});
  table_.fake.Add({kSecond, kFar, kFar, kSecond});
  table_.Hold(true);
  Del("aaa");
  // The cooldown's time is over, and the kernel is not done.
  clock_.Advance(absl::Hours(1));
  attachments_->Tick();
  EXPECT_TRUE(absl::IsResourceExhausted(Add("ccc")));
  table_.Hold(false);
  EndPass();
  EXPECT_THAT(table_.fake.connections(),
              ElementsAre(FakeConntrackTable::Connection{kSecond, kFar, kFar, kSecond}));
  EXPECT_TRUE(Add("ccc").ok());
  EXPECT_EQ(clearing_->counts().passes, 1U);
  EXPECT_EQ(clearing_->counts().deleted, 1U);
}

TEST_F(ConnectionClearingTest, AnAddTakesAnotherAddressWhileAPassIsUnderWay) {
  ASSERT_TRUE(Add("aaa").ok());
  table_.Hold(true);
  Del("aaa");
  EXPECT_TRUE(Add("bbb").ok());
  EXPECT_EQ(clearing_->NextWake(), std::nullopt) << "nothing to wake for before its end";
  table_.Hold(false);
  EndPass();
}

TEST_F(ConnectionClearingTest, AClearedAddressStaysInCooldown) {
  ASSERT_TRUE(Add("aaa").ok());
  ASSERT_TRUE(Add("bbb").ok());
  Del("aaa");
  EndPass();
  EXPECT_EQ(clearing_->counts().waiting, 0U);
  EXPECT_FALSE(Add("ccc").ok());
  clock_.Advance(settings_.cooldown);
  attachments_->Tick();
  EXPECT_TRUE(Add("ccc").ok());
}

TEST_F(ConnectionClearingTest, OnePassServesAllThatEndMeanwhile) {
  ASSERT_TRUE(Add("aaa").ok());
  ASSERT_TRUE(Add("bbb").ok());
  Del("aaa");
  EndPass();
  const absl::Time ended = clock_.Now();
  Del("bbb");
  clearing_->Tick();
  EXPECT_EQ(table_.fake.asked().size(), 1U);
  Step();
  EXPECT_GE(clock_.Now() - ended, ConnectionPasses::kShortestPause);
  EndPass();
  EXPECT_THAT(table_.fake.asked(), ElementsAre(ElementsAre(kFirst), ElementsAre(kSecond)));
  EXPECT_EQ(clearing_->NextWake(), std::nullopt);
}

TEST_F(ConnectionClearingTest, WhatCannotBeDeletedStaysInCooldownAndIsTriedAgainAndSaidOnce) {
  ASSERT_TRUE(Add("aaa").ok());
  ASSERT_TRUE(Add("bbb").ok());
  table_.fake.Fail(absl::PermissionDeniedError("not allowed"));
  Del("aaa");
  EndPass();
  for (int i = 0; i < 3; ++i) {
    Step();
    EndPass();
  }
  clock_.Advance(absl::Hours(1));
  attachments_->Tick();
  EXPECT_FALSE(Add("ccc").ok());
  EXPECT_EQ(clearing_->counts().passes, 4U);
  EXPECT_EQ(clearing_->counts().failed, 4U);
  EXPECT_EQ(clearing_->counts().waiting, 1U);
  EXPECT_EQ(log_.Count("connections_not_deleted"), 1);
  EXPECT_THAT(log_.lines(), testing::Contains(HasSubstr("not allowed")));
  table_.fake.Fail(absl::OkStatus());
  Step();
  EndPass();
  EXPECT_EQ(log_.Count("connections_deleted"), 1);
  EXPECT_TRUE(Add("ccc").ok());
}

TEST_F(ConnectionClearingTest, OneThatIsLeftKeepsNoOtherFromItsEnd) {
  ASSERT_TRUE(Add("aaa").ok());
  ASSERT_TRUE(Add("bbb").ok());
  table_.fake.Add({kFirst, kFar, kFar, kFirst});
  table_.fake.Keep({kFirst});
  ASSERT_TRUE(attachments_->Del({"aaa", "eth0"}).ok());
  Del("bbb");
  EndPass();
  EXPECT_THAT(attachments_->assignments().Uncleared(), ElementsAre(kFirst));
  clock_.Advance(settings_.cooldown);
  attachments_->Tick();
  EXPECT_THAT(server_.reports.back().cooled, ElementsAre(kSecond));
}

TEST_F(ConnectionClearingTest, AnAgentThatFollowsAnotherClearsWhatIsInCooldownOnceMore) {
  ASSERT_TRUE(Add("aaa").ok());
  ASSERT_TRUE(attachments_->Del({"aaa", "eth0"}).ok());
  clock_.Advance(absl::Hours(1));
  Begin();
  EXPECT_THAT(attachments_->assignments().Uncleared(), ElementsAre(kFirst));
  clearing_->Tick();
  EndPass();
  EXPECT_THAT(attachments_->assignments().Uncleared(), IsEmpty());
  EXPECT_THAT(attachments_->assignments().Cooldown(), IsEmpty());
}

TEST_F(ConnectionClearingTest, WithNothingInCooldownTheTableIsLeftAlone) {
  ASSERT_TRUE(Add("aaa").ok());
  clearing_->Tick();
  EXPECT_EQ(clearing_->NextWake(), std::nullopt);
  EXPECT_THAT(table_.fake.asked(), IsEmpty());
}

}  // namespace
}  // namespace spoke::netagent
