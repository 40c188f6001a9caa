// The endpoints as Prometheus meets them, over fakes.
#include "netagent/exporters/exporters.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "netagent/iptables/testing/fake_iptables.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Get(int port) {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0;) {
    answer.append(buffer.data(), static_cast<size_t>(got));
  }
  return answer;
}

class ExportersTest : public testing::Test {
 protected:
  ExportersTest() {
    config_.address = "127.0.0.1:0";
    config_.iptables_exporter.address = "127.0.0.1:0";
    config_.iptables_exporter.retailnext_address = "127.0.0.1:0";
    totals_.namespaces["team-a"]["internet"].sent = 2'000'000'000;
    totals_.pods = {{.pod_namespace = "team-a",
                     .pod_name = "train-0",
                     .volumes = {{"internet", {.sent = 2'000'000'000}}}}};
  }
  std::unique_ptr<Exporters> Start() {
    auto exporters = std::make_unique<Exporters>(
        Exporters::Settings{.config = config_, .state_file = dir_.File("series"), .version = "9"},
        Exporters::Edges{.nft = nft_,
                         .legacy = legacy_,
                         .clock = clock_,
                         .log = log_,
                         .read_agent = [this](absl::Duration) -> absl::StatusOr<AgentReading> {
                           return AgentReading{.traffic = totals_};
                         },
                         .read_conntrack = []() -> absl::StatusOr<ConntrackReading> {
                           return ConntrackReading{.entries = 90, .limit = 100};
                         }});
    exporters->Start();
    return exporters;
  }
  // Waits for the exporters' own thread, for a second at most.
  void AwaitEvent(const char* event) {
    for (int i = 0; i < 1000 && log_.Count(event) == 0; ++i) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(log_.Count(event), 1) << event;
  }

  const testing_support::TempDir dir_;
  MetricsConfig config_;
  FakeIptables nft_;
  FakeIptables legacy_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  TrafficTotals totals_{.epoch = absl::FromUnixSeconds(1'700'000'000)};
};

TEST_F(ExportersTest, EachEndpointServesItsOwn) {
  const auto exporters = Start();
  AwaitEvent("published_rules_added");
  EXPECT_THAT(Get(exporters->metrics_port()),
              AllOf(HasSubstr("spoke_namespace_bytes_total{namespace=\"team-a\""),
                    HasSubstr("spoke_agent_build_info{version=\"9\"} 1"),
                    HasSubstr("process_cpu_seconds_total"), Not(HasSubstr("iptables_bytes"))));
  EXPECT_THAT(Get(exporters->comments_port()),
              AllOf(HasSubstr("iptables_bytes_total{ip_version=\"4\",table=\"mangle\",chain="
                              "\"forward\",rule=\"openai traffic=internet-in\"} 0"),
                    HasSubstr("iptables_rules{ip_version=\"4\",table=\"mangle\",chain=\"forward\"} "
                              "2")));
  EXPECT_THAT(Get(exporters->rules_port()),
              AllOf(HasSubstr("iptables_rule_bytes_total{table=\"mangle\",chain=\"INPUT\",rule=\"! "
                              "-s 10.0.0.0/8 -m comment"),
                    HasSubstr("iptables_scrape_success 1")));
}

TEST_F(ExportersTest, CountersAreThoseOfTheMomentOfTheScrape) {
  const auto exporters = Start();
  AwaitEvent("published_rules_added");
  const PublishedRule rule = PublishedRules(*config_.iptables_exporter.cluster)[0];
  nft_.Count(rule.chain, rule.Text(), 7, 700);
  EXPECT_THAT(Get(exporters->comments_port()), HasSubstr("internet-in\"} 700\n"));
  nft_.Count(rule.chain, rule.Text(), 1, 100);
  EXPECT_THAT(Get(exporters->comments_port()), HasSubstr("internet-in\"} 800\n"));
}

TEST_F(ExportersTest, TheNextAgentsSeriesGoOnWhereTheLastOnesWere) {
  auto exporters = Start();
  Get(exporters->metrics_port());
  totals_.namespaces["team-a"]["internet"].sent += 500;
  totals_.pods[0].volumes["internet"].sent += 500;
  const std::string line =
      "spoke_pod_bytes_total{namespace=\"team-a\",pod=\"train-0\",class=\"internet\",direction="
      "\"sent\"} 500\n";
  EXPECT_THAT(Get(exporters->metrics_port()), HasSubstr(line));
  exporters.reset();
  exporters = Start();
  EXPECT_THAT(Get(exporters->metrics_port()), HasSubstr(line));
}

TEST_F(ExportersTest, RulesThatCannotBeReadAreNotShownAsNone) {
  const auto exporters = Start();
  AwaitEvent("published_rules_added");
  nft_.FailWith(absl::UnavailableError("busy"));
  EXPECT_THAT(Get(exporters->comments_port()), Not(HasSubstr("iptables_bytes_total{")));
  EXPECT_THAT(Get(exporters->rules_port()), HasSubstr("iptables_scrape_success 0"));
  EXPECT_EQ(log_.Count("iptables_unreadable"), 1);
}

TEST_F(ExportersTest, ATableOfConnectionsThatFillsIsTold) {
  const auto exporters = Start();
  AwaitEvent("conntrack_nearly_full");
}

TEST_F(ExportersTest, APortInUseIsToldAndTheOthersServe) {
  const auto first = Start();
  config_.address = "127.0.0.1:" + std::to_string(first->metrics_port());
  const auto second = Start();
  EXPECT_EQ(log_.Count("metrics_not_served"), 1);
  EXPECT_EQ(second->metrics_port(), 0);
  EXPECT_THAT(Get(second->rules_port()), HasSubstr("iptables_scrape_success 1"));
}

TEST_F(ExportersTest, DamagedStateIsToldAndBegunAnew) {
  ASSERT_TRUE(os::WriteFileAtomic(dir_.File("series"), "{", os::Durability::kVisible).ok());
  const auto exporters = Start();
  EXPECT_EQ(log_.Count("series_state_unreadable"), 1);
  EXPECT_THAT(Get(exporters->metrics_port()), HasSubstr("spoke_namespace_bytes_total{"));
}

}  // namespace
}  // namespace spoke::netagent
