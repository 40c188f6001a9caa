#include "ipam-server/traffic/traffic_book.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/telemetry/metrics.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;

node_api::TrafficReport Report(const os::Clock& clock, uint64_t sent) {
  return {.epoch = clock.Now() + absl::Milliseconds(1),
          .namespaces = {{"a", {{"internet", {.sent = sent, .received = 2 * sent}}}}},
          .pods = {}};
}

TEST(TrafficBook, TellsOperatorsAndPrometheusTheSame) {
  const os::SimClock clock(absl::FromUnixSeconds(1'700'000'000));
  telemetry::Metrics metrics(ServerMetricSpecs());
  ServerMetrics server_metrics(metrics, "test");
  TrafficBook book(clock, &server_metrics);
  book.SetTeams({{"a", "vision"}});
  book.Take({"n1", "vm"}, Report(clock, 100));
  book.Take({"n1", "vm"}, Report(clock, 150));
  node_api::Volume sum;
  book.Look([&](const TrafficSums& sums, absl::Time now) {
    sum = sums.Namespaces().at(0).volumes.at("internet");
    EXPECT_EQ(sums.Reporting(now), 1U);
  });
  EXPECT_EQ(sum, (node_api::Volume{150, 300}));
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("spoke_namespace_bytes_total{class=\"internet\",direction=\"sent\","
                              "namespace=\"a\"} 150"));
  EXPECT_THAT(text, HasSubstr("spoke_team_bytes_total{class=\"internet\",direction=\"received\","
                              "team=\"vision\"} 300"));
}

TEST(TrafficBook, KeepsTheCourseOfTheLastHour) {
  os::SimClock clock(absl::FromUnixSeconds(1'700'000'000));
  TrafficBook book(clock, nullptr);
  const absl::Time epoch = clock.Now() + absl::Milliseconds(1);
  for (uint64_t i = 0; i < 4; ++i) {
    node_api::TrafficReport report = Report(clock, i * 30'000'000);
    report.epoch = epoch;
    book.Take({"n1", "vm"}, report);
    clock.Advance(absl::Seconds(30));
  }
  const TrafficCourse course = book.CourseOf("external", 8);
  ASSERT_EQ(course.lines.size(), 1U);
  EXPECT_EQ(course.lines[0].name, "a");
  // 90 MB in 30 s, sent and received.
  EXPECT_THAT(course.lines[0].bits_per_second, testing::ElementsAre(24e6, 24e6, 24e6));
  EXPECT_EQ(course.times_ms.size(), 3U);
  EXPECT_THAT(book.Classes(), testing::ElementsAre("all", "external", "internet"));
}

TEST(TrafficBook, NeedsNoMetrics) {
  const os::SimClock clock(absl::FromUnixSeconds(1'700'000'000));
  TrafficBook book(clock, nullptr);
  book.Take({"n1", "vm"}, Report(clock, 100));
  book.Look([](const TrafficSums& sums, absl::Time) { EXPECT_EQ(sums.Nodes().size(), 1U); });
}

}  // namespace
}  // namespace spoke::ipam
