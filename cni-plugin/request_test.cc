#include "cni-plugin/request.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Expected<Request> Parse(const Variables& variables) {
  return ParseEnvironment([&](const char* name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  });
}

Variables Good(const std::string& command = "ADD") {
  return {{"CNI_COMMAND", command},
          {"CNI_CONTAINERID", std::string(64, 'a')},
          {"CNI_NETNS", "/var/run/netns/cni-1"},
          {"CNI_IFNAME", "eth0"}};
}

Variables With(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Expected<Request> Configure(std::string_view text, Command command = Command::kAdd) {
  Request request;
  request.command = command;
  return ParseConfig(request, text);
}

TEST(ParseEnvironment, TakesWhatTheRuntimesSend) {
  const auto request =
      Parse(With(Good(), "CNI_ARGS",
                 "K8S_POD_UID=u-1;IgnoreUnknown=1;K8S_POD_NAME=web;K8S_POD_NAMESPACE=prod;FOO"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->command, Command::kAdd);
  EXPECT_EQ(request->pod_namespace, "prod");
  EXPECT_EQ(request->pod_name, "web");
  EXPECT_EQ(request->pod_uid, "u-1");
}

TEST(ParseEnvironment, NamesEveryMissingVariableAtOnce) {
  const auto none = Parse({{"CNI_COMMAND", "ADD"}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, kInvalidEnvironment);
  EXPECT_THAT(none.error().message, HasSubstr("CNI_CONTAINERID, CNI_IFNAME, CNI_NETNS"));
}

TEST(ParseEnvironment, DelNeedsNoNamespaceAndVersionNothingAtAll) {
  EXPECT_TRUE(Parse(With(Good("DEL"), "CNI_NETNS", "")).ok());
  EXPECT_FALSE(Parse(With(Good("ADD"), "CNI_NETNS", "")).ok());
  EXPECT_TRUE(Parse({{"CNI_COMMAND", "VERSION"}, {"CNI_IFNAME", "a/b"}}).ok());
}

TEST(ParseEnvironment, RefusesNamesTheSpecOrTheKernelRefuses) {
  for (const char* id : {"some-%%container-id", "-a", ".a", "a b", "a/b"}) {
    EXPECT_FALSE(Parse(With(Good(), "CNI_CONTAINERID", id)).ok()) << id;
  }
  for (const char* name :
       {"sixteen-letters-", ".", "..", "a/b", "a:b", "a b", "a\tb", "a\xC2\xA0"}) {
    EXPECT_FALSE(Parse(With(Good(), "CNI_IFNAME", name)).ok()) << name;
  }
  EXPECT_TRUE(Parse(With(Good(), "CNI_IFNAME", "fifteen-letters")).ok());
  EXPECT_TRUE(Parse(With(Good(), "CNI_CONTAINERID", std::string(200, 'a'))).ok());
  for (const char* command : {"", "add", "CHECK", "GC", "STATUS", "X"}) {
    EXPECT_EQ(Parse(Good(command)).error().code, kInvalidEnvironment) << command;
  }
}

TEST(ParseConfig, TakesOurConfigurationAndPassesOverTheRest) {
  const auto request = Configure(
      R"({"cniVersion":"1.0.0","name":"spoke","type":"spoke","socket":"/run/x.sock","capabilities":{},
          "dns":{"nameservers":["10.0.0.10"]},"future":[1,{"a":2}]})");
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->socket, "/run/x.sock");
  EXPECT_EQ(request->dns_json, R"({"nameservers":["10.0.0.10"]})");
  EXPECT_EQ(Configure(R"({"cniVersion":"0.3.1","name":"n"})")->socket, "/run/spoke/cni.sock");
}

TEST(ParseConfig, TakesTheFileThatUsersInstall) {
  std::ifstream file(SPOKE_SOURCE_DIR "/conf/10-spoke.conflist");
  const auto list = nlohmann::json::parse(file);
  auto plugin = list["plugins"][0];
  plugin["name"] = list["name"];
  plugin["cniVersion"] = list["cniVersion"];
  const auto request = Configure(plugin.dump());
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->socket, Request().socket);
}

TEST(ParseConfig, WhatIsNoObjectIsADecodingFailure) {
  for (const std::string text : {"", "{bad", "[]", "null", "\"x\"", "{\"name\":\"a\"", "{} {}"}) {
    EXPECT_EQ(Configure(text).error().code, kDecodingFailure) << text;
  }
  EXPECT_EQ(Configure("{\"name\":\"\xff\xfe\"}").error().code, kDecodingFailure);
  EXPECT_EQ(Configure(std::string(1 << 20, '[')).error().code, kDecodingFailure);
  EXPECT_EQ(Configure(std::string(1 << 19, '[') + std::string(1 << 19, ']')).error().code,
            kDecodingFailure);
}

TEST(ParseConfig, NameSocketAndChainAreChecked) {
  for (const char* text :
       {R"({"cniVersion":"1.0.0"})", R"({"cniVersion":"1.0.0","name":"a/b"})",
        R"({"cniVersion":"1.0.0","name":"-a"})", R"({"cniVersion":"1.0.0","name":7})",
        R"({"cniVersion":7,"name":"a"})", R"({"cniVersion":"1.0.0","name":"a","socket":"x"})",
        R"({"cniVersion":"1.0.0","name":"a","socket":["/x"]})",
        R"({"cniVersion":"1.0.0","name":"a","prevResult":{}})"}) {
    EXPECT_EQ(Configure(text).error().code, kInvalidConfig) << text;
  }
  EXPECT_TRUE(
      Configure(R"({"cniVersion":"1.0.0","name":"a","prevResult":null})", Command::kDel).ok());
}

TEST(ParseConfig, AVersionItDoesNotSpeakIsNamedBesideThoseItDoes) {
  for (const char* text : {R"({"name":"a"})", R"({"cniVersion":"1.1.0","name":"a"})",
                           R"({"cniVersion":"abc","name":"a"})"}) {
    const auto request = Configure(text);
    ASSERT_FALSE(request.ok());
    EXPECT_EQ(request.error().code, kIncompatibleVersion);
    EXPECT_THAT(request.error().details, HasSubstr("0.3.0, 0.3.1, 0.4.0, 1.0.0"));
  }
}

}  // namespace
}  // namespace spoke::cni
