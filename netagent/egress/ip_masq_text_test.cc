#include "netagent/egress/ip_masq_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Blocks(const IpMasqFiles& files) {
  std::vector<std::string> texts;
  for (const ip::Prefix& block : files.config.non_masquerade) texts.push_back(block.ToString());
  return texts;
}

// The example of ip-masq-agent's README.
constexpr char kYaml[] = R"(nonMasqueradeCIDRs:
  - 10.0.0.0/8
resyncInterval: 60s
masqLinkLocal: true
)";

TEST(IpMasqText, TakesYaml) {
  const auto files = ParseIpMasq({{"config", kYaml}});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(Blocks(*files), ElementsAre("10.0.0.0/8"));
  EXPECT_TRUE(files->config.masquerade_link_local);
  EXPECT_FALSE(files->config.masquerade_link_local_ipv6);
  EXPECT_EQ(files->resync, absl::Seconds(60));
}

TEST(IpMasqText, TakesJsonWithTabs) {
  const auto files =
      ParseIpMasq({{"config",
                    "\n{\n\t\"nonMasqueradeCIDRs\": [\"10.0.0.0/8\", \"fd00::/8\"],\n"
                    "\t\"masqLinkLocalIPv6\": true,\n\t\"resyncInterval\": \"1m30s\"\n}\n"}});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(Blocks(*files), ElementsAre("10.0.0.0/8", "fd00::/8"));
  EXPECT_TRUE(files->config.masquerade_link_local_ipv6);
  EXPECT_EQ(files->resync, absl::Seconds(90));
}

TEST(IpMasqText, MergesFiles) {
  const auto files = ParseIpMasq({{"ip-masq-a", kYaml},
                                  {"ip-masq-b", "nonMasqueradeCIDRs: [10.0.0.0/8, 9.0.0.0/8]"},
                                  {"ip-masq-c", "resyncInterval: 5s\n"},
                                  {"ip-masq-d", ""}});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(Blocks(*files), ElementsAre("9.0.0.0/8", "10.0.0.0/8"));
  EXPECT_TRUE(files->config.masquerade_link_local);
  EXPECT_EQ(files->resync, absl::Seconds(5));
}

TEST(IpMasqText, PrivateBlocksStandInForNone) {
  for (const std::vector<std::pair<std::string, std::string>>& none :
       {std::vector<std::pair<std::string, std::string>>{}, {{"config", "masqLinkLocal: false"}}}) {
    const auto files = ParseIpMasq(none);
    ASSERT_TRUE(files.ok());
    EXPECT_THAT(Blocks(*files), ElementsAre("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"));
  }
}

TEST(IpMasqText, AnEmptyListIsAList) {
  for (const char* text : {"nonMasqueradeCIDRs: []", "{\"nonMasqueradeCIDRs\": []}"}) {
    const auto files = ParseIpMasq({{"config", text}});
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_TRUE(files->config.non_masquerade.empty()) << text;
  }
}

TEST(IpMasqText, ReportsKeysItDoesNotKnow) {
  for (const char* text : {"snatTarget: 1.2.3.4", "{\"snatTarget\": {\"a\": [1]}}"}) {
    const auto files = ParseIpMasq({{"config", text}});
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_THAT(files->unknown_keys, ElementsAre("config: snatTarget"));
  }
}

struct Case {
  const char* name;
  const char* text;
  const char* want;
};

class IpMasqRefusedTest : public testing::TestWithParam<Case> {};

TEST_P(IpMasqRefusedTest, NamesTheFileAndTheReason) {
  const auto files = ParseIpMasq({{"ip-masq-x", GetParam().text}});
  ASSERT_EQ(files.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(files.status().message()), HasSubstr("ip-masq-x"));
  EXPECT_THAT(std::string(files.status().message()), HasSubstr(GetParam().want));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, IpMasqRefusedTest,
    testing::Values(Case{"HostBits", "nonMasqueradeCIDRs: [10.0.0.1/8]", "10.0.0.1/8"},
                    Case{"NoBlock", "{\"nonMasqueradeCIDRs\": [\"x\"]}", "x"},
                    Case{"NumberForBlock", "{\"nonMasqueradeCIDRs\": [1]}", "no text"},
                    Case{"NoList", "{\"nonMasqueradeCIDRs\": 1}", "no list"},
                    Case{"TextForBool", "{\"masqLinkLocal\": \"true\"}", "neither true nor false"},
                    Case{"ResyncWithoutUnit", "resyncInterval: 60", "time from"},
                    Case{"ResyncZero", "{\"resyncInterval\": \"0s\"}", "time from"},
                    Case{"CutShort", "{\"masqLinkLocal\": true", "no JSON object"},
                    Case{"TooDeep", "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{}}}}}}", "no JSON object"},
                    Case{"NoYaml", "nonMasqueradeCIDRs: [", ""}),
    [](const auto& test) { return test.param.name; });

TEST(IpMasqText, TakesSixtyFourBlocksOfAFile) {
  std::string text = "nonMasqueradeCIDRs:\n";
  for (int i = 0; i < 64; ++i) text += "- 10." + std::to_string(i) + ".0.0/16\n";
  EXPECT_TRUE(ParseIpMasq({{"config", text}}).ok());
  EXPECT_FALSE(ParseIpMasq({{"config", text + "- 11.0.0.0/16\n"}}).ok());
}

}  // namespace
}  // namespace spoke::netagent
