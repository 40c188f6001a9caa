#include "netagent/connections/established_cuts.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/connections/testing/fake_conntrack_table.h"
#include "netagent/traffic/traffic_fixture.h"

namespace spoke::netagent {
namespace {

using Connection = FakeConntrackTable::Connection;

Connection Plain(const std::string& from, const std::string& to) {
  return {A(from), A(to), A(to), A(from)};
}

// Runs over the rules that a Traffic makes of policies.
class EstablishedCutsTest : public TrafficTest {
 protected:
  EstablishedCutsTest() {
    cuts_.emplace(EstablishedCuts::Edges{
        .table = table_, .clock = clock_, .log = log_, .post = [this](std::function<void()> work) {
          const absl::MutexLock lock(&mutex_);
          posted_.push_back(std::move(work));
        }});
    EXPECT_TRUE(traffic_->Start(Policy{}, {Pod("a", 7, "10.0.0.5")}).ok());
  }
  ~EstablishedCutsTest() override { cuts_.reset(); }

  // Waits for the end of the look that is under way, as the loop does.
  void EndLook() {
    std::vector<std::function<void()>> work;
    {
      const absl::MutexLock lock(&mutex_, absl::Condition(
                                              +[](EstablishedCutsTest* self) {
                                                self->mutex_.AssertHeld();
                                                return !self->posted_.empty();
                                              },
                                              this));
      work.swap(posted_);
    }
    for (const auto& piece : work) piece();
  }

  FakeConntrackTable table_;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  std::optional<EstablishedCuts> cuts_;
};

TEST_F(EstablishedCutsTest, WhatThePolicyInForceForbidsIsEnded) {
  table_.Add(Plain("10.0.0.5", "10.9.0.1"));
  table_.Add(Plain("10.0.0.5", "192.0.2.1"));
  ASSERT_TRUE(traffic_->OnPolicy(Example()).ok());
  cuts_->Cut(traffic_->Cuts());
  EndLook();
  EXPECT_THAT(table_.connections(), testing::ElementsAre(Plain("10.0.0.5", "192.0.2.1")));
  EXPECT_EQ(cuts_->counts().peer_spoke, 1U);
  EXPECT_EQ(log_.Count("connections_cut"), 1);
  EXPECT_EQ(cuts_->NextWake(), std::nullopt) << "nothing is left to do";
}

TEST_F(EstablishedCutsTest, CountingSaysTheSameAndEndsNothing) {
  table_.Add(Plain("10.0.0.5", "10.9.0.1"));
  table_.Add(Plain("10.0.0.5", "192.0.2.1"));
  std::optional<CutsByRule> counted;
  cuts_->Count(traffic_->CutsOf(Example()).value(),
               [&](const absl::StatusOr<CutsByRule>& count) { counted = count.value(); });
  EXPECT_FALSE(counted.has_value()) << "later";
  EndLook();
  const node_api::CutFlow ends{.pod_namespace = "web",
                               .pod_name = "a",
                               .address = A("10.0.0.5"),
                               .far_address = A("10.9.0.1"),
                               .peer_spoke = true};
  EXPECT_EQ(counted, (CutsByRule{.connections = 2, .peer_spoke = 1, .flows = {ends}}));
  EXPECT_EQ(table_.connections().size(), 2U);
  EXPECT_EQ(traffic_->policy().version, 0U) << "nor is it in force";
}

TEST_F(EstablishedCutsTest, WhatIsLeftIsTriedAgainAfterAPause) {
  table_.Add(Plain("10.0.0.5", "10.9.0.1"));
  table_.Fail(absl::UnavailableError("busy"));
  ASSERT_TRUE(traffic_->OnPolicy(Example()).ok());
  cuts_->Cut(traffic_->Cuts());
  EndLook();
  EXPECT_EQ(cuts_->NextWake(), clock_.Now() + EstablishedCuts::kRetryPause);
  cuts_->Tick();
  EXPECT_EQ(table_.cuts(), 1) << "not before";
  clock_.Advance(EstablishedCuts::kRetryPause);
  cuts_->Tick();
  EndLook();
  EXPECT_EQ(cuts_->counts().failed, 2U);
  EXPECT_EQ(log_.Count("connections_not_cut"), 1) << "said once";
  table_.Fail(absl::OkStatus());
  clock_.Advance(EstablishedCuts::kRetryPause);
  cuts_->Tick();
  EndLook();
  EXPECT_TRUE(table_.connections().empty());
  EXPECT_EQ(cuts_->NextWake(), std::nullopt);
}

TEST_F(EstablishedCutsTest, ALaterPolicyTakesThePlaceOfOneThatIsBeingCut) {
  table_.Add(Plain("10.0.0.5", "10.8.0.1"));
  table_.Add(Plain("10.0.0.5", "10.9.0.1"));
  cuts_->Cut(traffic_->CutsOf(Example()).value());
  cuts_->Cut(
      traffic_->CutsOf(WithNetwork({.cluster = {}, .peer_spoke = policy::Blocks({"10.8.0.0/16"})}))
          .value());
  EndLook();  // Ends the first, which was under way.
  EndLook();  // Ends the second.
  EXPECT_TRUE(table_.connections().empty());
  EXPECT_EQ(table_.cuts(), 2);
}

TEST_F(EstablishedCutsTest, WithoutAnythingToCutTheTableIsReadOnceAtMost) {
  cuts_->Cut(CutRules());  // An agent before this one may have cut something.
  EndLook();
  EXPECT_EQ(table_.cuts(), 1);
  cuts_->Cut(CutRules());
  cuts_->Tick();
  EXPECT_EQ(table_.cuts(), 1);
}

TEST_F(EstablishedCutsTest, CountsThatWaitAreBounded) {
  int answered = 0;
  int refused = 0;
  const size_t asked = EstablishedCuts::kMaxWaiting + 3;
  for (size_t i = 0; i < asked; ++i) {
    cuts_->Count(CutRules(), [&](const absl::StatusOr<CutsByRule>& count) {
      ++(count.ok() ? answered : refused);
    });
  }
  while (answered + refused < static_cast<int>(asked)) EndLook();
  EXPECT_EQ(refused, 2) << "one was under way, and so many waited";
}

TEST_F(EstablishedCutsTest, RulesThatAreNotKnownCutNothing) {
  Traffic other(Traffic::Settings{},
                Traffic::Edges{.tables = tables_, .routes = routes_, .clock = clock_, .log = log_});
  EXPECT_TRUE(other.Cuts().empty()) << "it has not begun";
  ASSERT_TRUE(traffic_->OnPolicy(Example()).ok());
  EXPECT_FALSE(traffic_->Cuts().empty());
  Begin();
  ASSERT_TRUE(traffic_->Start(std::nullopt, {}).ok());
  ASSERT_TRUE(traffic_->holds_unknown_rules());
  EXPECT_TRUE(traffic_->Cuts().empty());
}

}  // namespace
}  // namespace spoke::netagent
