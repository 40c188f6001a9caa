#include "netagent/connections/connection_counting.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/connections/testing/fake_conntrack_table.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ip::Address kPod = ip::Address::V4(0x0A010005);
constexpr ip::Address kOther = ip::Address::V4(0x0A010006);
constexpr ip::Address kFar = ip::Address::V4(0xC0000201);
constexpr ip::Address kNode = ip::Address::V4(0x0A000004);
constexpr uint8_t kUdp = 17;

class ConnectionCountingTest : public testing::Test {
 protected:
  ConnectionCountingTest()
      : counting_(
            {.table = table_,
             .clock = clock_,
             .log = log_,
             .post =
                 [this](std::function<void()> work) {
                   const absl::MutexLock lock(&mutex_);
                   posted_.push_back(std::move(work));
                 },
             .read_use = [this]() -> absl::StatusOr<TableUse> {
               ++glances_;
               return TableUse{.entries = table_.connections().size(), .limit = 1'000};
             },
             .pods =
                 [] {
                   return std::vector<PodConnections>{
                       {.link = 7, .addresses = {kPod}, .pod_namespace = "a", .pod_name = "p"},
                       {.link = 8, .addresses = {kOther}, .pod_namespace = "b", .pod_name = "q"}};
                 },
             .shares = [this] { return shares_; },
             .on_over = [this](const OverShare& over) { over_.push_back(over); }}) {}

  void Open(const ip::Address& pod, int connections, bool translated = false) {
    for (int i = 0; i < connections; ++i) table_.Add({pod, kFar, kFar, translated ? kNode : pod});
  }
  // Moves to the next glance, and waits for the pass that it begins.
  void Pass() {
    const size_t before = table_.counts();
    for (int glance = 0; glance < 100 && !under_way(); ++glance) {
      clock_.Advance(std::max(counting_.NextWake() - clock_.Now(), absl::ZeroDuration()));
      counting_.Tick();
    }
    ASSERT_TRUE(under_way());
    std::function<void()> work;
    {
      const absl::MutexLock lock(&mutex_, absl::Condition(
                                              +[](ConnectionCountingTest* self) {
                                                self->mutex_.AssertHeld();
                                                return !self->posted_.empty();
                                              },
                                              this));
      work = std::move(posted_.front());
      posted_.clear();
    }
    work();
    EXPECT_EQ(table_.counts(), before + 1);
  }
  bool under_way() const { return counting_.NextWake() == absl::InfiniteFuture(); }

  FakeConntrackTable table_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  std::optional<ConnectionShares> shares_ = ConnectionShares{.connections = 100, .ports = 40};
  std::vector<OverShare> over_;
  int glances_ = 0;
  absl::Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  ConnectionCounting counting_;
};

TEST_F(ConnectionCountingTest, AnEmptyTableCostsAGlance) {
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(TallyPasses::kGlance);
    counting_.Tick();
  }
  EXPECT_EQ(glances_, 20);
  EXPECT_EQ(table_.counts(), 0U);
  EXPECT_THAT(counting_.pods(), IsEmpty());
}

TEST_F(ConnectionCountingTest, SaysWhatEachPodHas) {
  Open(kPod, 3);
  Open(kPod, 2, /*translated=*/true);
  Open(kOther, 1);
  Pass();
  ASSERT_EQ(counting_.pods().size(), 2U);
  EXPECT_EQ(counting_.pods()[0].pod_name, "p");
  EXPECT_EQ(counting_.pods()[0].connections, 5U);
  EXPECT_EQ(counting_.pods()[0].translated_ports, 2U);
  EXPECT_EQ(counting_.pods()[1].connections, 1U);
  EXPECT_THAT(over_, IsEmpty());
}

TEST_F(ConnectionCountingTest, WhoHasMoreThanAShareIsHeldBackUntilItHasLess) {
  Open(kPod, 101);
  Open(kOther, 41, /*translated=*/true);
  Pass();
  const OverShare both = {.links = {7}, .with_target = {{8, kFar, kUdp}}};
  EXPECT_THAT(over_, ElementsAre(both));
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("namespace=a pod=p connections=101"),
                                        HasSubstr("pod=q connections=41 translated_ports=41")));
  EXPECT_EQ(log_.Count("pod_over_share"), 2);
  // Nothing has changed, and nobody is told again.
  Pass();
  EXPECT_THAT(over_, ElementsAre(both));
  static_cast<void>(table_.DeleteConnectionsOf({kPod, kOther}));
  Pass();
  EXPECT_THAT(over_, ElementsAre(both, OverShare()));
}

TEST_F(ConnectionCountingTest, WithoutSharesNobodyIsHeldBack) {
  shares_.reset();
  Open(kPod, 500);
  Pass();
  EXPECT_EQ(counting_.pods()[0].connections, 500U);
  EXPECT_THAT(over_, IsEmpty());
}

TEST_F(ConnectionCountingTest, ACountThatFailsIsSaidOnceAndChangesNothing) {
  Open(kPod, 101);
  Pass();
  table_.Fail(absl::UnavailableError("the list changed"));
  Pass();
  Pass();
  EXPECT_EQ(over_.size(), 1U);
  EXPECT_EQ(counting_.pods()[0].connections, 101U);
  EXPECT_EQ(log_.Count("connections_not_counted"), 1);
}

}  // namespace
}  // namespace spoke::netagent
