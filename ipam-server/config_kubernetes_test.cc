#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/config.h"

namespace spoke::ipam {
namespace {

absl::StatusOr<ServerConfig> Parse(const std::string& kubernetes) {
  return ParseServerConfig("tls: {insecure: true}\ncloud: {static: {}}\n" + kubernetes, "f.yaml",
                           [](const std::string&) { return absl::OkStatus(); });
}

TEST(KubernetesConfig, NothingIsWrittenUnlessAskedFor) {
  EXPECT_EQ(Parse("")->kubernetes, std::nullopt);
  EXPECT_EQ(Parse("kubernetes: {}\n")->kubernetes, KubernetesConfig());
}

TEST(KubernetesConfig, EverythingCanBeSaid) {
  const auto config = Parse(
      "kubernetes: {unfit_after: 10m, fit_after: 1m, exhausted_after: 2m, max_tainted_share: 0.1,\n"
      "  max_tainted_share_a_minute: 0.02, max_tainted_a_minute: 5, joins_per_second: 100,\n"
      "  writes_per_second: 10, max_tainted_share_of_domain: 0.25}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  KubernetesConfig want;
  want.times.unfit = absl::Minutes(10);
  want.times.fit = absl::Minutes(1);
  want.times.exhausted = absl::Minutes(2);
  want.limits = {.taints_floor = 5,
                 .taints_share_a_minute = 0.02,
                 .taints_share = 0.1,
                 .taints_share_of_domain = 0.25,
                 .joins_per_second = 100,
                 .writes_per_second = 10};
  EXPECT_EQ(config->kubernetes, want);
}

TEST(ReachabilityConfig, NodesProbeEachOtherUnlessItIsSwitchedOff) {
  EXPECT_EQ(Parse("")->reachability, ReachabilitySettings());
  EXPECT_EQ(Parse("reachability: {interval: 0s}\n")->reachability.interval, absl::ZeroDuration());
  const auto config =
      Parse("reachability: {interval: 1m, window: 10m, peers: 8, group_label: rack}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->reachability, (ReachabilitySettings{.interval = absl::Minutes(1),
                                                        .peers = 8,
                                                        .window = absl::Minutes(10),
                                                        .group_label = "rack"}));
}

TEST(KubernetesConfig, MistakesNameTheirLine) {
  for (const auto& [text, want] : std::map<std::string, std::string>{
           {"kubernetes: {max_tainted_share: 2}\n", "f.yaml:3: kubernetes.max_tainted_share"},
           {"kubernetes: {unfit_after: 1s}\n", "f.yaml:3: kubernetes.unfit_after"},
           {"kubernetes: {max_tainted_a_minute: 0}\n", "f.yaml:3: kubernetes.max_tainted_a_minute"},
           {"kubernetes: {taint: yes}\n", "f.yaml:3: kubernetes.taint"},
           {"kubernetes: {max_tainted_share_of_domain: -1}\n",
            "f.yaml:3: kubernetes.max_tainted_share_of_domain"},
           {"reachability: {peers: 0}\n", "f.yaml:3: reachability.peers"},
           {"reachability: {window: 1s}\n", "f.yaml:3: reachability.window"},
           {"reachability: {interval: 2m}\n", "reachability.window: is shorter than three"}}) {
    const auto config = Parse(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(std::string(config.status().message()), testing::HasSubstr(want));
  }
}

}  // namespace
}  // namespace spoke::ipam
