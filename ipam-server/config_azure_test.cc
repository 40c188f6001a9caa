#include "ipam-server/config_azure.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/config.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kSet[] =
    "/subscriptions/S/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/a";

absl::StatusOr<ServerConfig> Parse(const std::string& azure) {
  return ParseServerConfig("tls: {insecure: true}\ncloud:\n  azure:\n" + azure, "ipam.yaml",
                           [](const std::string&) { return absl::OkStatus(); });
}

std::string Mistakes(const std::string& azure) {
  const auto config = Parse(azure);
  return config.ok() ? "" : std::string(config.status().message());
}

TEST(AzureConfig, TheLeastIsOneScaleSet) {
  const auto config = Parse(std::string("    scale_sets: [") + kSet + "]\n");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_TRUE(config->azure.has_value());
  EXPECT_TRUE(config->policy.cloud_chooses);
  EXPECT_EQ(config->policy.name_prefix, "spoke-");
  EXPECT_EQ(config->azure->endpoints.resource_manager, "https://management.azure.com");
  EXPECT_THAT(config->azure->identities, ElementsAre(azure::Identity()));
  EXPECT_THAT(config->azure->scale_sets, SizeIs(1));
}

TEST(AzureConfig, EveryKeyIsRead) {
  const auto config = Parse(std::string("    scale_sets: [") + kSet + R"(]
    environment: usgovernment
    endpoints: {resource_manager: "http://127.0.0.1:8080", metadata: "http://127.0.0.1:8081"}
    identities:
      - managed: {client_id: one}
      - workload: {tenant: t, client_id: two}
      - client_secret: {tenant: t, client_id: three, secret_file: /etc/secret}
    name_prefix: pods-
    share_for_others: 0.25
    blocks: {nics: true, scale_sets: true}
    ca_file: /etc/ca.pem
    proxy: "http://proxy:3128"
    timeout: 10s
    listing: 1m
)");
  ASSERT_TRUE(config.ok()) << config.status();
  const azure::Settings& azure = *config->azure;
  EXPECT_EQ(azure.endpoints.resource_manager, "http://127.0.0.1:8080");
  EXPECT_EQ(azure.endpoints.authority, "https://login.microsoftonline.us");
  EXPECT_EQ(azure.endpoints.metadata, "http://127.0.0.1:8081");
  ASSERT_THAT(azure.identities, SizeIs(3));
  EXPECT_EQ(azure.identities[0].client_id, "one");
  EXPECT_EQ(azure.identities[1].kind, azure::Identity::Kind::kWorkload);
  EXPECT_NE(azure.identities[1].token_file, "");
  EXPECT_EQ(azure.identities[2].secret_file, "/etc/secret");
  EXPECT_EQ(azure.name_prefix, "pods-");
  EXPECT_EQ(config->policy.name_prefix, "pods-");
  EXPECT_EQ(azure.share_for_others, 0.25);
  EXPECT_TRUE(azure.blocks_on_nics && azure.blocks_on_scale_sets);
  EXPECT_EQ(azure.ca_file, "/etc/ca.pem");
  EXPECT_EQ(azure.proxy, "http://proxy:3128");
  EXPECT_EQ(azure.timeout, absl::Seconds(10));
  EXPECT_EQ(azure.listing, absl::Minutes(1));
}

TEST(AzureConfig, MistakesAreNamed) {
  const std::string set = std::string("    scale_sets: [") + kSet + "]\n";
  struct Case {
    std::string text;
    std::string says;
  };
  const Case cases[] = {
      {"    environment: public\n", "scale_sets"},
      {"    scale_sets: []\n", "at least one is needed"},
      {"    scale_sets: [/subscriptions/s/resourceGroups/g]\n", "not the id of a scale set"},
      {std::string("    scale_sets: [") + kSet + ", " + kSet + "]\n", "named twice"},
      {set + "    environment: moon\n", "environment"},
      {set + "    endpoints: {resource_manager: management.azure.com}\n", "not a URL"},
      {set + "    identities: [{managed: {}, workload: {tenant: t, client_id: c}}]\n",
       "name one of managed"},
      {set + "    identities: [{client_secret: {tenant: t, client_id: c}}]\n", "secret_file"},
      {set + "    identities: [{managed: {}}, {managed: {}}]\n", "named twice"},
      {set + "    name_prefix: \"-x\"\n", "cannot begin the name"},
      {set + "    share_for_others: 1.5\n", "share_for_others"},
      {set + "    timeout: 1ms\n", "timeout"},
      {set + "  static: {}\n", "name one cloud"},
  };
  for (const Case& one : cases) EXPECT_THAT(Mistakes(one.text), HasSubstr(one.says)) << one.text;
}

}  // namespace
}  // namespace spoke::ipam
