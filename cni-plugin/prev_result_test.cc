#include <nlohmann/json.hpp>

#include "cni-plugin/result.h"
#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

constexpr const char* kPrev = R"({"cniVersion":"1.1.0","interfaces":[
    {"name":"br0","mac":"0a:00:00:00:00:09","mtu":1400,"socketPath":"/x","pciID":"0","future":[1]},
    {"name":"net0","sandbox":"/run/netns/a"}],
  "ips":[{"address":"10.9.0.2/24","gateway":"10.9.0.1","interface":1},{"address":"fd00::2/64"}],
  "routes":[{"dst":"10.0.0.0/8","mtu":1300}],"dns":{"nameservers":["10.9.0.53"]}})";

Invocation RequestOf(const std::string& version) {
  Invocation request;
  request.cni_version = version;
  request.ifname = "eth0";
  request.netns = "/run/netns/a";
  return request;
}

std::optional<Error> Chain(const std::string& prev, Invocation& request) {
  json::Document document;
  EXPECT_TRUE(json::Parse(prev, document)) << prev;
  return ReadChained(document, request);
}

nlohmann::json Result(const Invocation& request) {
  return nlohmann::json::parse(
      FormatResult(request, {.host_link = "spk1", .addresses = {{"10.1.0.5/32", "169.254.1.1"}}}));
}

// Covers B32.
TEST(ReadChained, WhatIsThereIsKeptAndOursFollows) {
  Invocation request = RequestOf("1.1.0");
  ASSERT_FALSE(Chain(kPrev, request));
  const auto result = Result(request);
  const auto prev = nlohmann::json::parse(kPrev);
  ASSERT_EQ(result["interfaces"].size(), 4U);
  EXPECT_EQ(result["interfaces"][0], prev["interfaces"][0]);
  EXPECT_EQ(result["interfaces"][1], prev["interfaces"][1]);
  EXPECT_EQ(result["interfaces"][2]["name"], "spk1");
  EXPECT_EQ(result["interfaces"][3]["name"], "eth0");
  ASSERT_EQ(result["ips"].size(), 3U);
  EXPECT_EQ(result["ips"][0], prev["ips"][0]);
  EXPECT_EQ(result["ips"][1], prev["ips"][1]);
  EXPECT_EQ(result["ips"][2]["interface"], 3);
  ASSERT_EQ(result["routes"].size(), 2U);
  EXPECT_EQ(result["routes"][0], prev["routes"][0]);
  EXPECT_EQ(result["dns"], prev["dns"]);
}

TEST(ReadChained, IsConvertedToTheVersionThatIsAsked) {
  Invocation request = RequestOf("0.4.0");
  ASSERT_FALSE(Chain(kPrev, request));
  auto result = Result(request);
  EXPECT_FALSE(result["interfaces"][0].contains("mtu"));
  EXPECT_FALSE(result["interfaces"][0].contains("socketPath"));
  EXPECT_FALSE(result["interfaces"][0].contains("pciID"));
  EXPECT_EQ(result["ips"][0]["version"], "4");
  EXPECT_EQ(result["ips"][1]["version"], "6");
  EXPECT_EQ(result["ips"][2]["version"], "4");

  request = RequestOf("1.0.0");
  ASSERT_FALSE(
      Chain(R"({"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.9.0.2/24"}]})", request));
  result = Result(request);
  EXPECT_EQ(result["ips"][0], (nlohmann::json{{"address", "10.9.0.2/24"}}));
  EXPECT_EQ(result["ips"][1]["interface"], 1);
}

TEST(ReadChained, AnythingMayBeMissing) {
  for (const char* prev :
       {"{}", R"({"dns":{}})", R"({"ips":[],"routes":[],"interfaces":[]})",
        R"({"interfaces":null,"dns":null})", R"({"cniVersion":"","ips":[{"address":"a"}]})"}) {
    Invocation request = RequestOf("1.0.0");
    EXPECT_FALSE(Chain(prev, request)) << prev;
    EXPECT_TRUE(Result(request).is_object()) << prev;
  }
}

TEST(ReadChained, WhatIsNoResultIsRefused) {
  for (const char* prev : {"7", "\"x\"", "[]", R"({"interfaces":{}})", R"({"interfaces":[7]})",
                           R"({"interfaces":[{"name":7}]})", R"({"ips":[{"address":null}]})",
                           R"({"routes":[[]]})", R"({"routes":"x"})", R"({"dns":[]})"}) {
    Invocation request = RequestOf("1.0.0");
    const auto error = Chain(prev, request);
    ASSERT_TRUE(error) << prev;
    EXPECT_EQ(error->code, kDecodingFailure) << prev;
  }
  Invocation request = RequestOf("1.0.0");
  EXPECT_EQ(Chain(R"({"cniVersion":"9.0.0"})", request)->code, kIncompatibleVersion);
  EXPECT_EQ(Chain(R"({"cniVersion":"0.2.0"})", request)->code, kIncompatibleVersion);
}

std::optional<Error> Expect(const std::string& prev, Invocation& request) {
  json::Document document;
  EXPECT_TRUE(json::Parse(prev, document)) << prev;
  return ReadExpectations(document, request);
}

TEST(ReadExpectations, FindsBothEndsAndTheirAddresses) {
  Invocation request = RequestOf("1.1.0");
  ASSERT_FALSE(Expect(R"({"interfaces":[{"name":"net1","sandbox":"/run/netns/a"},
      {"name":"spk1","mac":"0a:00:00:00:00:01","mtu":1500},
      {"name":"eth0","mac":"0e:00:00:00:00:01","mtu":1500,"sandbox":"/run/netns/a"}],
    "ips":[{"address":"10.9.0.2/24","interface":0},
           {"address":"10.1.0.5/32","gateway":"169.254.1.1","interface":2},
           {"address":"fd00::5/128","interface":2},{"address":"10.8.0.1/8"},
           {"address":"10.8.0.1/8","interface":-1}]})",
                      request));
  ASSERT_EQ(request.expectations.size(), 1U);
  EXPECT_EQ(request.expectations[0].sandbox, "/run/netns/a");
  EXPECT_EQ(request.expectations[0].attachment,
            (Attachment{"spk1",
                        "0a:00:00:00:00:01",
                        "0e:00:00:00:00:01",
                        1500,
                        {{"10.1.0.5/32", "169.254.1.1"}, {"fd00::5/128", ""}}}));
}

// Covers D4.
TEST(ReadExpectations, WithoutOurInterfaceThereIsNothingToCheck) {
  for (const char* prev : {"{}", R"({"interfaces":[]})", R"({"interfaces":[{"name":"eth0"}]})",
                           R"({"interfaces":[{"name":"eth1","sandbox":"/run/netns/a"}]})"}) {
    Invocation request = RequestOf("1.1.0");
    const auto error = Expect(prev, request);
    ASSERT_TRUE(error) << prev;
    EXPECT_EQ(error->code, kInvalidConfig);
  }
}

}  // namespace
}  // namespace spoke::cni
