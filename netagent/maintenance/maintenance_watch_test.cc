#include "netagent/maintenance/maintenance_watch.h"

#include <utility>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;

const node_api::Maintenance kReboot{{{.id = "1", .kind = node_api::MaintenanceKind::kReboot}}};

// What a source says, and what it was asked; the watch owns the source that refers to it.
struct Script {
  absl::Mutex mutex;
  absl::StatusOr<node_api::Maintenance> says ABSL_GUARDED_BY(mutex) = node_api::Maintenance();
  absl::Status begins ABSL_GUARDED_BY(mutex);
  std::vector<std::string> begun ABSL_GUARDED_BY(mutex);
  int reads ABSL_GUARDED_BY(mutex) = 0;
};

class ScriptedSource final : public MaintenanceSource {
 public:
  explicit ScriptedSource(Script& script) : script_(script) {}
  absl::StatusOr<node_api::Maintenance> Read() override {
    const absl::MutexLock lock(&script_.mutex);
    ++script_.reads;
    return script_.says;
  }
  absl::Status Begin(const std::vector<std::string>& events) override {
    const absl::MutexLock lock(&script_.mutex);
    script_.begun.insert(script_.begun.end(), events.begin(), events.end());
    return script_.begins;
  }
  void Interrupt() override {}

 private:
  Script& script_;
};

class MaintenanceWatchTest : public testing::Test {
 protected:
  void Say(absl::StatusOr<node_api::Maintenance> says) {
    const absl::MutexLock lock(&script_.mutex);
    script_.says = std::move(says);
  }
  // Waits until the source has been asked twice more: what it said by then is known.
  void Await() {
    const absl::MutexLock lock(&script_.mutex);
    const int enough = script_.reads + 2;
    const auto asked = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(script_.mutex) {
      return script_.reads >= enough;
    };
    ASSERT_TRUE(script_.mutex.AwaitWithTimeout(absl::Condition(&asked), absl::Seconds(20)));
  }
  std::vector<std::string> begun() {
    const absl::MutexLock lock(&script_.mutex);
    return script_.begun;
  }

  testing_support::RecordingLog log_;
  Script script_;
  MaintenanceWatch watch_{std::make_unique<ScriptedSource>(script_), absl::Milliseconds(1), log_};
};

TEST_F(MaintenanceWatchTest, KnowsWhatWasSaidLast) {
  EXPECT_EQ(watch_.latest(), std::nullopt) << "nobody has been asked";
  watch_.Start();
  Await();
  EXPECT_EQ(watch_.latest(), node_api::Maintenance());
  Say(kReboot);
  Await();
  EXPECT_EQ(watch_.latest(), kReboot);
}

TEST_F(MaintenanceWatchTest, ASourceThatFailsTakesNothingBackAndIsComplainedAboutOnce) {
  Say(kReboot);
  watch_.Start();
  Await();
  Say(absl::UnavailableError("HTTP 410"));
  Await();
  Await();
  EXPECT_EQ(watch_.latest(), kReboot);
  EXPECT_EQ(log_.Count("maintenance_source_fails"), 1);
  Say(node_api::Maintenance());
  Await();
  EXPECT_EQ(watch_.latest(), node_api::Maintenance());
  EXPECT_EQ(log_.Count("maintenance_source_answers"), 1);
}

TEST_F(MaintenanceWatchTest, AgreesWhenAskedTo) {
  watch_.Start();
  Await();
  EXPECT_TRUE(begun().empty());
  watch_.Begin({"1", "2"});
  Await();
  EXPECT_THAT(begun(), ElementsAre("1", "2"));
  EXPECT_EQ(log_.Count("maintenance_start_agreed"), 1);
  {
    const absl::MutexLock lock(&script_.mutex);
    script_.begins = absl::FailedPreconditionError("HTTP 400");
  }
  watch_.Begin({"3"});
  Await();
  EXPECT_EQ(log_.Count("maintenance_start_failed"), 1);
}

}  // namespace
}  // namespace spoke::netagent
