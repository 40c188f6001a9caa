#include "cni-plugin/agent/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Outcome {
  Options options;
  std::optional<Error> error;
};

Outcome Read(const std::string& config, const std::string& mac = "", const std::string& ip = "") {
  Invocation request;
  request.container_id = "aaa";
  request.pod = {"prod", "web", ""};
  request.args_mac = mac;
  request.args_ip = ip;
  json::Document document;
  EXPECT_TRUE(json::Parse(config, document)) << config;
  auto error = ReadOptions(document, request);
  return {request.options, error};
}

Bandwidth Limits(uint64_t ingress_rate, uint64_t ingress_burst, uint64_t egress_rate,
                 uint64_t egress_burst) {
  return {.ingress_rate = units::BitRate(ingress_rate),
          .ingress_burst = units::BitCount(ingress_burst),
          .egress_rate = units::BitRate(egress_rate),
          .egress_burst = units::BitCount(egress_burst)};
}

// Expects what an invalid option is answered with: code 7, with the key and the value.
void ExpectRefused(const Outcome& outcome, const std::string& key, const std::string& value) {
  ASSERT_TRUE(outcome.error) << key << " " << value;
  EXPECT_EQ(outcome.error->code, kInvalidConfig);
  EXPECT_THAT(outcome.error->message, AllOf(HasSubstr(key), HasSubstr(value)));
  EXPECT_NE(outcome.error->details, "");
}

TEST(ReadOptions, NothingIsAskedByDefault) {
  for (
      const char* config :
      {"{}", R"({"runtimeConfig":null,"args":null})", R"({"runtimeConfig":{},"args":{"cni":{}}})",
       R"({"runtimeConfig":{"mac":"","ips":[],"bandwidth":null},"mtu":0,"args":{"cni":null}})",
       R"({"runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"a":"b"},"aliases":{"n":["x"]}}})",
       R"({"runtimeConfig":{"io.kubernetes.cri.pod-annotations":null,"portMappings":[]}})"}) {
    const Outcome outcome = Read(config);
    EXPECT_FALSE(outcome.error) << config;
    EXPECT_EQ(outcome.options, Options()) << config;
  }
}

// Covers B34.
TEST(ReadOptions, TheMacOfTheRuntimeComesBeforeThatOfTheArgs) {
  const std::string both =
      R"({"runtimeConfig":{"mac":"02:00:00:00:00:01"},"args":{"cni":{"mac":"02:00:00:00:00:02"}}})";
  EXPECT_EQ(Read(both, "02:00:00:00:00:03").options.mac, "02:00:00:00:00:01");
  EXPECT_EQ(Read(R"({"runtimeConfig":{"Mac":"02:00:00:00:00:01"}})").options.mac,
            "02:00:00:00:00:01");
  EXPECT_EQ(Read(R"({"args":{"cni":{"mac":"02:00:00:00:00:02"}}})", "x").options.mac,
            "02:00:00:00:00:02");
  EXPECT_EQ(Read("{}", "02:00:00:00:00:03").options.mac, "02:00:00:00:00:03");
}

TEST(ReadOptions, AMacMayBeWrittenInThreeWays) {
  for (const char* mac : {"0E:11:22:33:44:5F", "0e-11-22-33-44-5f", "0e11.2233.445f"}) {
    EXPECT_EQ(Read("{}", mac).options.mac, "0e:11:22:33:44:5f") << mac;
  }
  for (const std::string mac :
       {"x", "0e:11:22:33:44", "0e:11:22:33:44:5", "0e:11:22:33:44:55:66", "0e:11-22:33:44:55",
        "0g:11:22:33:44:55", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00",
        "0e1122334455", "0e11:2233:4455", "0e:11:22:33:44:5\xC3", " 0e:11:22:33:44:55"}) {
    ExpectRefused(Read("{}", mac), "MAC in CNI_ARGS", mac == "0e:11:22:33:44:5\xC3" ? "0e:" : mac);
  }
  ExpectRefused(Read(R"({"runtimeConfig":{"mac":7}})"), "runtimeConfig.mac", "7");
  ExpectRefused(Read(R"({"args":{"cni":{"mac":"no"}}})"), "args.cni.mac", "no");
}

// Covers B35.
TEST(ReadOptions, AddressesComeFromTheFirstSourceThatHasSome) {
  using Addresses = std::vector<std::string>;
  EXPECT_EQ(Read(R"({"runtimeConfig":{"ips":["10.1.0.5/24","fd00::5"]},
                     "args":{"cni":{"ips":["10.9.9.9"]}}})",
                 "", "10.8.8.8")
                .options.addresses,
            (Addresses{"10.1.0.5/24", "fd00::5"}));
  EXPECT_EQ(Read(R"({"runtimeConfig":{"ips":[]},"args":{"cni":{"ips":["10.9.9.9"]}}})", "", "x")
                .options.addresses,
            (Addresses{"10.9.9.9"}));
  EXPECT_EQ(Read("{}", "", "10.8.8.8,fd00::8/64").options.addresses,
            (Addresses{"10.8.8.8", "fd00::8/64"}));
  EXPECT_EQ(Read(R"({"args":{"cni":{"ips":"10.1.0.5,fd00::5"}}})").options.addresses.size(), 2U);
}

