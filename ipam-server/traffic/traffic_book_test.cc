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

TEST(TrafficBook, NeedsNoMetrics) {
  const os::SimClock clock(absl::FromUnixSeconds(1'700'000'000));
  TrafficBook book(clock, nullptr);
  book.Take({"n1", "vm"}, Report(clock, 100));
  book.Look([](const TrafficSums& sums, absl::Time) { EXPECT_EQ(sums.Nodes().size(), 1U); });
}

}  // namespace
}  // namespace spoke::ipam
