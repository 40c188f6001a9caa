#include "lib/telemetry/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/process_metrics.h"

namespace spoke::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<MetricSpec> Table() {
  return {
      {.name = "t_pods_total", .type = MetricType::kCounter, .help = "Pods"},
      {.name = "t_pool_addresses",
       .type = MetricType::kGauge,
       .help = "Addresses",
       .labels = {UpTo("pool", 2), OneOf("state", {"free", "lent"})}},
      {.name = "t_wait_seconds",
       .type = MetricType::kHistogram,
       .help = "Wait",
       .buckets = {0.1, 1}},
  };
}

TEST(Metrics, AScrapeHasEveryValue) {
  Metrics metrics(Table());
  metrics.GetCounter("t_pods_total").Add();
  metrics.GetCounter("t_pods_total").Add(2);
  metrics.GetGauge("t_pool_addresses", {"a", "lent"}).Set(7);
  metrics.GetHistogram("t_wait_seconds").Observe(0.5);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("# TYPE t_pods_total counter\nt_pods_total 3\n"));
  EXPECT_THAT(text, HasSubstr("t_pool_addresses{pool=\"a\",state=\"lent\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("t_wait_seconds_bucket{le=\"0.1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("t_wait_seconds_bucket{le=\"1\"} 1\n"));
}

TEST(Metrics, LabelValuesBeyondTheCapShareOneSeries) {
  Metrics metrics(Table());
  for (int i = 0; i < 100; ++i) {
    metrics.GetGauge("t_pool_addresses", {fmt::format("pool{}", i), "free"}).Add(1);
  }
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("t_pool_addresses{pool=\"pool1\",state=\"free\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("pool2")));
  EXPECT_THAT(text, HasSubstr("t_pool_addresses{pool=\"other\",state=\"free\"} 98\n"));
  EXPECT_THAT(text, HasSubstr("spoke_metrics_refused_labels_total 98\n"));
}

TEST(Metrics, AValueThatTheTableDoesNotListIsOther) {
  Metrics metrics(Table());
  metrics.GetGauge("t_pool_addresses", {"a", "10.0.0.1"}).Set(1);
  EXPECT_THAT(metrics.Render(), HasSubstr("t_pool_addresses{pool=\"a\",state=\"other\"} 1\n"));
}

TEST(Metrics, ARemovedSeriesIsGoneAndMakesRoom) {
  Metrics metrics(Table());
  metrics.GetGauge("t_pool_addresses", {"a", "free"}).Set(1);
  metrics.GetGauge("t_pool_addresses", {"a", "lent"}).Set(1);
  metrics.GetGauge("t_pool_addresses", {"b", "free"}).Set(1);
  metrics.Remove("t_pool_addresses", {"a", "free"});
  metrics.Remove("t_pool_addresses", {"nothing", "free"});
  metrics.GetGauge("t_pool_addresses", {"c", "free"}).Set(3);
  EXPECT_THAT(metrics.Render(), Not(HasSubstr("pool=\"c\""))) << "a still has a series";
  metrics.Remove("t_pool_addresses", {"a", "lent"});
  metrics.GetGauge("t_pool_addresses", {"c", "free"}).Set(3);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, Not(HasSubstr("pool=\"a\"")));
  EXPECT_THAT(text, HasSubstr("t_pool_addresses{pool=\"c\",state=\"free\"} 3\n"));
}

TEST(MetricsDeathTest, ABadTableOrNameEndsTheProgram) {
  const auto table_with = [](const MetricSpec& spec) { const Metrics metrics({spec}); };
  EXPECT_DEATH(table_with({.name = "pods", .type = MetricType::kCounter, .help = "x"}), "_total");
  EXPECT_DEATH(table_with({.name = "pods_total", .type = MetricType::kGauge, .help = "x"}),
               "_total");
  EXPECT_DEATH(table_with({.name = "Pods", .help = "x"}), "a name");
  EXPECT_DEATH(table_with({.name = "pods", .help = "x", .labels = {{.name = "pool"}}}), "bounded");
  EXPECT_DEATH(table_with({.name = "pods", .help = "x", .labels = {UpTo("address", 5)}}),
               "few values");
  EXPECT_DEATH(Metrics(Table()).GetCounter("t_nothing_total"), "stands in the table");
  EXPECT_DEATH(Metrics(Table()).GetGauge("t_pods_total"), "stands in the table");
  EXPECT_DEATH(Metrics(Table()).GetCounter("t_pods_total", {"label"}), "stands in the table");
}

// The answer to a request to this machine, headers included.
std::string Fetch(int port, const std::string& path) {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(port));
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) return "";
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char piece[4096];
  for (ssize_t got = 0; (got = ::recv(fd.get(), piece, sizeof piece, 0)) > 0;) {
    answer.append(piece, static_cast<size_t>(got));
  }
  return answer;
}

TEST(MetricsEndpoint, ServesWhatAScrapeAsksFor) {
  Metrics metrics(Table());
  metrics.GetCounter("t_pods_total").Add(3);
  int scrapes = 0;
  metrics.BeforeScrape([&] { ++scrapes; });
  const auto endpoint = MetricsEndpoint::Open("127.0.0.1:0", metrics);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const std::string answer = Fetch((*endpoint)->port(), "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, HasSubstr("t_pods_total 3\n"));
  EXPECT_THAT(Fetch((*endpoint)->port(), "/other"), StartsWith("HTTP/1.1 404"));
  EXPECT_EQ(scrapes, 1);
}

TEST(MetricsEndpoint, AnAddressInUseIsAnErrorThatNamesIt) {
  Metrics metrics(Table());
  const auto first = MetricsEndpoint::Open("127.0.0.1:0", metrics);
  ASSERT_TRUE(first.ok());
  const std::string taken = fmt::format("127.0.0.1:{}", (*first)->port());
  const auto second = MetricsEndpoint::Open(taken, metrics);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(taken));
  EXPECT_FALSE(MetricsEndpoint::Open("not an address", metrics).ok());
}

TEST(ProcessMetrics, ParsesWhatTheKernelWritesWhateverTheNameOfTheProcess) {
  const auto stat = ParseProcessStat(
      "42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 7 0 12300 1048576 256 "
      "18446744073709551615 1 1\n");
  ASSERT_TRUE(stat.ok()) << stat.status();
  EXPECT_DOUBLE_EQ(stat->cpu_seconds, 300.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(stat->threads, 7U);
  EXPECT_EQ(stat->virtual_bytes, 1048576U);
  EXPECT_EQ(stat->resident_bytes, 256U * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
  for (const char* bad :
       {"", "42", "42 (a) S 1 2 3", "42 (a) S 1 1 1 1 1 1 1 1 1 1 x x x x x x x"}) {
    EXPECT_FALSE(ParseProcessStat(bad).ok()) << bad;
  }
}

TEST(ProcessMetrics, AreThoseOfThisProcess) {
  Metrics metrics(ProcessMetricSpecs());
  AddProcessMetrics(metrics);
  EXPECT_THAT(metrics.Render(), HasSubstr("\nprocess_cpu_seconds_total "));
  EXPECT_GT(metrics.GetGauge("process_resident_memory_bytes").value(), 1 << 20);
  EXPECT_GT(metrics.GetGauge("process_open_fds").value(), 2);
  EXPECT_GE(metrics.GetGauge("process_threads").value(), 1);
  EXPECT_GT(metrics.GetGauge("process_max_fds").value(), 2);
  const double started = metrics.GetGauge("process_start_time_seconds").value();
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_TRUE(started > now - 3600 && started < now + 5) << started;
}

}  // namespace
}  // namespace spoke::telemetry
