#include "ipam-server/telemetry/reachability_samples.h"

#include <map>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

TEST(ReachabilitySamples, SayNothingBeforeAnythingWasJudged) {
  EXPECT_TRUE(ReachabilitySamples(nullptr).empty());
}

TEST(ReachabilitySamples, FillTheirRows) {
  Reachability judged{.all = {.probes = 90, .lost = 9, .p50_us = 300, .p99_us = 2000}};
  judged.nodes = {{.node = {.name = "a"}, .suspicion = "it loses"}, {.node = {.name = "b"}}};
  judged.pairs = {{.a = "a", .b = "b"}};
  std::set<std::string> rows;
  for (const auto& spec : ReachabilityMetricSpecs()) rows.insert(spec.name);
  std::map<std::string, double> values;
  for (const auto& samples : ReachabilitySamples(&judged)) {
    EXPECT_EQ(rows.erase(samples.metric), 1U) << samples.metric;
    for (const auto& series : samples.series) {
      values[samples.metric + (series.labels.empty() ? "" : " " + series.labels[0])] = series.value;
    }
  }
  EXPECT_TRUE(rows.empty());
  const std::map<std::string, double> want = {
      {"spoke_ipam_reachability_nodes all", 2},
      {"spoke_ipam_reachability_nodes suspected", 1},
      {"spoke_ipam_reachability_pairs_suspected", 1},
      {"spoke_ipam_reachability_probes answered", 81},
      {"spoke_ipam_reachability_probes lost", 9},
      {"spoke_ipam_reachability_round_trip_seconds 0.5", 300 * 1e-6},
      {"spoke_ipam_reachability_round_trip_seconds 0.99", 2000 * 1e-6},
      {"spoke_ipam_reachability_unjudged", 0}};
  EXPECT_EQ(values, want);
  judged.unjudged = "most were lost";
  EXPECT_EQ(ReachabilitySamples(&judged).back().series[0].value, 1);
}

}  // namespace
}  // namespace spoke::ipam
