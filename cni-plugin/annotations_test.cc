#include <string>
#include <utility>

#include "cni-plugin/agent/options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

using units::BitRate;

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kIngress = "spoke.internal/internet-ingress-bandwidth";
constexpr const char* kEgress = "spoke.internal/internet-egress-bandwidth";
constexpr const char* kWeight = "spoke.internal/internet-weight";

struct Outcome {
  Options options;
  std::optional<Error> error;
};

// Reads annotations into whole options: what these have beside annotations is not touched by them.
Outcome Read(const std::string& annotations) {
  Invocation request;
  request.pod = {"prod", "web", ""};
  json::Document document;
  const std::string config =
      R"({"runtimeConfig":{"io.kubernetes.cri.pod-annotations":)" + annotations + "}}";
  EXPECT_TRUE(json::Parse(config, document)) << config;
  auto error = ReadOptions(document, request);
  return {request.options, error};
}

Outcome ReadOne(const std::string& key, const std::string& value) {
  return Read("{\"" + key + "\":\"" + value + "\"}");
}

void ExpectRefused(const Outcome& outcome, const std::string& key, const std::string& value,
                   const std::string& example) {
  ASSERT_TRUE(outcome.error) << key << " " << value;
  EXPECT_EQ(outcome.error->code, kInvalidConfig);
  EXPECT_THAT(outcome.error->message,
              AllOf(HasSubstr(key), HasSubstr("pod prod/web"), HasSubstr(value)));
  EXPECT_THAT(outcome.error->details, HasSubstr(example));
}

TEST(ReadAnnotations, TakeLimitsAndWeight) {
  const Outcome outcome = Read(R"({"spoke.internal/internet-ingress-bandwidth":"100Mbit",
                                   "spoke.internal/internet-egress-bandwidth":"1.5Gbit",
                                   "spoke.internal/internet-weight":"7"})");
  EXPECT_FALSE(outcome.error);
  Options want;
  want.internet = {BitRate(100'000'000), BitRate(1'500'000'000), 7};
  EXPECT_EQ(outcome.options, want);
}

TEST(ReadAnnotations, OthersAskForNothing) {
  for (const char* annotations :
       {"{}", "null", R"({"spoke.internal/owner":"7","bandwidth":"x"})",
        R"({"kubernetes.io/ingress-bandwidth":"100M","prefix.spoke.internal/bandwidth":"1"})",
        R"({"kubernetes.io/config.source":7,"spoke.internal/internet-egress-bandwidth":null})"}) {
    const Outcome outcome = Read(annotations);
    EXPECT_FALSE(outcome.error) << annotations;
    EXPECT_EQ(outcome.options, Options()) << annotations;
  }
}

TEST(ReadAnnotations, RatesHaveAUnit) {
  const std::pair<const char*, uint64_t> rates[] = {
      {"1Mbit", 1'000'000},          {"1.0Mbit", 1'000'000},
      {"1000000bit", 1'000'000},     {"1500kbit", 1'500'000},
      {"1.000001Mbit", 1'000'001},   {"1.00000000Mbit", 1'000'000},
      {"0.001Gbit", 1'000'000},      {"0.5Tbit", 500'000'000'000},
      {"1Tbit", 1'000'000'000'000},  {"00025.5Gbit", 25'500'000'000},
      {"1000000.000bit", 1'000'000},
  };
  for (const auto& [text, want] : rates) {
    const Outcome ingress = ReadOne(kIngress, text);
    EXPECT_FALSE(ingress.error) << text;
    EXPECT_EQ(ingress.options.internet, (InternetOptions{BitRate(want), BitRate(), 1})) << text;
    EXPECT_EQ(ReadOne(kEgress, text).options.internet,
              (InternetOptions{BitRate(), BitRate(want), 1}))
        << text;
  }
}

TEST(ReadAnnotations, WhatIsNoRateIsRefusedWithAnExample) {
  for (const std::string text : {"",
                                 "100",
                                 "100M",
                                 "100Mi",
                                 "100m",
                                 "100MB",
                                 "100Mbps",
                                 "100mbit",
                                 "100Kbit",
                                 "100 Mbit",
                                 " 100Mbit",
                                 "100Mbit ",
                                 "-100Mbit",
                                 "+100Mbit",
                                 "0Mbit",
                                 "0bit",
                                 "0.0Gbit",
                                 "800kbit",
                                 "0.9Mbit",
                                 "999999bit",
                                 "1.1Tbit",
                                 "1000.1Gbit",
                                 "Mbit",
                                 "bit",
                                 ".5Gbit",
                                 "5.Gbit",
                                 "1.5.5Gbit",
                                 "1,5Gbit",
                                 "1e9bit",
                                 "0x10Mbit",
                                 "100Mbitt",
                                 "100Mbit/s",
                                 "100MMbit",
                                 "1000000.5bit",
                                 "infMbit",
                                 "99999999999999999999Mbit",
                                 "1.0000001Mbit",
                                 "18446744073709551616bit",
                                 "18446744073709551617000000000000000000bit"}) {
    ExpectRefused(ReadOne(kIngress, text), kIngress, "\"" + text + "\"", "100Mbit");
    ExpectRefused(ReadOne(kEgress, text), kEgress, "\"" + text + "\"", "100Mbit");
  }
  ExpectRefused(Read(R"({"spoke.internal/internet-egress-bandwidth":100})"), kEgress, "100",
                "100Mbit");
  ExpectRefused(Read(R"({"spoke.internal/internet-egress-bandwidth":{"a":"1Mbit"}})"), kEgress, "a",
                "100Mbit");
}

TEST(ReadAnnotations, AWeightIsAWholeNumber) {
  EXPECT_EQ(ReadOne(kWeight, "1").options.internet.weight, 1U);
  EXPECT_EQ(ReadOne(kWeight, "100").options.internet.weight, 100U);
  for (const std::string text : {"", "0", "101", "-1", "1.5", "x", "1 ", "4294967297"}) {
    ExpectRefused(ReadOne(kWeight, text), kWeight, "\"" + text + "\"", "10");
  }
  ExpectRefused(Read(R"({"spoke.internal/internet-weight":5})"), kWeight, "5", "10");
}

TEST(ReadAnnotations, AMisspeltLimitIsRefused) {
  for (const std::string name :
       {"spoke.internal/internet-bandwidth", "spoke.internal/egress-bandwidth",
        "spoke.internal/internet-ingres-bandwidth", "spoke.internal/Internet-Ingress-Bandwidth",
        "spoke.internal/internet-egress-bandwidths"}) {
    ExpectRefused(ReadOne(name, "100Mbit"), name, "100Mbit",
                  "spoke.internal/internet-ingress-bandwidth");
  }
}

TEST(ReadAnnotations, AMapIsExpected) {
  for (const std::string value : {"[]", "\"x\"", "7", "false"}) {
    ExpectRefused(Read(value), "io.kubernetes.cri.pod-annotations", value, "object");
  }
}

}  // namespace
}  // namespace spoke::cni
