#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/node_checks/facts/server_probe.h"
#include "lib/os/file.h"

namespace spoke::node_checks {
namespace {

std::optional<std::string> Variable(const std::string& name) {
  if (name == "SPOKE_IPAM_SERVER_SERVICE_HOST") return "10.0.0.7";
  if (name == "MTU") return "1400";
  return std::nullopt;
}

TEST(AgentSettings, TheExampleIsRead) {
  const auto text = os::ReadFile(SPOKE_SOURCE_DIR "/conf/netagent.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  NodeSettings settings;
  EXPECT_EQ(TakeAgentSettings(*text, "netagent.yaml", &Variable, settings), absl::OkStatus());
  EXPECT_THAT(settings.servers, testing::ElementsAre("ipam.example.internal:7443"));
  EXPECT_EQ(settings.conf_file, "10-spoke.conflist");
  EXPECT_TRUE(settings.azure && settings.counts && settings.fast_path);
}

TEST(AgentSettings, WhatIsSaidOverridesAndTheRestStays) {
  NodeSettings settings;
  const absl::Status status = TakeAgentSettings(
      "nic: ens3\nmtu: ${MTU}\nserver: ${SPOKE_IPAM_SERVER_SERVICE_HOST}:7443\n"
      "state_dir: ${ELSEWHERE}/x\nunknown: {a: 1}\ncni: {bin_dir: /x/bin, new: 1}\n"
      "traffic: {enabled: false, fast_path: off}\n",
      "a.yaml", &Variable, settings);
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(settings.nic, "ens3");
  EXPECT_EQ(settings.mtu, 1400U);
  EXPECT_THAT(settings.servers, testing::ElementsAre("10.0.0.7:7443"));
  EXPECT_EQ(settings.state_dir, "/run/spoke/netagent");
  EXPECT_EQ(settings.bin_dir, "/x/bin");
  EXPECT_EQ(settings.conf_dir, "/etc/cni/net.d");
  EXPECT_FALSE(settings.counts || settings.fast_path || settings.azure);
  EXPECT_EQ(settings.metadata_url, "");
  EXPECT_EQ(settings.services, ServiceSettings());
}

TEST(AgentSettings, TheServicesThatAreAskedAreTheAgents) {
  NodeSettings settings;
  const absl::Status status = TakeAgentSettings(
      "azure: {new: 1}\nnode_checks:\n  new: {a: 1}\n  cluster_dns: {new: 1, name: a.example, "
      "servers: [\"${ELSEWHERE}\", 10.96.0.10, \"fd00::10\"]}\n  node_dns: {name: b.example}\n",
      "a.yaml", &Variable, settings);
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(settings.metadata_url, "http://169.254.169.254");
  EXPECT_EQ(settings.services,
            (ServiceSettings{.cluster_resolvers = {ip::Address::V4(0x0A60000A),
                                                   ip::Address::V6(0xFD00ULL << 48U, 0x10)},
                             .cluster_name = "a.example",
                             .node_name = "b.example"}));
  NodeSettings elsewhere;
  EXPECT_EQ(TakeAgentSettings("azure: {imds: \"http://127.0.0.1:81\"}\nnode_checks: {node_dns: "
                              "{name: \"${ELSEWHERE}\"}}\n",
                              "a.yaml", &Variable, elsewhere),
            absl::OkStatus());
  EXPECT_EQ(elsewhere.metadata_url, "http://127.0.0.1:81");
  EXPECT_EQ(elsewhere.services, ServiceSettings());
}

TEST(AgentSettings, ServersAreReadAsFarAsTheyAreKnown) {
  NodeSettings settings;
  EXPECT_EQ(TakeAgentSettings("servers: [a:7443, \"${ELSEWHERE}:7443\", b:7443]\n", "a.yaml",
                              &Variable, settings),
            absl::OkStatus());
  EXPECT_THAT(settings.servers, testing::ElementsAre("a:7443", "b:7443"));
}

TEST(AgentSettings, WhatNamesAnUnknownVariableIsPassedOver) {
  NodeSettings settings;
  EXPECT_EQ(
      TakeAgentSettings("nic: ens3\nmtu: ${ELSEWHERE}\ntraffic: {enabled: \"${ELSEWHERE}\"}\n",
                        "a.yaml", &Variable, settings),
      absl::OkStatus());
  EXPECT_EQ(settings.nic, "ens3");
  EXPECT_EQ(settings.mtu, NodeSettings().mtu);
  EXPECT_EQ(settings.counts, NodeSettings().counts);
  const absl::Status malformed =
      TakeAgentSettings("nic: ${no-name}\n", "a.yaml", &Variable, settings);
  EXPECT_THAT(std::string(malformed.message()), testing::HasSubstr("a.yaml:1: nic"));
}

TEST(AgentSettings, MistakesAreSaidWithTheirLines) {
  NodeSettings settings;
  const absl::Status status =
      TakeAgentSettings("nic: ens3\nmtu: many\ncni: 7\n", "a.yaml", &Variable, settings);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("a.yaml:2: mtu"));
  EXPECT_EQ(settings.nic, "ens3");
  EXPECT_FALSE(TakeAgentSettings("nic: [", "a.yaml", &Variable, settings).ok());
}

}  // namespace
}  // namespace spoke::node_checks
