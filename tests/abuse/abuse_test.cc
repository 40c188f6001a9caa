// Tests what one hostile peer can do to the port that serves anybody: little, and nothing to
// others. The real port over TLS, attacked by another program from another address of this machine,
// while an honest agent enrolls.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
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
#include "ipam-server/enroll/enrollment.h"
#include "ipam-server/enroll/fake_api_server_for_test.h"
#include "ipam-server/store/memory_store.h"
#include "netagent/enroll/enroll_call.h"
#include "netagent/enroll/enroller.h"
#include "tests/crash/child_process.h"
#include "tests/support/recording_log.h"
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
  Abuse() {
    cluster_.cluster().AddToken("good",
                                {.authenticated = true,
                                 .user = "system:serviceaccount:spoke-system:spoke-netagent",
                                 .audiences = {"spoke-ipam-server"},
                                 .pod_name = "agent-1",
                                 .pod_uid = "uid-1"});
    cluster_.cluster().AddPod({.k8s_namespace = "spoke-system",
                               .name = "agent-1",
                               .uid = "uid-1",
                               .node_name = "node-1",
                               .service_account = "spoke-netagent"});
    cluster_.cluster().AddNode({.name = "node-1", .provider_id = "azure:///m/7"});
    auto opened =
        ipam::Enrollment::Open({.address = "127.0.0.1:0",
                                .files = {.ca = dir_.File("ca/ca.pem"),
                                          .certificate = dir_.File("ca/server.pem"),
                                          .key = dir_.File("ca/server.key")},
                                .directory = dir_.File("ca"),
                                .server_names = {"spoke-ipam-server", "127.0.0.1"},
                                .rules = {.audience = "spoke-ipam-server",
                                          .k8s_namespace = "",
                                          .service_account = "spoke-netagent"},
                                .access = cluster_.access()},
                               {.revocations = *revocations_, .clock = clock_, .log = log_});
    EXPECT_TRUE(opened.ok()) << opened.status();
    enrollment_ = *std::move(opened);
    const absl::Status serving = enrollment_->Serve();
    EXPECT_TRUE(serving.ok()) << serving;
    EXPECT_TRUE(Enroll().ok());
  }

  // An agent without a certificate gets one, from 127.0.0.1.
  absl::Status Enroll() {
    std::filesystem::remove(dir_.File("tls/node.pem"));
    EXPECT_TRUE(os::WriteFileAtomic(dir_.File("token"), "good\n", os::Durability::kVisible).ok());
    netagent::EnrollCall call({.servers = {fmt::format("127.0.0.1:{}", enrollment_->port())},
                               .server_name = "spoke-ipam-server",
                               .ca_file = dir_.File("ca/ca.pem")});
    netagent::Enroller enroller(
        {.files = {.ca = dir_.File("tls/roots.pem"),
                   .certificate = dir_.File("tls/node.pem"),
                   .key = dir_.File("tls/node.key")},
         .ca_file = dir_.File("ca/ca.pem"),
         .token_file = dir_.File("token"),
         .node_name = "node-1",
         .vm_id = "vm-1"},
        {.ask = [&](const netagent::EnrollAsk& ask) { return call.Ask(ask); },
         .cancel = nullptr,
         .on_ready = [] { return absl::OkStatus(); },
         .clock = clock_,
         .log = log_});
    return enroller.KeepCertificate().status();
  }

  // Attacks for kAttack, during which an honest agent enrolls three times: whoever shares this
  // machine may hold one of them up, the attacker none.
  void Attack(const std::string& kind, double most_cpu_seconds) {
    const size_t resident = ResidentBytes();
    const double cpu = CpuSeconds();
    auto attacker =
        crash::ChildProcess::Start({std::string(SPOKE_SOURCE_DIR) + "/tests/abuse/attack.py", kind,
                                    fmt::format("{}", enrollment_->port()), kHostile,
                                    fmt::format("{}", absl::ToInt64Seconds(kAttack))},
                                   dir_.File("attack"));
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
    const std::string told = os::ReadFile(dir_.File("attack")).value_or("");
    fmt::print("{}: memory grew by {:.1f} MiB, {:.2f} s of processor time, enrolled in {}; {}\n",
               kind, static_cast<double>(grown) / (1 << 20), spent, absl::FormatDuration(took[1]),
               told);
    EXPECT_LT(grown, kMostGrowth) << told;
    EXPECT_LT(spent, most_cpu_seconds) << told;
    const rpc::RefusalCounts refusals = enrollment_->refusals()->counts();
    EXPECT_GT(std::accumulate(refusals.begin(), refusals.end(), uint64_t{0}), 0U);
    EXPECT_LE(log_.Count("connections_refused"), 1);
    EXPECT_TRUE(Enroll().ok());
  }

  const testing_support::TempDir dir_;
  os::RealClock clock_;
  testing_support::RecordingLog log_;
  ipam::FakeApiServer cluster_;
  ipam::MemoryStore store_;
  const std::unique_ptr<ipam::Revocations> revocations_ =
      ipam::Revocations::Open(store_, clock_, [](uint64_t, const absl::Status&) {}).value();
  std::unique_ptr<ipam::Enrollment> enrollment_;
};

TEST_F(Abuse, RapidResetsOfOnePeerCostLittle) { Attack("rapid-reset", 2); }
TEST_F(Abuse, AHeaderWithoutAnEndCostsLittle) { Attack("endless-header", 2); }
TEST_F(Abuse, IdleConnectionsOfOnePeerKeepNobodyOut) { Attack("idle", 2); }
TEST_F(Abuse, AHandshakeThatNeverEndsKeepsNobodyOut) { Attack("silent", 1); }
TEST_F(Abuse, SlowConnectionsKeepNobodyOut) { Attack("slow", 2); }

}  // namespace
}  // namespace spoke
