#include "ipam-server/telemetry/node_samples.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

TEST(KubernetesSamples, FillTheRowsOfTheTableAndNoOthers) {
  std::set<std::string> rows;
  for (const auto& spec : KubernetesMetricSpecs()) rows.insert(spec.name);
  NodesStanding standing{.usable = true, .nodes = 9, .held_back = 2};
  standing.writes[static_cast<size_t>(WriteResult::kDenied)] = 7;
  std::set<std::string> filled;
  for (const auto& samples : KubernetesSamples(standing)) {
    filled.insert(samples.metric);
    for (const auto& series : samples.series) {
      if (series.labels == std::vector<std::string>{"denied"}) {
        EXPECT_EQ(series.value, 7);
      }
      if (series.labels == std::vector<std::string>{"held_back"}) {
        EXPECT_EQ(series.value, 2);
      }
    }
  }
  EXPECT_EQ(filled, rows);
}

}  // namespace
}  // namespace spoke::ipam
