// The file users start from must be one the server takes, and must show the true defaults.
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "ipam-server/config.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

// `enroll` stands in comments, since it is in place of `tls`.
std::string WithEnrollInPlaceOfTls(std::string text) {
  const size_t tls = text.find("\ntls:\n") + 1;
  text.erase(tls, text.find("\n\n", tls) - tls);
  const size_t begin = text.find("# enroll:\n");
  size_t end = text.find("\n\n", begin);
  for (size_t line = begin; line < end; line = text.find('\n', line) + 1) {
    text.erase(line, 2);
    end -= 2;
  }
  return text;
}

TEST(ExampleConfig, IsAcceptedAndShowsTheDefaults) {
  const auto text = os::ReadFile(SPOKE_SOURCE_DIR "/conf/ipam-server.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto config = ParseServerConfig(*text, "conf/ipam-server.yaml",
                                        [](const std::string&) { return absl::OkStatus(); });
  ASSERT_TRUE(config.ok()) << config.status();
  const ServerConfig defaults;
  EXPECT_EQ(config->listen_agents, defaults.listen_agents);
  EXPECT_EQ(config->listen_admin, defaults.listen_admin);
  EXPECT_EQ(config->health, defaults.health);
  EXPECT_EQ(config->sqlite, defaults.sqlite);
  EXPECT_EQ(config->policy.target, defaults.policy.target);
  EXPECT_EQ(config->policy.cooldown, defaults.policy.cooldown);
  EXPECT_EQ(config->policy.release, defaults.policy.release);
  EXPECT_EQ(config->policy.breaker, defaults.policy.breaker);
  EXPECT_EQ(config->history.keep, defaults.history.keep);
  EXPECT_EQ(config->history.max_bytes, defaults.history.max_bytes);
  EXPECT_EQ(config->audit_period, defaults.audit_period);
  EXPECT_EQ(config->listen_metrics, defaults.listen_metrics);
  EXPECT_EQ(config->agents_per_address, defaults.agents_per_address);
  EXPECT_EQ(config->pools.at(0).reserve_first, PoolSpec().reserve_first);
  EXPECT_EQ(config->pools.at(0).reserve_last, PoolSpec().reserve_last);
}

TEST(ExampleConfig, OfSeveralServersIsAcceptedAndShowsTheDefaults) {
  const auto text = os::ReadFile(SPOKE_SOURCE_DIR "/conf/ipam-server-etcd.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto config = ParseServerConfig(*text, "conf/ipam-server-etcd.yaml",
                                        [](const std::string&) { return absl::OkStatus(); });
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_TRUE(config->etcd);
  const EtcdConfig defaults;
  EXPECT_EQ(config->etcd->prefix, defaults.prefix);
  EXPECT_EQ(config->etcd->lease, absl::Seconds(2)) << "for members with an etcd of Spoke's own";
  EXPECT_EQ(config->etcd->listen_standbys, defaults.listen_standbys);
  EXPECT_EQ(config->sqlite, ServerConfig().sqlite);
}

TEST(ExampleConfig, WhatKubernetesGetsForSeveralServersIsAccepted) {
  const std::string file = "/conf/kubernetes/overlays/static-ha/ipam-server.yaml";
  const auto text = os::ReadFile(SPOKE_SOURCE_DIR + file);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto config = ParseServerConfig(
      *text, file, [](const std::string&) { return absl::OkStatus(); },
      [](const std::string& name) -> std::optional<std::string> {
        // Each server and member has an address of its own.
        const size_t digit = name.find_first_of("012");
        return digit == std::string::npos ? "10.0.0.9" : std::string("10.0.0.") + name[digit];
      });
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_TRUE(config->etcd && config->enroll);
  EXPECT_EQ(config->etcd->endpoints.size(), 3U);
  EXPECT_FALSE(config->seal_key_file.empty());
}

TEST(ExampleConfig, ShowsTheDefaultsOfEnrollToo) {
  const auto text = os::ReadFile(SPOKE_SOURCE_DIR "/conf/ipam-server.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto config = ParseServerConfig(WithEnrollInPlaceOfTls(*text), "conf/ipam-server.yaml",
                                        [](const std::string&) { return absl::OkStatus(); });
  ASSERT_TRUE(config.ok()) << config.status();
  EnrollConfig expected;
  // Examples: they have no default.
  expected.server_names = {"spoke-ipam-server", "spoke-ipam-server.spoke-system.svc", "10.96.0.10"};
  expected.k8s_namespace = "spoke-system";
  EXPECT_EQ(config->enroll, expected);
}

}  // namespace
}  // namespace spoke::ipam
