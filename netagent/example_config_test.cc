// The file users start from must be one the agent takes, and must show the true defaults.
#include <map>
#include <optional>
#include <string>

#include "fmt/core.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "netagent/config.h"

namespace spoke::netagent {
namespace {

// Puts `enroll` in the place of `tls`; it stands in comments.
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
  const auto text = os::ReadFile(SPOKE_SOURCE_DIR "/conf/netagent.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto config = ParseAgentConfig(*text, "conf/netagent.yaml",
                                       [](const std::string&) { return absl::OkStatus(); });
  ASSERT_TRUE(config.ok()) << config.status();
  const AgentConfig defaults;
  EXPECT_EQ(config->nic, defaults.nic);
  EXPECT_EQ(config->cni_socket, defaults.cni_socket);
  EXPECT_EQ(config->cni_wait, defaults.cni_wait);
  EXPECT_EQ(config->cni, CniFilesConfig());
  EXPECT_EQ(config->state_dir, defaults.state_dir);
  EXPECT_EQ(config->host_root, defaults.host_root);
  EXPECT_EQ(config->cooldown, defaults.cooldown);
  EXPECT_EQ(config->lost_del_after, defaults.lost_del_after);
  EXPECT_EQ(config->mtu, defaults.mtu);
  EXPECT_EQ(config->connect_jitter, defaults.connect_jitter);
  EXPECT_EQ(config->metrics, defaults.metrics);
  EXPECT_EQ(config->health, defaults.health);
  EXPECT_EQ(config->shaping.enabled, defaults.shaping.enabled);
  EXPECT_EQ(config->shaping.resolvers.size(), 1U);  // The file has an example; there is no default.
  // The file has examples of these two; there is no default.
  EXPECT_EQ(config->service_checks.cluster_resolvers.size(), 1U);
  EXPECT_NE(config->service_checks.node_name, "");
  EXPECT_EQ(config->service_checks.cluster_name, node_checks::ServiceSettings().cluster_name);
  AzureConfig azure;
  azure.reflector = ip::Address::V4(0x0A000009);  // The file has an example; there is no default.
  EXPECT_EQ(config->azure, azure);
  // The roles have no default either.
  ASSERT_TRUE(config->egress.gateway && config->egress.nat_host && config->egress.ip_masq);
  EXPECT_EQ(config->egress.gateway->health_port, EgressGatewayRole().health_port);
  EXPECT_EQ(config->egress.nat_host->health_port, NatHostConfig().health_port);
  EXPECT_EQ(config->egress.nat_host->max_age, NatHostConfig().max_age);
}

TEST(ExampleConfig, ShowsTheDefaultsOfEnrollToo) {
  const auto text = os::ReadFile(SPOKE_SOURCE_DIR "/conf/netagent.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto config = ParseAgentConfig(WithEnrollInPlaceOfTls(*text), "conf/netagent.yaml",
                                       [](const std::string&) { return absl::OkStatus(); });
  ASSERT_TRUE(config.ok()) << config.status();
  EnrollConfig expected;
  expected.servers = {
      "ipam.example.internal:7445"};  // The file has examples; there are no defaults.
  expected.server_name = "spoke-ipam-server";
  EXPECT_EQ(config->enroll, expected);
}

TEST(ExampleConfig, WhatKubernetesGetsIsAcceptedForOneServerAndForSeveral) {
  const auto variable = [](const std::string&) { return std::optional<std::string>("10.0.0.1"); };
  for (const auto& [file, servers] : std::map<std::string, size_t>{
           {"base/config/netagent.yaml", 1}, {"azure/netagent.yaml", 1}, {"ha/netagent.yaml", 3}}) {
    auto text = os::ReadFile(SPOKE_SOURCE_DIR "/conf/kubernetes/" + file);
    ASSERT_TRUE(text.ok()) << text.status();
    // Each server has an address of its own.
    for (const char* i : {"0", "1", "2"}) {
      const std::string name = fmt::format("${{SPOKE_IPAM_SERVER_{}_SERVICE_HOST}}", i);
      for (size_t at = 0; (at = text->find(name)) != std::string::npos;) {
        text->replace(at, name.size(), fmt::format("10.0.1.{}", i));
      }
    }
    const auto config = ParseAgentConfig(
        *text, file, [](const std::string&) { return absl::OkStatus(); }, variable);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->servers.size(), servers) << file;
    EXPECT_EQ(config->enroll->servers.size(), servers) << file;
  }
}

}  // namespace
}  // namespace spoke::netagent
