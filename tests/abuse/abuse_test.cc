// Tests what one hostile peer can do to the port that serves anybody: little, and nothing to
// others. The real port over TLS, attacked by another program from another address of this machine,
// while an honest agent enrolls.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/testing/memory_store.h"
#include "tests/crash/child_process.h"
#include "tests/support/enrolling_agent.h"
#include "tests/support/recording_log.h"
#include "tests/support/served_enrollment.h"
#include "tests/support/temp_dir.h"

// This gives back what is freed, so that memory says what is held; the sanitizer would keep 256
// MiB.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=1"; }

namespace spoke {
namespace {

constexpr size_t kMostGrowth = 32U << 20U;  // The most growth of resident memory, in bytes.
constexpr absl::Duration kAttack = absl::Seconds(4);
constexpr absl::Duration kWithin = absl::Seconds(1);
constexpr const char* kHostile = "127.0.0.66";

size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Abuse : public testing::Test {
 protected:
  Abuse() { EXPECT_TRUE(Enroll().ok()); }

  // An agent without a certificate gets one, from 127.0.0.1.
  absl::Status Enroll() {
    agent_.Forget();
    return agent_.Enroll().status();
  }

  absl::StatusOr<crash::ChildProcess> StartAttack(const std::string& kind) const {
    return crash::ChildProcess::Start({std::string(SPOKE_SOURCE_DIR) + "/tests/abuse/attack.py",
                                       kind, fmt::format("{}", enrollment_.port()), kHostile,
                                       fmt::format("{}", absl::ToInt64Seconds(kAttack))},
                                      dir_.File("attack"));
  }

  // Attacks for kAttack, during which an honest agent enrolls three times: whoever shares this
  // machine may hold one of them up, the attacker none.
  void Attack(const std::string& kind, double most_cpu_seconds) {
    const size_t resident = ResidentBytes();
    const double cpu = CpuSeconds();
    auto attacker = StartAttack(kind);
    ASSERT_TRUE(attacker.ok()) << attacker.status();
    std::vector<absl::Duration> took;
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1000));
      const absl::Time began = absl::Now();
      const absl::Status enrolled = Enroll();
      EXPECT_TRUE(enrolled.ok()) << enrolled;
      took.push_back(absl::Now() - began);
    }
    std::sort(took.begin(), took.end());
    EXPECT_LT(took[1], kWithin);
    EXPECT_EQ(attacker->Wait(), 0);
    const size_t now = ResidentBytes();
    const size_t grown = now > resident ? now - resident : 0;
    const double spent = CpuSeconds() - cpu;
    told_ = os::ReadFile(dir_.File("attack")).value_or("");
    fmt::print("{}: memory grew by {:.1f} MiB, {:.2f} s of processor time, enrolled in {}; {}\n",
               kind, static_cast<double>(grown) / (1 << 20), spent, absl::FormatDuration(took[1]),
               told_);
    EXPECT_LT(grown, kMostGrowth) << told_;
    EXPECT_LT(spent, most_cpu_seconds) << told_;
    const rpc::RefusalCounts refusals = enrollment_.refusals();
    EXPECT_GT(std::accumulate(refusals.begin(), refusals.end(), uint64_t{0}), 0U);
    EXPECT_LE(log_.Count("connections_refused"), 1);
    EXPECT_TRUE(Enroll().ok());
  }

  std::string told_;  // What the attacker has said.
  const testing_support::TempDir dir_;
  os::RealClock clock_;
  testing_support::RecordingLog log_;
  ipam::MemoryStore store_;
  const std::unique_ptr<ipam::Revocations> revocations_ =
      ipam::Revocations::Open(store_, clock_, [](uint64_t, const absl::Status&) {}).value();
  testing_support::ServedEnrollment enrollment_{
      {}, {.revocations = *revocations_, .clock = clock_, .log = log_}};
  testing_support::EnrollingAgent agent_{
      {fmt::format("127.0.0.1:{}", enrollment_.port())}, enrollment_.AuthorityPem(), clock_, log_};
};

TEST_F(Abuse, RapidResetsOfOnePeerCostLittle) { Attack("rapid-reset", 2); }
TEST_F(Abuse, AHeaderWithoutAnEndCostsLittle) {
  Attack("endless-header", 2);
  // gRPC copies all of such a header for each piece that arrives.
  EXPECT_THAT(told_, testing::Not(testing::HasSubstr("\"connected\": 1,")))
      << "it is cut while it sends";
}
TEST_F(Abuse, HeadersThatNobodyKnowsEndNothing) {
  auto attacker = StartAttack("wrong-headers");
  ASSERT_TRUE(attacker.ok()) << attacker.status();
  EXPECT_EQ(attacker->Wait(), 0);
  told_ = os::ReadFile(dir_.File("attack")).value_or("");
  EXPECT_THAT(told_, testing::Not(testing::HasSubstr("\"connected\": 0")));
  EXPECT_TRUE(Enroll().ok()) << told_;
}
TEST_F(Abuse, IdleConnectionsOfOnePeerKeepNobodyOut) { Attack("idle", 2); }
TEST_F(Abuse, AHandshakeThatNeverEndsKeepsNobodyOut) { Attack("silent", 1); }
TEST_F(Abuse, SlowConnectionsKeepNobodyOut) { Attack("slow", 2); }

}  // namespace
}  // namespace spoke
