#include "netagent/config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

absl::Status AllThere(const std::string&) { return absl::OkStatus(); }

std::string Mistakes(std::string_view text, const CheckDirectory& check = AllThere) {
  const auto config = ParseAgentConfig(text, "agent.yaml", check);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(AgentConfig, DefaultsStandWhereTheFileIsSilent) {
  const auto config =
      ParseAgentConfig("server: ipam:7443\ntls: {insecure: true}\n", "agent.yaml", AllThere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->nic, "eth0");
  EXPECT_EQ(config->cooldown, absl::Seconds(30));
  EXPECT_EQ(config->mtu, 0U);
}

TEST(AgentConfig, MistakesAreReportedTogetherWithTheirLines) {
  const std::string text = Mistakes("tls: {insecure: true}\nmtu: 100\ncooldown: 30\nnick: eth1\n");
  EXPECT_THAT(text, HasSubstr("server"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:2: mtu: 100 is below 576"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:3: cooldown"));
  EXPECT_THAT(text, HasSubstr("agent.yaml:4: nick"));
}

TEST(AgentConfig, AMissingSocketDirectoryIsAMistakeOfItsKey) {
  const std::string text =
      Mistakes("server: a:1\ntls: {insecure: true}\ncni_socket: /nowhere/cni.sock\n",
               [](const std::string& path) {
                 return path == "/nowhere" ? absl::NotFoundError("directory /nowhere: gone")
                                           : absl::OkStatus();
               });
  EXPECT_THAT(text, HasSubstr("agent.yaml:3: cni_socket: directory /nowhere: gone"));
}

}  // namespace
}  // namespace spoke::netagent
