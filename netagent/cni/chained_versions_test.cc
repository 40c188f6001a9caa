#include "netagent/cni/chained_versions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kTwo =
    R"({"cniVersion":"1.0.0","cniVersions":["0.4.0","1.0.0","1.1.0"],)"
    R"("plugins":[{"type":"spoke"},{"type":"portmap"},{"type":"tuning"}]})";

TEST(ChainedPlugins, AreAllButSpoke) {
  EXPECT_THAT(ChainedPlugins(kTwo), ElementsAre("portmap", "tuning"));
  EXPECT_THAT(ChainedPlugins(R"({"plugins":[{"type":"spoke"}]})"), IsEmpty());
  EXPECT_THAT(ChainedPlugins(R"({"plugins":[{"type":"tuning"},{"type":"spoke"}]})"),
              ElementsAre("tuning"));
  EXPECT_THAT(ChainedPlugins(R"({"plugins":[{"type":"spoke"},{"type":7},8,{}]})"), IsEmpty());
  EXPECT_THAT(ChainedPlugins(R"({"plugins":7})"), IsEmpty());
  EXPECT_THAT(ChainedPlugins("{ not json"), IsEmpty());
}

TEST(ParseVersionAnswer, TakesAListAndNothingElse) {
  EXPECT_THAT(
      ParseVersionAnswer(R"({"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]})").value(),
      ElementsAre("0.4.0", "1.0.0"));
  for (const char* wrong : {"", "7", "[]", "{}", R"({"supportedVersions":"1.0.0"})",
                            R"({"supportedVersions":[]})", R"({"code":4,"msg":"no"})"}) {
    EXPECT_EQ(ParseVersionAnswer(wrong).status().code(), absl::StatusCode::kInvalidArgument)
        << wrong;
  }
}

TEST(WithVersionsOfAll, KeepsWhatEachOfThemSpeaks) {
  const std::string text = WithVersionsOfAll(
      kTwo,
      {{"portmap", CniVersions{"0.4.0", "1.0.0", "1.1.0"}}, {"tuning", CniVersions{"1.0.0"}}});
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["cniVersions"], nlohmann::json({"1.0.0"}));
  EXPECT_EQ(json["plugins"], nlohmann::json::parse(kTwo)["plugins"]);
  EXPECT_EQ(text.find("cniVersion"), text.find('"') + 1) << "the order is the source's: " << text;
}

TEST(WithVersionsOfAll, WhereOneIsUnknownTheListGoes) {
  const auto json = nlohmann::json::parse(WithVersionsOfAll(
      kTwo, {{"portmap", std::nullopt}, {"tuning", CniVersions{"1.0.0", "1.1.0"}}}));
  EXPECT_FALSE(json.contains("cniVersions"));
  EXPECT_EQ(json["cniVersion"], "1.0.0");
}

TEST(WithVersionsOfAll, ChangesNoByteWithoutNeed) {
  const CniVersions all = {"0.4.0", "1.0.0", "1.1.0", "2.0.0"};
  EXPECT_EQ(WithVersionsOfAll(kTwo, {{"portmap", all}, {"tuning", all}}), kTwo);
  EXPECT_EQ(WithVersionsOfAll(kTwo, {}), kTwo);
  constexpr std::string_view kNoList = R"({ "cniVersion":"1.0.0" })";
  EXPECT_EQ(WithVersionsOfAll(kNoList, {{"portmap", std::nullopt}}), kNoList);
  EXPECT_EQ(WithVersionsOfAll("{ not json", {{"portmap", std::nullopt}}), "{ not json");
}

TEST(ChainedVersions, AskNothingOutsideTheDirectory) {
  ChainedVersions chained;
  EXPECT_EQ(chained.Ask("/", "bin/true"), std::nullopt);
  EXPECT_EQ(chained.Ask("/bin", ""), std::nullopt);
  EXPECT_EQ(chained.Ask("/bin", "true"), std::nullopt) << "it says nothing";
  EXPECT_EQ(chained.Ask("/bin", "false"), std::nullopt) << "it fails";
  EXPECT_EQ(chained.Ask("", "no-such-plugin"), std::nullopt);
}

}  // namespace
}  // namespace spoke::netagent