TEST(ReadOptions, WhatIsNoAddressIsNamed) {
  for (const std::string ip :
       {"x", "10.1.0", "10.1.0.5/33", "10.1.0.5/", "10.1.0.5/a", "fd00::5/129", "10.1.0.5/0024",
        "10.1.0.5,10.1.0.6", "fd00::5,fd00::6", "10.1.0.5,,fd00::5", "fe80::1%eth0", ","}) {
    ExpectRefused(Read("{}", "", ip), "IP in CNI_ARGS", ip);
  }
  ExpectRefused(Read(R"({"runtimeConfig":{"ips":["10.1.0.5",7]}})"), "runtimeConfig.ips", "7");
  ExpectRefused(Read(R"({"runtimeConfig":{"ips":{"a":1}}})"), "runtimeConfig.ips", "a");
  ExpectRefused(Read(R"({"runtimeConfig":{"ips":["10.1.0.5\u0000"]}})"), "runtimeConfig.ips", "10");
}

// Covers B6.
TEST(ReadOptions, AnMtuIsWithinWhatIpAndEthernetTake) {
  EXPECT_EQ(Read(R"({"mtu":68})").options.mtu, 68U);
  EXPECT_EQ(Read(R"({"mtu":65535})").options.mtu, 65535U);
  for (const std::string mtu :
       {"67", "65536", "-1", "1500.5", "\"1500\"", "true", "1e30", "18446744073709551616", "[]"}) {
    ExpectRefused(Read("{\"mtu\":" + mtu + "}"), "\"mtu\"",
                  mtu == "18446744073709551616" || mtu == "1e30" ? "1" : mtu);
  }
}

// Covers B24.
TEST(ReadOptions, BandwidthKeysMatchInAnyCase) {
  const Bandwidth want = Limits(10'000'000, 4294967295, 20'000'000, 4294967295);
  EXPECT_EQ(Read(R"({"runtimeConfig":{"bandwidth":{"IngressRate":10000000,"IngressBurst":4294967295,
                     "EgressRate":20000000,"EgressBurst":4294967295}}})")
                .options.bandwidth,
            want);
  EXPECT_EQ(Read(R"({"runtimeConfig":{"bandwidth":{"ingressRate":10000000,"ingressBurst":4294967295,
                     "egressRate":20000000,"egressBurst":4294967295}}})")
                .options.bandwidth,
            want);
}

// Covers B25, B26, B27, B28.
TEST(ReadOptions, BandwidthRulesAreThoseOfTheReference) {
  const auto with = [](const std::string& rate, const std::string& burst) {
    return R"({"runtimeConfig":{"bandwidth":{"egressRate":)" + rate + R"(,"egressBurst":)" + burst +
           "}}}";
  };
  ExpectRefused(Read(with("0", "8")), "if burst is set, rate must also be set", "egress");
  ExpectRefused(Read(with("8", "0")), "if rate is set, burst must also be set", "prod/web");
  ExpectRefused(Read(with("8", "34359738360")), "burst cannot be more than 4GB", "prod/web");
  ExpectRefused(Read(with("-8", "8")), "egressRate", "-8");
  ExpectRefused(Read(with("1.5", "8")), "egressRate of pod prod/web", "1.5");
  ExpectRefused(Read(with("\"8M\"", "8")), "egressRate", "8M");
  ExpectRefused(Read(R"({"runtimeConfig":{"bandwidth":[]}})"), "runtimeConfig.bandwidth", "[]");
  // These are the values that CRI-O and containerd put where a pod says nothing.
  EXPECT_EQ(Read(with("8", "34359738359")).options.bandwidth.egress_burst,
            units::BitCount(34359738359));
  EXPECT_EQ(Read(with("8", "4294967295")).options.bandwidth, Limits(0, 0, 8, 4294967295));
  EXPECT_EQ(Read(with("0", "0")).options.bandwidth, Bandwidth());
}

// Covers B29.
TEST(ReadOptions, TheAdministratorsBandwidthWins) {
  const Outcome outcome = Read(
      R"({"ingressRate":1,"ingressBurst":2,
          "runtimeConfig":{"bandwidth":{"ingressRate":8,"ingressBurst":8,"egressRate":8,"egressBurst":8}}})");
  EXPECT_EQ(outcome.options.bandwidth, Limits(1, 2, 0, 0));
  // The configuration's own keys are exact.
  EXPECT_EQ(Read(R"({"IngressRate":1,"IngressBurst":2})").options.bandwidth, Bandwidth());
}

}  // namespace
}  // namespace spoke::cni
