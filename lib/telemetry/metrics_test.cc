#include "lib/telemetry/metrics.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/telemetry/process_metrics.h"

namespace spoke::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<MetricSpec> Table() {
  return {
      CounterSpec("t_pods_total", "Pods"),
      GaugeSpec("t_pool_addresses", "Addresses",
                {UpTo("pool", 2), OneOf("state", {"free", "in_use"})}),
      HistogramSpec("t_wait_seconds", "Wait", {0.1, 1}),
  };
}

TEST(Metrics, AScrapeHasEveryValue) {
  Metrics metrics(Table());
  metrics.GetCounter("t_pods_total").Add();
  metrics.GetCounter("t_pods_total").Add(2);
  metrics.GetGauge("t_pool_addresses", {"a", "in_use"}).Set(7);
  metrics.GetHistogram("t_wait_seconds").Observe(0.5);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("# TYPE t_pods_total counter\nt_pods_total 3\n"));
  EXPECT_THAT(text, HasSubstr("t_pool_addresses{pool=\"a\",state=\"in_use\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("t_wait_seconds_bucket{le=\"0.1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("t_wait_seconds_bucket{le=\"1\"} 1\n"));
}

TEST(Metrics, ASourceMayGiveHistograms) {
  Metrics metrics(
      FromSource({HistogramSpec("t_step_seconds", "Steps", {0.1, 1}, {OneOf("step", {"a"})})}));
  metrics.AddSource([] {
    return std::vector<Samples>{{.metric = "t_step_seconds",
                                 .series = {{.labels = {"a"}, .value = 7.5, .counts = {4, 2, 1}}}}};
  });
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("# TYPE t_step_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("t_step_seconds_count{step=\"a\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("t_step_seconds_sum{step=\"a\"} 7.5\n"));
  EXPECT_THAT(text, HasSubstr("t_step_seconds_bucket{step=\"a\",le=\"0.1\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("t_step_seconds_bucket{step=\"a\",le=\"1\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("t_step_seconds_bucket{step=\"a\",le=\"+Inf\"} 7\n"));
}

TEST(MetricsDeathTest, ASampleThatIsNotLikeItsMetricEndsTheProgram) {
  Metrics metrics(FromSource({HistogramSpec("t_step_seconds", "Steps", {0.1, 1})}));
  metrics.AddSource([] {
    return std::vector<Samples>{{.metric = "t_step_seconds", .series = {{{}, 7.5}}}};
  });
  EXPECT_DEATH(metrics.Render(), "a count for each bucket");
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

TEST(MetricsDeathTest, ABadTableOrNameEndsTheProgram) {
  const auto table_with = [](const MetricSpec& spec) { const Metrics metrics({spec}); };
  EXPECT_DEATH(table_with(CounterSpec("pods", "x")), "_total");
  EXPECT_DEATH(table_with(GaugeSpec("pods_total", "x")), "_total");
  EXPECT_DEATH(table_with({.name = "Pods", .help = "x"}), "a name");
  EXPECT_DEATH(table_with({.name = "pods", .help = "x", .labels = {{.name = "pool"}}}), "bounded");
  EXPECT_DEATH(table_with({.name = "pods", .help = "x", .labels = {UpTo("address", 5)}}),
               "few values");
  EXPECT_DEATH(Metrics(Table()).GetCounter("t_nothing_total"), "stands in the table");
  EXPECT_DEATH(Metrics(Table()).GetGauge("t_pods_total"), "stands in the table");
  EXPECT_DEATH(Metrics(Table()).GetCounter("t_pods_total", {"label"}), "stands in the table");
}

}  // namespace
}  // namespace spoke::telemetry
