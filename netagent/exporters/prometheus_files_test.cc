// Tests what conf/ has for Prometheus, as promtool judges it. That it names no metric that does not
// exist, scripts/check_metrics sees to.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "lib/os/subprocess.h"
#include "netagent/exporters/agent_metrics.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

const std::string kRoot = SPOKE_SOURCE_DIR;

os::ProgramResult Promtool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kRoot + "/scripts/promtool.sh");
  return os::RunProgram(arguments, {.time = absl::Minutes(1)}).value();
}

TEST(PrometheusFiles, PromtoolAcceptsTheRecordingRules) {
  const auto result = Promtool({"check", "rules", kRoot + "/conf/recording-rules.yaml"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("15 rules found"));
}

TEST(PrometheusFiles, TheRulesSayWhatTheyShould) {
  const auto result =
      Promtool({"test", "rules", kRoot + "/netagent/exporters/agent_rules_test.yaml"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
}

TEST(PrometheusFiles, EachPanelOfTheDashboardIsOne) {
  const auto text = os::ReadFile(kRoot + "/conf/grafana/spoke-traffic.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto dashboard = nlohmann::json::parse(*text, nullptr, false);
  ASSERT_TRUE(dashboard.is_object());
  ASSERT_GE(dashboard["panels"].size(), 10U);
  std::set<int> ids;
  for (const auto& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << panel["title"];
    EXPECT_FALSE(panel["title"].get<std::string>().empty());
    ASSERT_FALSE(panel["targets"].empty()) << panel["title"];
    for (const auto& target : panel["targets"]) {
      EXPECT_FALSE(target["expr"].get<std::string>().empty()) << panel["title"];
    }
  }
}

}  // namespace
}  // namespace spoke::netagent
