// Tests what conf/ has for Prometheus, as promtool judges it. That it names no metric that does not
// exist, scripts/check_metrics sees to.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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
using testing::Not;

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

// Writes `name` of conf/ into `directory`, with a token that is there. Debian's Prometheus has no
// discovery in Kubernetes, so a target takes its place.
std::string ConfigurationToCheck(const std::string& name, const std::string& directory) {
  const std::string token = directory + "/token";
  EXPECT_TRUE(os::WriteFileAtomic(token, "a token\n", os::Durability::kVisible).ok());
  std::string text = os::ReadFile(kRoot + "/conf/" + name).value();
  text = std::regex_replace(text, std::regex("credentials_file: .*"), "credentials_file: " + token);
  text = std::regex_replace(
      text,
      std::regex(
          "kubernetes_sd_configs:\n +- role: pod\n +namespaces:\n +names: \\[spoke-system\\]\n"),
      "static_configs: [{targets: [a]}]\n");
  const std::string path = directory + "/" + name;
  EXPECT_TRUE(os::WriteFileAtomic(path, text, os::Durability::kVisible).ok());
  return path;
}

TEST(PrometheusFiles, PromtoolAcceptsTheConfigurationsWithTheirRules) {
  const testing_support::TempDir directory;
  for (const std::string rules : {"alerts.yaml", "recording-rules.yaml"}) {
    std::filesystem::copy_file(kRoot + "/conf/" + rules, directory.File(rules));
  }
  for (const std::string name : {"prometheus.yaml", "prometheus-systemd.yaml"}) {
    const std::string path = ConfigurationToCheck(name, directory.path());
    const auto result = Promtool({"check", "config", path});
    EXPECT_EQ(result.exit_code, 0) << name << result.output << result.errors;
    EXPECT_THAT(result.output, HasSubstr("2 rule files found")) << name;
    const std::string text = os::ReadFile(path).value();
    EXPECT_THAT(text, HasSubstr("job_name: spoke-ipam-server\n")) << name;
    EXPECT_THAT(text, HasSubstr("job_name: spoke-netagent\n")) << name;
    EXPECT_THAT(text, Not(HasSubstr("kubernetes_sd_configs"))) << name << ": is checked without";
  }
}

// Prometheus finds pods by what their manifests say.
TEST(PrometheusFiles, TheConfigurationForKubernetesLooksForPodsThatThereAre) {
  const std::string text = os::ReadFile(kRoot + "/conf/prometheus.yaml").value();
  for (const std::string program : {"netagent", "ipam-server"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("regex: spoke-{}\n", program)));
    const std::string manifest =
        os::ReadFile(fmt::format("{}/conf/kubernetes/base/{}.yaml", kRoot, program)).value();
    EXPECT_THAT(manifest, HasSubstr(fmt::format("app.kubernetes.io/name: spoke-{}\n", program)));
    EXPECT_THAT(manifest, HasSubstr("- name: metrics\n"));
  }
}

