#include "netagent/exporters/connection_series.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

PodConnections Pod(const std::string& pod_namespace, const std::string& name, uint64_t connections,
                   uint64_t ports = 0) {
  return {.pod_namespace = pod_namespace,
          .pod_name = name,
          .connections = connections,
          .translated_ports = ports};
}

// Returns the values, by "NAMESPACE/POD".
std::map<std::string, double> Values(const telemetry::Samples& samples) {
  std::map<std::string, double> values;
  for (const auto& series : samples.series) {
    const auto [at, fresh] =
        values.emplace(series.labels.at(0) + "/" + series.labels.at(1), series.value);
    EXPECT_TRUE(fresh) << at->first << " is there twice";
  }
  return values;
}

TEST(ConnectionSeries, ThoseWithMostHaveSeriesOfTheirOwn) {
  const auto samples = ConnectionSeries({Pod("a", "few", 999, 7), Pod("a", "some", 1'000, 1),
                                         Pod("b", "most", 5'000, 4'000), Pod("c", "many", 2'000)},
                                        2);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].metric, "spoke_pod_connections");
  EXPECT_THAT(Values(samples[0]), UnorderedElementsAre(Pair("b/most", 5'000), Pair("c/many", 2'000),
                                                       Pair("_other/_other", 1'999)));
  EXPECT_EQ(samples[1].metric, "spoke_pod_translated_ports");
  EXPECT_THAT(Values(samples[1]), UnorderedElementsAre(Pair("b/most", 4'000), Pair("c/many", 0),
                                                       Pair("_other/_other", 8)));
}

TEST(ConnectionSeries, ThoseWithFewShareOne) {
  EXPECT_THAT(Values(ConnectionSeries({Pod("a", "x", 10), Pod("a", "y", 5)}, 6)[0]),
              UnorderedElementsAre(Pair("_other/_other", 15)));
  EXPECT_THAT(Values(ConnectionSeries({}, 6)[0]), UnorderedElementsAre(Pair("_other/_other", 0)));
}

TEST(ConnectionSeries, ANameHasOneSeriesWhateverPodsBearIt) {
  EXPECT_THAT(
      Values(ConnectionSeries(
          {Pod("a", "db-0", 2'000), Pod("a", "db-0", 1), Pod("_other", "_other", 3'000)}, 6)[0]),
      UnorderedElementsAre(Pair("a/db-0", 2'001), Pair("_other/_other", 3'000)));
}

}  // namespace
}  // namespace spoke::netagent
