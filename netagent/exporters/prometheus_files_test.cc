// Tests what conf/ has for Prometheus, as promtool judges it. That it names no metric that does not
// exist, scripts/check_metrics sees to.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "lib/os/subprocess.h"
#include "netagent/exporters/agent_metrics.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"

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
  EXPECT_THAT(result.output, HasSubstr("17 rules found"));
}

TEST(PrometheusFiles, TheRulesSayWhatTheyShould) {
  const auto result =
      Promtool({"test", "rules", kRoot + "/netagent/exporters/agent_rules_test.yaml"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
}

// The dashboards of conf/grafana, by file.
std::map<std::string, nlohmann::json> Dashboards() {
  std::map<std::string, nlohmann::json> found;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/conf/grafana")) {
    const auto text = os::ReadFile(entry.path().string());
    EXPECT_TRUE(text.ok()) << text.status();
    auto dashboard = nlohmann::json::parse(text.value_or(""), nullptr, false);
    EXPECT_TRUE(dashboard.is_object()) << entry.path();
    found.emplace(entry.path().filename().string(), std::move(dashboard));
  }
  return found;
}

TEST(PrometheusFiles, EachPanelOfADashboardIsOneAndHasItsPlace) {
  std::set<std::string> uids;
  const auto dashboards = Dashboards();
  ASSERT_GE(dashboards.size(), 5U);
  for (const auto& [file, dashboard] : dashboards) {
    EXPECT_TRUE(uids.insert(dashboard["uid"]).second) << file;
    ASSERT_GE(dashboard["panels"].size(), 10U) << file;
    std::set<int> ids;
    std::set<std::pair<int, int>> places;
    for (const auto& panel : dashboard["panels"]) {
      const std::string title = file + ": " + panel["title"].get<std::string>();
      EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << title;
      EXPECT_FALSE(panel["targets"].empty()) << title;
      const auto& place = panel["gridPos"];
      EXPECT_LE(place["x"].get<int>() + place["w"].get<int>(), 24) << title;
      for (int x = place["x"]; x < place["x"].get<int>() + place["w"].get<int>(); ++x) {
        for (int y = place["y"]; y < place["y"].get<int>() + place["h"].get<int>(); ++y) {
          EXPECT_TRUE(places.emplace(x, y).second) << title << " lies over another";
        }
      }
    }
  }
}

TEST(PrometheusFiles, PromtoolAcceptsWhatDashboardsAsk) {
  std::string rules = "groups:\n- name: dashboards\n  rules:\n";
  size_t asked = 0;
  for (const auto& [file, dashboard] : Dashboards()) {
    for (const auto& panel : dashboard["panels"]) {
      for (const auto& target : panel["targets"]) {
        rules +=
            fmt::format("  - record: asked_{}\n    expr: {}\n", ++asked, target["expr"].dump());
      }
    }
  }
  const testing_support::TempDir directory;
  const std::string path = directory.path() + "/rules.yaml";
  ASSERT_TRUE(os::WriteFileAtomic(path, rules, os::Durability::kVisible).ok());
  const auto result = Promtool({"check", "rules", path});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr(fmt::format("{} rules found", asked)));
}

TEST(PrometheusFiles, TheRunbookOfAPanelIsThere) {
  size_t links = 0;
  for (const auto& [file, dashboard] : Dashboards()) {
    for (const auto& panel : dashboard["panels"]) {
      for (const auto& link : panel.value("links", nlohmann::json::array())) {
        ++links;
        const std::string url = link["url"];
        constexpr std::string_view kBegin = "${runbooks}/";
        ASSERT_EQ(url.substr(0, kBegin.size()), kBegin) << url;
        const std::string page = url.substr(kBegin.size(), url.find('#') - kBegin.size());
        EXPECT_TRUE(std::filesystem::exists(kRoot + "/docs/runbooks/" + page)) << url;
      }
    }
  }
  EXPECT_GT(links, 30U);
}

}  // namespace
}  // namespace spoke::netagent
