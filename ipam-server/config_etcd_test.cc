#include "ipam-server/config_etcd.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

absl::StatusOr<ServerConfig> Parse(const std::string& store) {
  return ParseServerConfig("tls: {insecure: true}\ncloud: {static: {}}\nstore:\n  " + store + "\n",
                           "ipam.yaml", [](const std::string&) { return absl::OkStatus(); });
}

TEST(EtcdConfig, EverythingCanBeSaid) {
  const auto config = Parse(
      R"(etcd: {endpoints: ["https://a:2379", "https://b"], prefix: /one/, name: n, user: u,
             password_file: /p, ca: /c, certificate: /d, key: /k, lease: 5s, listen_standbys: "10.0.0.1:7", directory: /x})");
  ASSERT_TRUE(config.ok()) << config.status();
  const EtcdConfig want = {.endpoints = {{"a", 2379, true}, {"b", 2379, true}},
                           .prefix = "/one/",
                           .name = "n",
                           .user = "u",
                           .password_file = "/p",
                           .ca = "/c",
                           .certificate = "/d",
                           .key = "/k",
                           .lease = absl::Seconds(5),
                           .listen_standbys = "10.0.0.1:7"};
  EXPECT_EQ(config->etcd, want);
  EXPECT_EQ(config->witness_directory(), "/x");
}

TEST(EtcdConfig, WithoutItTheStoreIsSqlite) {
  EXPECT_EQ(Parse("sqlite: /s/ipam.db")->etcd, std::nullopt);
  EXPECT_EQ(Parse("etcd: {endpoints: [\"http://a\"]}")->witness_directory(), "/var/lib/spoke");
}

TEST(EtcdConfig, MistakesAreNamedWithTheirKeys) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"etcd: {}", "endpoints"},
      {"etcd: {endpoints: []}", "1 to"},
      {"etcd: {endpoints: [a]}", "no endpoint of etcd"},
      {"etcd: {endpoints: [\"https://a\"]}", "https needs ca"},
      {"etcd: {endpoints: [\"http://a\"], ca: /c}", "these are http"},
      {"etcd: {endpoints: [\"http://a\"], user: u}", "go together"},
      {"etcd: {endpoints: [\"https://a\"], ca: /c, key: /k}", "go together"},
      {"etcd: {endpoints: [\"http://a\"], prefix: spoke}", "slash"},
      {"etcd: {endpoints: [\"http://a\"], lease: 1s}", "lease"},
      {"etcd: {endpoints: [\"http://a\"], listen_standbys: 7446}", "host:port"},
      {"etcd: {endpoints: [\"http://a\"], listen_standbys: \"0.0.0.0\"}", "host:port"},
      {"etcd: {endpoints: [\"http://a\"], lease: 2500ms}", "whole seconds"},
      {"{etcd: {endpoints: [\"http://a\"]}, sqlite: /s/ipam.db}", "one store"},
  };
  for (const auto& [store, why] : cases) {
    const absl::Status status = Parse(store).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << store;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << store;
  }
}

}  // namespace
}  // namespace spoke::ipam