// The dashboards of conf/grafana, by file.
std::map<std::string, nlohmann::json> Dashboards() {
  std::map<std::string, nlohmann::json> found;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/conf/grafana")) {
    if (entry.path().extension() != ".json") continue;
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

// Where two jobs read the same target, a query that asks for neither adds up both. Recording rules
// ask for one.
TEST(PrometheusFiles, EachQueryOfADashboardAsksForOneJob) {
  const std::regex metric(
      "(^|[^:a-z0-9_\"])((?:spoke|process)_[a-z0-9_]+)(?![:a-z0-9_])(\\{job[=~])?");
  size_t metrics = 0;
  for (const auto& [file, dashboard] : Dashboards()) {
    for (const auto& panel : dashboard["panels"]) {
      for (const auto& target : panel["targets"]) {
        const std::string query = target["expr"];
        for (std::sregex_iterator at(query.begin(), query.end(), metric), end; at != end; ++at) {
          ++metrics;
          EXPECT_TRUE((*at)[3].matched)
              << file << ": " << (*at)[2].str() << " of any job: " << query;
        }
      }
    }
  }
  EXPECT_GT(metrics, 60U);
}

// What a query has in place of a value is a variable of its dashboard.
TEST(PrometheusFiles, EachVariableOfADashboardIsOneAndIsUsed) {
  for (const auto& [file, dashboard] : Dashboards()) {
    std::set<std::string> variables;
    for (const auto& variable : dashboard["templating"]["list"]) {
      variables.insert(variable["name"].get<std::string>());
    }
    std::set<std::string> used;
    const std::string text = dashboard.dump();
    const std::regex use("\\$\\{?([a-z_]+)");
    for (std::sregex_iterator at(text.begin(), text.end(), use), end; at != end; ++at) {
      used.insert((*at)[1].str());
    }
    EXPECT_EQ(variables, used) << file;
    EXPECT_EQ(variables.count("runbooks"), 1U) << file;
    EXPECT_GE(variables.count("job") + variables.count("agents_job"), 1U) << file;
  }
}

// One sees what is wrong by its colour, and comes from there to what to do.
TEST(PrometheusFiles, EachDashboardHasStatPanelsWithThresholdsThatLeadToRunbooks) {
  for (const auto& [file, dashboard] : Dashboards()) {
    size_t found = 0;
    for (const auto& panel : dashboard["panels"]) {
      if (panel.value("type", "") != "stat") continue;
      const auto& defaults = panel["fieldConfig"]["defaults"];
      const auto thresholds = defaults.value("thresholds", nlohmann::json::object());
      const auto steps = thresholds.value("steps", nlohmann::json::array());
      if (steps.size() >= 2 && !panel.value("links", nlohmann::json::array()).empty()) ++found;
      for (size_t i = 2; i < steps.size(); ++i) {
        EXPECT_LT(steps[i - 1]["value"].get<double>(), steps[i]["value"].get<double>())
            << file << ": " << panel["title"];
      }
    }
    EXPECT_GE(found, 4U) << file;
  }
}

// The anchor of a heading, as GitHub makes it.
std::string AnchorOf(const std::string& heading) {
  std::string anchor;
  for (const char letter : heading.substr(heading.find_first_not_of("# "))) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == ' ') anchor += '-';
    if (std::isalnum(byte) != 0 || letter == '-' || letter == '_') {
      anchor += static_cast<char>(std::tolower(byte));
    }
  }
  return anchor;
}

bool HasAnchor(const std::string& page, const std::string& anchor) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, std::regex("^#+ +[^ ]")) && AnchorOf(line) == anchor) return true;
  }
  return false;
}

TEST(PrometheusFiles, AnAnchorIsLookedFor) {
  EXPECT_TRUE(HasAnchor("# A page\n\n## Is anyone hurt?\n", "is-anyone-hurt"));
  EXPECT_FALSE(HasAnchor("# A page\n\nis-anyone-hurt\n", "is-anyone-hurt"));
}

TEST(PrometheusFiles, TheRunbookOfAPanelIsThere) {
  for (const auto& [file, dashboard] : Dashboards()) {
    size_t links = 0;
    for (const auto& panel : dashboard["panels"]) {
      for (const auto& link : panel.value("links", nlohmann::json::array())) {
        ++links;
        const std::string url = link["url"];
        constexpr std::string_view kBegin = "${runbooks}/";
        ASSERT_EQ(url.substr(0, kBegin.size()), kBegin) << url;
        const size_t hash = std::min(url.find('#'), url.size());
        const std::string page = url.substr(kBegin.size(), hash - kBegin.size());
        const auto text = os::ReadFile(kRoot + "/docs/runbooks/" + page);
        EXPECT_TRUE(text.ok()) << file << ": " << url;
        if (hash < url.size()) {
          EXPECT_TRUE(HasAnchor(text.value_or(""), url.substr(hash + 1))) << file << ": " << url;
        }
      }
    }
    EXPECT_GE(links, 7U) << file;
  }
}

}  // namespace
}  // namespace spoke::netagent
